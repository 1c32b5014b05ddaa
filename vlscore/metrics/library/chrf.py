"""chrF: F measure of character n-grams; chrF++ adds words and pairs of words.

Both are computed by sacrebleu, and returned in [0, 1] rather than in its percent.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from vlscore.metrics.batch import Batch, Computed, Values
from vlscore.metrics.metric import Metric, Output, Parameter
from vlscore.metrics.provider import Provider

CHARACTER_ORDER = 6
# Highest order of word n-grams of each metric.
WORD_ORDERS = {"chrf": 0, "chrf++": 2}

_TITLES = {"chrf": "chrF", "chrf++": "chrF++"}
_CITATIONS = {
    "chrf": "Popovic 2015, chrF, WMT",
    "chrf++": "Popovic 2017, chrF++: words helping character n-grams, WMT",
}
_OVER = {"chrf": "characters", "chrf++": "characters, words and pairs of words"}


class ChrfProvider(Provider):
    """Provider of chrF; a report's value is that of a corpus of one, sacrebleu's sentence score."""

    library = "sacrebleu"
    extra = "metrics"

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        chrf = self._chrf(metric)
        statistics = np.empty((len(batch), metric.statistics))
        for row, (g, r) in enumerate(batch.pairs()):
            statistics[row] = chrf._extract_corpus_statistics([g], [[r]])[0]
        return Computed([self._values(chrf, statistics)], statistics)

    def corpus(self, metric: Metric, sums: Values) -> Mapping[str, Values]:
        return {"corpus": self._values(self._chrf(metric), np.round(sums))}

    def conventions(self, metric: Metric) -> dict[str, str]:
        orders = f"{CHARACTER_ORDER}-characters,{WORD_ORDERS[metric.name]}-words"
        return {"orders": orders}

    def _values(self, chrf: Any, statistics: Values) -> Values:
        found = [
            chrf._compute_score_from_stats(row.astype(int).tolist()).score for row in statistics
        ]
        return np.minimum(np.array(found, dtype=np.float64) / 100, 1.0)

    def _chrf(self, metric: Metric) -> Any:
        return self._module("sacrebleu.metrics.chrf").CHRF(
            char_order=CHARACTER_ORDER,
            word_order=WORD_ORDERS[metric.name],
            beta=metric.settings["beta"],
            lowercase=metric.settings["case"] == "lower",
        )


CHRF = tuple(
    Metric(
        provider=ChrfProvider(),
        name=name,
        title=_TITLES[name],
        headline="corpus",
        description=f"F measure of n-grams of {_OVER[name]}",
        higher_is_better=True,
        bounds=(0.0, 1.0),
        reference_scores_best=True,
        citation=_CITATIONS[name],
        parameters=(
            Parameter("beta", 2.0, "weight of recall", above=0.0),
            Parameter("case", "lower", "whether letters are lowered first", ("lower", "kept")),
        ),
        # Counts of the candidate, of the reference and of both, for each order.
        statistics=3 * (CHARACTER_ORDER + words),
        corpus=(Output("corpus", "counts pooled over all reports, as sacrebleu prints"),),
    )
    for name, words in WORD_ORDERS.items()
)
CHRF_ALONE, CHRF_PLUS_PLUS = CHRF
