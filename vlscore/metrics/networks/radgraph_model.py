"""A published RadGraph model: reader of its files, and the network that they describe.

- `read_radgraph` reads config.json, weights.th and vocabulary/*_labels.txt from a folder, or from
  the .tar.gz of AllenNLP, of which it unpacks only those files. Everything in it is data: no code
  is run, and nothing that the configuration names is fetched.
- `RadGraphModel` is the network: it scores spans of words as entities, and pairs of entities as
  relations. It is DyGIE++ (Wadden et al. 2019, EMNLP) without coreference and events. Products of
  concatenated vectors are computed part by part, with the same numbers up to float32 rounding: a
  span's first layer is the sum of the products of its first word, its last word and its width,
  each computed once per word rather than once per span.
"""

import re
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import torch
from torch import Tensor, nn

from vlscore.encoders import load_checkpoint, read_json, refuse_code
from vlscore.errors import IncompatibleCheckpoint, UnsafeCheckpoint
from vlscore.metrics.networks.model_bert import bert_of, part_of
from vlscore.metrics.networks.model_files import CONFIG, WEIGHTS, check_place

_ENTITIES, _RELATIONS = "__ner_labels.txt", "__relation_labels.txt"


@dataclass(frozen=True, eq=False)
class RadGraphFiles:
    """Content of an archive.

    Attributes:
        source: the archive or folder, for messages.
        dataset: the name before "__ner_labels" in the vocabulary.
        bert: the BERT whose vocabulary the model uses, as its configuration names it.
        tensors: by name, as DyGIE names them.
        entity_labels: in the order of the scores; the first is "", no entity.
        relation_labels: in the order of the scores, without "no relation".
        max_span_width: words of the longest span that is looked at.
        max_pieces: word pieces that are read at a time, [CLS] and [SEP] included; None for as many
            as the model has positions.
        spans_per_word: how many spans per word can be partners of relations.
    """

    source: Path
    dataset: str
    bert: str
    tensors: Mapping[str, Tensor]
    entity_labels: tuple[str, ...]
    relation_labels: tuple[str, ...]
    max_span_width: int
    max_pieces: int | None
    spans_per_word: float


def read_radgraph(path: Path) -> RadGraphFiles:
    """Read a model's files.

    Raises: WeightsNotFound, UnsafeCheckpoint, IncompatibleCheckpoint.
    """
    check_place(path)
    if path.is_dir():
        return _read_folder(path, path)
    with tempfile.TemporaryDirectory(prefix="vlscore-radgraph-") as folder:
        _unpack(path, Path(folder))
        found = _read_folder(Path(folder), path)
        # The tensors are copied, because their temporary file is about to be deleted.
        return replace(found, tensors={key: t.clone() for key, t in found.tensors.items()})


def _unpack(archive: Path, folder: Path) -> None:
    """Copy the files that are read, and only ordinary ones, out of an archive."""
    (folder / "vocabulary").mkdir()
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for member in tar:
                name = PurePosixPath(member.name).name
                if name.endswith((_ENTITIES, _RELATIONS)):
                    target = folder / "vocabulary" / name
                elif name in (CONFIG, WEIGHTS):
                    target = folder / name
                else:
                    continue
                # The bytes alone are copied: Python before 3.11.4 has no safe way to unpack.
                source = tar.extractfile(member) if member.isreg() else None
                if source is not None:
                    with source, target.open("wb") as copy:
                        shutil.copyfileobj(source, copy)
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise UnsafeCheckpoint(f"{archive} is damaged: {error}; download it again") from None
    if missing := [name for name in (CONFIG, WEIGHTS) if not (folder / name).is_file()]:
        raise IncompatibleCheckpoint(
            f"{archive} has no RadGraph model: it lacks {', '.join(missing)}"
        )


def _read_folder(folder: Path, source: Path) -> RadGraphFiles:
    config = read_json(folder / CONFIG, "configuration of a RadGraph model")
    refuse_code(config, f"the {CONFIG} of {source}")
    listed = sorted((folder / "vocabulary").glob(f"*{_ENTITIES}"))
    if len(listed) != 1:
        raise IncompatibleCheckpoint(
            f"{source} has labels of {len(listed)} data sets, but must have those of one"
        )
    dataset = listed[0].name.removesuffix(_ENTITIES)
    entities = _labels(listed[0], source)
    relations = _labels(folder / "vocabulary" / f"{dataset}{_RELATIONS}", source)
    if not entities or entities[0] != "":
        raise IncompatibleCheckpoint(
            f"{source}: the first entity label must be empty; it means that words are no entity"
        )
    try:
        reader, model = config["dataset_reader"], config["model"]
        indexer = reader["token_indexers"]["bert"]
        max_pieces = indexer.get("max_length")
        name = str(indexer["model_name"])
        if "modernbert" in name.lower() or re.search("(?<!un)cased", name.lower()):
            raise IncompatibleCheckpoint(
                f"{source} uses the BERT {name}; only BERTs that read lower-case text are supported"
            )
        return RadGraphFiles(
            source=source,
            dataset=dataset,
            bert=name,
            tensors=load_checkpoint(folder / WEIGHTS),
            entity_labels=entities,
            relation_labels=relations,
            max_span_width=_positive(int(reader["max_span_width"])),
            max_pieces=None if max_pieces is None else _positive(int(max_pieces) - 2) + 2,
            spans_per_word=_positive(float(model["modules"]["relation"]["spans_per_word"])),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise IncompatibleCheckpoint(
            f"the {CONFIG} of {source} does not describe a RadGraph model: {error!r}"
        ) from None


def _labels(path: Path, source: Path) -> tuple[str, ...]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise IncompatibleCheckpoint(
            f"{source}: {path.name} is not a list of labels: {error}"
        ) from None
    return tuple(lines[:-1] if lines[-1] == "" else lines)


def _positive(value: Any) -> Any:
    if not value > 0:
        raise ValueError(f"{value} must be positive")
    return value


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

    def __init__(self, files: RadGraphFiles) -> None:
        super().__init__()
        tensors = files.tensors
        self.bert = bert_of(part_of(tensors, _BERT), files.source)
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
