"""Tests of differences, their effect sizes, and corrections for many of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats


@dataclass(frozen=True)
class TestResult:
    """A test's name, statistic and two-sided p value."""

    __test__ = False  # not a test of ours, whatever its name makes a test runner think

    name: str
    statistic: float
    p_value: float


def paired_test(x: ArrayLike, y: ArrayLike) -> TestResult:
    """Wilcoxon's signed-rank test of paired (n,) samples; p = 1 where all pairs are equal."""
    difference = np.asarray(x, dtype=np.float64) - np.asarray(y, dtype=np.float64)
    if not difference.any():
        return TestResult("Wilcoxon signed-rank", 0.0, 1.0)
    result = stats.wilcoxon(difference)
    return TestResult("Wilcoxon signed-rank", float(result.statistic), float(result.pvalue))


def two_sample_test(x: ArrayLike, y: ArrayLike) -> TestResult:
    """Mann-Whitney's test of two independent samples."""
    result = stats.mannwhitneyu(x, y, alternative="two-sided")
    return TestResult("Mann-Whitney U", float(result.statistic), float(result.pvalue))


def permutation_test(
    x: ArrayLike, y: ArrayLike, *, resamples: int = 9999, seed: int = 0
) -> TestResult:
    """Permutation test of the difference of means of two independent samples."""
    result = stats.permutation_test(
        (np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)),
        lambda a, b, axis: np.mean(a, axis=axis) - np.mean(b, axis=axis),
        vectorized=True,
        n_resamples=resamples,
        rng=np.random.default_rng(seed),
    )
    return TestResult("permutation of means", float(result.statistic), float(result.pvalue))


def auc(larger: ArrayLike, smaller: ArrayLike) -> float:
    """Area under the ROC curve: P(X > Y) + P(X = Y) / 2; 0.5 where the samples do not differ.

    >>> auc([2, 3], [1, 2])
    0.875
    """
    x, y = np.asarray(larger, dtype=np.float64), np.asarray(smaller, dtype=np.float64)
    statistic = stats.mannwhitneyu(x, y, alternative="two-sided").statistic
    return float(statistic / (len(x) * len(y)))


def cohens_d(x: ArrayLike, y: ArrayLike) -> float:
    """Difference of means in pooled standard deviations; nan where nothing varies."""
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    degrees = len(a) + len(b) - 2
    if degrees < 1:
        return float("nan")
    pooled = ((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / degrees
    return float((a.mean() - b.mean()) / np.sqrt(pooled)) if pooled > 0 else float("nan")


def benjamini_hochberg(p_values: ArrayLike) -> NDArray[np.float64]:
    """Adjusted p values that control the false discovery rate (Benjamini, Hochberg 1995), (n,)."""
    p = np.asarray(p_values, dtype=np.float64)
    return stats.false_discovery_control(p, method="bh") if len(p) else p
