"""Systems over the same studies: intervals, differences, tests."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from vlscore.errors import InvalidSetting
from vlscore.stats import bootstrap_mean, mean_of_sums, mean_statistics, paired_sums

RNG = np.random.default_rng(4)
HARD = RNG.normal(size=120)
VALUES = np.stack([HARD + RNG.normal(0.05, 0.2, 120), HARD + RNG.normal(0, 0.2, 120)])


def _means(values, **options):
    return paired_sums(mean_statistics(np.asarray(values, float)), **options)


def _ratio(sums):
    return sums[:, 0] / sums[:, 1]


def test_a_mean_has_the_interval_of_the_ordinary_bootstrap():
    found = _means(VALUES, resamples=4000).value(0, mean_of_sums)
    expected = bootstrap_mean(VALUES[0], resamples=4000, seed=9)
    assert found.estimate == pytest.approx(VALUES[0].mean(), abs=1e-12)
    assert found.low == pytest.approx(expected.low, abs=0.02)
    assert found.high == pytest.approx(expected.high, abs=0.02)


def test_a_difference_of_means_is_tested_as_scipy_tests_it():
    found = _means(VALUES, permutations=20_000).difference(0, 1, mean_of_sums)
    expected = scipy_stats.permutation_test(
        (VALUES[0], VALUES[1]),
        lambda x, y, axis: x.mean(axis) - y.mean(axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=20_000,
        rng=np.random.default_rng(1),
    ).pvalue
    assert 0.001 < expected < 0.5
    assert found.p_value == pytest.approx(expected, abs=0.02)
    interval = bootstrap_mean(VALUES[0] - VALUES[1], resamples=4000)
    assert found.interval.low == pytest.approx(interval.low, abs=0.01)
    assert found.interval.high == pytest.approx(interval.high, abs=0.01)


def test_what_is_hard_for_both_does_not_widen_the_difference():
    sums = _means(VALUES)
    own, difference = sums.value(0, mean_of_sums), sums.difference(0, 1, mean_of_sums).interval
    assert difference.high - difference.low < (own.high - own.low) / 2


def test_a_ratio_of_sums_is_that_of_the_whole_corpus():
    """Two systems with the same means of ratios: the corpus ratio sees the long candidates."""
    matched = np.array([[9.0, 1.0], [1.0, 5.0]])
    length = np.array([[10.0, 2.0], [2.0, 10.0]])
    sums = paired_sums(np.stack([matched, length], axis=-1))
    assert sums.value(0, _ratio).estimate == pytest.approx(10 / 12)
    assert sums.difference(0, 1, _ratio).interval.estimate == pytest.approx(4 / 12)


def test_the_test_of_a_corpus_value_exchanges_whole_studies():
    """All exchanges of four studies, counted by hand."""
    rng = np.random.default_rng(2)
    table = rng.integers(1, 9, (2, 4, 2)).astype(float)
    observed = abs(_ratio(table.sum(1))[0] - _ratio(table.sum(1))[1])
    extreme = 0
    for code in range(16):
        moved = np.array([code >> k & 1 for k in range(4)], bool)
        first = np.where(moved[:, None], table[1], table[0]).sum(0)
        second = np.where(moved[:, None], table[0], table[1]).sum(0)
        extreme += abs(first[0] / first[1] - second[0] / second[1]) >= observed - 1e-12
    found = paired_sums(table, permutations=40_000).difference(0, 1, _ratio)
    assert found.p_value == pytest.approx(extreme / 16, abs=0.02)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=8), st.floats(-2, 2))
def test_exchanging_the_systems_turns_the_sign_and_keeps_p(values, by):
    sums = _means([values, [value * 0.5 + by for value in values]], resamples=50, permutations=99)
    one, other = sums.difference(0, 1, mean_of_sums), sums.difference(1, 0, mean_of_sums)
    assert one.interval.estimate == -other.interval.estimate
    assert one.p_value == other.p_value
    assert 0 < one.p_value <= 1


def test_equal_systems_do_not_differ_and_a_constant_difference_does():
    equal = _means([HARD, HARD]).difference(0, 1, mean_of_sums)
    assert (equal.interval.estimate, equal.p_value) == (0, 1)
    assert np.isnan([equal.interval.low, equal.interval.high]).all()
    above = _means([HARD + 0.1, HARD]).difference(0, 1, mean_of_sums)
    assert above.p_value == 1 / 10_000


def test_one_study_has_no_interval_and_p_1():
    found = _means([[1.0], [0.0]]).difference(0, 1, mean_of_sums)
    assert found.interval.estimate == 1
    assert np.isnan(found.interval.low)
    assert found.p_value == 1


def test_an_undefined_value_gives_no_p():
    nothing = np.zeros((2, 3, 2))
    assert np.isnan(paired_sums(nothing).difference(0, 1, _ratio).p_value)


def test_bad_numbers_are_refused():
    with pytest.raises(InvalidSetting, match="finite"):
        _means([[1.0, np.nan]])
    with pytest.raises(InvalidSetting, match="systems, studies, sums"):
        paired_sums(np.zeros((1, 0, 2)))


def test_many_studies_draw_fewer_resamples(monkeypatch):
    monkeypatch.setattr("vlscore.stats.intervals._MOST_DRAWS", 400 * 50)
    sums = paired_sums(np.ones((1, 50, 1)), resamples=2000, permutations=300)
    assert len(sums.sums) == 1 + 400
    assert len(sums.halves) == 300
    assert len(paired_sums(np.ones((1, 5000, 1)), resamples=2000).sums) == 1 + 200


def test_drawing_in_parts_draws_every_study_n_times_on_average(monkeypatch):
    monkeypatch.setattr("vlscore.stats.intervals._SUMS_AT_ONCE", 70)
    sums = paired_sums(np.ones((1, 20, 1)), resamples=101, permutations=500)
    assert sums.sums.shape == (1 + 101, 1, 1)
    assert (sums.sums == 20).all()
    assert sums.halves.mean() == pytest.approx(10, abs=0.5)
