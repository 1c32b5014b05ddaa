"""Formulas of agreement and worth against worked examples and independent computations."""

import itertools

import numpy as np
import pytest
import scipy.optimize

from vlscore.stats import davidson, krippendorff_alpha, weighted_kappa

_ = np.nan


# Krippendorff 2011, Computing Krippendorff's Alpha-Reliability, section E.
KRIPPENDORFF = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, _, _, _],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, _, 3],
        [_, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, _],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, _],
    ]
)


# Wins of the American League in 1987 (Agresti 2002, Categorical Data Analysis, table 10.10).
TEAMS = ("Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore")


WINS = [
    [0, 7, 9, 7, 7, 9, 11], [6, 0, 7, 5, 11, 9, 9], [4, 6, 0, 7, 7, 8, 12], [6, 8, 6, 0, 6, 7, 10],
    [6, 2, 6, 7, 0, 7, 12], [4, 4, 5, 6, 6, 0, 6], [2, 4, 1, 3, 1, 7, 0],
]  # fmt: skip


@pytest.mark.parametrize(
    ("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_krippendorff_s_own_example(level, published):
    assert krippendorff_alpha(KRIPPENDORFF, level).round(3).tolist() == [published]


def test_alpha_weighs_a_unit_as_often_as_it_is_repeated():
    weights = np.random.default_rng(0).integers(0, 4, (3, KRIPPENDORFF.shape[1]))
    repeated = [np.repeat(KRIPPENDORFF, each, axis=1) for each in weights]
    for level in ("nominal", "ordinal", "interval"):
        found = krippendorff_alpha(KRIPPENDORFF, level, weights.astype(float))
        expected = [krippendorff_alpha(each, level)[0] for each in repeated]
        np.testing.assert_allclose(found, expected, atol=1e-12)


def _kappa(a, b, level):
    """Of two raters, from the table of their answers."""
    values = np.unique([a, b])
    table = np.array([[np.sum((a == x) & (b == y)) for y in values] for x in values])
    distance = np.subtract.outer(values, values) ** 2
    if level == "nominal":
        distance = (distance > 0) * 1.0
    expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
    return 1 - (distance * table).sum() / (distance * expected).sum()


@pytest.mark.parametrize("level", ["nominal", "ordinal"])
def test_kappa_is_the_mean_over_pairs_of_raters(level):
    rng = np.random.default_rng(3)
    values = np.clip(rng.integers(1, 6, 40) + rng.integers(-1, 2, (3, 40)), 1, 5).astype(float)
    values[0, :5] = np.nan
    each = []
    for a, b in itertools.combinations(values, 2):
        both = ~np.isnan(a + b)
        each.append(_kappa(a[both], b[both], level))
    assert weighted_kappa(values, level) == pytest.approx([np.mean(each)], abs=1e-12)
    weights = rng.integers(0, 3, (2, 40)).astype(float)
    repeated = [weighted_kappa(np.repeat(values, w.astype(int), 1), level)[0] for w in weights]
    np.testing.assert_allclose(weighted_kappa(values, level, weights), repeated, atol=1e-12)
    assert np.isnan(weighted_kappa(values[:1], level)).all()


def test_kappa_of_cohen_s_own_example():
    """Cohen 1960, two judges and three categories: kappa .492."""
    table = np.array([[88, 14, 18], [10, 40, 10], [2, 6, 12]])
    ones, others = (np.repeat(each, table.ravel()) for each in np.indices((3, 3)).reshape(2, -1))
    assert weighted_kappa(np.stack([ones, others]).astype(float)).round(3) == 0.492


def test_agresti_s_baseball():
    worth, v = davidson(np.array(WINS, dtype=float), np.zeros((7, 7)))
    found = dict(zip(TEAMS, (worth - worth[-1]).round(3), strict=True))
    # As R's package BradleyTerry2 prints them, Baltimore being the reference.
    assert found == {
        "Milwaukee": 1.581,
        "Detroit": 1.436,
        "Toronto": 1.294,
        "New York": 1.248,
        "Boston": 1.108,
        "Cleveland": 0.684,
        "Baltimore": 0.0,
    }
    assert v == 0


def test_ties_against_another_optimiser():
    rng = np.random.default_rng(2)
    wins, ties = rng.integers(0, 9, (2, 4, 4)).astype(float)
    np.fill_diagonal(wins, 0)
    ties = np.triu(ties, 1) + np.triu(ties, 1).T

    def loss(where):
        p, v = np.exp(np.append(where[:3], 0)), np.exp(where[3])
        total = 0.0
        for i in range(4):
            for j in range(4):
                root = v * np.sqrt(p[i] * p[j])
                sums = np.log(p[i] + p[j] + root)
                if i != j:
                    total += wins[i, j] * (np.log(p[i]) - sums)
                if i < j:
                    total += ties[i, j] * (np.log(root) - sums)
        return -total

    best = scipy.optimize.minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-8})
    worth, v = davidson(wins, ties)
    np.testing.assert_allclose(worth[:3] - worth[3], best.x[:3], atol=1e-5)
    assert np.log(v) == pytest.approx(best.x[3], abs=1e-5)


def _can_grow_for_ever(wins, ties):
    """Search a direction in which no observed outcome gets less likely, by linear programming.

    Variables are the changes of the log worths and of log v.
    """
    count = len(wins)
    rows = []
    for i, j in itertools.combinations(range(count), 2):
        unit = np.eye(count + 1)
        scores = [unit[i], unit[j], (unit[i] + unit[j]) / 2 + unit[count]]
        seen = (wins[i, j], wins[j, i], ties[i, j])
        used = scores if ties.any() else scores[:2]
        for observed, number in zip(used, seen, strict=False):
            rows += [each - observed for each in used] if number else []
    rows = np.array(rows)
    bounds = [(-1, 1)] * count + [(-1, 1) if ties.any() else (0, 0)]
    found = scipy.optimize.linprog(rows.sum(0), A_ub=rows, b_ub=np.zeros(len(rows)), bounds=bounds)
    # Worths of two groups that never meet can move without any change of the likelihood.
    met = (wins + wins.T + ties > 0) | np.eye(count, dtype=bool)
    met = np.linalg.matrix_power(met.astype(int), count) > 0
    return found.fun < -1e-7 or not met.all()


@pytest.mark.parametrize("seed", range(60))
def test_strengths_exist_where_no_direction_makes_the_likelihood_grow_for_ever(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 5))
    wins = rng.poisson(rng.choice([0.2, 0.5, 1.5]), (count, count)).astype(float)
    ties = np.triu(rng.poisson(rng.choice([0.0, 0.5, 1.5]), (count, count)), 1).astype(float)
    ties = ties + ties.T
    np.fill_diagonal(wins, 0)
    if not (wins + ties).any():
        return
    worth, _ = davidson(wins, ties)
    assert np.isnan(worth).any() == _can_grow_for_ever(wins, ties)
