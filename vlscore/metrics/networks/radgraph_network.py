"""RadGraph: reads the entities of a report, and the relations between them.

Jain et al. 2021, NeurIPS Datasets and Benchmarks. Annotations equal those of the package radgraph
0.1.18 with the same archive; here many reports run at a time.

`words_of` splits a report into words as preprocess_reports of that package does. `RadGraph` runs
BERT and the network of `radgraph_model` over reports.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from vlscore.encoders import Tokens, WordPieceTokenizer, check_device, inference
from vlscore.metrics.memo import Memo, loaded_once
from vlscore.metrics.networks.model_bert import (
    groups_of_like_length,
    tokens_at_once,
)
from vlscore.metrics.networks.model_files import (
    check_vocabulary_of,
    facts_of_network,
    radgraph_files,
)
from vlscore.metrics.networks.radgraph_model import (
    RadGraphModel,
    RadGraphScores,
    read_radgraph,
)

Splitting = Literal["radgraph", "radgraph-xl"]

# In the authors' class of characters ",-," is a range of one comma, so a hyphen does not split.
_MARKS = r"[/,-,:,.,!?()]"
_BESIDE_MARKS = re.compile(f"(?<! )(?={_MARKS})|(?<={_MARKS})(?! )")
_WORD_OR_MARKS = re.compile(r"\w+|[^\w\s]+")
# Escapes that consist of two or more characters in reports read from raw json.
_ESCAPES = (("\\n", "  "), ("\\f", "  "), ("\\u2122", "      "), ("\n", " "), ('\\"', "``"))
_CLUSTERS = ((").", ") ."), ("%.", "% ."), (".'", ". '"), ("%,", "% ,"), ("%)", "% )"))


def words_of(report: str, splitting: Splitting) -> list[str]:
    """Return the words and marks of a report.

    >>> words_of("No effusion. (2.5cm)", "radgraph")
    ['No', 'effusion', '.', '(', '2', '.', '5cm', ')']
    >>> words_of("5%). It's", "radgraph-xl")
    ['5', '%', ')', '.', 'It', "'", 's']
    """
    if splitting == "radgraph":
        return _BESIDE_MARKS.sub(" ", report).split()
    text = report
    for escape, replacement in _ESCAPES:
        text = text.replace(escape, replacement)
    text = " ".join(_WORD_OR_MARKS.findall(re.sub(r"\s+", " ", text)))
    for cluster, replacement in _CLUSTERS:
        text = text.replace(cluster, replacement)
    return text.split()


# Words that lose their stroke before the network reads them, as in DyGIE's reader.
_STROKED = ("/.", "/?")
# Names of the first RadGraph's data set: its own, and that of PhysioNet's release.
_FIRST = ("radgraph", "None")


@dataclass(frozen=True)
class Entity:
    """A span of words with a label.

    Attributes:
        tokens: its words with blanks between them.
        label: such as "ANAT-DP" or "Observation::definitely absent".
        start, end: its first and last word, counted from 0, inclusive.
        relations: (label, position among the report's entities) of each relation that it begins.
    """

    tokens: str
    label: str
    start: int
    end: int
    relations: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class RadGraphAnnotation:
    """Annotation of one report by RadGraph.

    Attributes:
        words: words of the report, after splitting.
        entities: sorted by first word, then by last.
    """

    words: tuple[str, ...]
    entities: tuple[Entity, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the annotation as the package radgraph does: entities counted from "1"."""
        return {
            "text": " ".join(self.words),
            "entities": {
                str(number): {
                    "tokens": entity.tokens,
                    "label": entity.label,
                    "start_ix": entity.start,
                    "end_ix": entity.end,
                    "relations": [[label, str(target + 1)] for label, target in entity.relations],
                }
                for number, entity in enumerate(self.entities, start=1)
            },
        }


class RadGraph:
    """A RadGraph model, ready to read reports.

    Args:
        weights: the .tar.gz as published, or the folder that it unpacks to.
        vocabulary: vocab.txt of the BERT that the model uses, or its folder; default: next to
            the archive, else what the hub's cache on this machine holds.
        splitting: how reports are split into words: as for the first RadGraph, or as for
            RadGraph-XL; default: by the data set that the archive names.
        device: where it runs.

    Raises: WeightsNotFound, UnsafeCheckpoint, IncompatibleCheckpoint, InvalidSetting.
    """

    def __init__(
        self,
        weights: str | Path,
        vocabulary: str | Path | None = None,
        *,
        splitting: Splitting | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        path, words = radgraph_files(weights, vocabulary)
        files = read_radgraph(path)
        check_vocabulary_of(files.bert, words, path)
        self._model = RadGraphModel(files)
        bert = self._model.bert
        self._tokenizer = WordPieceTokenizer.from_file(words, size=bert.pieces)
        self._at_once = min(files.max_pieces or bert.positions, bert.positions) - 2
        self._entity_labels = files.entity_labels
        self._relation_labels = files.relation_labels
        first: Splitting = "radgraph" if files.dataset in _FIRST else "radgraph-xl"
        self.splitting = splitting or first
        self._device = check_device(device)
        self._tokens = tokens_at_once(self._device.type)
        self._model.to(self._device)

    def annotate(self, reports: Sequence[str]) -> list[RadGraphAnnotation]:
        """Annotate each report, in order; a report without words has no entities.

        A long report is read completely, in parts of as many word pieces as the model takes.
        """
        words, scores = self.scores(reports)
        return [
            RadGraphAnnotation(tuple(w), () if s is None else self._entities(w, s))
            for w, s in zip(words, scores, strict=True)
        ]

    def scores(self, reports: Sequence[str]) -> tuple[list[list[str]], list[RadGraphScores | None]]:
        """Return the words and the network's scores of each report; None for one without words."""
        words = [words_of(report, self.splitting) for report in reports]
        pieces = self._pieces(
            [[word[1:] if word in _STROKED else word for word in each] for each in words]
        )
        scores: list[RadGraphScores | None] = [None] * len(reports)
        # If the vocabulary has no piece for any word of a report, the network has no input.
        rows = [row for row, each in enumerate(pieces) if any(each)]
        lengths = [sum(map(len, pieces[row])) for row in rows]
        with inference(self._device, "fp32"):
            for group in groups_of_like_length(lengths, self._tokens):
                here = [rows[position] for position in group]
                vectors = self._vectors([pieces[row] for row in here])
                for row, of_words in zip(here, vectors, strict=True):
                    found = self._model.scores(of_words)
                    scores[row] = RadGraphScores(**{k: v.cpu() for k, v in vars(found).items()})
        return words, scores

    def _pieces(self, words: Sequence[Sequence[str]]) -> list[list[list[int]]]:
        """Return the word pieces of each word by itself; each distinct word is split once."""
        distinct = list({word: None for each in words for word in each})
        # No truncation: a word has at most as many pieces as bytes, and two special ones.
        longest = max((len(word.encode("utf-8", "replace")) for word in distinct), default=0) + 2
        tokens = self._tokenizer(distinct, max_tokens=longest)
        lengths = tokens.lengths.tolist()
        rows = tokens.ids.tolist()
        cut = {
            word: row[1 : length - 1]
            for word, row, length in zip(distinct, rows, lengths, strict=True)
        }
        return [[cut[word] for word in each] for each in words]

    def _vectors(self, reports: Sequence[Sequence[Sequence[int]]]) -> list[Tensor]:
        """Return (W, hidden) for each report: means over each word's pieces, 0 without pieces."""
        parts: list[list[int]] = []
        owners: list[list[int]] = []
        for report in reports:
            flat = [piece for word in report for piece in word]
            starts = range(0, len(flat), self._at_once)
            owners.append([len(parts) + n for n in range(len(starts))])
            parts += [flat[start : start + self._at_once] for start in starts]
        ids = [[self._tokenizer.start, *part, self._tokenizer.end] for part in parts]
        states = self._states(ids)
        found = []
        for report, own in zip(reports, owners, strict=True):
            flat_states = torch.cat([states[number] for number in own])
            counts = torch.tensor([len(word) for word in report])
            inside = torch.arange(int(counts.max()))[None] < counts[:, None]
            index = (counts.cumsum(0) - counts)[:, None] + torch.arange(inside.shape[1])[None]
            index = torch.where(inside, index, 0).to(self._device)
            summed = (flat_states[index] * inside.to(self._device)[..., None]).sum(dim=1)
            found.append(summed / counts.clamp(min=1)[:, None].to(self._device))
        return found

    def _states(self, ids: Sequence[Sequence[int]]) -> list[Tensor]:
        """Return (pieces, hidden) of the last layer for each row of ids, without special tokens."""
        tokens = Tokens.padded(ids, max_tokens=self._at_once + 2, pad=self._tokenizer.pad)
        states: list[Tensor] = [torch.empty(0)] * len(ids)
        for rows in groups_of_like_length(tokens.lengths.tolist(), self._tokens):
            part = tokens.take(rows).to(self._device)
            for row, state in zip(rows, self._model.bert(part), strict=True):
                states[row] = state[1 : len(ids[row]) - 1]
        return states

    def _entities(self, words: Sequence[str], scores: RadGraphScores) -> tuple[Entity, ...]:
        labels = scores.entities.argmax(dim=1)
        rows = labels.nonzero()[:, 0].tolist()
        position_of = {row: position for position, row in enumerate(rows)}
        found: dict[int, list[tuple[str, int]]] = {row: [] for row in rows}
        best = scores.relations.argmax(dim=-1)
        kept = scores.kept.tolist()
        for i, j in best.nonzero().tolist():
            # Relations of spans that are no entities are dropped, as RadGraph's authors do.
            if kept[i] in found and kept[j] in position_of:
                label = self._relation_labels[int(best[i, j]) - 1]
                found[kept[i]].append((label, position_of[kept[j]]))
        spans = scores.spans[rows].tolist()
        return tuple(
            Entity(
                tokens=" ".join(words[start : end + 1]),
                label=self._entity_labels[int(labels[row])],
                start=start,
                end=end,
                relations=tuple(found[row]),
            )
            for row, (start, end) in zip(rows, spans, strict=True)
        )


def annotations(
    memo: Memo, weights: Path, vocabulary: Path, reports: Sequence[str]
) -> list[RadGraphAnnotation]:
    """Return the annotation of each report, from memory or cache where it is known.

    The network is loaded only if a report is new.
    """
    facts = facts_of_network("RadGraph", weights, vocabulary)
    return memo.annotate(
        facts,
        reports,
        lambda new: _loaded(weights, vocabulary, facts["device"]).annotate(new),
        pack=lambda found: [found.words, [[*vars(each).values()] for each in found.entities]],
        unpack=_unpacked,
    )


def _unpacked(stored: Any) -> RadGraphAnnotation:
    words, rows = stored
    entities = tuple(
        Entity(tokens, label, start, end, tuple((name, target) for name, target in relations))
        for tokens, label, start, end, relations in rows
    )
    return RadGraphAnnotation(tuple(words), entities)


@loaded_once(lambda weights, vocabulary, device: (weights, vocabulary))
def _loaded(weights: Path, vocabulary: Path, device: str) -> RadGraph:
    return RadGraph(weights, vocabulary, device=device)
