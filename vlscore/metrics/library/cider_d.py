"""CIDEr-D: cosine of n-gram counts weighted by inverse document frequency.

The definition is that of pycocoevalcap (its package `cider`), with one reference per study.

pycocoevalcap takes the document frequencies from the references of one call. Here they come from
all references of a run, so that a batch, a resumed run and a single report get the same numbers.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from vlscore.errors import VLScoreError
from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.library.words import ReferenceCounts, splitter, tokens_parameter
from vlscore.metrics.metric import Metric, parameter

_ORDER = 4
_REMEMBERED = 4096


@dataclass(frozen=True)
class _Vector:
    """Weights of a report's n-grams and their norm, for each order; and its length."""

    weights: tuple[Mapping[str, float], ...]
    norms: tuple[float, ...]
    length: int


class CiderD(Metric):
    """CIDEr-D with n = 4, clipped counts, times 10; words by sacrebleu or at blanks."""

    name = "cider-d"
    title = "CIDEr-D"
    description = (
        "tf-idf cosine of n-grams up to order 4, with clipped counts and a penalty for length; "
        "document frequencies are those of the run's references"
    )
    citation = "Vedantam, Zitnick, Parikh 2015, CIDEr, CVPR (CIDEr-D); as pycocoevalcap computes it"
    bounds = (0.0, 10.0)
    reference_scores_best = True
    library = "sacrebleu"
    extra = "metrics"
    is_fitted = True

    sigma: float = parameter(6.0, "width of the penalty for another length, in words", above=0.0)
    tokens: str = tokens_parameter()

    def fit(self, references: Iterable[str], state: Any = None) -> Any:
        split = splitter(self.tokens)
        # An n-gram is words joined by blanks.
        known = state or ReferenceCounts()
        for text in references:
            known.add(_ngrams(split(text)).keys())
        return known

    def compute(self, batch: Batch) -> Computed:
        known: ReferenceCounts = batch.fitted
        pairs = batch.pairs()
        if all(count == known.references for count in known.counts.values()):
            reason = VLScoreError(
                "CIDEr-D gives n-grams that occur in few references more weight. Here all weights "
                f"are 0, because the references that it was fitted to ({known.references}) have "
                "the same n-grams. Score a whole table, or fit to its references"
            )
            return Computed(
                [np.full(len(pairs), np.nan)], failures=dict.fromkeys(range(len(pairs)), reason)
            )
        split = splitter(self.tokens)

        @lru_cache(maxsize=_REMEMBERED)
        def vector(text: str) -> _Vector:
            return _vector(_ngrams(split(text)), known)

        values = [_similarity(vector(g), vector(r), self.sigma) for g, r in pairs]
        return Computed([np.array(values)])

    def facts(self) -> dict[str, Any]:
        return {"order": str(_ORDER), "case": "lower", **super().facts()}


def _ngrams(words: list[str]) -> Counter[str]:
    return Counter(
        " ".join(words[start : start + order])
        for order in range(1, _ORDER + 1)
        for start in range(len(words) - order + 1)
    )


def _vector(ngrams: Mapping[str, int], known: ReferenceCounts) -> _Vector:
    weights: tuple[dict[str, float], ...] = tuple({} for _ in range(_ORDER))
    length = 0
    for ngram, count in ngrams.items():
        order = ngram.count(" ")
        frequency = max(1, known.counts[ngram])
        weights[order][ngram] = count * (math.log(known.references) - math.log(frequency))
        # pycocoevalcap measures length in pairs of words.
        length += count if order == 1 else 0
    norms = tuple(math.sqrt(sum(w * w for w in each.values())) for each in weights)
    return _Vector(weights, norms, length)


def _similarity(candidate: _Vector, reference: _Vector, sigma: float) -> float:
    total = 0.0
    parts = zip(candidate.weights, reference.weights, candidate.norms, reference.norms, strict=True)
    for ours, theirs, norm, other in parts:
        if norm and other:
            shared = sum(min(w, theirs[n]) * theirs[n] for n, w in ours.items() if n in theirs)
            total += shared / (norm * other)
    apart = candidate.length - reference.length
    # Rounding may give slightly more than the cosine's maximum of 1.
    return min(10.0 * total / _ORDER * math.exp(-(apart**2) / (2 * sigma**2)), 10.0)
