"""BLEU-n by sacrebleu: brevity penalty times the geometric mean of n-gram precisions.

It is computed for each report by itself, and for a corpus, whose counts are pooled before the
division; the corpus value is sacrebleu's corpus_score.

Without smoothing the score of a report equals NLTK's sentence_bleu and pycocoevalcap's sentence
scores on the same tokens if every order up to n has a match. Otherwise it is 0, where those two
print a tiny number.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from vlscore.metrics.batch import Batch, Computed, Values
from vlscore.metrics.library.words import before_periods, tokens_parameter
from vlscore.metrics.metric import Metric, Output, parameter


class Bleu4(Metric):
    """BLEU-4 in [0, 1] rather than sacrebleu's percent.

    With tokens=cxr the corpus value equals that of pycocoevalcap, which splits words at blanks, if
    every order has a match.
    """

    name = "bleu-4"
    title = "BLEU-4"
    description = "n-gram precision up to order 4, with brevity penalty, of one report"
    citation = "Papineni et al. 2002, BLEU, ACL"
    bounds = (0.0, 1.0)
    corpus = (
        Output("corpus", "counts pooled over all reports, as pycocoevalcap and papers print"),
    )
    primary = "corpus"
    reference_scores_best = True
    library = "sacrebleu"
    order: ClassVar[int] = 4
    # Counts and totals of every order, and two lengths.
    statistics = 2 * order + 2

    smoothing: str = parameter(
        "none",
        "what an order without matches counts: none makes the score 0, as NLTK's and "
        "pycocoevalcap's defaults do up to rounding; exp, add-k and floor are those of Chen, "
        "Cherry 2014",
        choices=("none", "exp", "add-k", "floor"),
    )
    tokens: str = tokens_parameter()

    def compute(self, batch: Batch) -> Computed:
        bleu = self._module("sacrebleu.metrics.bleu").BLEU(
            max_ngram_order=self.order,
            smooth_method=self.smoothing,
            tokenize="none" if self.tokens == "cxr" else self.tokens,
            lowercase=True,
        )
        of_sums = self._of_sums()
        prepare = before_periods if self.tokens == "cxr" else str
        values = np.empty(len(batch))
        statistics = np.empty((len(batch), self.statistics))
        for row, (g, r) in enumerate(batch.pairs()):
            # A corpus of one report: the same number as sentence_score, without its advice to
            # leave out orders that a short report cannot have.
            score = bleu.corpus_score([prepare(g)], [[prepare(r)]])
            values[row] = score.score
            statistics[row] = [*score.counts, *score.totals, score.sys_len, score.ref_len]
            if self._counts_short and 0 in score.totals:
                values[row] = of_sums(statistics[row])
        return Computed([_as_share(values)], statistics)

    def corpus_values(self, sums: Values) -> Mapping[str, Values]:
        of_sums = self._of_sums()
        # Resamples of a few studies have the same sums many times.
        rows, places = np.unique(np.round(sums), axis=0, return_inverse=True)
        values = np.array([of_sums(row) for row in rows], np.float64)
        return {"corpus": _as_share(values[places.reshape(-1)])}

    def facts(self) -> dict[str, Any]:
        return {"case": "lower", **super().facts()}

    @property
    def _counts_short(self) -> bool:
        """Return whether a report too short for an order counts as one n-gram without a match.

        fast_bleu, which CXR-Report-Metric uses, does so: "Normal" against itself is not 0.
        """
        return self.smoothing == "floor" and self.tokens == "cxr"

    def _of_sums(self) -> Callable[[Values], float]:
        """Return the function from counts and totals of every order, and two lengths, to percent.

        A bootstrap calls it thousands of times.
        """
        order, counts_short = self.order, self._counts_short
        compute = self._module("sacrebleu.metrics.bleu").BLEU.compute_bleu

        def of_sums(sums: Values) -> float:
            rounded = [int(count) for count in np.round(sums)]
            total = rounded[order : 2 * order]
            found = compute(
                correct=rounded[:order],
                total=[max(count, 1) for count in total] if counts_short else total,
                sys_len=rounded[-2],
                ref_len=rounded[-1],
                smooth_method=self.smoothing,
                max_ngram_order=order,
            )
            return float(found.score)

        return of_sums


class Bleu1(Bleu4):
    """BLEU-1."""

    name = "bleu-1"
    title = "BLEU-1"
    description = "n-gram precision up to order 1, with brevity penalty, of one report"
    order = 1
    statistics = 2 * order + 2


class Bleu2(Bleu4):
    """BLEU-2."""

    name = "bleu-2"
    title = "BLEU-2"
    description = "n-gram precision up to order 2, with brevity penalty, of one report"
    order = 2
    statistics = 2 * order + 2


class Bleu3(Bleu4):
    """BLEU-3."""

    name = "bleu-3"
    title = "BLEU-3"
    description = "n-gram precision up to order 3, with brevity penalty, of one report"
    order = 3
    statistics = 2 * order + 2


def _as_share(percent: Values) -> Values:
    # sacrebleu's exponential of logarithms may end one rounding above 100.
    return np.minimum(percent / 100, 1.0)
