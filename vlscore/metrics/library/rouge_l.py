"""ROUGE-L of one report: F measure of the longest common subsequence.

ROUGE-L of rouge-score's words: runs of lower-case letters a-z and digits.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from vlscore.errors import InvalidSetting
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
        Parameter(
            "tokens",
            "a-z0-9",
            "a-z0-9: runs of letters and digits, as rouge-score has; blanks: split at white space "
            "alone, so that periods of tokenized texts count as words, as in pycocoevalcap; both "
            "in lower case",
            ("a-z0-9", "blanks"),
        ),
        Parameter("stemming", False, "whether words are stemmed (Porter) before comparing"),
    ),
)


Words = Callable[[str], list[str]]


class RougeScoreProvider(Provider):
    """ROUGE-L at the level of the report: line breaks mean nothing.

    Words are rouge-score's. The longest common subsequence is counted here, in memory that grows
    with the length of a report: rouge-score keeps a table of all pairs of words, and imports all
    of nltk.
    """

    library = "rouge-score"
    supports = ("rouge-l",)

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        words, beta = self._words(metric), metric.settings["beta"]
        return one_column([_f_measure(words(g), words(r), beta) for g, r in batch.pairs()])

    def conventions(self, metric: Metric) -> dict[str, str]:
        return {"case": "lower"}

    def _words(self, metric: Metric) -> Words:
        """Return what splits a report: rouge-score's tokenizer, or `_at_blanks`."""
        stems = bool(metric.settings["stemming"])
        if metric.settings["tokens"] == "blanks":
            if stems:
                raise InvalidSetting(
                    "rouge-l stems words of tokens=a-z0-9 alone: leave one of both out"
                )
            return _at_blanks
        if stems:
            tokenizer = self._module("rouge_score.tokenizers").DefaultTokenizer(use_stemmer=True)
            with_stems: Words = tokenizer.tokenize
            return with_stems
        tokenize = self._module("rouge_score.tokenize").tokenize
        return lambda text: list(tokenize(text, None))


def _at_blanks(text: str) -> list[str]:
    return text.lower().split()


def _f_measure(candidate: Sequence[str], reference: Sequence[str], beta: Any) -> float:
    common = common_subsequence(reference, candidate)
    if not common:
        return 0.0
    precision, recall = common / len(candidate), common / len(reference)
    return float((1 + beta**2) * precision * recall / (recall + beta**2 * precision))


def common_subsequence(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Return the length of the longest common subsequence of two sequences.

    One bit of a whole number stands for each item of `first`, so memory is linear (Hyyrö 2004,
    "Bit-parallel LCS-length computation revisited", Fig. 2).

    >>> common_subsequence("abcbdab", "bdcaba")
    4
    """
    places: dict[Hashable, int] = {}
    for place, item in enumerate(first):
        places[item] = places.get(item, 0) | 1 << place
    everything = (1 << len(first)) - 1
    # A bit is 0 where the length grows.
    rows = everything
    for item in second:
        matches = rows & places.get(item, 0)
        rows = (rows + matches | rows - matches) & everything
    return len(first) - rows.bit_count()
