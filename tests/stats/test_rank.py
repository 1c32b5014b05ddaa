"""Rank correlation against counting pairs by hand."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vlscore.stats import (
    difference_of_taus,
    kendall_tau_b,
    kendall_tau_b_interval,
    largest_tau_b,
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


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, 3), min_size=3, max_size=6).filter(lambda y: len(set(y)) > 1))
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
    difference = difference_of_taus(good, poor, y, resamples=200)
    assert 0 < difference.low < difference.estimate
    same = difference_of_taus(good, good, y, resamples=50)
    assert (same.low, same.estimate, same.high) == (0, 0, 0)
