"""Intervals of the agreement of raters, and of the strengths of systems."""

import itertools

import numpy as np

from vlscore.evaluation import preferences_of, rater_agreement, strengths


def test_intervals_are_over_studies():
    rng = np.random.default_rng(5)
    true = rng.integers(1, 6, 60)
    values = np.stack([np.clip(true + rng.integers(-1, 2, 60), 1, 5) for _ in range(3)])
    studies = [f"s{k // 2}" for k in range(60)]
    found = rater_agreement(values.astype(float), studies, resamples=200, seed=1)
    for name in ("alpha", "kappa"):
        assert found[name].low < found[name].estimate < found[name].high
    assert (found["raters"], found["units"]) == (3, 60)
    assert rater_agreement(values[:1].astype(float), studies) is None


def _strengths(rows, resamples):
    return strengths(preferences_of(rows), resamples=resamples)


def test_a_system_that_always_wins_has_no_strength_but_a_share():
    always = [(f"s{k}", "ann", "a", "b", 1, False) for k in range(6)]
    found = _strengths(always, resamples=50)
    assert [(each["system"], each["share"].estimate) for each in found] == [("a", 1.0), ("b", 0.0)]
    assert all(np.isnan(each["strength"].estimate) for each in found)
    # A tie changes nothing, a loss does.
    tied = [*always, ("s9", "ann", "a", "b", 0, False)]
    assert np.isnan(_strengths(tied, resamples=50)[0]["strength"].estimate)
    lost = [*tied, ("s8", "ann", "a", "b", -1, False)]
    assert not np.isnan(_strengths(lost, resamples=50)[0]["strength"].estimate)


def test_intervals_of_strengths_hold_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(4)
    true = {"a": 0.8, "b": 0.0, "c": -0.8}
    held = []
    for _round in range(20):
        said = []
        for study in range(60):
            for one, other in itertools.combinations(true, 2):
                p, q = np.exp(true[one]), np.exp(true[other])
                tie = 0.5 * np.sqrt(p * q)
                answer = rng.choice([1, 0, -1], p=np.array([p, tie, q]) / (p + q + tie))
                said.append((f"s{study}", "ann", one, other, int(answer), False))
        found = {each["system"]: each for each in _strengths(said, resamples=60)}
        assert next(iter(found)) == "a"
        assert found["b"]["comparisons"] == 120
        held += [
            found[name]["strength"].low < worth < found[name]["strength"].high
            for name, worth in true.items()
        ]
    # Of 60 intervals of 95 %: 50 or fewer have a chance below one in ten thousand.
    assert sum(held) > 50
