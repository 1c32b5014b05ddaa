"""BERTScore: matches each word piece to the most similar one of the other report.

It is computed by the library bert-score from a model folder on this machine. The library's own
functions embed and match. Matching is called for one pair at a time: the library pads a batch with
zero similarities, so that a pair's number would depend on the other pairs of the batch.
"""

import contextlib
import io
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.core import file_digest
from vlscore.errors import InvalidSetting, VLScoreError, WeightsNotFound
from vlscore.metrics.batch import Batch, Computed, Values
from vlscore.metrics.library.file_metric import network_path, path_parameter
from vlscore.metrics.library.words import ReferenceCounts
from vlscore.metrics.memo import content_digest
from vlscore.metrics.metric import READ_BY_MODEL, Metric, Output, parameter
from vlscore.metrics.networks.model_files import device_of_annotators, load_tokenizer

_BATCH = 32
_WEIGHTS = "*.safetensors"
# Tokenizers that need `add_prefix_space` to treat a text's first word like one in the middle, as
# bert-score sets it.
_BYTE_PAIR_MODELS = ("roberta", "gpt2")


def idf_weights(known: ReferenceCounts) -> defaultdict[int, float]:
    """Return inverse document frequencies of word pieces for bert-score, also of unknown ones."""
    top = known.references + 1
    weights: defaultdict[int, float] = defaultdict(lambda: math.log(top))
    weights.update({piece: math.log(top / (n + 1)) for piece, n in known.counts.items()})
    return weights


class BertScore(Metric):
    """F1, precision and recall; an empty report has 0 of each, before rescaling."""

    name = "bert-score"
    title = "BERTScore"
    description = (
        "F measure of the cosines between the embedding of each token and the most similar one of "
        "the other report"
    )
    citation = "Zhang et al. 2020, BERTScore, ICLR"
    bounds = (None, 1.0)
    normalisation = READ_BY_MODEL
    further = (
        Output("precision", "mean over the candidate's word pieces", bounds=(None, 1.0)),
        Output("recall", "mean over the reference's word pieces", bounds=(None, 1.0)),
    )
    reference_scores_best = True
    cost = "model"
    library = "bert-score"
    extra = "bertscore"

    model: str | None = path_parameter(
        "folder of a transformers model with model.safetensors; or roberta-large or "
        "distilroberta-base, for what `vlscore weights fetch` downloads under this name"
    )
    layer: int | None = parameter(
        None,
        "whose hidden states are compared; default: the library's for a model of the folder's "
        "name, such as 17 for roberta-large",
        kind=int,
        above=0,
    )
    idf: bool = parameter(False, "whether rare word pieces of the run's references weigh more")
    rescale: str | None = path_parameter(
        "baseline to subtract: a .tsv file, or library for its own of a model of the folder's "
        "name; default: not rescaled"
    )
    blanks: str = parameter(
        "as-given",
        "runs of blanks: as they are given, or collapsed into one, as CXR-Report-Metric does; "
        "RoBERTa has a piece for a second blank",
        choices=("as-given", "collapsed"),
    )

    @property
    def is_fitted(self) -> bool:
        return self.idf

    def fit(self, references: Iterable[str], state: Any = None) -> Any:
        known = state or ReferenceCounts()
        for text in map(self._prepared, references):
            # An empty reference has the two special pieces, too, and bert-score counts them; its
            # own function fails on an empty text under transformers 5.
            special = {self._tokenizer.cls_token_id, self._tokenizer.sep_token_id}
            known.add(
                set(self._utils.sent_encode(self._tokenizer, text)) if text.strip() else special
            )
        return known

    def compute(self, batch: Batch) -> Computed:
        # Values of a pair are stored before they are rescaled.
        facts = {**self.facts(), "rescale": None, "digest": _digest(self._folder())}
        facts |= {"holds": "BERTScore", "fit": str(batch.fit)}
        pairs = [(self._prepared(g), self._prepared(r)) for g, r in batch.pairs()]
        read = batch.memo.annotate(
            facts, pairs, lambda new: self._matched(new, batch.fitted), is_counted=False
        )
        # precision, recall and F1 of each pair
        found = np.array(read, dtype=np.float64).reshape(-1, 3)
        reason = VLScoreError(
            "every reference that BERTScore's idf weights were fitted to contains all word pieces "
            "of this report, so their weights are 0. Score a whole table, or leave idf out"
        )
        undefined = np.flatnonzero(np.isnan(found[:, :2]).any(axis=1)).tolist()
        if (baseline := self._baseline()) is not None:
            found = (found - baseline) / (1 - baseline)
        # Rounding of float32 may end just above 1.
        precision, recall, f1 = np.minimum(found, 1.0).T
        return Computed([f1, precision, recall], failures=dict.fromkeys(undefined, reason))

    def missing(self) -> str | None:
        if (reason := super().missing()) is not None:
            return reason
        if self.model is None:
            return (
                "it needs a model: `vlscore weights fetch roberta-large`, then "
                "bert-score(model=roberta-large); or bert-score(model=FOLDER) with config.json, "
                "model.safetensors and the tokenizer's files"
            )
        try:
            folder = network_path(self.model)
        except WeightsNotFound as error:
            return str(error)
        if not (folder / "config.json").is_file():
            return f"{folder} has no config.json: name the folder of a transformers model"
        if not list(folder.glob(_WEIGHTS)):
            return (
                f"{folder} has no {_WEIGHTS}, and pickled weights are not read: save the model "
                "again with save_pretrained"
            )
        return None

    def facts(self) -> dict[str, Any]:
        folder = self._folder()
        facts = {
            "model": f"{folder.name}@{_digest(folder)}",
            "layer": str(self._layer()),
            # Number of word pieces of a text that are used; bert-score cuts off the rest.
            "longest": str(self._tokenizer.model_max_length),
        }
        path = self._baseline_path()
        if path is not None:
            facts["rescale"] = f"{path.name}@{file_digest(path)[:8]}"
        return {**facts, **super().facts()}

    @property
    def _utils(self) -> Any:
        return self._module("bert_score.utils")

    def _prepared(self, text: str) -> str:
        """Return the text that is embedded; only blanks are collapsed, not line breaks or tabs."""
        return re.sub(" +", " ", text) if self.blanks == "collapsed" else text

    def _folder(self) -> Path:
        if self.model is None:
            raise InvalidSetting("bert-score needs a model: bert-score(model=FOLDER)")
        return network_path(self.model).resolve()

    @property
    def _tokenizer(self) -> Any:
        self._module("bert_score")
        return _tokenizer_of(self._folder(), _digest(self._folder()))

    def _layer(self) -> int:
        folder = self._folder()
        layer = self._utils.model2layers.get(folder.name) if self.layer is None else self.layer
        if layer is None:
            raise InvalidSetting(
                f"bert-score has no default layer for a model called {folder.name!r}: name one, "
                "as in bert-score(model=FOLDER,layer=9)"
            )
        count = _config(folder).get("num_hidden_layers")
        if count is not None and layer > count:
            raise InvalidSetting(f"layer={layer}: the model in {folder} has only {count} layers")
        return int(layer)

    def _matched(self, pairs: Sequence[tuple[str, str]], fitted: Any) -> list[list[float]]:
        """Return precision, recall and F1 of each pair."""
        tokenizer = self._tokenizer
        weights = defaultdict(lambda: 1.0, {tokenizer.sep_token_id: 0.0, tokenizer.cls_token_id: 0})
        if self.idf:
            weights = idf_weights(fitted)
        embedded = self._embedded([text for pair in pairs for text in pair], weights)
        found = []
        for g, r in pairs:
            if g.strip() and r.strip():
                parts = [part.clone()[None] for text in (r, g) for part in embedded[text]]
                found.append([float(value) for value in self._utils.greedy_cos_idf(*parts)])
            else:
                found.append([0.0, 0.0, 0.0])
        return found

    def _embedded(self, texts: Sequence[str], weights: Any) -> Mapping[str, Sequence[Any]]:
        """text -> (vectors, mask, weights) of its word pieces; empty texts are left out."""
        model = _model_of(self._folder(), self._layer(), _digest(self._folder()))
        distinct = sorted({text for text in texts if text.strip()}, key=lambda t: (len(t), t))
        found: dict[str, Sequence[Any]] = {}
        for start in range(0, len(distinct), _BATCH):
            part = distinct[start : start + _BATCH]
            vectors, mask, idf = self._utils.get_bert_embedding(
                part, model, self._tokenizer, weights, device=device_of_annotators()
            )
            for row, text in enumerate(part):
                length = int(mask[row].sum())
                parts = (vectors[row, :length], mask[row, :length], idf[row, :length])
                found[text] = tuple(x.cpu() for x in parts)
        return found

    def _baseline(self) -> Values | None:
        path = self._baseline_path()
        if path is None:
            return None
        layer = self._layer()
        try:
            rows = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
            (row,) = rows[rows[:, 0] == layer]
        except (OSError, ValueError) as error:
            raise InvalidSetting(
                f"{path} has no readable baseline for layer {layer}: expected lines of LAYER,P,R,F "
                f"({error})"
            ) from None
        return np.asarray(row[1:4], dtype=np.float64)

    def _baseline_path(self) -> Path | None:
        if self.rescale is None:
            return None
        path = Path(self.rescale)
        if self.rescale == "library":
            home = Path(self._module("bert_score").__file__).parent / "rescale_baseline" / "en"
            path = home / f"{self._folder().name}.tsv"
        if not path.is_file():
            raise InvalidSetting(f"rescale={self.rescale}: there is no file {path}")
        return path


def _config(folder: Path) -> dict[str, Any]:
    from vlscore.encoders import read_json  # loads torch

    return read_json(folder / "config.json", "configuration of a model")


@lru_cache(maxsize=2)
def _tokenizer_of(folder: Path, digest: str) -> Any:
    config = _config(folder)
    kind = str(config.get("model_type"))
    spaced = {"add_prefix_space": True} if kind in _BYTE_PAIR_MODELS else {}
    tokenizer = load_tokenizer(folder, use_fast=False, **spaced)
    if (positions := config.get("max_position_embeddings")) is not None:
        # RoBERTa's positions begin after its padding index.
        limit = positions - 2 if kind == "roberta" else positions
        tokenizer.model_max_length = min(tokenizer.model_max_length, limit)
    return tokenizer


@lru_cache(maxsize=2)
def _model_of(folder: Path, layer: int, digest: str) -> Any:
    """Load the model up to a layer; load it again if the digest of its files has changed."""
    from bert_score.utils import get_model

    if "t5" in str(folder) and "t5" not in str(_config(folder).get("model_type")):
        raise InvalidSetting(
            f"{folder}: the library bert-score treats every path that contains t5 as a T5 model; "
            "rename the folder"
        )
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            return get_model(str(folder), layer).to(device_of_annotators())
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidSetting(f"{folder} cannot be loaded as a model: {error}") from None


def _digest(folder: Path) -> str:
    """Return the digest of weights, settings and tokenizer."""
    files = sorted({*folder.glob(_WEIGHTS), *folder.glob("*.json"), *folder.glob("*.txt")})
    return content_digest(folder, files)[:12]
