"""Correlations against SciPy, on samples and on every resample."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from vlscore.errors import InvalidSetting
from vlscore.stats import (
    CORRELATIONS,
    bootstrap_p_value,
    correlation_interval,
    correlations,
    drawn_weights,
    kendall_tau_b,
    largest_tau_b,
    resampled_correlations,
)

OF_SCIPY = {
    "tau_b": lambda x, y: scipy_stats.kendalltau(x, y, variant="b").statistic,
    "tau_c": lambda x, y: scipy_stats.kendalltau(x, y, variant="c").statistic,
    "spearman": lambda x, y: scipy_stats.spearmanr(x, y).statistic,
    "pearson": lambda x, y: scipy_stats.pearsonr(x, y).statistic,
}
values = st.lists(st.integers(0, 5), min_size=3, max_size=30).filter(lambda v: len(set(v)) > 1)


def tau_b_by_counting(x, y):
    pairs = list(itertools.combinations(range(len(x)), 2))
    sign = [(np.sign(x[i] - x[j]), np.sign(y[i] - y[j])) for i, j in pairs]
    untied_x = sum(a != 0 for a, _ in sign)
    untied_y = sum(b != 0 for _, b in sign)
    return sum(a * b for a, b in sign) / np.sqrt(untied_x * untied_y)


@settings(deadline=None)
@given(values, st.randoms(use_true_random=False))
def test_samples_equal_scipy(y, random):
    # Hypothesis draws fractions such as 1e-16, which SciPy does not take for rounding.
    x = [random.randint(0, 4) + round(random.random(), 6) * random.randint(0, 1) for _ in y]
    if len(set(x)) > 1:
        for kind, of_scipy in OF_SCIPY.items():
            found = correlation_interval(x, y, kind, resamples=2)
            assert found.estimate == pytest.approx(of_scipy(x, y), abs=1e-12)
        assert kendall_tau_b(x, y) == pytest.approx(tau_b_by_counting(x, y))


def test_resamples_equal_scipy_on_repeated_rows(monkeypatch):
    # A few resamples at once, and counts by both ways.
    monkeypatch.setattr(correlations, "_CELLS", 400)
    monkeypatch.setattr(correlations, "_FEW_VALUES", 6)
    rng = np.random.default_rng(4)
    n = 40
    x = np.round(rng.normal(size=n), 1) + 1e3
    y = rng.integers(0, 6, n).astype(float)
    gaps = x.copy()
    gaps[[3, 17]] = np.nan
    weights = drawn_weights(n, [str(k // 4) for k in range(n)], resamples=25, seed=1)
    found = resampled_correlations([x, gaps], [y], weights)
    for b, weight in enumerate(weights):
        rows = np.repeat(np.arange(n), weight.astype(int))
        there = rows[~np.isnan(gaps[rows])]
        for kind, of_scipy in OF_SCIPY.items():
            assert found[kind][0, 0, b] == pytest.approx(of_scipy(x[rows], y[rows]), abs=1e-12)
            assert found[kind][1, 0, b] == pytest.approx(of_scipy(gaps[there], y[there]), abs=1e-12)


@pytest.mark.parametrize(("many", "few"), [(500, 2), (500, 37), (500, 500), (3, 3)])
def test_concordance_of_any_number_of_values_equals_scipy(many, few):
    """Codes of one bit and of nine, with and without ties."""
    rng = np.random.default_rng(many + few)
    x, y = (rng.integers(0, size, 500) + (0.5 * rng.random(500) if size == 500 else 0)
            for size in (many, few))  # fmt: skip
    weights = drawn_weights(500, resamples=7, seed=2)
    for one, other in ((x, y), (y, x)):
        found = resampled_correlations([one], [other], weights, ["tau_b"])["tau_b"][0, 0]
        for b, weight in enumerate(weights):
            rows = np.repeat(np.arange(500), weight.astype(int))
            expected = scipy_stats.kendalltau(one[rows], other[rows]).statistic
            assert found[b] == pytest.approx(expected, abs=1e-12)


def test_whole_groups_are_drawn():
    weights = drawn_weights(6, list("aabbcc"), resamples=50, seed=0)
    assert (weights[:, ::2] == weights[:, 1::2]).all()
    assert (weights.sum(axis=1) == 6).all()
    assert weights.shape == (51, 6)
    assert (weights[0] == 1).all()
    assert len(np.unique(weights, axis=0)) > 5


def test_groups_that_repeat_widen_the_interval():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 30))
    x, y = x + y, y
    groups = [str(k) for k in range(30) for _ in range(4)]
    for kind in CORRELATIONS:
        by_row = correlation_interval(x.repeat(4), y.repeat(4), kind, resamples=300)
        by_group = correlation_interval(
            x.repeat(4), y.repeat(4), kind, groups=groups, resamples=300
        )
        assert by_group.estimate == by_row.estimate
        assert by_group.high - by_group.low > 1.5 * (by_row.high - by_row.low)
        assert by_group.low < by_group.estimate < by_group.high


@pytest.mark.parametrize("kind", CORRELATIONS)
def test_what_says_nothing_is_nan(kind):
    single = correlation_interval([1.0], [2.0], kind, resamples=20)
    assert np.isnan([single.estimate, single.low, single.high]).all()
    constant = correlation_interval([1.0, 1.0, 1.0], [1.0, 2.0, 3.0], kind, resamples=20)
    assert np.isnan([constant.estimate, constant.low, constant.high]).all()
    # Two pairs: either order is perfect, and each resample that has both agrees; that says nothing
    # of how the correlation varies.
    two = correlation_interval([1.0, 2.0], [5.0, 4.0], kind, resamples=50)
    assert two.estimate == pytest.approx(-1.0, abs=1e-15)
    assert np.isnan([two.low, two.high]).all()
    three = correlation_interval([1.0, 2.0, 3.0], [5.0, 4.0, 4.5], kind, resamples=50)
    assert not np.isnan([three.low, three.high]).any()
    absent = correlation_interval([np.nan, np.nan], [5.0, 4.0], kind, resamples=5)
    assert np.isnan([absent.estimate, absent.low, absent.high]).all()


def test_bad_settings_are_refused():
    with pytest.raises(InvalidSetting, match="not 'tau'"):
        resampled_correlations([[1, 2]], [[1, 2]], np.ones((1, 2)), ["tau"])
    with pytest.raises(InvalidSetting, match="resamples must be 1 or more"):
        drawn_weights(3, resamples=0, seed=0)
    with pytest.raises(InvalidSetting, match="1 groups for 3 values"):
        drawn_weights(3, ["a"], resamples=5, seed=0)
    with pytest.raises(InvalidSetting, match="at least one value"):
        drawn_weights(0, resamples=5, seed=0)
    with pytest.raises(InvalidSetting, match="finite"):
        resampled_correlations([[1, np.inf]], [[1, 2]], np.ones((1, 2)))
    with pytest.raises(InvalidSetting, match="the same length"):
        kendall_tau_b([1, 2], [1, 2, 3])
    with pytest.raises(InvalidSetting, match="value 1 is nan"):
        kendall_tau_b([1, float("nan")], [1, 2])


def test_the_p_value_counts_the_smaller_side():
    assert bootstrap_p_value([1.0, 2.0, 3.0]) == 0.5
    assert bootstrap_p_value([0.0, 0.0]) == 1.0
    assert np.isnan(bootstrap_p_value([np.nan]))


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 3), min_size=3, max_size=5).filter(lambda y: len(set(y)) > 1))
def test_largest_tau_b_is_the_best_of_all_orders(y):
    best = max(kendall_tau_b(order, y) for order in itertools.permutations(range(len(y))))
    assert largest_tau_b(y) == pytest.approx(best)


def test_no_difference_is_rarely_called_one():
    rng = np.random.default_rng(3)
    false_alarms = 0
    for _ in range(100):
        y = rng.normal(size=60)
        scores = y + rng.normal(size=(2, 60))
        weights = drawn_weights(60, resamples=200, seed=0)
        first, second = resampled_correlations(list(scores), [y], weights, ["tau_b"])["tau_b"]
        false_alarms += bootstrap_p_value(first - second) < 0.05
    assert 1 <= false_alarms <= 14


def test_constants_have_no_tau():
    assert np.isnan(kendall_tau_b([1, 1], [1, 2]))
    assert np.isnan(largest_tau_b([2, 2]))


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_pearson_of_huge_and_tiny_numbers_is_that_of_their_multiples(scale):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 12))
    plain = correlation_interval(x, y, "pearson", resamples=200)
    scaled = correlation_interval(x * scale, y, "pearson", resamples=200)
    assert scaled.estimate == pytest.approx(scipy_stats.pearsonr(x, y).statistic, abs=1e-12)
    assert (scaled.low, scaled.high) == pytest.approx((plain.low, plain.high), abs=1e-12)
