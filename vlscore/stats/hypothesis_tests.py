"""Tests of differences, corrections for many tests, and paired systems.

The tests of two samples are SciPy's, which is loaded when one of them is first called.

`paired_sums` compares several systems over the same studies: intervals, paired differences, and
their tests. It works on sums over studies, so that means and corpus values (corpus BLEU, micro F1)
are treated alike: a mean is the sum of values over the sum of ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike

from vlscore.core import as_floats, generator
from vlscore.errors import InvalidSetting
from vlscore.stats.intervals import (
    ROUNDING,
    Array,
    Interval,
    bootstrap_interval,
    checked,
    checked_pairs,
    difference_of,
    resampled_sums,
    weighted_sums,
    without_rounding,
)


def paired_p_value(x: ArrayLike, y: ArrayLike) -> float:
    """Compute the p value of Wilcoxon's signed-rank test of paired (n,) samples; 1 if all equal."""
    difference = difference_of(*checked_pairs(x, y))
    return float(scipy.stats.wilcoxon(difference).pvalue) if difference.any() else 1.0


def one_sided_p_value(x: ArrayLike, y: ArrayLike) -> float:
    """Compute the p value of Student's paired t test that the mean of x exceeds y's, (n,) samples.

    It is 1 if all pairs are equal, and nan for one pair; 0 or 1 if all differences are one number
    that is not 0.

    >>> one_sided_p_value([3, 5, 4], [1, 2, 2]) < 0.01
    True
    """
    first, second = checked_pairs(x, y)
    if len(first) < 2:
        return float("nan")
    difference = difference_of(first, second)
    if np.ptp(difference) == 0:
        return 0.0 if difference[0] > 0 else 1.0
    return float(scipy.stats.ttest_rel(first, second, alternative="greater").pvalue)


def two_sample_p_value(x: ArrayLike, y: ArrayLike) -> float:
    """Compute the p value of Mann-Whitney's test of independent samples (n,) and (m,)."""
    result = scipy.stats.mannwhitneyu(*_together(x, y), alternative="two-sided")
    return float(result.pvalue)


def auc(larger: ArrayLike, smaller: ArrayLike) -> float:
    """Compute the area under the ROC curve: P(X > Y) + P(X = Y) / 2; 0.5 for equal samples.

    >>> auc([2, 3], [1, 2])
    0.875
    """
    x, y = _together(larger, smaller)
    _, places, counts = np.unique(np.concatenate([x, y]), return_inverse=True, return_counts=True)
    # Equal values share their mean rank.
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places.reshape(-1)]
    above = ranks[: len(x)].sum() - len(x) * (len(x) + 1) / 2
    return float(above / (len(x) * len(y)))


def _together(x: ArrayLike, y: ArrayLike) -> list[Array]:
    """Return two samples, values that are equal except for rounding made equal."""
    first, second = checked(x), checked(y)
    return np.split(without_rounding(np.concatenate([first, second])), [len(first)])


def auc_interval(larger: ArrayLike, smaller: ArrayLike, level: float = 0.95) -> Interval:
    """Compute the AUC of independent samples (n,) and (m,), with Newcombe's interval.

    It is made for small samples (Newcombe 2006, part 2, method 5): it has a width where samples do
    not overlap. It includes .5 where the rank-sum test in its normal form is not significant at
    1 - level, two-sided: both have the same variance at .5.

    >>> auc_interval([2, 3, 4], [1, 2]).estimate
    0.9166666666666666
    """
    estimate = auc(larger, smaller)
    n, m = np.size(larger), np.size(smaller)
    z, half = NormalDist().inv_cdf((1 + level) / 2), (n + m) / 2 - 1

    def apart(area: float) -> float:
        """Return the squared distance from the estimate, less the largest that is inside."""
        of_pairs = (1 - area) / (2 - area) + area / (1 + area)
        variance = area * (1 - area) * (1 + half * of_pairs) / (n * m)
        return float((estimate - area) ** 2 - z * z * variance)

    def edge(outer: float) -> float:
        if estimate == outer:
            return outer
        inner = estimate + (outer - estimate) * 1e-9
        return float(scipy.optimize.brentq(apart, inner, outer)) if apart(inner) < 0 else inner

    return Interval(estimate, edge(0.0), edge(1.0))


def benjamini_hochberg(p_values: ArrayLike) -> Array:
    """Adjust p values to control the false discovery rate (Benjamini, Hochberg 1995), (n,).

    That of a test without one is nan, stays so, and does not count.

    Raises: InvalidSetting if another value is no probability.
    """
    p = as_floats(p_values)
    known = p[~np.isnan(p)]
    if not ((known >= 0) & (known <= 1)).all():
        raise InvalidSetting("p values must lie between 0 and 1, or be nan")
    # From the largest, behind which nan stands: n / rank times p, and no more than a larger p.
    order = np.argsort(p)[: len(known)][::-1]
    scaled = len(known) / np.arange(len(known), 0, -1) * p[order]
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled), 1)
    return adjusted


def with_adjusted_p(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return records of tests with adjusted_p, their p_value adjusted over all of them."""
    adjusted = benjamini_hochberg([each["p_value"] for each in records]).tolist()
    return [{**each, "adjusted_p": p} for each, p in zip(records, adjusted, strict=True)]


# (m, s) sums -> (m,) values.
Combine = Callable[[Array], Array]


@dataclass(frozen=True)
class PairedDifference:
    """Difference between the values of two systems.

    Attributes:
        interval: percentile interval of the paired bootstrap.
        p_value: two-sided, of the permutation test; nan if the difference is not defined.
        left_out: share of resamples without a difference, which the interval omits.
    """

    interval: Interval
    p_value: float
    left_out: float = 0.0


@dataclass(frozen=True, eq=False)
class PairedSums:
    """Sums of k systems over n studies, and over studies drawn at random.

    All systems share the same draws, so a difficult study is difficult for all of them.

    Attributes:
        count: n.
        sums: (1 + r, k, s), over the studies, then over studies that were drawn with replacement.
        sizes: (k, s), sums of the contributions without their signs.
        halves: (p, k, s), sums over a random part of the studies, each with probability 1/2.
    """

    count: int
    sums: Array
    sizes: Array
    halves: Array

    def value(self, system: int, combine: Combine, *, level: float = 0.95) -> Interval:
        """Compute the value of one system, with its bootstrap interval."""
        return bootstrap_interval(self._values(system, combine), self.count, level)

    def left_out(self, system: int, combine: Combine) -> float:
        """Return the share of resamples in which the value is not defined; `value` omits them."""
        return float(np.isnan(self._values(system, combine)[1:]).mean())

    def _values(self, system: int, combine: Combine) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            # The sample alone: its last digit must not depend on the number of resamples.
            parts = self.sums[:1, system], self.sums[1:, system]
            return np.concatenate([*map(combine, parts)])

    def difference(
        self, first: int, second: int, combine: Combine, *, level: float = 0.95
    ) -> PairedDifference:
        """Compute the value of one system minus that of another, over the same studies.

        The test exchanges the two systems' results in a random part of the studies (approximate
        randomization, Noreen 1989); for means this is the paired permutation test. The observed
        assignment counts as one of the draws, so that p is never 0 (Phipson, Smyth 2010).
        """
        values = [self._values(k, combine) for k in (first, second)]
        drawn = values[0] - values[1]
        moved, totals = self.halves[:, first] - self.halves[:, second], self.sums[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            exchanged = combine(totals[second] + moved) - combine(totals[first] - moved)
            sizes = np.abs([values[0][0], values[1][0], *combine(self.sizes[[first, second]])])
        interval = bootstrap_interval(drawn, self.count, level)
        observed, left_out = interval.estimate, float(np.isnan(drawn[1:]).mean())
        if np.isnan(observed):
            return PairedDifference(interval, float("nan"), left_out)
        slack = ROUNDING * float(sizes[np.isfinite(sizes)].max())
        # A draw without a value counts against the difference.
        as_extreme = int((~(np.abs(exchanged) < abs(observed) - slack)).sum())
        p_value = (as_extreme + 1) / (len(exchanged) + 1)
        return PairedDifference(interval, p_value, left_out)


def paired_sums(
    statistics: Array,
    *,
    resamples: int = 2000,
    permutations: int = 9999,
    seed: int = 0,
) -> PairedSums:
    """Draw once for all systems and all pairs of them.

    Args:
        statistics: (k, n, s), finite: the contribution of each of n studies to each of s sums of
            a system.
        resamples, permutations: numbers of draws; for very many studies fewer, at least 200.

    Raises: InvalidSetting where there is no study, or a number is not finite.

    >>> values = np.array([[1.0, 2.0], [0.0, 1.0]])
    >>> mean_statistics(values).shape
    (2, 2, 2)
    >>> paired_sums(mean_statistics(values)).difference(0, 1, mean_of_sums).interval
    Interval(estimate=1.0, low=nan, high=nan)
    """
    if statistics.ndim != 3 or not statistics.shape[1]:
        raise InvalidSetting(
            f"statistics must have the shape (systems, studies, sums), not {statistics.shape}"
        )
    if not np.isfinite(statistics).all():
        raise InvalidSetting("statistics must be finite; leave failed studies out")
    systems, count, sums = statistics.shape
    by_study = statistics.transpose(1, 0, 2).reshape(count, systems * sums)
    rng = generator(seed)

    def halving(draws: int) -> Array:
        return rng.integers(2, size=(draws, count), dtype=np.int8).astype(np.float64)

    drawn = resampled_sums(by_study, resamples, rng).reshape(-1, systems, sums)
    halves = weighted_sums(by_study, permutations, halving).reshape(-1, systems, sums)
    all_sums = np.concatenate([statistics.sum(axis=1)[None], drawn])
    return PairedSums(count, all_sums, np.abs(statistics).sum(axis=1), halves)


def mean_statistics(values: Array) -> Array:
    """Convert values (k, n) to statistics (k, n, 2) for `mean_of_sums`."""
    return np.stack([values, np.ones_like(values)], axis=-1)


def mean_of_sums(sums: Array) -> Array:
    """Compute means (m,) from sums of values and of ones (m, 2)."""
    means: Array = sums[:, 0] / sums[:, 1]
    return means
