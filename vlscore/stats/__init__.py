"""Statistics of scores: intervals, rank correlation, tests, effect sizes."""

from vlscore.stats.intervals import Interval, bootstrap, bootstrap_mean, bootstrap_median
from vlscore.stats.rank import (
    difference_of_taus,
    kendall_tau_b,
    kendall_tau_b_interval,
    largest_tau_b,
)
from vlscore.stats.testing import (
    TestResult,
    auc,
    benjamini_hochberg,
    cohens_d,
    paired_test,
    permutation_test,
    two_sample_test,
)

__all__ = [
    "Interval",
    "TestResult",
    "auc",
    "benjamini_hochberg",
    "bootstrap",
    "bootstrap_mean",
    "bootstrap_median",
    "cohens_d",
    "difference_of_taus",
    "kendall_tau_b",
    "kendall_tau_b_interval",
    "largest_tau_b",
    "paired_test",
    "permutation_test",
    "two_sample_test",
]
