"""Detection of a change: laws of the p values and of the evidence, computed in other ways."""

from itertools import permutations, product

import mpmath
import numpy as np
import pytest
from scipy import stats

from vlscore.errors import InvalidSetting
from vlscore.stats import evidence_of_change, most_likely_begin, sequential_p_values
from vlscore.stats.change_detection import BETS

DAYS = [(40.0, 9.0), (10.0, 4.0), (80.0, 16.0), (25.0, 1.0)]


def p_values(days, kinds=None, seed=0):
    """The p values of days of (reports, sum) in this order."""
    counts, sums = np.array(days).T
    kinds = kinds or ["day"] * len(days)
    return sequential_p_values(counts[:, None], sums[:, None], kinds, seed)[:, 0]


def test_over_all_orders_the_ranks_of_days_are_independent_and_uniform():
    """Of 24 orders, each combination of 1, 2, 3 and 4 ranks comes once."""
    found = [
        tuple(int(p * t) for t, p in enumerate(p_values(order), start=1))
        for order in permutations(DAYS)
    ]
    assert sorted(found) == sorted(product(range(1), range(2), range(3), range(4)))


def test_days_of_another_kind_change_nothing():
    order = [DAYS[0], (10.0, 10.0), DAYS[1], (12.0, 0.0), DAYS[2]]
    mixed = sequential_p_values(
        np.array([[n] for n, _ in order]), np.array([[s] for _, s in order]), list("adada")
    )[:, 0]
    alone = [int(p * t) for t, p in enumerate(p_values([DAYS[k] for k in range(3)]), start=1)]
    assert [int(p * t) for t, p in enumerate(mixed[::2], start=1)] == alone


def test_with_many_equal_days_p_values_are_uniform_and_independent():
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 4, (6, 20_000)) * 10.0
    sums = rng.binomial(counts.astype(int), 0.02).astype(float)
    found = sequential_p_values(counts, sums, ["day"] * 6, seed=5)
    for day in found:
        assert stats.kstest(day, "uniform").pvalue > 1e-3
    table = np.histogram2d(found[4], found[5], bins=[np.linspace(0, 1, 6)] * 2)[0]
    assert stats.chi2_contingency(table).pvalue > 1e-3


def test_a_day_without_values_has_no_p_value_and_a_later_day_changes_no_earlier_one():
    whole = p_values([*DAYS, (0.0, 0.0), (30.0, 30.0)])
    assert np.isnan(whole[4])
    assert (whole[:4] == p_values(DAYS)).all()
    assert whole[5] < 1 / 5


def test_the_unit_of_a_value_changes_nothing():
    days = [(n, s) for n, s in DAYS]
    small = [(n, s * 1e-12) for n, s in days]
    assert p_values(days).tolist() == p_values(small).tolist()


def test_other_shapes_are_refused():
    with pytest.raises(InvalidSetting, match="kinds"):
        sequential_p_values([[1.0]], [[1.0]], ["a", "b"])


@pytest.mark.parametrize("direction", [-1, 0, 1])
def test_the_expected_evidence_after_t_quiet_days_is_t(direction):
    """Integrals over the p values, by Gauss-Hermite quadrature of the normal quantile."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(16)
    weights = weights / weights.sum()
    p = stats.norm.sf(nodes)
    one = [evidence_of_change([[each]], [direction])[0, 0] for each in p]
    assert float(np.dot(weights, one)) == pytest.approx(1, rel=1e-6)
    pairs = np.array([[each, other] for each in p for other in p]).T
    two = evidence_of_change(pairs, [direction] * pairs.shape[1])[1]
    assert float(np.dot(np.outer(weights, weights).ravel(), two)) == pytest.approx(2, rel=1e-6)


@pytest.mark.parametrize("direction", [-1, 0, 1])
def test_evidence_is_the_sum_over_all_days_of_change(direction):
    p = [0.4, 0.03, 0.9, 0.001, 0.2]
    signs = {0: (1, -1)}.get(direction, (direction,))
    z = [mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf(str(each))) for each in p]
    expected = mpmath.fsum(
        mpmath.fprod(mpmath.exp(sign * m * each - m**2 / 2) for each in z[start:])
        for m in map(mpmath.mpf, BETS)
        for sign in signs
        for start in range(len(z))
    ) / (len(BETS) * len(signs))
    found = evidence_of_change([[each] for each in p], [direction])
    assert found[-1, 0] == pytest.approx(float(expected), rel=1e-12)


def test_an_absent_value_is_no_bet():
    p = np.array([[0.1], [np.nan], [0.02]])
    assert evidence_of_change(p, [1])[2] == evidence_of_change(p[[0, 2]], [1])[1]


def test_false_alarms_of_many_dependent_streams_are_no_more_than_stated():
    """Six hundred quiet times of 30 days; a third of the streams are copies of one another."""
    threshold, days, runs = 60.0, 30, 600
    rng = np.random.default_rng(8)
    alarms = 0
    for _ in range(runs):
        counts = np.repeat(rng.poisson(30, (days, 1)) + 1.0, 6, axis=1)
        # Days differ in their patients, so that studies of a day are not independent.
        shares = np.clip(0.1 * rng.lognormal(0, 0.3, (days, 1)), 0, 1)
        sums = rng.binomial(counts.astype(int), shares).astype(float)
        sums[:, 3] = sums[:, 4] = sums[:, 5]
        p = sequential_p_values(counts, sums, ["day"] * days, int(rng.integers(2**31)))
        evidence = evidence_of_change(p, [0, 1, -1, 0, 1, -1]) / 6
        alarms += bool((evidence >= threshold).any())
    assert stats.binomtest(alarms, runs, days / threshold, alternative="greater").pvalue > 1e-3
    assert alarms > 0


def test_a_change_of_the_other_direction_is_no_evidence():
    days = [(50.0, 10.0 + k % 3) for k in range(20)] + [(50.0, 30.0)] * 10
    p = p_values(days)[:, None]
    rise, fall, both = (evidence_of_change(p, [d])[-1, 0] for d in (1, -1, 0))
    assert rise > 1e4 > 1 > fall
    assert both == pytest.approx(rise / 2, rel=0.01)
    assert most_likely_begin(p[:, 0], 1) == 20
    assert most_likely_begin(p[:, 0], 0) == 20
