"""Metrics as a user would write them, outside of the package."""

from dataclasses import dataclass

import numpy as np

from vlscore.metrics import Batch, Computed, Metric, Provider, one_column, text_metric


@text_metric("length-ratio", "words of the candidate for each of the reference", version="7")
def length_ratio(candidate: str, reference: str) -> float:
    return len(candidate.split()) / max(len(reference.split()), 1)


class MeanOfInputs(Provider):
    library = "mine"

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        columns = [batch.values[name].headline for name in metric.inputs]
        return one_column(np.mean(columns, axis=0))

    def missing(self, metric: Metric) -> str | None:
        return None

    def version(self) -> str:
        return "2"


COMPOSITE = Metric(
    name="sum-of-two",
    description="mean of its inputs",
    higher_is_better=True,
    bounds=(None, None),
    uses_image=False,
    uses_reference=True,
    citation="",
    inputs=("BLEU_1", "rouge-l", length_ratio),
    provider=MeanOfInputs(),
)

WITH_IMAGE = Metric(
    name="with-image",
    description="mean of vlscore and cosine",
    higher_is_better=True,
    bounds=(None, None),
    uses_image=True,
    uses_reference=True,
    citation="",
    inputs=("vlscore", "cosine"),
    provider=MeanOfInputs(),
)


@dataclass
class Unhashable(Provider):
    """A dataclass that can be changed has no hash."""

    library = "unhashable"
    value: float = 0.5

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        return one_column(np.full(len(batch), self.value))

    def missing(self, metric: Metric) -> str | None:
        return None

    def version(self) -> str:
        return "1"


NOT_A_METRIC = "a text"
