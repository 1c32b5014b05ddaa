"""Statistics of scores: intervals, rank correlation, tests, effect sizes."""

from vlscore.stats.correlations import (
    CORRELATIONS,
    correlation,
    correlation_interval,
    drawn_weights,
    kendall_tau_c,
    pearson,
    resampled_correlations,
    spearman,
)
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
    percentiles,
)
from vlscore.stats.rank import (
    Difference,
    bootstrap_p_value,
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
    "CORRELATIONS",
    "Difference",
    "Interval",
    "TestResult",
    "auc",
    "benjamini_hochberg",
    "bootstrap",
    "bootstrap_difference",
    "bootstrap_mean",
    "bootstrap_median",
    "bootstrap_p_value",
    "cohens_d",
    "correlation",
    "correlation_interval",
    "drawn_weights",
    "grouped_auc",
    "grouped_difference",
    "grouped_mean",
    "grouped_tau_b",
    "kendall_tau_b",
    "kendall_tau_b_interval",
    "kendall_tau_c",
    "largest_tau_b",
    "paired_difference_of_taus",
    "paired_test",
    "pearson",
    "percentiles",
    "permutation_test",
    "resampled_correlations",
    "spearman",
    "two_sample_test",
]
