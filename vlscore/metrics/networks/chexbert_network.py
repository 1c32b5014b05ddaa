"""CheXbert: fourteen observations of a report, each blank, positive, negative or uncertain.

Smit et al. 2020, EMNLP. Equal to the authors' code and to the package f1chexbert over the same
checkpoint: white space is joined, the text is cut into the lower-case word pieces of
bert-base-uncased, and what lies beyond 512 tokens is not read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from vlscore.encoders import (
    WordPieceTokenizer,
    check_device,
    inference,
    load_checkpoint,
    load_state_dict,
    without_wrappers,
)
from vlscore.metrics.memo import Memo, loaded_once
from vlscore.metrics.networks.categories import (
    BLANK,
    NEGATIVE,
    OBSERVATIONS,
    POSITIVE,
    UNCERTAIN,
)
from vlscore.metrics.networks.model_bert import (
    bert_of,
    groups_of_like_length,
    part_of,
    tokens_at_once,
)
from vlscore.metrics.networks.model_files import chexbert_files, facts_of_network

# "No Finding" is blank or positive.
CLASSES = (4,) * 13 + (2,)
_MAX_TOKENS = 512


@dataclass(frozen=True, eq=False)
class CheXbertAnnotation:
    """Annotation of one report by CheXbert.

    Attributes:
        classes: (14,) int64: BLANK, POSITIVE, NEGATIVE or UNCERTAIN, as `OBSERVATIONS`.
        embedding: (hidden,) float32, the last layer's vector of [CLS].
        is_truncated: whether the tail of the report was not read.
    """

    classes: NDArray[np.int64]
    embedding: NDArray[np.float32]
    is_truncated: bool

    @property
    def labels(self) -> dict[str, int | None]:
        """Return observation -> 1 positive, 0 negative, -1 uncertain, None not mentioned."""
        signs = {BLANK: None, POSITIVE: 1, NEGATIVE: 0, UNCERTAIN: -1}
        return {name: signs[int(c)] for name, c in zip(OBSERVATIONS, self.classes, strict=True)}


class CheXbert:
    """A CheXbert checkpoint, ready to read reports.

    Args:
        weights: chexbert.pth as published, its safetensors conversion, or a folder with it.
        vocabulary: vocab.txt of bert-base-uncased, or its folder; default: next to the checkpoint,
            else what the hub's cache on this machine holds.
        device: where it runs.

    Raises: WeightsNotFound, UnsafeCheckpoint, IncompatibleCheckpoint, InvalidSetting.
    """

    def __init__(
        self,
        weights: str | Path,
        vocabulary: str | Path | None = None,
        *,
        device: str | torch.device = "cpu",
    ) -> None:
        path, words = chexbert_files(weights, vocabulary)
        tensors = without_wrappers(load_checkpoint(path))
        self._bert = bert_of(part_of(tensors, "bert."), path)
        hidden = self._bert.hidden
        self._heads = nn.ModuleList(nn.Linear(hidden, classes) for classes in CLASSES)
        heads = {key: t for key, t in tensors.items() if not key.startswith("bert.")}
        load_state_dict(self._heads, heads, source=path, key_of="linear_heads.{}".format)
        self._tokenizer = WordPieceTokenizer.from_file(words, size=self._bert.pieces)
        self._longest = min(_MAX_TOKENS, self._bert.positions)
        self._device = check_device(device)
        self._tokens = tokens_at_once(self._device.type)
        nn.Module.to(self._bert, self._device)
        self._heads.float().eval().to(self._device)

    def annotate(self, reports: Sequence[str]) -> list[CheXbertAnnotation]:
        """Annotate each report, in order; an empty one is read as "[CLS] [SEP]".

        Other reports of the batch change the numbers of a report by no more than float32 rounding.
        """
        logits, embeddings, truncated = self.logits(reports)
        classes = np.stack([part.argmax(dim=1).numpy() for part in logits], axis=1)
        return [
            CheXbertAnnotation(classes[row], embeddings[row].numpy(), bool(truncated[row]))
            for row in range(len(reports))
        ]

    def logits(self, reports: Sequence[str]) -> tuple[list[Tensor], Tensor, Tensor]:
        """Compute the heads' outputs, before any label is chosen.

        Returns: for each of `OBSERVATIONS` (n, 4) or (n, 2) float32 in the order of the classes;
            (n, hidden) float32 embeddings; (n,) bool, whether a report's tail was cut off.
        """
        tokens = self._tokenizer(
            [" ".join(report.split()) for report in reports], max_tokens=self._longest
        )
        found = torch.empty(len(reports), self._bert.hidden)
        with inference(self._device, "fp32"):
            for rows in groups_of_like_length(tokens.lengths.tolist(), self._tokens):
                part = tokens.take(rows).to(self._device)
                found[rows] = self._bert(part)[:, 0].cpu()
            heads = [head(found.to(self._device)).cpu() for head in self._heads]
        return heads, found, tokens.truncated


def annotations(
    memo: Memo, weights: Path, vocabulary: Path, reports: Sequence[str]
) -> list[CheXbertAnnotation]:
    """Return the annotation of each report, from memory or cache where it is known.

    The network is loaded only if a report is new.
    """
    facts = facts_of_network("CheXbert", weights, vocabulary)
    return memo.annotate(
        facts,
        reports,
        lambda new: _loaded(weights, vocabulary, facts["device"]).annotate(new),
        pack=_packed,
        unpack=_unpacked,
    )


def _packed(annotation: CheXbertAnnotation) -> NDArray[np.float32]:
    """Return an annotation as one array: the classes, whether it is truncated, the vector."""
    parts = (annotation.classes, [annotation.is_truncated], annotation.embedding)
    return np.concatenate(parts).astype(np.float32)


def _unpacked(values: NDArray[np.float32]) -> CheXbertAnnotation:
    count = len(CLASSES)
    classes = values[:count].astype(np.int64)
    return CheXbertAnnotation(classes, values[count + 1 :], bool(values[count]))


@loaded_once(lambda weights, vocabulary, device: (weights, vocabulary))
def _loaded(weights: Path, vocabulary: Path, device: str) -> CheXbert:
    return CheXbert(weights, vocabulary, device=device)
