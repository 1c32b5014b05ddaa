"""RadGraph: reads the entities of a report, and the relations between them.

Jain et al. 2021, NeurIPS Datasets and Benchmarks. Annotations equal those of the package radgraph
0.1.18 with the same archive; here many reports run at a time.

- `words_of` splits a report into words as preprocess_reports of that package does.
- `RadGraphModel` is the network: it scores spans of words as entities, and pairs of entities as
  relations. It is DyGIE++ (Wadden et al. 2019, EMNLP) without coreference and events. Products of
  concatenated vectors are computed part by part, with the same numbers up to float32 rounding: a
  span's first layer is the sum of the products of its first word, its last word and its width,
  each computed once per word rather than once per span.
- `RadGraph` runs BERT and this network over reports.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vlscore.core import Entry
from vlscore.encoders import WordPieceTokenizer, check_device, inference
from vlscore.errors import IncompatibleCheckpoint
from vlscore.metrics.networks.model_bert import (
    Precision,
    bert_of,
    check_heads,
    groups_of_like_length,
    part_of,
    tokens_at_once,
)
from vlscore.metrics.networks.model_files import (
    RememberingAnnotator,
    device_of_annotators,
    json_content,
    json_entry,
    loaded_once,
    radgraph_files,
)
from vlscore.metrics.networks.radgraph_archive import RadGraphFiles, read_radgraph

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


_BERT = "_embedder.token_embedder_bert._matched_embedder.transformer_model."
# Limit of numbers in memory for products of pairs of spans.
_NUMBERS_AT_ONCE = 1 << 24


@dataclass(frozen=True, eq=False)
class RadGraphScores:
    """Scores of the network for one report of W words.

    Attributes:
        spans: (s, 2) int64, first and last word of each span, inclusive; by first word, then last.
        entities: (s, labels) float32; the first column, for no entity, is 0.
        kept: (k,) int64, rows of `spans` that may take part in relations, ascending.
        relations: (k, k, labels + 1) float32 from one span to another; 0 first, for no relation.
    """

    spans: Tensor
    entities: Tensor
    kept: Tensor
    relations: Tensor


class FeedForward(nn.Module):
    """ReLU layers and a linear one; the first layer is split by the parts of its input.

    Args:
        layers: weight and bias of each layer, first to last.
        widths: widths of the parts that are concatenated to the input.
    """

    def __init__(self, layers: list[tuple[Tensor, Tensor]], widths: list[int]) -> None:
        super().__init__()
        self.parts = nn.ParameterList(_frozen(w) for w in layers[0][0].split(widths, dim=1))
        self.bias = _frozen(layers[0][1])
        self.weights = nn.ParameterList(_frozen(weight) for weight, _ in layers[1:])
        self.biases = nn.ParameterList(_frozen(bias) for _, bias in layers[1:])

    def rest(self, first: Tensor) -> Tensor:
        """Compute (..., out) from (..., hidden) sums of the first layer's parts without bias."""
        state = first + self.bias
        for weight, bias in zip(self.weights, self.biases, strict=True):
            state = nn.functional.linear(torch.relu_(state), weight, bias)
        return state


class RadGraphModel(nn.Module):
    """Network that scores spans and pairs of spans from word pieces.

    Raises: IncompatibleCheckpoint if the tensors do not fit together.
    """

    def __init__(self, files: RadGraphFiles, precision: Precision = "fp32") -> None:
        super().__init__()
        tensors = files.tensors
        self.bert = bert_of(part_of(tensors, _BERT), files.source, precision)
        hidden = self.bert.hidden
        try:
            widths = tensors["_endpoint_span_extractor._span_width_embedding.weight"].float()
            span = [hidden, hidden, widths.shape[1]]
            entity, relation = (f"{files.dataset}__{kind}_labels" for kind in ("ner", "relation"))
            self.entity = FeedForward(_layers(tensors, f"_ner._ner_scorers.{entity}.{{}}"), span)
            self.mention = FeedForward(
                _layers(tensors, f"_relation._mention_pruners.{relation}._scorer.{{}}"), span
            )
            self.relation = FeedForward(
                [
                    *_stack(tensors, f"_relation._relation_feedforwards.{relation}"),
                    _linear(tensors, f"_relation._relation_scorers.{relation}"),
                ],
                [sum(span)] * 3,
            )
            fits = (
                len(self.entity.biases[-1]) == len(files.entity_labels) - 1
                and len(self.mention.biases[-1]) == 1
                and len(self.relation.biases[-1]) == len(files.relation_labels)
                and len(widths) >= files.max_span_width
            )
        except (KeyError, RuntimeError, IndexError) as error:
            raise IncompatibleCheckpoint(
                f"{files.source} has no weights of RadGraph for the data set {files.dataset}: "
                f"{error}"
            ) from None
        if not fits:
            raise IncompatibleCheckpoint(
                f"{files.source}: its labels and its weights do not belong to the same model"
            )
        self.widths = _frozen(widths)
        self.max_span_width = files.max_span_width
        self.spans_per_word = files.spans_per_word
        self.eval()

    def scores(self, words: Tensor) -> RadGraphScores:
        """Compute the scores for one report from (W, hidden) vectors of its words, W >= 1."""
        spans = _spans(len(words), self.max_span_width).to(words.device)
        starts, ends = spans.T
        widths = ends - starts
        entities = self._of_spans(self.entity, words, starts, ends, widths)
        mentions = self._of_spans(self.mention, words, starts, ends, widths)[:, 0]
        wanted = torch.ceil(torch.tensor(float(len(words))) * self.spans_per_word).long()
        count = min(max(int(wanted), 1), len(spans))
        kept = mentions.topk(count).indices.sort().values
        vectors = torch.cat(
            [words[starts[kept]], words[ends[kept]], self.widths[widths[kept]]], dim=1
        )
        return RadGraphScores(
            spans=spans,
            entities=_behind_zero(entities),
            kept=kept,
            relations=_behind_zero(self._of_pairs(vectors, mentions[kept])),
        )

    def _of_spans(
        self, network: FeedForward, words: Tensor, starts: Tensor, ends: Tensor, widths: Tensor
    ) -> Tensor:
        first, last, width = network.parts
        return network.rest(
            (words @ first.T)[starts] + (words @ last.T)[ends] + (self.widths @ width.T)[widths]
        )

    def _of_pairs(self, vectors: Tensor, mentions: Tensor) -> Tensor:
        one, other, both = self.relation.parts
        rows, columns = vectors @ one.T, vectors @ other.T
        step = max(_NUMBERS_AT_ONCE // max(vectors.numel(), 1), 1)
        found = []
        for start in range(0, len(vectors), step):
            here = slice(start, start + step)
            products = (vectors[here, None] * vectors[None]) @ both.T
            scores = self.relation.rest(products + rows[here, None] + columns[None])
            found.append(scores + (mentions[here, None] + mentions[None])[..., None])
        return torch.cat(found)


def _spans(words: int, widest: int) -> Tensor:
    starts = torch.arange(words)[:, None].expand(words, widest)
    ends = starts + torch.arange(widest)
    inside = ends < words
    return torch.stack([starts[inside], ends[inside]], dim=1)


def _behind_zero(scores: Tensor) -> Tensor:
    return torch.cat([scores.new_zeros(*scores.shape[:-1], 1), scores], dim=-1)


def _layers(tensors: Mapping[str, Tensor], name: str) -> list[tuple[Tensor, Tensor]]:
    """Return the layers of AllenNLP's Sequential(FeedForward, Linear) in TimeDistributed."""
    return [
        *_stack(tensors, f"{name.format(0)}._module"),
        _linear(tensors, f"{name.format(1)}._module"),
    ]


def _stack(tensors: Mapping[str, Tensor], name: str) -> list[tuple[Tensor, Tensor]]:
    found: list[tuple[Tensor, Tensor]] = []
    while f"{name}._linear_layers.{len(found)}.weight" in tensors:
        found.append(_linear(tensors, f"{name}._linear_layers.{len(found)}"))
    return found


def _linear(tensors: Mapping[str, Tensor], name: str) -> tuple[Tensor, Tensor]:
    return tensors[f"{name}.weight"].float(), tensors[f"{name}.bias"].float()


def _frozen(tensor: Tensor) -> nn.Parameter:
    return nn.Parameter(tensor.contiguous(), requires_grad=False)


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
        vocabulary: vocab.txt of the BERT that the model uses, or its folder; default: beside
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
        beside = path if path.is_dir() else path.parent
        check_heads(bert, path, (beside, words.parent))
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
        """Annotate each report, in order; a report without words has no entities.

        A long report is read completely, in parts of as many word pieces as the model takes.
        """
        words, scores = self.scores(reports)
        return [
            RadGraphAnnotation(tuple(w), () if s is None else self._entities(w, s))
            for w, s in zip(words, scores, strict=True)
        ]

    def entry_of(self, annotation: RadGraphAnnotation) -> Entry:
        """Return an annotation as a cache entry: labels and positions, not words."""
        return json_entry([[e.label, e.start, e.end, e.relations] for e in annotation.entities])

    def annotation_of(self, entry: Entry, report: str) -> RadGraphAnnotation | None:
        """Return the annotation of this report; None if the entry holds something else."""
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
        """Return the words and the network's scores of each report; None for one without words."""
        words = [words_of(report, self.splitting) for report in reports]
        pieces = self._pieces([[_read_as(word) for word in each] for each in words])
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


@loaded_once(lambda weights, vocabulary, precision: (weights, vocabulary))
def remembered_radgraph(
    weights: Path, vocabulary: Path, precision: Precision
) -> RememberingAnnotator[RadGraphAnnotation]:
    """Return RadGraph from these files; it is loaded again only if one has changed."""
    return RememberingAnnotator(
        RadGraph(weights, vocabulary, device=device_of_annotators(), precision=precision)
    )
