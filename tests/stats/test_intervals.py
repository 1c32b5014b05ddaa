"""Intervals against drawn bootstraps and against the coverage they promise."""

import time

import numpy as np
import pytest

from vlscore.errors import InvalidSetting
from vlscore.stats import bootstrap, bootstrap_mean, bootstrap_median


@pytest.mark.parametrize("n", [7, 8, 60, 61])
def test_median_equals_a_drawn_bootstrap(n):
    sample = np.random.default_rng(n).exponential(size=n)
    exact = bootstrap_median(sample, resamples=200_000)
    drawn = bootstrap(np.median, sample, resamples=20_000, seed=1)
    spread = drawn.high - drawn.low
    assert exact.estimate == drawn.estimate
    # Order statistics are discrete: a quantile may fall on the neighbouring one.
    assert abs(exact.low - drawn.low) < 0.12 * spread
    assert abs(exact.high - drawn.high) < 0.12 * spread


@pytest.mark.parametrize("n", [50, 4000, 4001])
def test_mean_equals_a_drawn_bootstrap(n):
    sample = np.random.default_rng(0).exponential(size=n)
    fast = bootstrap_mean(sample, resamples=20_000)
    drawn = bootstrap(np.mean, sample, resamples=3000, seed=1)
    spread = drawn.high - drawn.low
    assert fast.estimate == pytest.approx(sample.mean())
    assert abs(fast.low - drawn.low) < 0.08 * spread
    assert abs(fast.high - drawn.high) < 0.08 * spread


@pytest.mark.parametrize("interval", [bootstrap_mean, bootstrap_median])
def test_intervals_cover_the_truth_as_often_as_they_say(interval):
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(300):
        found = interval(rng.normal(size=80), resamples=600)
        covered += found.low <= 0 <= found.high
    assert 0.90 <= covered / 300 <= 0.99


@pytest.mark.parametrize("interval", [bootstrap_mean, bootstrap_median])
def test_a_million_values_take_seconds(interval):
    values = np.random.default_rng(3).random(1_000_000)
    start = time.perf_counter()
    found = interval(values)
    assert time.perf_counter() - start < 5
    assert found.low < found.estimate < found.high
    assert found.high - found.low < 0.01


@pytest.mark.parametrize("interval", [bootstrap_mean, bootstrap_median])
def test_same_values_and_seed_give_the_same_interval(interval):
    values = np.random.default_rng(4).random(100)
    assert interval(values, seed=5) == interval(values, seed=5)
    assert interval([3.0]) == interval([3.0, 3.0])


@pytest.mark.parametrize("values", [[], [[1.0]], [1.0, float("nan")]])
def test_what_has_no_interval_is_refused(values):
    with pytest.raises(InvalidSetting):
        bootstrap_mean(values)


def test_paired_samples_are_resampled_together():
    x = np.random.default_rng(6).random(50)
    found = bootstrap(lambda a, b: float(np.abs(a - b).max()), x, x)
    assert (found.low, found.high) == (0, 0)
    with pytest.raises(InvalidSetting, match="one length"):
        bootstrap(np.mean, [1.0], [1.0, 2.0])
