"""Agreement of raters, and worth of systems from pairwise preferences.

Krippendorff's alpha and weighted kappa are functions of sums over units, so that a bootstrap over
studies can weigh the units. `davidson` fits Bradley and Terry's model with Davidson's ties.
"""

from itertools import combinations

import numpy as np

from vlscore.errors import InvalidSetting
from vlscore.stats.intervals import Array, mean_of_defined, without_rounding

LEVELS = ("nominal", "ordinal", "interval")

_STEPS, _PRECISION = 100, 1e-10


def krippendorff_alpha(
    values: Array, level: str = "nominal", weights: Array | None = None
) -> Array:
    """Compute Krippendorff's alpha (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability).

    Args:
        values: (k, n), k raters and n units; nan where a rater did not rate a unit.
        level: of measurement, one of `LEVELS`.
        weights: (B, n) how often each unit counts; default: once, and B is 1.

    Returns: (B,); nan where raters share no unit or all values are equal.

    >>> krippendorff_alpha(np.array([[1, 2, 3, 3], [1, 2, 3, 2]])).round(3).tolist()
    [0.667]
    """
    levels, rated, each = _checked(values, level, weights)
    counts = rated.sum(0)
    raters = counts.sum(1)
    # Each unit's share (n, v, v) of the coincidence matrix of v different values.
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(len(levels))
    pairs = pairs / np.maximum(raters - 1, 1)[:, None, None]
    matrices = np.tensordot(each, pairs, 1)
    totals = matrices.sum(2)
    if level == "ordinal":
        # Between c and k: all totals from c to k, those of c and k half.
        middle = np.cumsum(totals, axis=1) - totals / 2
        distance = (middle[:, :, None] - middle[:, None, :]) ** 2
    else:
        distance = np.broadcast_to(_distance(levels, level), matrices.shape)
    observed = (matrices * distance).sum((1, 2)) * (totals.sum(1) - 1)
    return _agreement(observed, np.einsum("bi,bij,bj->b", totals, distance, totals))


def weighted_kappa(values: Array, level: str = "nominal", weights: Array | None = None) -> Array:
    """Compute Cohen's kappa of each two raters, and return its mean over the pairs of raters.

    Cohen 1968, Weighted kappa; the mean over pairs: Light 1971. Nominal values agree or not;
    others have quadratic weights. A pair of raters whose kappa is not defined is left out.

    Args:
        values: (k, n), k raters and n units; nan where a rater did not rate a unit.
        level: of measurement, one of `LEVELS`.
        weights: (B, n) how often each unit counts; default: once, and B is 1.

    Returns: (B,); nan where no two raters share a unit, or all values are equal.

    >>> weighted_kappa(np.array([[1, 2, 3, 3], [1, 2, 3, 2]])).round(3).tolist()
    [0.636]
    """
    levels, rated, each = _checked(values, level, weights)
    distance = _distance(levels, level)
    found = []
    for first, second in combinations(rated, 2):
        tables = np.tensordot(each, first[:, :, None] * second[:, None, :], 1)
        rows, columns, count = tables.sum(2), tables.sum(1), tables.sum((1, 2))
        observed = (tables * distance).sum((1, 2)) * count
        found.append(_agreement(observed, np.einsum("bi,ij,bj->b", rows, distance, columns)))
    if not found:
        return np.full(len(each), np.nan)
    return mean_of_defined(np.stack(found))


def _checked(values: Array, level: str, weights: Array | None) -> tuple[Array, Array, Array]:
    """Return the v different values, whether a rater gave each of them (k, n, v), and weights.

    Values that are equal except for rounding are made equal.
    """
    if level not in LEVELS:
        raise InvalidSetting(f"the level must be one of {', '.join(LEVELS)}, not {level!r}")
    values = without_rounding(values.reshape(-1)).reshape(values.shape)
    levels = np.unique(values[~np.isnan(values)])
    rated = np.asarray(values[:, :, None] == levels, dtype=np.float64)
    return levels, rated, np.ones((1, rated.shape[1])) if weights is None else weights


def _distance(levels: Array, level: str) -> Array:
    """Return (v, v) distances of values: 1 for other nominal values, else their square."""
    if level == "nominal":
        return 1 - np.eye(len(levels))
    squares: Array = (levels[:, None] - levels) ** 2
    return squares


def _agreement(observed: Array, expected: Array) -> Array:
    """Return 1 - observed / expected disagreement (B,); nan where none can be expected."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 0, 1 - observed / expected, np.nan)


def davidson(wins: Array, ties: Array) -> tuple[Array, float]:
    """Fit Bradley and Terry's model with ties by maximum likelihood (Davidson 1970, eq. 2.6).

    The first of two systems of worth p and q wins with probability p / (p + q + v sqrt(p q)), and
    ties with probability v sqrt(p q) / (p + q + v sqrt(p q)). Without a tie, v is 0: the model of
    Bradley and Terry (1952).

    Args:
        wins: (s, s), how often the system of the row wins against that of the column.
        ties: (s, s), symmetric, how often two systems tie.

    Returns: log worth (s,), of mean 0, and v; nan where the likelihood has no largest value: some
        systems never lose to the others, or are never compared with them, or there are too few wins
        among the ties, such as none.

    >>> worth, v = davidson(np.array([[0.0, 3], [1, 0]]), np.zeros((2, 2)))
    >>> round(float(np.exp(worth[0] - worth[1])), 6), v
    (3.0, 0.0)
    """
    count = len(wins)
    if not _has_largest_likelihood(wins, ties):
        return np.full(count, np.nan), float("nan")
    first, second = np.triu_indices(count, 1)
    played = wins[first, second], wins[second, first], ties[first, second]
    counts = np.stack(played, 1)
    has_ties = bool(counts[:, 2].any())
    unit = np.eye(count)
    # (pairs, outcomes, parameters): log worth of each system, and log v.
    zero = np.zeros(len(first))
    outcomes = [
        np.column_stack([unit[first], zero]),
        np.column_stack([unit[second], zero]),
        np.column_stack([(unit[first] + unit[second]) / 2, zero + 1]),
    ]
    features = np.stack(outcomes if has_ties else outcomes[:2], 1)
    counts = counts[:, : features.shape[1]]
    # The last system has log worth 0 while the model is fitted.
    free = [*range(count - 1), *([count] if has_ties else [])]
    found = np.zeros(count + 1)
    found[free] = _most_likely(features[:, :, free], counts)
    v = float(np.exp(found[count])) if has_ties else 0.0
    return found[:count] - found[:count].mean(), v


def _most_likely(features: Array, counts: Array) -> Array:
    """Fit a log-linear model by Newton's method; its likelihood is concave."""
    at = np.zeros(features.shape[2])
    totals = counts.sum(1)

    def likelihood(where: Array) -> float:
        scores = features @ where
        top = scores.max(1, keepdims=True)
        sums = (np.log(np.exp(scores - top).sum(1)) + top[:, 0]) * totals
        return float((counts * scores).sum() - sums.sum())

    value = likelihood(at)
    for _ in range(_STEPS):
        scores = features @ at
        chances = np.exp(scores - scores.max(1, keepdims=True))
        chances /= chances.sum(1, keepdims=True)
        means = np.einsum("po,pof->pf", chances, features)
        slope = np.einsum("po,pof->f", counts - totals[:, None] * chances, features)
        centred = features - means[:, None]
        curve = np.einsum("p,po,pof,pog->fg", totals, chances, centred, centred)
        step = np.linalg.lstsq(curve, slope, rcond=None)[0]
        size = 1.0
        while (new := likelihood(at + size * step)) < value and size > _PRECISION:
            size /= 2
        at = at + size * step
        value = new
        if np.abs(size * step).max() < _PRECISION:
            break
    return at


def _has_largest_likelihood(wins: Array, ties: Array) -> bool:
    """Return whether the likelihood of Davidson's model has a largest value.

    It has none where worths and v can move on for ever without making an outcome less likely. This
    needs differences of log worth of at least 2m for each win and at most 2m for each tie, where m
    is the change of log v. With m = 0 there are such differences unless every system reaches every
    other by wins or ties (Ford 1957); with m > 0, unless a cycle of comparisons has more wins than
    ties (a cycle of negative length in a system of difference constraints).
    """
    count = len(wins)
    reach = ((wins + ties) > 0) | np.eye(count, dtype=bool)
    steps = np.where(wins > 0, -1.0, np.where(ties > 0, 1.0, np.inf))
    np.fill_diagonal(steps, 0)
    for k in range(count):
        reach |= reach[:, k : k + 1] & reach[k]
        # Lengths below -count mean a negative cycle already; without a limit they would explode.
        steps = np.maximum(np.minimum(steps, steps[:, k : k + 1] + steps[k]), -count - 1)
    return bool(reach.all()) and (not ties.any() or bool((steps.diagonal() < 0).any()))
