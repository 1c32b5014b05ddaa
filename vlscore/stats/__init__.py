"""Statistics of scores: intervals, rank correlation, tests, effect sizes."""

from vlscore.stats.grouped import (
    grouped_auc,
    grouped_difference,
    grouped_mean,
    grouped_tau_b,
)
from vlscore.stats.intervals import (
    Interval,
    bootstrap,
    bootstrap_difference,
    bootstrap_mean,
    bootstrap_median,
)
from vlscore.stats.rank import (
    Difference,
    kendall_tau_b,
    kendall_tau_b_interval,
    largest_tau_b,
    paired_difference_of_taus,
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
    "Difference",
    "Interval",
    "TestResult",
    "auc",
    "benjamini_hochberg",
    "bootstrap",
    "bootstrap_difference",
    "bootstrap_mean",
    "bootstrap_median",
    "cohens_d",
    "grouped_auc",
    "grouped_difference",
    "grouped_mean",
    "grouped_tau_b",
    "kendall_tau_b",
    "kendall_tau_b_interval",
    "largest_tau_b",
    "paired_difference_of_taus",
    "paired_test",
    "permutation_test",
    "two_sample_test",
]
