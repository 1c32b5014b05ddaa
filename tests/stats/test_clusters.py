"""Studies of one patient: whole patients are resampled."""

import numpy as np
import pytest

from vlscore.errors import InvalidSetting
from vlscore.stats import (
    bootstrap_mean,
    grouped_median,
    mean_of_sums,
    mean_statistics,
    paired_sums,
    sums_by_group,
)


def test_sums_of_groups_are_those_of_their_studies():
    rng = np.random.default_rng(0)
    statistics = rng.normal(size=(3, 20, 2))
    groups = [f"p{k}" for k in rng.integers(6, size=20)]
    found = sums_by_group(statistics, groups)
    for place, name in enumerate(dict.fromkeys(groups)):
        mine = [k for k, group in enumerate(groups) if group == name]
        np.testing.assert_allclose(found[:, place], statistics[:, mine].sum(1))
    with pytest.raises(InvalidSetting, match="19 groups for 20 values"):
        sums_by_group(statistics, groups[1:])


def test_copies_of_a_study_do_not_make_an_interval_narrower():
    values = np.random.default_rng(1).normal(size=60)
    alone = bootstrap_mean(values)
    # Every patient has seven equal studies: there are no more than 60 observations.
    copied, patients = np.repeat(values, 7), np.repeat(np.arange(60), 7).astype(str).tolist()
    naive = bootstrap_mean(copied)
    sums = sums_by_group(mean_statistics(copied), patients)
    clustered = paired_sums(sums[None], permutations=1).value(0, mean_of_sums)
    assert clustered.estimate == pytest.approx(copied.mean(), abs=1e-12)

    def width(interval):
        return interval.high - interval.low

    assert width(naive) < 0.5 * width(alone)
    assert width(clustered) == pytest.approx(width(alone), rel=0.08)


def test_the_median_of_one_patient_each_is_that_of_a_plain_bootstrap():
    values = np.random.default_rng(2).normal(size=41)
    groups = [str(k) for k in range(41)]
    found = grouped_median(values, groups, resamples=4000)
    rng = np.random.default_rng(5)
    drawn = [np.median(values[rng.integers(41, size=41)]) for _ in range(4000)]
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert found.estimate == np.median(values)
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.05)
    alone = grouped_median([1.0, 2.0], ["a", "a"])
    assert np.isnan(alone.low)
