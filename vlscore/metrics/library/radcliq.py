"""RadCliQ (Yu et al. 2023, Patterns): regressions on radiologists' error counts.

The numbers are those of github.com/rajpurkarlab/CXR-Report-Metric at commit 9c9ecad: of v0 the
StandardScaler in CXRMetric/normalizer.pkl (sha256 84a7179c...) and the LinearRegression in
CXRMetric/composite_metric_model.pkl (18c3c345...), of v1 both in CXRMetric/radcliq-v1.pkl
(ddc38dc9...). They were read out of those files as bytes; nothing was unpickled. RadEval 2.2.1
prints those of v1 to eight digits, and they agree. vlscore computes RadCliQ from the values of its
inputs, which are metrics of their own.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from vlscore.core import __version__
from vlscore.errors import MissingDependency, VLScoreError
from vlscore.metrics.batch import Batch, Computed, Values
from vlscore.metrics.library.bert_score import BertScore
from vlscore.metrics.library.bleu import Bleu2
from vlscore.metrics.library.chexbert import CheXbertSimilarity
from vlscore.metrics.library.file_metric import path_parameter
from vlscore.metrics.library.radgraph import RadGraphF1
from vlscore.metrics.library.words import share
from vlscore.metrics.metric import Metric, Output

# Means and scales of the inputs, and weights of the normalised inputs, in their order; intercept.
REGRESSIONS = {
    "radcliq-v0": {
        "means": (0.5398376019082272, 0.6312549595000001, 0.7716797866672277, 0.4607372064809605),
        "scales": (
            0.3018344440559102,
            0.22466950746141123,
            0.24750333805236252,
            0.30336670936092264,
        ),
        "weights": (
            -0.4796252644863446,
            -0.6762170542369337,
            -0.46366575161751994,
            0.2165861905287535,
        ),
        "intercept": 1.641666666666666,
    },
    "radcliq-v1": {
        "means": (0.5379231241355762, 0.6175725628125001, 0.7647942121140658, 0.44738335396242174),
        "scales": (0.3028258411486429, 0.22430938459304575, 0.2539439110169773, 0.2989271671041838),
        "weights": (
            -0.37708368261038905,
            -0.37030009974480316,
            -0.25261621789593225,
            4.315048405024756e-12,
        ),
        "intercept": 2.466552561323256e-10,
    },
}


class RadCliQv0(Metric):
    """RadCliQ of each pair by itself, as CXR-Report-Metric without idf weights."""

    name = "radcliq-v0"
    title = "RadCliQ-v0"
    description = (
        "number of errors that radiologists would count, predicted from RadGraph F1, BERTScore, "
        "CheXbert similarity and BLEU-2"
    )
    citation = "Yu et al. 2023, Patterns; github.com/rajpurkarlab/CXR-Report-Metric"
    higher_is_better = False
    cost = "model"
    library = "vlscore"

    bertscore: str | None = path_parameter(
        "folder called distilroberta-base with that model, as bert-score(model=FOLDER); default: "
        "what `vlscore weights fetch distilroberta-base` downloads"
    )
    chexbert: str | None = path_parameter("as chexbert-similarity(weights=PATH)")
    radgraph: str | None = path_parameter("as radgraph-f1(weights=PATH)")

    @property
    def inputs(self) -> tuple[Metric, ...]:  # type: ignore[override]
        """Return the four metrics in the order of the regressions."""
        return (
            RadGraphF1(weights=self.radgraph),
            # Its add_bertscore_col collapses runs of blanks, its add_bleu_col does so by its words.
            BertScore(
                model=self.bertscore or _MODEL, layer=5, rescale="library", blanks="collapsed"
            ),
            CheXbertSimilarity(weights=self.chexbert),
            # CXR-Report-Metric's library counts .1 of a match for an order without any.
            Bleu2(smoothing="floor", tokens="cxr"),
        )

    def compute(self, batch: Batch) -> Computed:
        means, scales, weights, intercept = map(np.array, REGRESSIONS[self.name].values())
        failures: dict[int, VLScoreError] = {}
        for values in reversed(batch.inputs):
            failures.update(values.failures)
        inputs = np.stack([values.columns[0] for values in batch.inputs], axis=1)
        # Row by row, so that a pair's number does not depend on how many there are.
        found = ((inputs - means) / scales * weights).sum(axis=1) + intercept
        return Computed([found], failures=failures)

    def missing(self) -> str | None:
        reasons = {metric.name: metric.missing() for metric in self.inputs}
        absent = [f"{name}: {reason}" for name, reason in reasons.items() if reason is not None]
        own = ", ".join(f"{name}=PATH" for name in _PATHS)
        return (
            f"{'; '.join(absent)}. To get all: `vlscore weights fetch {self.name}`; to name all: "
            f"{self.name}({own})"
            if absent
            else None
        )

    def facts(self) -> dict[str, Any]:
        if (reason := self.missing()) is not None:
            raise MissingDependency(reason)
        # Paths of models are left out, because the inputs' signatures hold the models' digests.
        named = {name: "given" for name in _PATHS if getattr(self, name) is not None}
        return {
            "precision": "fp32",
            **named,
            "regression": f"CXR-Report-Metric@9c9ecad,vlscore@{__version__}",
        }


class RadCliQv1(RadCliQv0):
    """RadCliQ-v1, and the inverse of its mean, by which ReXrank ranks systems.

    ReXrank computes 1 / mean, not the mean of inverses: scripts/aggregate_metrics.py of
    github.com/rajpurkarlab/ReXrank-metric.
    """

    name = "radcliq-v1"
    title = "RadCliQ-v1"
    description = (
        "as v0, with normalised inputs, none of which has a weight of the wrong sign; -1.4407 if "
        "every input is 1"
    )
    corpus = (
        Output(
            "inverse",
            "1 / mean of RadCliQ-v1, as ReXrank ranks systems; undefined where the mean is 0 or "
            "below, where the inverse would be lower for better reports",
            higher_is_better=True,
            bounds=(0.0, None),
        ),
    )
    # Sum of the values, and how many there are.
    statistics = 2

    def compute(self, batch: Batch) -> Computed:
        found = super().compute(batch)
        (values,) = found.columns
        return Computed([values], np.stack([values, np.ones(len(values))], axis=1), found.failures)

    def corpus_values(self, sums: Values) -> Mapping[str, Values]:
        total, count = np.asarray(sums, np.float64).T
        return {"inverse": share(count, total, np.nan)}

    def printed(self, number: str = "", *, of_corpus: bool = False) -> str:
        shown = super().printed()
        return f"1/{shown}" if of_corpus else shown


_MODEL = "distilroberta-base"
_PATHS = ("bertscore", "chexbert", "radgraph")
