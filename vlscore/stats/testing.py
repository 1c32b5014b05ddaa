"""Tests of differences, their effect sizes, and corrections for many of them.

The tests are SciPy's; here samples are checked, memory is bounded, and results have one shape.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from vlscore.errors import InvalidSetting
from vlscore.stats.samples import checked, checked_pairs

# Numbers a permutation test holds at once.
_DRAWN_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class TestResult:
    """A test's name, statistic and p value, two-sided unless its name says otherwise."""

    __test__ = False  # not a test of ours, whatever its name makes a test runner think

    name: str
    statistic: float
    p_value: float


def paired_test(x: ArrayLike, y: ArrayLike) -> TestResult:
    """Wilcoxon's signed-rank test of paired (n,) samples; p = 1 where all pairs are equal."""
    first, second = checked_pairs(x, y)
    difference = first - second
    if not difference.any():
        return TestResult("Wilcoxon signed-rank", 0.0, 1.0)
    result = scipy.stats.wilcoxon(difference)
    return TestResult("Wilcoxon signed-rank", float(result.statistic), float(result.pvalue))


def one_sided_t_test(x: ArrayLike, y: ArrayLike) -> TestResult:
    """Student's paired t test that the mean of x is greater than that of y, for (n,) samples.

    p is 1 where all pairs are equal, and nan where there is one pair. Where all differences are
    one number that is not 0 the statistic is infinite, as SciPy has it, and p is 0 or 1.

    >>> one_sided_t_test([3, 5, 4], [1, 2, 2]).p_value < 0.01
    True
    """
    first, second = checked_pairs(x, y)
    name = "one-sided paired t"
    if len(first) < 2:
        return TestResult(name, float("nan"), float("nan"))
    if not (first - second).any():
        return TestResult(name, 0.0, 1.0)
    if np.ptp(first - second) == 0:
        is_greater = bool(first[0] > second[0])
        return TestResult(name, np.inf if is_greater else -np.inf, 0.0 if is_greater else 1.0)
    result = scipy.stats.ttest_rel(first, second, alternative="greater")
    return TestResult(name, float(result.statistic), float(result.pvalue))


def two_sample_test(x: ArrayLike, y: ArrayLike) -> TestResult:
    """Mann-Whitney's test of two independent samples, of (n,) and (m,) values."""
    result = scipy.stats.mannwhitneyu(checked(x), checked(y), alternative="two-sided")
    return TestResult("Mann-Whitney U", float(result.statistic), float(result.pvalue))


def permutation_test(
    x: ArrayLike, y: ArrayLike, *, paired: bool = False, resamples: int = 9999, seed: int = 0
) -> TestResult:
    """Permutation test of the difference of means; exact where all permutations are that few.

    Args:
        x, y: independent samples of at least two values each; or with `paired`, (n,) samples whose
            pairs are turned round at random (n at least two).
    """
    samples = checked_pairs(x, y) if paired else (checked(x), checked(y))
    if min(len(sample) for sample in samples) < 2:
        raise InvalidSetting("a permutation test needs at least two values in each sample")
    result = scipy.stats.permutation_test(
        samples,
        _difference_of_means,
        permutation_type="samples" if paired else "independent",
        vectorized=True,
        n_resamples=resamples,
        batch=max(_DRAWN_AT_ONCE // sum(len(sample) for sample in samples), 1),
        rng=np.random.default_rng(seed),
    )
    name = "permutation of paired means" if paired else "permutation of means"
    return TestResult(name, float(result.statistic), float(result.pvalue))


def auc(larger: ArrayLike, smaller: ArrayLike) -> float:
    """Area under the ROC curve: P(X > Y) + P(X = Y) / 2; 0.5 where the samples do not differ.

    >>> auc([2, 3], [1, 2])
    0.875
    """
    x, y = checked(larger), checked(smaller)
    ranks = scipy.stats.rankdata(np.concatenate([x, y]))
    above = ranks[: len(x)].sum() - len(x) * (len(x) + 1) / 2
    return float(above / (len(x) * len(y)))


def cohens_d(x: ArrayLike, y: ArrayLike) -> float:
    """Difference of means in pooled standard deviations; nan where nothing varies."""
    a, b = checked(x), checked(y)
    if len(a) < 2 or len(b) < 2:
        return float("nan")
    degrees = len(a) + len(b) - 2
    pooled = ((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / degrees
    return float((a.mean() - b.mean()) / np.sqrt(pooled)) if pooled > 0 else float("nan")


def benjamini_hochberg(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjusted p values that control the false discovery rate (Benjamini, Hochberg 1995), (n,).

    Raises: InvalidSetting where a value is no probability.
    """
    p = np.asarray(p_values, dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise InvalidSetting("p values lie between 0 and 1; leave out tests that gave none")
    return scipy.stats.false_discovery_control(p, method="bh") if len(p) else p


def _difference_of_means(
    x: NDArray[np.float64], y: NDArray[np.float64], axis: int
) -> NDArray[np.float64]:
    difference: NDArray[np.float64] = np.mean(x, axis=axis) - np.mean(y, axis=axis)
    return difference
