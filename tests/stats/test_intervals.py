"""Intervals against drawn bootstraps and against the coverage they promise."""

import time

import numpy as np
import pytest

from vlscore.errors import InvalidSetting
from vlscore.stats import (
    bootstrap,
    bootstrap_mean,
    bootstrap_median,
    grouped_mean,
    mean_of_sums,
    paired_sums,
)


@pytest.mark.parametrize("n", [7, 8, 60, 61])
def test_median_equals_a_drawn_bootstrap(n):
    sample = np.random.default_rng(n).exponential(size=n)
    exact = bootstrap_median(sample, resamples=50_000)
    drawn = bootstrap(np.median, sample, resamples=8000, seed=1)
    spread = drawn.high - drawn.low
    assert exact.estimate == drawn.estimate
    # Order statistics are discrete: a quantile may fall on the neighbouring one.
    assert abs(exact.low - drawn.low) < 0.12 * spread
    assert abs(exact.high - drawn.high) < 0.12 * spread


def _heavy_tailed(n):
    return np.random.default_rng(0).pareto(2.1, size=n)


def _rare(n):
    return (np.arange(n) < 3).astype(float)


def _far_from_zero(n):
    return 1e6 + np.random.default_rng(1).exponential(size=n)


@pytest.mark.parametrize("sample", [_heavy_tailed, _rare, _far_from_zero])
@pytest.mark.parametrize("n", [50, 1001, 4000])
def test_mean_equals_a_drawn_bootstrap(sample, n):
    values = sample(n)
    fast = bootstrap_mean(values, resamples=4000)
    drawn = bootstrap(np.mean, values, resamples=4000, seed=1)
    spread = drawn.high - drawn.low
    assert fast.estimate == pytest.approx(values.mean())
    assert abs(fast.low - drawn.low) < 0.1 * spread
    assert abs(fast.high - drawn.high) < 0.1 * spread


def test_rare_values_never_give_a_mean_below_all_values():
    found = bootstrap_mean(_rare(100_000))
    assert 0 <= found.low < found.estimate < found.high


@pytest.mark.parametrize("interval", [bootstrap_mean, bootstrap_median])
def test_unless_asked_otherwise_an_interval_is_of_2000_resamples(interval):
    sample = np.random.default_rng(5).normal(size=30)
    assert interval(sample) == interval(sample, level=0.95, resamples=2000, seed=0)


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
    start = time.process_time()
    found = interval(values)
    assert time.process_time() - start < 3
    assert found.low < found.estimate < found.high
    assert found.high - found.low < 0.01


@pytest.mark.parametrize("values", [[], [[1.0]], [1.0, float("nan")]])
@pytest.mark.parametrize("interval", [bootstrap_mean, bootstrap_median])
def test_what_has_no_interval_is_refused(interval, values):
    with pytest.raises(InvalidSetting):
        interval(values)


def test_paired_samples_are_resampled_together():
    x = np.random.default_rng(6).random(50)
    found = bootstrap(lambda a, b: float(np.abs(a - b).max()), x, x)
    assert found.estimate == 0
    # All resamples agree: an interval without width would say that 0 is certain.
    assert np.isnan([found.low, found.high]).all()
    with pytest.raises(InvalidSetting, match="the same length"):
        bootstrap(np.mean, [1.0], [1.0, 2.0])
    with pytest.raises(InvalidSetting, match="at least one sample"):
        bootstrap(np.mean)


@pytest.mark.parametrize(
    "interval",
    [
        bootstrap_mean([2.5]),
        bootstrap_median([2.5]),
        bootstrap(np.mean, [2.5]),
        grouped_mean([2.5], ["a"]),
        paired_sums(np.array([[[2.5, 1.0]]]), permutations=1).value(0, mean_of_sums),
    ],
)
def test_one_value_says_nothing_of_how_values_vary(interval):
    assert interval.estimate == 2.5
    assert np.isnan([interval.low, interval.high]).all()


@pytest.mark.parametrize("make", [bootstrap_mean, lambda x, **k: grouped_mean(x, ["a", "b"], **k)])
@pytest.mark.parametrize("wrong", [{"level": 0.0}, {"level": 1.0}, {"resamples": 0}])
def test_levels_and_resamples_that_make_no_interval_are_refused(make, wrong):
    with pytest.raises(InvalidSetting):
        make([1.0, 2.0], **wrong)


NUMBERS = [1.0, 2.0, 4.0, 7.0]
NAMES = ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "interval",
    [
        bootstrap_mean,
        bootstrap_median,
        lambda x, **k: bootstrap(np.mean, x, **k),
        lambda x, **k: grouped_mean(x, NAMES, **k),
    ],
)
@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        (np.ma.array(NUMBERS, mask=[0, 0, 0, 1]), {}, "finite values"),
        ("abcd", {}, "numbers, not a str"),
        (None, {}, "numbers, not a NoneType|at least one number|finite values|groups"),
        (NUMBERS, {"resamples": -1}, "resamples must be 1 or more"),
        (NUMBERS, {"seed": -1}, "seed is a whole number, at least 0, not -1"),
        (NUMBERS, {"seed": "a"}, "seed is a whole number, at least 0, not 'a'"),
    ],
)
def test_arguments_of_another_kind_are_refused(interval, values, options, message):
    with pytest.raises(InvalidSetting, match=message):
        interval(values, **options)


@pytest.mark.parametrize("groups", [None, "abcd"])
def test_groups_are_a_list(groups):
    with pytest.raises(InvalidSetting, match="groups must be the list"):
        grouped_mean(NUMBERS, groups)
