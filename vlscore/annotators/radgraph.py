"""RadGraph: the entities that a report names, and how they are related.

Jain et al. 2021, NeurIPS Datasets and Benchmarks. Equal to the package radgraph 0.1.18 over the
same archive, many reports at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vlscore.annotators.batches import groups_of_like_length, tokens_at_once
from vlscore.annotators.bert import Precision
from vlscore.annotators.kept import json_content, json_entry
from vlscore.annotators.places import radgraph_files
from vlscore.annotators.radgraph_archive import read_radgraph
from vlscore.annotators.radgraph_model import RadGraphModel, RadGraphScores
from vlscore.annotators.radgraph_words import Splitting, words_of
from vlscore.cache import Entry
from vlscore.encoders.blocks.wordpiece import WordPieceTokenizer
from vlscore.encoders.inference import check_device, inference

# The network is given these words without their stroke, as DyGIE's reader does.
_STROKED = ("/.", "/?")
# The first RadGraph's own name, and what PhysioNet's release calls its data set.
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
    """What RadGraph reads in one report.

    Attributes:
        words: of the report, as it was split.
        entities: by first word, then by last.
    """

    words: tuple[str, ...]
    entities: tuple[Entity, ...]

    def to_dict(self) -> dict[str, Any]:
        """As the package radgraph returns it: entities counted from "1"."""
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
        vocabulary: vocab.txt of the BERT that the model stands on, or its folder; default: beside
            the archive.
        splitting: how reports are split into words: as for the first RadGraph, or as for
            RadGraph-XL; default: by the data set that the archive names.
        dataset: which labels to use, where the archive holds those of several data sets.
        device: where it runs.
        precision: "bf16" multiplies BERT's matrices in bfloat16, which is faster where the
            processor or GPU has units for it, and may change what is read.

    Raises: WeightsNotFound, UnsafeCheckpoint, IncompatibleCheckpoint, InvalidSetting.
    """

    stable_name = "vlscore.annotators.radgraph:RadGraph"

    def __init__(
        self,
        weights: str | Path,
        vocabulary: str | Path | None = None,
        *,
        splitting: Splitting | None = None,
        dataset: str | None = None,
        device: str | torch.device = "cpu",
        precision: Precision = "fp32",
    ) -> None:
        path, words = radgraph_files(weights, vocabulary)
        files = read_radgraph(path, dataset)
        self._model = RadGraphModel(files, precision)
        bert = self._model.bert
        self._tokenizer = WordPieceTokenizer.from_file(words, size=bert.pieces)
        self._at_once = min(files.max_pieces or bert.positions, bert.positions) - 2
        self._entity_labels = files.entity_labels
        self._relation_labels = files.relation_labels
        first: Splitting = "radgraph" if files.dataset in _FIRST else "radgraph-xl"
        self.splitting = splitting or first
        self.precision = precision
        self._device = check_device(device)
        self._tokens = tokens_at_once(self._device.type)
        self._model.to(self._device)
        self.identity = {
            "dtype": "json",
            "splitting": self.splitting,
            "labels": files.dataset,
            "precision": precision,
            "device": self._device.type,
        }

    def annotate(self, reports: Sequence[str]) -> list[RadGraphAnnotation]:
        """What it reads in each report, in order; nothing in one without words.

        A long report is read whole, in parts of as many word pieces as the model takes.
        """
        words, scores = self.scores(reports)
        return [
            RadGraphAnnotation(tuple(w), () if s is None else self._entities(w, s))
            for w, s in zip(words, scores, strict=True)
        ]

    def entry_of(self, annotation: RadGraphAnnotation) -> Entry:
        """An annotation as it is kept: labels and positions, not words."""
        return json_entry([[e.label, e.start, e.end, e.relations] for e in annotation.entities])

    def annotation_of(self, entry: Entry, report: str) -> RadGraphAnnotation | None:
        """The annotation of this report; None where the entry holds something else."""
        words = words_of(report, self.splitting)
        rows = json_content(entry)
        try:
            entities = tuple(
                Entity(
                    tokens=" ".join(words[start : end + 1]),
                    label=label,
                    start=start,
                    end=end,
                    relations=tuple((str(name), int(target)) for name, target in relations),
                )
                for label, start, end, relations in rows
            )
        except (TypeError, ValueError):
            return None
        inside = all(
            0 <= e.start <= e.end < len(words)
            and all(0 <= t < len(entities) for _, t in e.relations)
            for e in entities
        )
        return RadGraphAnnotation(tuple(words), entities) if inside else None

    def scores(self, reports: Sequence[str]) -> tuple[list[list[str]], list[RadGraphScores | None]]:
        """The words of each report, and the network's scores; None for a report without words."""
        words = [words_of(report, self.splitting) for report in reports]
        pieces = self._pieces([[_read_as(word) for word in each] for each in words])
        scores: list[RadGraphScores | None] = [None] * len(reports)
        # A report whose words the vocabulary has nothing for gives the network nothing to read.
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
        """Word pieces of each word by itself, each distinct word cut once."""
        distinct = list({word: None for each in words for word in each})
        # Room for whatever length: no word has more pieces than bytes, and the two special ones.
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
        """(W, hidden) for each report: the mean over each word's pieces; 0 for one without any."""
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
        """(pieces, hidden) of the last layer for each row of ids, special tokens left out."""
        states: list[Tensor] = [torch.empty(0)] * len(ids)
        for rows in groups_of_like_length([len(row) for row in ids], self._tokens):
            longest = max(len(ids[row]) for row in rows)
            padded = torch.full((len(rows), longest), self._tokenizer.pad)
            mask = torch.zeros_like(padded)
            for place, row in enumerate(rows):
                padded[place, : len(ids[row])] = torch.tensor(ids[row])
                mask[place, : len(ids[row])] = 1
            output = self._model.bert(padded.to(self._device), mask.to(self._device))
            for place, row in enumerate(rows):
                states[row] = output[place, 1 : len(ids[row]) - 1]
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


def _read_as(word: str) -> str:
    return word[1:] if word in _STROKED else word
