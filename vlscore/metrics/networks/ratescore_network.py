"""RaTEScore's networks: the entities of a report, and the vectors that compare them.

Zhao et al. 2024, EMNLP. Results equal those of the package RaTEScore 0.6.0 with the same two
checkpoints: each sentence is read alone, at most 512 tokens of it, and an entity's vector is that
of [CLS] for its first 30 tokens. Its rules for the begin and end of an entity have gaps, which
`_spans` reproduces.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from vlscore.encoders import check_device, inference
from vlscore.errors import IncompatibleCheckpoint
from vlscore.metrics.memo import Memo, content_digest, loaded_once
from vlscore.metrics.networks.categories import TYPES
from vlscore.metrics.networks.clinical_sentences import sentences, sentences_fact
from vlscore.metrics.networks.model_bert import groups_of_like_length, tokens_at_once
from vlscore.metrics.networks.model_files import (
    device_of_annotators,
    files_of_model,
    load_model,
    load_tokenizer,
)

_LABELS = {"O", *(f"{mark}-{name}" for mark in "BI" for name in TYPES)}
_MOST_TOKENS, _MOST_TOKENS_OF_AN_ENTITY = 512, 30


class RaTEEntity(NamedTuple):
    """An entity as the tokenizer writes its tokens, and its type, one of `TYPES`."""

    text: str
    type: str


class RaTEReader:
    """RaTEScore's two networks, ready to read reports.

    Args:
        ner: folder of the model that finds entities, RaTE-NER-Deberta.
        synonyms: folder of the model that encodes entities for comparison, BioLORD-2023-C.
        device: where they run, in float32.

    Raises: IncompatibleCheckpoint, InvalidSetting.
    """

    def __init__(self, ner: Path, synonyms: Path, *, device: str | torch.device = "cpu") -> None:
        self._device = check_device(device)
        self._at_once = tokens_at_once(self._device.type)
        self._finder_tokenizer = load_tokenizer(ner)
        self._finder = load_model("AutoModelForTokenClassification", ner).float()
        self._labels = [self._finder.config.id2label[k] for k in range(self._finder.num_labels)]
        other = sorted(set(map(str, self._labels)) - _LABELS)
        if other:
            raise IncompatibleCheckpoint(
                f"{ner} has the label {other[0]!r}, so it is not RaTEScore's model, whose labels "
                f"are O, and B- and I- with {', '.join(TYPES)}"
            )
        self._encoder_tokenizer = load_tokenizer(synonyms)
        self._encoder = load_model("AutoModel", synonyms).float()
        for model in (self._finder, self._encoder):
            model.to(self._device)

    def annotate(self, reports: Sequence[str]) -> list[tuple[RaTEEntity, ...]]:
        """Return the entities of each report in the order of the text; none for an empty one."""
        cut = [sentences(report) for report in reports]
        distinct = list(dict.fromkeys(sentence for part in cut for sentence in part))
        found = dict(zip(distinct, self._entities(distinct), strict=True))
        return [tuple(entity for sentence in part for entity in found[sentence]) for part in cut]

    def vectors(self, names: Sequence[str]) -> Tensor:
        """Compute (n, hidden) float32 vectors of unit length, on the CPU, from entities' texts."""
        found: list[Tensor] = [torch.empty(0)] * len(names)
        for rows, batch in self._batches(self._encoder_tokenizer, names, _MOST_TOKENS_OF_AN_ENTITY):
            with inference(self._device, "fp32"):
                vectors = self._encoder(**batch).last_hidden_state[:, 0].float().cpu()
            units = torch.nn.functional.normalize(vectors, dim=1)
            for row, vector in zip(rows, units, strict=True):
                found[row] = vector.clone()
        return torch.stack(found)

    def _entities(self, texts: Sequence[str]) -> list[list[RaTEEntity]]:
        tokenizer = self._finder_tokenizer
        found: list[list[RaTEEntity]] = [[] for _ in texts]
        for rows, batch in self._batches(tokenizer, texts, _MOST_TOKENS):
            with inference(self._device, "fp32"):
                chosen = self._finder(**batch).logits.argmax(dim=2).tolist()
            lengths = batch["attention_mask"].sum(1).tolist()
            ids = batch["input_ids"].tolist()
            for row, labels, length, each in zip(rows, chosen, lengths, ids, strict=True):
                tokens = tokenizer.convert_ids_to_tokens(each[:length])
                named = [str(self._labels[label]) for label in labels[:length]]
                for begin, end, kind in _spans(tokens, named):
                    text = tokenizer.convert_tokens_to_string(tokens[begin : end + 1])
                    found[row].append(RaTEEntity(text, kind))
        return found

    def _batches(self, tokenizer: Any, texts: Sequence[str], longest: int) -> Any:
        """Yield (rows, tensors) of texts of similar length."""
        if not texts:
            return
        lengths = [
            len(ids)
            for ids in tokenizer(list(texts), truncation=True, max_length=longest).input_ids
        ]
        for rows in groups_of_like_length(lengths, self._at_once):
            batch = tokenizer(
                [texts[row] for row in rows],
                truncation=True,
                max_length=longest,
                padding=True,
                return_tensors="pt",
            )
            yield rows, batch.to(self._device)


def _spans(tokens: Sequence[str], labels: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return (first token, last token, type) of the entities that a sentence's labels mark.

    This follows the released code, faults included. An entity that reaches the end of the sentence
    is found only if no other ends directly before it. One whose type changes in the middle has its
    first type. "I" after "O" begins no entity.
    """
    found: list[tuple[int, int, str]] = []
    start: int | None = None
    end: int | None = None
    kind = ""
    for i, (token, label) in enumerate(zip(tokens, labels, strict=True)):
        if token in ("[CLS]", "[SEP]") or label == "O" or i + 1 == len(labels):
            continue
        following = labels[i + 1][0]
        if label[0] == "B":
            if following == "I":
                start, kind = i, label[2:]
                continue
            end = i
            found.append((i, i, label[2:]))
        elif following == "I":
            continue
        else:
            end = i
            if start is not None:
                found.append((start, i, kind))
        if following == "B":
            start, kind = i, label[2:]
        else:
            start, end, kind = None, None, ""
    if start is not None and end is None:
        found.append((start, len(tokens) - 2, kind))
    return found


def known_entities(
    memo: Memo, folders: tuple[Path, Path], reports: Sequence[str]
) -> list[tuple[RaTEEntity, ...]]:
    """Return the entities of each report, from memory or cache where they are known.

    The networks are loaded only if a report is new.

    Args: folders: of both models, as in `RaTEReader`.
    """
    facts = {**_facts("entities", folders[0]), "sentences": sentences_fact()}
    return memo.annotate(
        facts,
        reports,
        lambda new: _loaded(*folders, facts["device"]).annotate(new),
        unpack=lambda rows: tuple(RaTEEntity(*row) for row in rows),
    )


def known_vectors(memo: Memo, folders: tuple[Path, Path], names: Sequence[str]) -> Tensor:
    """Return (n, hidden) float32 vectors of unit length, from entities' texts; n >= 1."""
    facts = _facts("vectors", folders[1])
    found = memo.annotate(
        facts,
        names,
        lambda new: _loaded(*folders, facts["device"]).vectors(new).numpy(),
        is_counted=False,
    )
    return torch.from_numpy(np.stack(found))


def _facts(what: str, folder: Path) -> dict[str, str]:
    weights = content_digest(folder, files_of_model(folder))
    return {"holds": f"RaTEScore {what}", "weights": weights, "device": device_of_annotators()}


@loaded_once(lambda ner, synonyms, device: (*files_of_model(ner), *files_of_model(synonyms)))
def _loaded(ner: Path, synonyms: Path, device: str) -> RaTEReader:
    return RaTEReader(ner, synonyms, device=device)
