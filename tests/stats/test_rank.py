"""Rank correlation against counting pairs by hand."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlscore.errors import InvalidSetting
from vlscore.stats import (
    bootstrap,
    kendall_tau_b,
    kendall_tau_b_interval,
    largest_tau_b,
    paired_difference_of_taus,
    rank,
)


def tau_b_by_counting(x, y):
    pairs = list(itertools.combinations(range(len(x)), 2))
    sign = [(np.sign(x[i] - x[j]), np.sign(y[i] - y[j])) for i, j in pairs]
    untied_x = sum(a != 0 for a, _ in sign)
    untied_y = sum(b != 0 for _, b in sign)
    return sum(a * b for a, b in sign) / np.sqrt(untied_x * untied_y)


numbers = st.lists(st.integers(0, 4), min_size=3, max_size=12)


@settings(deadline=None)
@given(numbers.filter(lambda y: len(set(y)) > 1), st.randoms(use_true_random=False))
def test_tau_b_counts_pairs(y, random):
    x = [random.randint(0, 5) for _ in y]
    if len(set(x)) > 1:
        assert kendall_tau_b(x, y) == pytest.approx(tau_b_by_counting(x, y))


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 3), min_size=3, max_size=5).filter(lambda y: len(set(y)) > 1))
def test_largest_tau_b_is_the_best_of_all_orders(y):
    best = max(kendall_tau_b(order, y) for order in itertools.permutations(range(len(y))))
    assert largest_tau_b(y) == pytest.approx(best)


def test_intervals_surround_their_estimates():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 7, 120)
    good, poor = y + rng.normal(0, 1, 120), y + rng.normal(0, 8, 120)
    found = kendall_tau_b_interval(good, y, resamples=200)
    assert found.low < found.estimate < found.high
    assert found.estimate == pytest.approx(kendall_tau_b(good, y))
    difference = paired_difference_of_taus(good, poor, y, resamples=200)
    assert 0 < difference.low < difference.estimate
    assert difference.p_value == pytest.approx(2 / 201)
    same = paired_difference_of_taus(good, good, y, resamples=50)
    assert (same.low, same.estimate, same.high, same.p_value) == (0, 0, 0, 1)


def test_weighing_signs_gives_the_taus_of_the_same_resamples():
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 6, (2, 40)).astype(float)
    weights = rng.multinomial(40, np.full(40, 1 / 40), size=30)
    signs_x, signs_y = rank._signs(x), rank._signs(y)
    floats = weights.astype(np.float32)
    found = rank._weighed_tau(floats, signs_x, signs_y, rank._weighed(floats, np.abs(signs_y)))
    for weight, tau in zip(weights, found, strict=True):
        rows = np.repeat(np.arange(40), weight)
        assert tau == pytest.approx(kendall_tau_b(x[rows], y[rows]), abs=1e-12)


@pytest.mark.parametrize("weighed", [True, False])
def test_interval_equals_a_drawn_bootstrap(monkeypatch, weighed):
    if not weighed:
        monkeypatch.setattr(rank, "_WEIGHED", 10)
    rng = np.random.default_rng(2)
    y = rng.integers(0, 5, 60)
    x = y + rng.normal(0, 2, 60)
    found = kendall_tau_b_interval(x, y, resamples=500)
    drawn = bootstrap(kendall_tau_b, x, y, resamples=500, seed=9)
    spread = drawn.high - drawn.low
    assert abs(found.low - drawn.low) < 0.25 * spread
    assert abs(found.high - drawn.high) < 0.25 * spread


def test_no_difference_is_rarely_called_one():
    rng = np.random.default_rng(3)
    false_alarms = 0
    for _ in range(100):
        y = rng.normal(size=60)
        x, other = y + rng.normal(size=60), y + rng.normal(size=60)
        false_alarms += paired_difference_of_taus(x, other, y, resamples=200).p_value < 0.05
    assert 1 <= false_alarms <= 14


def test_constants_have_no_tau_and_bad_samples_are_refused():
    assert np.isnan(kendall_tau_b([1, 1], [1, 2]))
    assert np.isnan(kendall_tau_b_interval([1, 1], [1, 2], resamples=20).low)
    assert np.isnan(largest_tau_b([2, 2]))
    with pytest.raises(InvalidSetting, match="the same length"):
        kendall_tau_b([1, 2], [1, 2, 3])
    with pytest.raises(InvalidSetting, match="value 1 is nan"):
        kendall_tau_b_interval([1, float("nan")], [1, 2])
