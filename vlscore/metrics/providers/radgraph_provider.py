"""Agreement of RadGraph annotations, by our own inference over a published archive."""

from pathlib import Path
from typing import Any

import numpy as np

from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.definitions.radgraph import WEIGHTS_VARIABLE
from vlscore.metrics.metric import Metric
from vlscore.metrics.providers.base import one_column
from vlscore.metrics.providers.local_weights import (
    LocalWeightsProvider,
    name_and_digest,
    precision_of,
    vocabulary_place,
    weights_place,
)


class RadGraphProvider(LocalWeightsProvider):
    """Every distinct report is read once, whichever of the metrics asks."""

    supports = ("radgraph-f1", "radgraph-simple", "radgraph-partial", "radgraph-complete")

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        if not len(batch):
            return Computed([np.empty(0) for _ in metric.columns])
        from vlscore.annotators import agreement
        from vlscore.annotators.memory import remembered_radgraph

        assert batch.references is not None
        annotator = remembered_radgraph(*self.files(metric), precision_of(metric))
        read = self.annotated(annotator, metric, batch)
        pairs = list(zip(read[: len(batch)], read[len(batch) :], strict=True))
        if metric.name == "radgraph-f1":
            return Computed(list(np.array([agreement.combined(g, r) for g, r in pairs]).T))
        level: Any = metric.name.removeprefix("radgraph-")
        return one_column([agreement.reward(g, r, level) for g, r in pairs])

    def conventions(self, metric: Metric) -> dict[str, str]:
        weights, vocabulary = self.present_files(metric)
        return {
            "weights": name_and_digest(weights, beside=(vocabulary.name,)),
            "vocabulary": name_and_digest(vocabulary),
        }

    def files(self, metric: Metric) -> tuple[Path, Path]:
        from vlscore.annotators.places import radgraph_files

        what = "a RadGraph archive, as the package radgraph or PhysioNet offers it,"
        return radgraph_files(
            weights_place(metric, WEIGHTS_VARIABLE, what), vocabulary_place(metric)
        )
