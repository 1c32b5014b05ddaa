"""Composites from their inputs' values."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.errors import InvalidSetting, MissingDependency, VLScoreError
from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.metric import Metric
from vlscore.metrics.providers.base import Provider, one_column

if TYPE_CHECKING:
    from vlscore.metrics.composite import Composite


@dataclass(frozen=True)
class CompositeProvider(Provider):
    """Of each pair by itself, by the weights of a file.

    Attributes:
        composite: what the file holds; None for the metric without a file, which cannot run.
    """

    library = "vlscore"
    supports = ("composite",)

    composite: "Composite | None" = None

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        from vlscore.metrics.composite import differing_facts
        from vlscore.metrics.registry import inputs_of, provider_of

        composite = self._composite(metric)
        metrics = inputs_of(metric)
        total = np.zeros(len(batch))
        failures: dict[int, VLScoreError] = {}
        for each in composite.inputs:
            values = batch.values[each.metric]
            library = provider_of(metrics[each.metric]).library
            differing = [
                name
                for name in differing_facts(each.signature, values.signature)
                if name != library
            ]
            if differing:
                raise InvalidSetting(
                    f"{metric}: {each.metric} is not what the composite was fitted to; it differs "
                    f"in {', '.join(differing)}: {each.signature} then, {values.signature} now. "
                    "Use the same encoder and settings, or fit a composite to these"
                )
            sign = metrics[each.metric].sign
            total += each.weight * sign * (values.headline - each.mean) / each.deviation
            failures = {**values.failures, **failures}
        return Computed(one_column(total).columns, failures=failures)

    def missing(self, metric: Metric) -> str | None:
        from vlscore.metrics.registry import inputs_of, provider_of

        if self.composite is None:
            return "it needs a file: composite:FILE, as `vlscore align --fit RATING` writes one"
        reasons = {
            given.name: provider_of(given).missing(given) for given in inputs_of(metric).values()
        }
        absent = [f"{name}: {reason}" for name, reason in reasons.items() if reason is not None]
        return "; ".join(absent) or None

    def facts(self, metric: Metric) -> dict[str, Any]:
        composite = self._composite(metric)
        # Where the file lies says nothing; which composite it is does.
        fitted = f"{composite.rating.replace('|', ' ')}, {composite.pairs} pairs"
        return {"file": f"given@{composite.digest}", "fitted": fitted}

    def _composite(self, metric: Metric) -> "Composite":
        if self.composite is None:
            raise MissingDependency(f"{metric}: {self.missing(metric)}")
        return self.composite
