"""The network of RadGraph: spans of words, which of them are entities, and how those are related.

DyGIE++ (Wadden et al. 2019, EMNLP) without coreference and events, as the package radgraph runs it.
Products of concatenated vectors are taken part by part, which gives the same numbers up to the
rounding of float32: a span's first layer is the sum of its first word's, its last word's and its
width's products, each made once a word rather than once a span.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vlscore.annotators.bert import Precision, bert_of, part_of
from vlscore.annotators.radgraph_archive import RadGraphFiles
from vlscore.errors import IncompatibleCheckpoint

_BERT = "_embedder.token_embedder_bert._matched_embedder.transformer_model."
# Numbers of products of pairs of spans that are held at a time.
_NUMBERS_AT_ONCE = 1 << 24


@dataclass(frozen=True, eq=False)
class RadGraphScores:
    """What the network gives for one report of W words.

    Attributes:
        spans: (s, 2) int64, first and last word of each span, inclusive; by first word, then last.
        entities: (s, labels) float32; the first column, for no entity, is 0.
        kept: (k,) int64, rows of `spans` that may stand in relations, ascending.
        relations: (k, k, labels + 1) float32 from one span to another; 0 first, for no relation.
    """

    spans: Tensor
    entities: Tensor
    kept: Tensor
    relations: Tensor


class FeedForward(nn.Module):
    """ReLU layers and a linear one, the first of them split by the parts of its input.

    Args:
        layers: weight and bias of each layer, first to last.
        widths: of the parts that the input is concatenated from.
    """

    def __init__(self, layers: list[tuple[Tensor, Tensor]], widths: list[int]) -> None:
        super().__init__()
        self.parts = nn.ParameterList(_frozen(w) for w in layers[0][0].split(widths, dim=1))
        self.bias = _frozen(layers[0][1])
        self.weights = nn.ParameterList(_frozen(weight) for weight, _ in layers[1:])
        self.biases = nn.ParameterList(_frozen(bias) for _, bias in layers[1:])

    def rest(self, first: Tensor) -> Tensor:
        """(..., hidden) sums of the first layer's parts, without its bias -> (..., out)."""
        state = first + self.bias
        for weight, bias in zip(self.weights, self.biases, strict=True):
            state = nn.functional.linear(torch.relu_(state), weight, bias)
        return state


class RadGraphModel(nn.Module):
    """Scores of spans and of pairs of spans from word pieces.

    Raises: IncompatibleCheckpoint where the tensors do not fit together.
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
                f"{files.source} holds no weights of RadGraph for the data set {files.dataset}: "
                f"{error}"
            ) from None
        if not fits:
            raise IncompatibleCheckpoint(
                f"{files.source}: its labels and its weights are not of the same model"
            )
        self.widths = _frozen(widths)
        self.max_span_width = files.max_span_width
        self.spans_per_word = files.spans_per_word
        self.eval()

    def scores(self, words: Tensor) -> RadGraphScores:
        """Scores for one report from (W, hidden) vectors of its words, W >= 1."""
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
    """Of AllenNLP's Sequential(FeedForward, Linear), each wrapped in a TimeDistributed."""
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
