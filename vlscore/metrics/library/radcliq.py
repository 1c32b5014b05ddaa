"""RadCliQ (Yu et al. 2023, Patterns): regressions on radiologists' error counts.

The numbers are those of github.com/rajpurkarlab/CXR-Report-Metric at commit 9c9ecad: of v0 the
StandardScaler in CXRMetric/normalizer.pkl (sha256 84a7179c...) and the LinearRegression in
CXRMetric/composite_metric_model.pkl (18c3c345...), of v1 both in CXRMetric/radcliq-v1.pkl
(ddc38dc9...). They were read out of those files as bytes; nothing was unpickled. RadEval 2.2.1
prints those of v1 to eight digits, and they agree. vlscore computes RadCliQ from the values of its
inputs, which are metrics of their own.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from vlscore.core import __version__
from vlscore.errors import MissingDependency, VLScoreError
from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.library.chexbert import PRECISION
from vlscore.metrics.metric import Metric, Parameter
from vlscore.metrics.provider import Provider, one_column
from vlscore.metrics.registry import missing_inputs

# In the order of the regressions.
INPUTS = (
    "radgraph-f1",
    # Its add_bertscore_col collapses runs of blanks, its add_bleu_col does so by its words.
    "bert-score(layer=5,rescale=library,blanks=collapsed)",
    "chexbert-similarity",
    # CXR-Report-Metric's library counts .1 of a match for an order without any.
    "bleu-2(smoothing=floor,tokens=cxr)",
)


@dataclass(frozen=True)
class Regression:
    """Linear regression on normalised inputs, in the order of `INPUTS`.

    Attributes:
        means, scales: of the inputs over the reports to which it was fitted.
        weights: weights of the normalised inputs.
        intercept: the value if all inputs are at their means.
    """

    means: tuple[float, ...]
    scales: tuple[float, ...]
    weights: tuple[float, ...]
    intercept: float


REGRESSIONS = {
    "radcliq-v0": Regression(
        means=(0.5398376019082272, 0.6312549595000001, 0.7716797866672277, 0.4607372064809605),
        scales=(0.3018344440559102, 0.22466950746141123, 0.24750333805236252, 0.30336670936092264),
        weights=(
            -0.4796252644863446,
            -0.6762170542369337,
            -0.46366575161751994,
            0.2165861905287535,
        ),
        intercept=1.641666666666666,
    ),
    "radcliq-v1": Regression(
        means=(0.5379231241355762, 0.6175725628125001, 0.7647942121140658, 0.44738335396242174),
        scales=(0.3028258411486429, 0.22430938459304575, 0.2539439110169773, 0.2989271671041838),
        weights=(
            -0.37708368261038905,
            -0.37030009974480316,
            -0.25261621789593225,
            4.315048405024756e-12,
        ),
        intercept=2.466552561323256e-10,
    ),
}

_DESCRIPTIONS = {
    "radcliq-v0": "errors that radiologists would count, by regression on RadGraph F1, BERTScore, "
    "CheXbert similarity and BLEU-2",
    "radcliq-v1": "as v0, normalised, with no input allowed to count the wrong way; -1.4407 where "
    "every input is 1",
}


class RadCliQProvider(Provider):
    """Provider of RadCliQ for each pair by itself, as CXR-Report-Metric without idf weights."""

    library = "vlscore"

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        regression = REGRESSIONS[metric.name]
        failures: dict[int, VLScoreError] = {}
        for name in reversed(metric.inputs):
            failures.update(batch.values[name].failures)
        inputs = np.stack([batch.values[name].headline for name in metric.inputs], axis=1)
        normalised = (inputs - np.array(regression.means)) / np.array(regression.scales)
        # Row by row, so that a pair's number does not depend on how many there are.
        values = (normalised * np.array(regression.weights)).sum(axis=1) + regression.intercept
        return Computed(one_column(values).columns, failures=failures)

    def missing(self, metric: Metric) -> str | None:
        absent = missing_inputs(metric)
        if not absent:
            return None
        own = ", ".join(f"{name}=PATH" for name in _places(metric))
        return f"{'; '.join(absent)}. To set all: {metric.name}({own})"

    def conventions(self, metric: Metric) -> dict[str, str]:
        if (reason := self.missing(metric)) is not None:
            raise MissingDependency(reason)
        # Paths of models are left out, because the inputs' signatures hold the models' digests.
        named = {name: "given" for name in _places(metric) if metric.settings[name] is not None}
        return {**named, "regression": f"CXR-Report-Metric@9c9ecad,vlscore@{__version__}"}

    def facts(self, metric: Metric) -> dict[str, Any]:
        return self.conventions(metric)


def _places(metric: Metric) -> list[str]:
    """Return the names of the parameters that are paths of models."""
    return [parameter.name for parameter in metric.parameters if not parameter.choices]


RADCLIQ = tuple(
    Metric(
        provider=RadCliQProvider(),
        name=name,
        title=name.replace("radcliq", "RadCliQ"),
        description=description,
        higher_is_better=False,
        bounds=(None, None),
        citation="Yu et al. 2023, Patterns; github.com/rajpurkarlab/CXR-Report-Metric",
        inputs=INPUTS,
        parameters=(
            Parameter(
                "bertscore",
                None,
                "folder called distilroberta-base with that model, as bert-score(model=FOLDER)",
                kind=str,
            ),
            Parameter("chexbert", None, "as chexbert-similarity(weights=PATH)", kind=str),
            Parameter("radgraph", None, "as radgraph-f1(weights=PATH)", kind=str),
            PRECISION,
        ),
        passed=(
            (INPUTS[0], "weights", "radgraph"),
            (INPUTS[1], "model", "bertscore"),
            (INPUTS[2], "weights", "chexbert"),
            (INPUTS[0], "precision", "precision"),
            (INPUTS[2], "precision", "precision"),
        ),
        cost="model",
    )
    for name, description in _DESCRIPTIONS.items()
)
RADCLIQ_V0, RADCLIQ_V1 = RADCLIQ
