"""ROUGE-L of one report: F measure of the longest common subsequence.

ROUGE-L by rouge-score, whose words are runs of lower-case letters a-z and digits.
"""

from collections.abc import Sequence
from typing import Any

from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.metric import Metric, Parameter
from vlscore.metrics.provider import Provider, one_column

ROUGE_L = Metric(
    name="rouge-l",
    description="F measure of the longest common subsequence of words",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    uses_image=False,
    uses_reference=True,
    reference_scores_best=True,
    citation="Lin 2004, ROUGE, ACL workshop",
    parameters=(
        Parameter("beta", 1.0, "weight of recall; pycocoevalcap takes 1.2", above=0.0),
        Parameter("stemming", False, "whether words are stemmed (Porter) before comparing"),
    ),
)


class RougeScoreProvider(Provider):
    """ROUGE-L at the level of the report: line breaks mean nothing."""

    library = "rouge-score"
    supports = ("rouge-l",)

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        module = self._module("rouge_score.tokenizers")
        words = module.DefaultTokenizer(metric.settings["stemming"]).tokenize
        beta = metric.settings["beta"]
        return one_column([_f_measure(words(g), words(r), beta) for g, r in batch.pairs()])

    def conventions(self, metric: Metric) -> dict[str, str]:
        return {"tokens": "a-z0-9", "case": "lower"}


def longest_common(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence of two texts' words.

    Bits of one number stand for a row of the usual table of len(first) x len(second) lengths
    (Hyyrö 2004, "Bit-parallel LCS-length computation revisited"), so that memory is linear: the
    table of rouge-score takes 1 GiB for two texts of 44 kB.

    >>> longest_common("no acute pleural effusion".split(), "no large effusion".split())
    2
    """
    places: dict[str, int] = {}
    for place, word in enumerate(first):
        places[word] = places.get(word, 0) | 1 << place
    everything = (1 << len(first)) - 1
    row = everything  # a bit is 0 where the length grows by one
    for word in second:
        matches = row & places.get(word, 0)
        row = (row + matches | row - matches) & everything
    return len(first) - row.bit_count()


def _f_measure(candidate: Sequence[str], reference: Sequence[str], beta: Any) -> float:
    if not candidate or not reference:
        return 0.0
    common = longest_common(reference, candidate)
    precision, recall = common / len(candidate), common / len(reference)
    weighted = recall + beta**2 * precision
    return float((1 + beta**2) * precision * recall / weighted) if weighted > 0 else 0.0
