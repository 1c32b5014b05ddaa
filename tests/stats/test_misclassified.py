"""Counts against wrong references, against expectations by enumeration of all outcomes."""

from itertools import product

import numpy as np
import pytest

from vlscore.errors import InvalidSetting
from vlscore.stats import (
    Rate,
    false_discovery_of,
    first_crossing,
    invented_of,
    rank_shares,
    rates_of_two,
    true_counts,
)


def _expected(present, missed, invented, found, added, shared):
    """Chance of each (truth, reference, candidate), each 0 or 1, by the model's definition."""
    cells = {}
    for truth, errs, repeats, states in product((0, 1), repeat=4):
        chance = present if truth else 1 - present
        wrong = missed if truth else invented
        chance *= wrong if errs else 1 - wrong
        chance *= shared if repeats else 1 - shared
        own = found if truth else added
        chance *= own if states else 1 - own
        reference = truth ^ errs
        candidate = reference if errs and repeats else states
        key = (truth, reference, candidate)
        cells[key] = cells.get(key, 0) + chance
    return cells


@pytest.mark.parametrize("shared", [0.0, 0.3, 0.9])
@pytest.mark.parametrize(
    ("present", "missed", "invented"), [(0.3, 0.2, 0.05), (0.01, 0.4, 0.001), (0.6, 0.0, 0.3)]
)
def test_expected_counts_yield_the_truth(present, missed, invented, shared):
    cells = _expected(present, missed, invented, 0.7, 0.1, shared)

    def total(**wanted):
        names = ("truth", "reference", "candidate")
        return sum(
            chance
            for key, chance in cells.items()
            if all(dict(zip(names, key, strict=True))[n] == v for n, v in wanted.items())
        )

    true, there = true_counts(
        total(reference=1, candidate=1),
        total(reference=0, candidate=1),
        total(reference=1),
        1.0,
        missed,
        invented,
        shared,
    )
    assert true == pytest.approx(total(truth=1, candidate=1), abs=1e-12)
    assert there == pytest.approx(present, abs=1e-12)
    false = total(truth=0, reference=1) / total(reference=1)
    given = (missed, total(reference=1), 1.0)
    assert false_discovery_of(invented, *given) == pytest.approx(false, abs=1e-12)
    assert invented_of(false, *given) == pytest.approx(invented, abs=1e-12)


@pytest.mark.parametrize(
    ("present", "missed", "invented"), [(0.3, 0.2, 0.05), (0.02, 0.3, 0.01), (0.1, 0.1, 0.0)]
)
def test_two_reports_yield_their_rates_where_it_is_known_who_is_right(present, missed, invented):
    both = present * (1 - missed) ** 2 + (1 - present) * invented**2
    omitted = 2 * present * missed * (1 - missed)
    added = 2 * (1 - present) * invented * (1 - invented)
    share = omitted / (omitted + added)
    found = rates_of_two(*(np.array(x) for x in (both, omitted + added, 1.0, share)))
    stated = present * (1 - missed) + (1 - present) * invented
    assert found[0] == pytest.approx(missed, abs=1e-9)
    assert found[1] == pytest.approx((1 - present) * invented / stated, abs=1e-9)


def test_two_reports_that_never_agree_have_no_rates():
    missed, false = rates_of_two(*(np.array(x) for x in (0.0, 10.0, 100.0, 1.0)))
    assert np.isnan(missed)
    assert np.isnan(false)


def test_draws_have_the_stated_mean_and_interval():
    drawn = Rate.within(0.2, 0.12, 0.28).drawn(200_000, np.random.default_rng(0))
    assert drawn[0] == 0.2
    assert drawn[1:].mean() == pytest.approx(0.2, abs=1e-3)
    assert np.quantile(drawn[1:], [0.025, 0.975]) == pytest.approx([0.12, 0.28], abs=0.01)
    assert set(Rate(0.1).drawn(5, np.random.default_rng(0))) == {0.1}


@pytest.mark.parametrize("wrong", [(0, 0, 0.1), (0.3, 0.1, 0.2), (0.01, 0, 0.9)])
def test_impossible_intervals_are_refused(wrong):
    with pytest.raises(InvalidSetting):
        Rate.within(*wrong)
    with pytest.raises(InvalidSetting):
        Rate.counted(3, 2)


def test_places_are_where_a_line_crosses_zero():
    shares = np.linspace(0, 1, 11)[:, None] * np.ones(4)
    slopes = shares * np.array([-2.0, 2.0, -0.5, -2.0])
    differences = np.array([0.5, -1.0, 1.0, 0.5]) + slopes
    differences[1:, 3] = np.nan
    found = first_crossing(shares, differences, 1.0)
    assert found == pytest.approx([0.25, 0.0, np.inf, np.inf])


def test_ranks_of_equal_systems_are_shared():
    values = np.tile([0.2, 0.5, 0.5], (20_000, 1))
    found = rank_shares(values, np.random.default_rng(0))
    assert found[0] == pytest.approx([0, 0, 1])
    assert found[1] == pytest.approx([0.5, 0.5, 0], abs=0.02)
    assert found.sum(0) == pytest.approx(1)
