"""BERTScore: matches each word piece to the most similar one of the other report.

It is computed by the library bert-score from a model folder on this machine. The library's own
functions embed and match. Matching is called for one pair at a time: the library pads a batch with
zero similarities, so that a pair's number would depend on the other pairs of the batch.
"""

import contextlib
import io
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.core import file_digest
from vlscore.errors import InvalidSetting, VLScoreError
from vlscore.metrics.batch import Batch, Computed, Values
from vlscore.metrics.library.words import ReferenceCounts
from vlscore.metrics.metric import Metric, Output, Parameter
from vlscore.metrics.provider import Provider, content_digest

_BATCH = 32
_WEIGHTS = "*.safetensors"
# Tokenizers that need `add_prefix_space` to treat a text's first word like one in the middle, as
# bert-score sets it.
_BYTE_PAIR_MODELS = ("roberta", "gpt2")


class PieceCounts(ReferenceCounts):
    """Number of references in which each word piece occurs."""

    def weights(self) -> Any:
        """Return inverse document frequencies for bert-score, also of unknown pieces."""
        top = self.references + 1
        known: defaultdict[int, float] = defaultdict(lambda: math.log(top))
        known.update({piece: math.log(top / (n + 1)) for piece, n in self.counts.items()})
        return known


@dataclass(frozen=True, eq=False)
class _Loaded:
    model: Any
    tokenizer: Any
    device: str


class BertScoreProvider(Provider):
    """Provider of F1, precision and recall; an empty report has 0 of each, before rescaling."""

    library = "bert-score"
    extra = "bertscore"

    def is_fitted(self, metric: Metric) -> bool:
        return bool(metric.settings["idf"])

    def fit(self, metric: Metric, references: Iterable[str], state: Any = None) -> Any:
        known = state or PieceCounts()
        loaded = self._loaded(metric)
        for text in references:
            known.add(set(self._pieces(loaded, _prepared(text, metric))))
        return known

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        loaded = self._loaded(metric)
        if metric.settings["idf"]:
            weights = batch.fitted.weights()
        else:
            weights = defaultdict(lambda: 1.0)
            weights.update({loaded.tokenizer.sep_token_id: 0.0, loaded.tokenizer.cls_token_id: 0.0})
        pairs = [(_prepared(g, metric), _prepared(r, metric)) for g, r in batch.pairs()]
        embedded = self._embedded(loaded, [text for pair in pairs for text in pair], weights)
        match = self._module("bert_score.utils").greedy_cos_idf
        found = np.zeros((len(pairs), 3))
        for row, (g, r) in enumerate(pairs):
            if g.strip() and r.strip():
                parts = [part.clone()[None] for text in (r, g) for part in embedded[text]]
                found[row] = [float(value) for value in match(*parts)]
        precision, recall, f1 = found.T
        reason = VLScoreError(
            "every reference that BERTScore's idf weights were fitted to contains all word pieces "
            "of this report, so their weights are 0. Score a whole table, or leave idf out"
        )
        undefined = np.flatnonzero(np.isnan(precision) | np.isnan(recall)).tolist()
        columns = [f1, precision, recall]
        baseline = self._baseline(metric)
        if baseline is not None:
            p, r, f = baseline
            columns = [(x - b) / (1 - b) for x, b in zip(columns, (f, p, r), strict=True)]
        # Rounding of float32 may end just above 1.
        columns = [np.minimum(column, 1.0) for column in columns]
        return Computed(columns, failures=dict.fromkeys(undefined, reason))

    def missing(self, metric: Metric) -> str | None:
        if (reason := super().missing(metric)) is not None:
            return reason
        named = metric.settings["model"]
        if named is None:
            return (
                "it needs a model on this machine: bert-score(model=FOLDER) with config.json, "
                "model.safetensors and the tokenizer's files"
            )
        folder = Path(str(named))
        if not (folder / "config.json").is_file():
            return f"{folder} has no config.json: name the folder of a transformers model"
        if not list(folder.glob(_WEIGHTS)):
            return (
                f"{folder} has no {_WEIGHTS}, and pickled weights are not read: save the model "
                "again with save_pretrained"
            )
        return None

    def conventions(self, metric: Metric) -> dict[str, str]:
        folder = _folder(metric)
        facts = {
            "model": f"{folder.name}@{_digest(folder)}",
            "layer": str(self._layer(metric)),
            # Number of word pieces of a text that are used; bert-score cuts off the rest.
            "longest": str(self._loaded(metric).tokenizer.model_max_length),
        }
        path = self._baseline_path(metric)
        if path is not None:
            facts["rescale"] = f"{path.name}@{file_digest(path)[:8]}"
        return facts

    def _loaded(self, metric: Metric) -> _Loaded:
        self._module("bert_score")
        folder = _folder(metric)
        return _load(folder, self._layer(metric), _digest(folder))

    def _layer(self, metric: Metric) -> int:
        chosen = metric.settings["layer"]
        folder = _folder(metric)
        known = self._module("bert_score.utils").model2layers
        layer = known.get(folder.name) if chosen is None else chosen
        if layer is None:
            raise InvalidSetting(
                f"bert-score has no default layer for a model called {folder.name!r}: name one, "
                "as in bert-score(model=FOLDER,layer=9)"
            )
        count = _config(folder).get("num_hidden_layers")
        number = int(layer)
        if isinstance(count, int) and number > count:
            raise InvalidSetting(f"layer={number}: the model in {folder} has only {count} layers")
        return number

    def _pieces(self, loaded: _Loaded, text: str) -> list[int]:
        if not text.strip():
            return []
        encode = self._module("bert_score.utils").sent_encode
        return list(encode(loaded.tokenizer, text))

    def _embedded(self, loaded: _Loaded, texts: Sequence[str], weights: Any) -> dict[str, Any]:
        """text -> (vectors, mask, weights) of its word pieces; empty texts are left out."""
        embed = self._module("bert_score.utils").get_bert_embedding
        distinct = sorted({text for text in texts if text.strip()}, key=lambda t: (len(t), t))
        found: dict[str, Any] = {}
        for start in range(0, len(distinct), _BATCH):
            part = distinct[start : start + _BATCH]
            vectors, mask, idf = embed(
                part, loaded.model, loaded.tokenizer, weights, device=loaded.device
            )
            for row, text in enumerate(part):
                length = int(mask[row].sum())
                parts = (vectors[row, :length], mask[row, :length], idf[row, :length])
                found[text] = tuple(x.cpu() for x in parts)
        return found

    def _baseline(self, metric: Metric) -> Values | None:
        path = self._baseline_path(metric)
        if path is None:
            return None
        layer = self._layer(metric)
        try:
            rows = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
            (row,) = rows[rows[:, 0] == layer]
        except (OSError, ValueError) as error:
            raise InvalidSetting(
                f"{path} has no readable baseline for layer {layer}: expected lines of LAYER,P,R,F "
                f"({error})"
            ) from None
        return np.asarray(row[1:4], dtype=np.float64)

    def _baseline_path(self, metric: Metric) -> Path | None:
        named = metric.settings["rescale"]
        if named is None:
            return None
        if named == "library":
            home = Path(self._module("bert_score").__file__).parent / "rescale_baseline" / "en"
            path = home / f"{_folder(metric).name}.tsv"
        else:
            path = Path(str(named))
        if not path.is_file():
            raise InvalidSetting(f"rescale={named}: there is no file {path}")
        return path


def _folder(metric: Metric) -> Path:
    named = metric.settings["model"]
    if named is None:
        raise InvalidSetting("bert-score needs a model: bert-score(model=FOLDER)")
    return Path(str(named)).expanduser().resolve()


def _config(folder: Path) -> dict[str, Any]:
    try:
        content = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidSetting(f"{folder / 'config.json'}: {error}") from None
    if not isinstance(content, dict):
        raise InvalidSetting(f"{folder / 'config.json'} does not contain the settings of a model")
    return content


@lru_cache(maxsize=2)
def _load(folder: Path, layer: int, digest: str) -> _Loaded:
    """Load the model up to a layer; load it again if the digest of its files has changed."""
    import torch
    from bert_score.utils import get_model
    from transformers import AutoTokenizer

    kind = str(_config(folder).get("model_type"))
    if "t5" in str(folder) and "t5" not in kind:
        raise InvalidSetting(
            f"{folder}: the library bert-score treats every path that contains t5 as a T5 model; "
            "rename the folder"
        )
    device = "cuda" if torch.cuda.is_available() else "cpu"
    spaced = {"add_prefix_space": True} if kind in _BYTE_PAIR_MODELS else {}
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            tokenizer = AutoTokenizer.from_pretrained(str(folder), use_fast=False, **spaced)
            model = get_model(str(folder), layer)
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidSetting(f"{folder} cannot be loaded as a model: {error}") from None
    positions = _config(folder).get("max_position_embeddings")
    if isinstance(positions, int):
        # RoBERTa's positions begin after its padding index.
        limit = positions - 2 if kind == "roberta" else positions
        tokenizer.model_max_length = min(tokenizer.model_max_length, limit)
    return _Loaded(model.to(device), tokenizer, device)


def _digest(folder: Path) -> str:
    """Return the digest of weights, settings and tokenizer."""
    files = sorted({*folder.glob(_WEIGHTS), *folder.glob("*.json"), *folder.glob("*.txt")})
    return content_digest(folder, files)[:12]


def _prepared(text: str, metric: Metric) -> str:
    """Return the text that is embedded; only blanks are collapsed, not line breaks or tabs."""
    return re.sub(" +", " ", text) if metric.settings["blanks"] == "collapsed" else text


BERT_SCORE = Metric(
    provider=BertScoreProvider(),
    name="bert-score",
    title="BERTScore",
    description="F measure of the cosines between each word piece's embedding and the nearest "
    "one of the other report",
    higher_is_better=True,
    bounds=(None, 1.0),
    reference_scores_best=True,
    citation="Zhang et al. 2020, BERTScore, ICLR",
    parameters=(
        Parameter(
            "model",
            None,
            "folder of a transformers model with model.safetensors; nothing is fetched",
            kind=str,
        ),
        Parameter(
            "layer",
            None,
            "whose hidden states are compared; default: the library's for a model of the folder's "
            "name, such as 17 for roberta-large",
            kind=int,
            above=0,
        ),
        Parameter("idf", False, "whether rare word pieces of the run's references weigh more"),
        Parameter(
            "rescale",
            None,
            "baseline to subtract: a .tsv file, or library for its own of a model of the folder's "
            "name; default: not rescaled",
            kind=str,
        ),
        Parameter(
            "blanks",
            "as-given",
            "runs of blanks: as they are given, or collapsed into one, as CXR-Report-Metric does; "
            "RoBERTa has a piece for a second blank",
            ("as-given", "collapsed"),
        ),
    ),
    further=(
        Output("precision", "mean over the candidate's word pieces", bounds=(None, 1.0)),
        Output("recall", "mean over the reference's word pieces", bounds=(None, 1.0)),
    ),
    cost="model",
)
