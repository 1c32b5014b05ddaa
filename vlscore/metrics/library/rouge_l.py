"""ROUGE-L of one report: F measure of the longest common subsequence.

Words are those of rouge-score: runs of lower-case letters a-z and digits.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from vlscore.errors import InvalidSetting
from vlscore.metrics.batch import Batch, Values
from vlscore.metrics.metric import Metric, parameter

Words = Callable[[str], list[str]]

_READ = re.compile("[a-z0-9]", re.IGNORECASE | re.ASCII)


class RougeL(Metric):
    """ROUGE-L at the level of the report: line breaks have no effect.

    Words are rouge-score's. The longest common subsequence is computed here, in memory that grows
    linearly with the length of a report: rouge-score stores a table of all pairs of words, and
    imports all of nltk.
    """

    name = "rouge-l"
    title = "ROUGE-L"
    description = "F measure of the longest common subsequence of words"
    citation = "Lin 2004, ROUGE, ACL workshop"
    bounds = (0.0, 1.0)
    reference_scores_best = True
    library = "rouge-score"

    beta: float = parameter(1.0, "weight of recall; pycocoevalcap takes 1.2", above=0.0)
    tokens: str = parameter(
        "a-z0-9",
        "a-z0-9: runs of letters and digits, as rouge-score has; blanks: split at white space "
        "alone, so that periods of tokenized texts count as words, as in pycocoevalcap; both "
        "in lower case",
        choices=("a-z0-9", "blanks"),
    )
    stemming: bool = parameter(False, "whether words are stemmed (Porter) before comparing")

    def compute(self, batch: Batch) -> Values:
        # Several candidates of a study have one reference.
        words = cache(self._words())
        return np.array([_f_measure(words(g), words(r), self.beta) for g, r in batch.pairs()])

    def is_blind_to(self, text: str) -> bool:
        is_read = self.tokens != "a-z0-9" or _READ.search(text) is not None
        return not is_read and any(map(str.isalnum, text))

    def facts(self) -> dict[str, Any]:
        return {"case": "lower", **super().facts()}

    def _words(self) -> Words:
        """Return the function that splits a report: rouge-score's tokenizer, or `_at_blanks`."""
        if self.tokens == "blanks":
            if self.stemming:
                raise InvalidSetting(
                    "rouge-l can only stem words of tokens=a-z0-9: leave out stemming, or tokens"
                )
            return _at_blanks
        if self.stemming:
            tokenizer = self._module("rouge_score.tokenizers").DefaultTokenizer(use_stemmer=True)
            with_stems: Words = tokenizer.tokenize
            return with_stems
        tokenize = self._module("rouge_score.tokenize").tokenize
        return lambda text: list(tokenize(text, None))


def _at_blanks(text: str) -> list[str]:
    return text.lower().split()


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
