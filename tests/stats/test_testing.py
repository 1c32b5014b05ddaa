"""Tests of differences against SciPy and definitions."""

import numpy as np
import pytest
from scipy import stats

from vlscore.errors import InvalidSetting
from vlscore.stats import (
    auc,
    auc_interval,
    benjamini_hochberg,
    one_sided_p_value,
    paired_p_value,
    two_sample_p_value,
)


def _samples(shift, n=60):
    rng = np.random.default_rng(0)
    return rng.normal(shift, 1, n), rng.normal(0, 1, n)


def test_auc_is_the_share_of_pairs():
    x, y = np.random.default_rng(1).integers(0, 5, (2, 40))
    pairs = [(a > b) + 0.5 * (a == b) for a in x for b in y]
    assert auc(x, y) == pytest.approx(np.mean(pairs))
    assert auc(x, x) == 0.5
    assert auc(x, y) + auc(y, x) == pytest.approx(1)


@pytest.mark.parametrize("test", [paired_p_value, two_sample_p_value])
def test_a_clear_shift_is_found_and_none_is_not(test):
    assert test(*_samples(1.5)) < 1e-3
    assert test(*_samples(0.0)) > 0.05


def test_equal_pairs_differ_in_nothing():
    x, _ = _samples(0)
    assert paired_p_value(x, x) == 1


def test_benjamini_hochberg_by_hand():
    # Step-up: p(k) n / k, then the running minimum from the largest.
    np.testing.assert_allclose(
        benjamini_hochberg([0.01, 0.04, 0.03, 0.5]), [0.04, 0.16 / 3, 0.16 / 3, 0.5]
    )
    assert len(benjamini_hochberg([])) == 0
    assert benjamini_hochberg([1.0, 0.0]).tolist() == [1.0, 0.0]
    # A test without a p value has none, and does not count.
    found = benjamini_hochberg([0.01, float("nan"), 0.04])
    np.testing.assert_allclose(found, [0.02, float("nan"), 0.04])
    p = np.round(np.random.default_rng(0).random(50) ** 3, 2)
    expected = stats.false_discovery_control(p, method="bh")
    assert benjamini_hochberg(p).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda: auc([], [1.0]),
        lambda: two_sample_p_value([1.0], []),
        lambda: paired_p_value([1.0, 2.0], [1.0]),
        lambda: two_sample_p_value([float("nan"), 1.0], [1.0]),
        lambda: benjamini_hochberg([0.1, 1.5]),
    ],
)
def test_samples_that_cannot_be_tested_are_refused(call):
    with pytest.raises(InvalidSetting):
        call()


def test_one_sided_t_test_is_scipys_and_defined_where_scipy_is_not():
    rng = np.random.default_rng(2)
    x, y = rng.normal(0.3, 1, 20), rng.normal(0, 1, 20)
    found = one_sided_p_value(x, y)
    expected = stats.ttest_rel(x, y, alternative="greater")
    assert found == pytest.approx(expected.pvalue, abs=1e-12)
    assert one_sided_p_value([1.0, 2.0], [1.0, 2.0]) == 1
    assert np.isnan(one_sided_p_value([1.0], [0.0]))
    assert one_sided_p_value([1.0, 2.0], [0.0, 1.0]) == 0
    assert one_sided_p_value([0.0, 1.0], [1.0, 2.0]) == 1


def test_the_interval_of_an_area_is_newcombes():
    """Its ends solve his equation (2006, part 2, method 5), and .5 is inside where the rank-sum
    test, by SciPy in its normal form, is not significant."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        n, m = (int(k) for k in rng.integers(1, 30, 2))
        x, y = rng.normal(0.6, 1, n), rng.normal(0, 1, m)
        found = auc_interval(x, y)
        assert found.low <= found.estimate <= found.high
        assert found.estimate == pytest.approx(stats.mannwhitneyu(x, y).statistic / (n * m))
        for edge in {found.low, found.high} - {0.0, 1.0}:
            q = (1 - edge) / (2 - edge) + edge / (1 + edge)
            variance = edge * (1 - edge) * (1 + ((n + m) / 2 - 1) * q) / (n * m)
            apart = abs(found.estimate - edge)
            assert apart == pytest.approx(1.959964 * np.sqrt(variance), rel=1e-4, abs=1e-7)
        p = stats.mannwhitneyu(x, y, method="asymptotic", use_continuity=False).pvalue
        assert (found.low > 0.5 or found.high < 0.5) == (p < 0.05)
    # Samples that do not overlap have an interval, too.
    assert auc_interval([3.0, 4.0], [1.0]).low < 0.5
    assert 0.5 < auc_interval(np.arange(50, 60), np.arange(50)).low < 1
