"""chrF: F measure of character n-grams; chrF++ adds words and pairs of words.

Both are computed by sacrebleu, and returned in [0, 1] rather than in its percent.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from vlscore.metrics.batch import Batch, Computed, Values
from vlscore.metrics.metric import Metric, Output, parameter

CHARACTER_ORDER = 6


class Chrf(Metric):
    """chrF; a report's value is that of a corpus of one, sacrebleu's sentence score."""

    name = "chrf"
    title = "chrF"
    description = "F measure of n-grams of characters"
    citation = "Popovic 2015, chrF, WMT"
    bounds = (0.0, 1.0)
    corpus = (Output("corpus", "counts pooled over all reports, as sacrebleu prints"),)
    # Counts of the candidate, of the reference and of both, for each order.
    statistics = 3 * CHARACTER_ORDER
    primary = "corpus"
    reference_scores_best = True
    library = "sacrebleu"
    extra = "metrics"
    # Highest order of n-grams of words.
    word_order: ClassVar[int] = 0

    beta: float = parameter(2.0, "weight of recall", above=0.0)
    case: str = parameter("lower", "whether letters are lowered first", choices=("lower", "kept"))

    def compute(self, batch: Batch) -> Computed:
        chrf = self._module("sacrebleu.metrics.chrf").CHRF(
            char_order=CHARACTER_ORDER,
            word_order=self.word_order,
            beta=self.beta,
            lowercase=self.case == "lower",
        )
        statistics = np.empty((len(batch), self.statistics))
        for row, (g, r) in enumerate(batch.pairs()):
            statistics[row] = chrf._extract_corpus_statistics([g], [[r]])[0]
        return Computed([_values(statistics, self.beta)], statistics)

    def corpus_values(self, sums: Values) -> Mapping[str, Values]:
        return {"corpus": _values(np.round(sums), self.beta)}

    def facts(self) -> dict[str, Any]:
        orders = f"{CHARACTER_ORDER}-characters,{self.word_order}-words"
        return {"orders": orders, "space": "removed", **super().facts()}


class ChrfPlusPlus(Chrf):
    """chrF++."""

    name = "chrf++"
    title = "chrF++"
    description = "F measure of n-grams of characters, words and pairs of words"
    citation = "Popovic 2017, chrF++: words helping character n-grams, WMT"
    word_order = 2
    statistics = 3 * (CHARACTER_ORDER + word_order)


def _values(statistics: Values, beta: float) -> Values:
    """Return chrF of rows of counts, as sacrebleu's `CHRF._compute_f_score` without its objects.

    Thousands of resamples are computed at once. Orders that one side lacks do not count.

    Args: statistics: (n, 3 x orders) counts of the candidate, of the reference and of both.
    Returns: (n,) float64 in [0, 1].
    """
    candidate, reference, both = (statistics[:, side::3] for side in range(3))
    counts = (candidate > 0) & (reference > 0)
    orders = np.maximum(counts.sum(axis=1), 1)
    precision = np.divide(both, candidate, out=np.zeros_like(both), where=counts).sum(1) / orders
    recall = np.divide(both, reference, out=np.zeros_like(both), where=counts).sum(1) / orders
    below = beta**2 * precision + recall
    found: Values = (1 + beta**2) * precision * recall / np.where(below > 0, below, 1)
    return found.clip(max=1.0)
