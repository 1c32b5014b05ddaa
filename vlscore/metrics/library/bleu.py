"""BLEU-n by sacrebleu: brevity penalty times the geometric mean of n-gram precisions.

It is computed for each report by itself, and for a corpus, whose counts are pooled before the
division; the corpus value is sacrebleu's corpus_score.

Without smoothing the score of a report equals NLTK's sentence_bleu and pycocoevalcap's sentence
scores on the same tokens if every order up to n has a match. Otherwise it is 0, where those two
print a tiny number.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from vlscore.metrics.batch import Batch, Computed, Values
from vlscore.metrics.library.words import before_periods, forget_lines
from vlscore.metrics.metric import Metric, Output, Parameter
from vlscore.metrics.provider import Provider

SMOOTHING = Parameter(
    "smoothing",
    "none",
    "what an order without matches counts: none makes the score 0, as NLTK's and pycocoevalcap's "
    "defaults do up to rounding; exp, add-k and floor are those of Chen, Cherry 2014",
    ("none", "exp", "add-k", "floor"),
)
TOKENS = Parameter(
    "tokens",
    "13a",
    "13a: mteval-v13a words and punctuation; cxr: split at blanks and before periods, as "
    "CXR-Report-Metric does, where a line break joins two words; both in lower case",
    ("13a", "cxr"),
)


class SacrebleuProvider(Provider):
    """Provider of BLEU in [0, 1] rather than sacrebleu's percent.

    With tokens=cxr the corpus value equals that of pycocoevalcap, which splits words at blanks, if
    every order has a match.
    """

    library = "sacrebleu"

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        bleu, of_sums = self._bleu(metric), self._of_sums(metric)
        prepare = before_periods if metric.settings["tokens"] == "cxr" else str
        counts_short = _counts_short(metric)
        values = np.empty(len(batch))
        statistics = np.empty((len(batch), metric.statistics))
        for row, (g, r) in enumerate(batch.pairs()):
            # A corpus of one report: the same number as sentence_score, without its advice to
            # leave out orders that a short report cannot have.
            score = bleu.corpus_score([prepare(g)], [[prepare(r)]])
            values[row] = score.score
            statistics[row] = [*score.counts, *score.totals, score.sys_len, score.ref_len]
            if counts_short and 0 in score.totals:
                values[row] = of_sums(statistics[row])
        forget_lines()
        return Computed([_as_share(values)], statistics)

    def corpus(self, metric: Metric, sums: Values) -> Mapping[str, Values]:
        of_sums = self._of_sums(metric)
        # Resamples of a few studies have the same sums many times.
        rows, places = np.unique(np.round(sums), axis=0, return_inverse=True)
        values = np.array([of_sums(row) for row in rows], np.float64)
        return {"corpus": _as_share(values[places.reshape(-1)])}

    def _of_sums(self, metric: Metric) -> Callable[[Values], float]:
        """Return the function from counts and totals of every order, and two lengths, to percent.

        A bootstrap calls it thousands of times.
        """
        order, counts_short = _order(metric), _counts_short(metric)
        smoothing = metric.settings["smoothing"]
        compute = self._module("sacrebleu.metrics.bleu").BLEU.compute_bleu

        def of_sums(sums: Values) -> float:
            rounded = [int(count) for count in np.round(sums)]
            total = rounded[order : 2 * order]
            found = compute(
                correct=rounded[:order],
                total=[max(count, 1) for count in total] if counts_short else total,
                sys_len=rounded[-2],
                ref_len=rounded[-1],
                smooth_method=smoothing,
                max_ngram_order=order,
            )
            return float(found.score)

        return of_sums

    def conventions(self, metric: Metric) -> dict[str, str]:
        return {"level": "sentence", "case": "lower"}

    def _bleu(self, metric: Metric) -> Any:
        settings = metric.settings
        return self._module("sacrebleu.metrics.bleu").BLEU(
            max_ngram_order=_order(metric),
            smooth_method=settings["smoothing"],
            tokenize="none" if settings["tokens"] == "cxr" else settings["tokens"],
            lowercase=True,
        )


def _order(metric: Metric) -> int:
    # Counts and totals of every order, and two lengths.
    return (metric.statistics - 2) // 2


def _counts_short(metric: Metric) -> bool:
    """Return whether a report too short for an order counts as one n-gram without a match.

    fast_bleu, which CXR-Report-Metric uses, does so: "Normal" against itself is not 0.
    """
    return metric.settings["smoothing"] == "floor" and metric.settings["tokens"] == "cxr"


def _as_share(percent: Values) -> Values:
    # sacrebleu's exponential of logarithms may end one rounding above 100.
    return np.minimum(percent / 100, 1.0)


BLEU = tuple(
    Metric(
        provider=SacrebleuProvider(),
        name=f"bleu-{order}",
        title=f"BLEU-{order}",
        headline="corpus",
        description=f"n-gram precision up to order {order}, with brevity penalty, of one report",
        higher_is_better=True,
        bounds=(0.0, 1.0),
        reference_scores_best=True,
        citation="Papineni et al. 2002, BLEU, ACL",
        parameters=(SMOOTHING, TOKENS),
        statistics=2 * order + 2,
        corpus=(
            Output("corpus", "counts pooled over all reports, as pycocoevalcap and papers print"),
        ),
    )
    for order in (1, 2, 3, 4)
)
BLEU_1, BLEU_2, BLEU_3, BLEU_4 = BLEU
