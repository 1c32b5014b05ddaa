"""Values that are equal except for rounding are equal in every rank, tie and test.

Expectations come from the same numbers as exact fractions, scaled to whole numbers.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlscore.evaluation.alignment.rated_pairs import mean_of_raters
from vlscore.stats import (
    auc,
    bootstrap_p_value,
    correlation_interval,
    difference_of,
    grouped_auc,
    kendall_tau_b,
    krippendorff_alpha,
    largest_tau_b,
    mean_of_sums,
    mean_statistics,
    one_sided_p_value,
    paired_p_value,
    paired_sums,
    two_sample_p_value,
    weighted_kappa,
    without_rounding,
)

# The same tenth as a sum in one order, and as it is written.
_TENTHS = st.integers(-20, 20)


def _summed(tenths, order):
    """Return sums of three numbers with one decimal, in one of two orders; the exact tenths."""
    parts = [[k / 10 for k in three][::order] for three in tenths]
    return [a + b + c for a, b, c in parts], [sum(three) for three in tenths]


_SAMPLES = st.lists(st.tuples(_TENTHS, _TENTHS, _TENTHS), min_size=6, max_size=6)
_TESTS = [
    paired_p_value,
    one_sided_p_value,
    two_sample_p_value,
    auc,
    kendall_tau_b,
    lambda x, y: correlation_interval(x, y, "spearman", resamples=10).estimate,
    lambda x, y: correlation_interval(x, y, "tau_c", resamples=10).estimate,
    lambda x, y: grouped_auc([*x, *y], [True] * 6 + [False] * 6, list("abcdefabcdef")).estimate,
    lambda x, y: float(krippendorff_alpha(np.array([x, y], float), "ordinal")[0]),
    lambda x, y: float(weighted_kappa(np.array([x, y], float))[0]),
]


@pytest.mark.parametrize("test", _TESTS)
@given(_SAMPLES, _SAMPLES)
def test_sums_of_decimals_give_what_their_exact_tenths_give(test, one, other):
    """Signed sums are given with the size of their parts, as the module's own callers do."""
    (x, exact), (y, others) = _summed(one, 1), _summed(other, -1)
    x, y = (without_rounding(each, scale=2.0) for each in (x, y))
    assert test(x, y) == pytest.approx(test(exact, others), abs=1e-9, nan_ok=True)


@pytest.mark.parametrize("test", _TESTS)
@given(st.lists(st.integers(1, 30), min_size=6, max_size=6), st.randoms())
def test_positive_sums_need_no_scale(test, tenths, random):
    other = [random.choice([k, k, k + 1]) for k in tenths]
    x = [sum([0.1] * k) for k in tenths]
    y = [k / 10 for k in other]
    assert test(x, y) == pytest.approx(test(tenths, other), abs=1e-9, nan_ok=True)


def test_six_equal_pairs_do_not_differ():
    assert 0.1 + 0.2 != 0.3
    assert paired_p_value([0.1 + 0.2] * 6, [0.3] * 6) == 1.0
    assert one_sided_p_value([0.1 + 0.2] * 6, [0.3] * 6) == 1.0
    values = np.array([[0.1 + 0.2] * 6, [0.3] * 6])
    assert paired_sums(mean_statistics(values)).difference(0, 1, mean_of_sums).p_value == 1.0


def test_a_difference_of_signed_values_that_cancel_is_none():
    """Means of 0.1 + 0.2 - 0.3 and of 0: whichever values are exchanged, they stay equal."""
    values = np.array([[0.1, 0.2, -0.3, 0.0], [0.0, 0.0, 0.0, 0.0]])
    found = paired_sums(mean_statistics(values)).difference(0, 1, mean_of_sums)
    assert sum([Fraction(1, 10), Fraction(2, 10), Fraction(-3, 10)]) == 0
    assert found.p_value == 1.0


def test_one_zero_among_large_differences_is_left_out_by_wilcoxon():
    exact = paired_p_value([10, 20, 30, 0.3], [0, 0, 0, 0.3])
    assert paired_p_value([10, 20, 30, 0.1 + 0.2], [0, 0, 0, 0.3]) == exact == 0.25


def test_means_of_raters_are_tied_as_fractions_are():
    marks = np.array(
        [[1, 2, 3], [3, 2, 1], [1, 7, 2], [7, 2, 1], [4, 5, 6], [6, 5, 4], [9, 8, 7], [7, 8, 9]]
    )
    exact = [Fraction(int(each.sum()), 30) for each in marks]
    means = mean_of_raters(marks.T / 10)
    assert len(set(means)) == len(set(exact)) == 4
    assert kendall_tau_b(means, [1, 1, 2, 2, 3, 3, 4, 4]) == pytest.approx(1.0)
    assert largest_tau_b(means) == pytest.approx((24 / 28) ** 0.5)
    signed = mean_of_raters(np.array([[0.1, 0.0], [0.2, 0.0], [-0.3, 0.0]]))
    assert signed[0] == signed[1] == 0.0


def test_resampled_correlations_that_are_equal_do_not_differ():
    assert bootstrap_p_value([1e-16, 2e-16, -1e-16]) == 1.0
    assert bootstrap_p_value([1e-16, 2e-16, 1e-16]) == 1.0


def test_small_numbers_stay_different():
    values = [1e-20, 1e-15, 2e-15, 1.0, 1.0 + 1e-9]
    assert without_rounding(values).tolist() == values
    assert difference_of(np.array([1e-9, 1e15]), np.array([0.0, 1.0])).tolist() == [1e-9, 1e15 - 1]
    kept = without_rounding([np.nan, 0.3, 0.1 + 0.2, np.inf, -np.inf, np.nan])
    np.testing.assert_array_equal(kept, [np.nan, 0.3, 0.3, np.inf, -np.inf, np.nan])
