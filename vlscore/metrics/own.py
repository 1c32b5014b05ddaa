"""A metric of one's own from a function of two texts."""

from collections.abc import Callable
from typing import Any

import numpy as np

from vlscore.errors import VLScoreError
from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.metric import Bounds, Metric
from vlscore.metrics.providers import Provider

TextFunction = Callable[[str, str], float]


def text_metric(
    name: str,
    description: str,
    *,
    bounds: Bounds = (None, None),
    higher_is_better: bool = True,
    version: str = "1",
    citation: str = "",
) -> Callable[[TextFunction], Metric]:
    """Make a metric of a function (candidate, reference) -> number.

    Args:
        name: what tables and signatures call it.
        description: one sentence.
        bounds: smallest and largest possible value.
        higher_is_better: direction.
        version: to be changed whenever the function gives other numbers; signatures show it.
        citation: where it was published.

    Returns: what turns the function into the metric. A candidate for which the function raises has
        no value, and the others keep theirs.

    >>> @text_metric("length-ratio", "words of the candidate for each of the reference")
    ... def length_ratio(candidate, reference):
    ...     return len(candidate.split()) / max(len(reference.split()), 1)
    >>> from vlscore.metrics import compute
    >>> compute([length_ratio], ["clear lungs"], ["The lungs are clear."])["length-ratio"].tolist()
    [0.5]
    """

    def make(function: TextFunction) -> Metric:
        return Metric(
            name=name,
            description=description,
            higher_is_better=higher_is_better,
            bounds=bounds,
            uses_image=False,
            uses_reference=True,
            citation=citation,
            provider=_FunctionProvider(function, version),
        )

    return make


class _FunctionProvider(Provider):
    library = "own"

    def __init__(self, function: TextFunction, version: str) -> None:
        self._function, self._version = function, version

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        values = np.full(len(batch), np.nan)
        failures: dict[int, VLScoreError] = {}
        for row, (candidate, reference) in enumerate(batch.pairs()):
            try:
                values[row] = float(self._function(candidate, reference))
            except Exception as error:  # a user's function may raise whatever it likes
                failures[row] = VLScoreError(f"{metric.name}: {type(error).__name__}: {error}")
        return Computed([values], failures=failures)

    def missing(self, metric: Metric) -> str | None:
        return None

    def facts(self, metric: Metric) -> dict[str, Any]:
        return {"own": self._version}
