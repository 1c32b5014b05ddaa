"""RadCliQ from its inputs' values."""

from typing import Any

import numpy as np

from vlscore._version import __version__
from vlscore.errors import MissingDependency, VLScoreError
from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.definitions.radcliq import REGRESSIONS
from vlscore.metrics.metric import Metric
from vlscore.metrics.providers.base import Provider, one_column


class RadCliQProvider(Provider):
    """Of each pair by itself, as CXR-Report-Metric computes it without idf weights."""

    library = "vlscore"
    supports = tuple(REGRESSIONS)

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
        from vlscore.metrics.registry import inputs_of, provider_of

        reasons = {
            given.name: provider_of(given).missing(given) for given in inputs_of(metric).values()
        }
        absent = [f"{name}: {reason}" for name, reason in reasons.items() if reason is not None]
        if not absent:
            return None
        own = ", ".join(f"{name}=PATH" for name in _places(metric))
        return f"{'; '.join(absent)}. In one: {metric.name}({own})"

    def conventions(self, metric: Metric) -> dict[str, str]:
        if (reason := self.missing(metric)) is not None:
            raise MissingDependency(reason)
        # Where the models lie says nothing; which they are stands in the inputs' signatures.
        named = {name: "given" for name in _places(metric) if metric.settings[name] is not None}
        return {**named, "regression": f"CXR-Report-Metric@9c9ecad,vlscore@{__version__}"}

    def facts(self, metric: Metric) -> dict[str, Any]:
        return self.conventions(metric)


def _places(metric: Metric) -> list[str]:
    """Names of the parameters that say where a model lies."""
    return [parameter.name for parameter in metric.parameters if not parameter.choices]
