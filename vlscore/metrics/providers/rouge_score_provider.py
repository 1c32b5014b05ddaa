"""ROUGE-L by rouge-score, whose words are runs of lower-case letters a-z and digits."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vlscore.metrics.embeddings import EmbeddingTriples
from vlscore.metrics.metric import Metric
from vlscore.metrics.providers.base import Provider


class RougeScoreProvider(Provider):
    """ROUGE-L at the level of the report: line breaks mean nothing."""

    library = "rouge-score"

    def supports(self, metric: Metric) -> bool:
        return metric.name == "rouge-l"

    def compute(
        self,
        metric: Metric,
        candidates: Sequence[str],
        references: Sequence[str],
        embeddings: EmbeddingTriples | None,
    ) -> NDArray[np.float64]:
        module = self._module("rouge_score.rouge_scorer")
        scorer = module.RougeScorer(["rougeL"], use_stemmer=metric.settings["stemming"])
        beta = metric.settings["beta"]
        values = [
            _f_measure(scorer.score(reference, candidate)["rougeL"], beta)
            for candidate, reference in zip(candidates, references, strict=True)
        ]
        return np.array(values, dtype=np.float64)

    def conventions(self, metric: Metric) -> dict[str, str]:
        return {"tokens": "a-z0-9", "case": "lower"}


def _f_measure(score: "object", beta: float) -> float:
    precision, recall = score.precision, score.recall  # type: ignore[attr-defined]
    weighted = recall + beta**2 * precision
    return (1 + beta**2) * precision * recall / weighted if weighted > 0 else 0.0
