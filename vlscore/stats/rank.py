"""Rank correlation with raters, and its largest value under ties."""

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from vlscore.errors import InvalidSetting
from vlscore.stats.intervals import Interval, checked, checked_pairs, percentiles

# Up to this many pairs all resamples use the signs of all comparisons at once, three n x n matrices
# of float32; beyond, tau is counted again for each resample.
_WEIGHED = 3000


@dataclass(frozen=True)
class Difference(Interval):
    """A difference, its interval, and the two-sided bootstrap p value for no difference."""

    p_value: float


def kendall_tau_b(x: ArrayLike, y: ArrayLike) -> float:
    """Compute Kendall's tau_b of two (n,) variables, in [-1, 1]; nan if one is constant.

    Raises: InvalidSetting if lengths differ or a value is not finite.

    >>> round(kendall_tau_b([1, 2, 3], [10, 20, 15]), 4)
    0.3333
    """
    first, second = checked_pairs(x, y)
    return _tau(first, second)


def kendall_tau_b_interval(
    x: ArrayLike, y: ArrayLike, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Interval:
    """Compute tau_b with a bootstrap interval over the n pairs."""
    samples = checked_pairs(x, y)
    estimate, drawn = _resampled_taus(samples[:1], samples[1], resamples, seed)
    # Two pairs agree, or disagree, in every resample: the interval would have no width.
    count = len(samples[1]) if len(samples[1]) > 2 else 0
    return percentiles(float(estimate[0]), drawn[0], level, count)


def largest_tau_b(y: ArrayLike) -> float:
    """Compute the largest tau_b that a variable without ties can have with y.

    With n0 pairs, of which n2 are tied in y, the best score orders all others correctly:
    tau_b = (n0 - n2) / sqrt(n0 (n0 - n2)) = sqrt(1 - n2 / n0) (from Kendall 1945). It is nan where
    y has a single value.

    >>> largest_tau_b([1, 2, 3]), round(largest_tau_b([1, 1, 2]), 4)
    (1.0, 0.8165)
    """
    _, counts = np.unique(checked(y), return_counts=True)
    if len(counts) < 2:
        return float("nan")
    n = int(counts.sum())
    tied = int((counts * (counts - 1)).sum())
    return float(np.sqrt(1 - tied / (n * (n - 1))))


def paired_difference_of_taus(
    x: ArrayLike,
    other: ArrayLike,
    y: ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Difference:
    """Compute tau_b(x, y) - tau_b(other, y), resampled over the studies that both scored.

    Args:
        x, other: (n,) scores of two metrics on the same studies.
        y: (n,) ratings of those studies.

    The p value is that of `bootstrap_p_value`.
    """
    *scores, ratings = checked_pairs(x, other, y)
    estimate, drawn = _resampled_taus(scores, ratings, resamples, seed)
    differences = drawn[0] - drawn[1]
    count = len(ratings) if len(ratings) > 2 else 0
    found = percentiles(float(estimate[0] - estimate[1]), differences, level, count)
    return Difference(found.estimate, found.low, found.high, bootstrap_p_value(differences))


def bootstrap_p_value(differences: ArrayLike) -> float:
    """Compute the two-sided p value of no difference from (B,) resamples; nan if all are nan.

    Twice the smaller share of resamples on either side of 0, counted with one more on that side, so
    it is never below 2 / (B + 1).
    """
    drawn = np.asarray(differences, dtype=np.float64)
    kept = drawn[~np.isnan(drawn)]
    smaller = min(int((kept <= 0).sum()), int((kept >= 0).sum()))
    return min(1.0, 2 * (smaller + 1) / (len(kept) + 1)) if len(kept) else float("nan")


def _tau(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    if x.min() == x.max() or y.min() == y.max():
        return float("nan")
    return float(scipy.stats.kendalltau(x, y, variant="b").statistic)


def _resampled_taus(
    scores: "list[NDArray[np.float64]] | tuple[NDArray[np.float64], ...]",
    ratings: NDArray[np.float64],
    resamples: int,
    seed: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute tau_b of each score with the ratings, (k,), and on shared resamples, (k, B)."""
    if resamples < 1:
        raise InvalidSetting(f"resamples must be 1 or more, not {resamples}")
    n = len(ratings)
    rng = np.random.default_rng(seed)
    estimate = np.array([_tau(score, ratings) for score in scores])
    if n > _WEIGHED:
        drawn = np.empty((len(scores), resamples))
        for b in range(resamples):
            rows = rng.integers(n, size=n)
            drawn[:, b] = [_tau(score[rows], ratings[rows]) for score in scores]
        return estimate, drawn
    weights = rng.multinomial(n, np.full(n, 1 / n), size=resamples).astype(np.float32)
    signs = _signs(ratings)
    untied_ratings = _weighed(weights, np.abs(signs))
    return estimate, np.stack(
        [_weighed_tau(weights, _signs(score), signs, untied_ratings) for score in scores]
    )


def _signs(values: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the sign of every comparison, (n, n)."""
    above = values[:, None] > values[None, :]
    return above.astype(np.float32) - above.T


def _weighed(weights: NDArray[np.float32], matrix: NDArray[np.float32]) -> NDArray[np.float64]:
    """Compute w' M w for each row w of the weights: the sum of M over a resample's pairs.

    Entries of `weights @ matrix` are integers of at most n, so float32 holds them exactly.
    """
    sums: NDArray[np.float64] = np.einsum("bi,bi->b", weights @ matrix, weights, dtype=np.float64)
    return sums


def _weighed_tau(
    weights: NDArray[np.float32],
    score_signs: NDArray[np.float32],
    rating_signs: NDArray[np.float32],
    untied_ratings: NDArray[np.float64],
) -> NDArray[np.float64]:
    concordance = _weighed(weights, score_signs * rating_signs)
    untied = np.sqrt(_weighed(weights, np.abs(score_signs))) * np.sqrt(untied_ratings)
    constant = untied == 0
    return np.where(constant, np.nan, concordance / np.where(constant, 1.0, untied))


@dataclass(frozen=True)
class AverageRanks:
    """Average ranks of k systems over n studies; 1 is the best.

    Attributes:
        ranks: (k,) average rank of each system; ties share their ranks.
        critical: smallest difference of two average ranks that is significant at 5 % by Nemenyi's
            test.
        groups: systems, by their positions, that do not differ significantly; the best first. A
            group that is part of another, or has one member, is left out.
    """

    ranks: NDArray[np.float64]
    critical: float
    groups: tuple[tuple[int, ...], ...]


def average_ranks(values: NDArray[np.float64], *, higher_is_better: bool = True) -> AverageRanks:
    """Rank systems within each study, and compare their average ranks by Nemenyi's test.

    Args: values: (n, k) of n studies and k systems, k at least 2, all finite.

    Source: Demšar 2006, Statistical comparisons of classifiers over multiple data sets, JMLR 7,
    section 3.2.2: CD = q sqrt(k (k + 1) / (6 n)), q of the studentized range over sqrt(2).

    >>> average_ranks(np.array([[0.9, 0.5], [0.8, 0.1]])).ranks.tolist()
    [1.0, 2.0]
    """
    from scipy import stats

    count, systems = values.shape
    ranked = stats.rankdata(-values if higher_is_better else values, axis=1)
    ranks = ranked.mean(axis=0)
    q = float(stats.studentized_range.ppf(0.95, systems, np.inf)) / math.sqrt(2)
    critical = q * math.sqrt(systems * (systems + 1) / (6 * count))
    order = np.argsort(ranks, kind="stable")
    groups: list[tuple[int, ...]] = []
    for start in range(systems):
        near = [int(k) for k in order[start:] if ranks[k] - ranks[order[start]] < critical]
        if len(near) > 1 and not any(set(near) <= set(group) for group in groups):
            groups.append(tuple(near))
    return AverageRanks(ranks, critical, tuple(groups))
