"""Agreement of raters, and strengths of systems from their pairwise preferences.

Krippendorff's alpha, Fleiss' kappa, Kendall's W and the share of equal ratings are functions of
sums over units, so that a bootstrap over studies weighs the units. Strengths are those of Bradley
and Terry's model, with Davidson's ties.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from vlscore.errors import InvalidSetting
from vlscore.stats import Interval, drawn_weights, percentiles

Array = NDArray[np.float64]
LEVELS = ("nominal", "ordinal", "interval")


def krippendorff_alpha(
    values: Array, level: str = "nominal", weights: Array | None = None
) -> float:
    """Compute Krippendorff's alpha; nan where raters share no unit or all values are equal.

    Krippendorff 2011, Computing Krippendorff's Alpha-Reliability.

    Args:
        values: (k, n), k raters and n units; nan where a rater did not rate a unit.
        level: of measurement: "nominal", "ordinal" or "interval".
        weights: (n,) how often each unit counts; default: once.

    >>> round(krippendorff_alpha(np.array([[1, 2, 3, 3], [1, 2, 3, 2]])), 3)
    0.667
    """
    levels, pairs = _coincidences(values)
    each = np.ones(values.shape[1]) if weights is None else weights
    return _alpha(np.tensordot(each, pairs, 1), levels, level)


def _coincidences(values: Array) -> tuple[Array, Array]:
    """Return the v different values, and each unit's share (n, v, v) of the coincidence matrix."""
    levels = np.unique(values[~np.isnan(values)])
    counts = (values[:, :, None] == levels).sum(0).astype(np.float64)
    raters = counts.sum(1)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(len(levels))
    return levels, pairs / np.maximum(raters - 1, 1)[:, None, None]


def _alpha(matrix: Array, levels: Array, level: str) -> float:
    if level not in LEVELS:
        raise InvalidSetting(f"the level is {', '.join(LEVELS)}, not {level!r}")
    totals = matrix.sum(1)
    count = totals.sum()
    if level == "nominal":
        distance = 1 - np.eye(len(levels))
    elif level == "interval":
        distance = (levels[:, None] - levels) ** 2
    else:
        # Between c and k: all totals from c to k, those of c and k half.
        middle = np.cumsum(totals) - totals / 2
        distance = (middle[:, None] - middle) ** 2
    expected = totals @ distance @ totals
    if not expected > 0:
        return float("nan")
    return float(1 - (count - 1) * (matrix * distance).sum() / expected)


def fleiss_kappa(values: Array, weights: Array | None = None) -> float:
    """Compute Fleiss' kappa of the units that all raters rated; nan where it is not defined.

    Fleiss 1971, Measuring nominal scale agreement among many raters, eq. 6.

    Args: values, weights: as of `krippendorff_alpha`; two raters at least.

    >>> round(fleiss_kappa(np.array([[1, 2, 3, 3], [1, 2, 3, 2]])), 3)
    0.619
    """
    raters = len(values)
    complete = ~np.isnan(values).any(0)
    each = (np.ones(values.shape[1]) if weights is None else weights)[complete]
    if raters < 2 or not each.sum():
        return float("nan")
    levels = np.unique(values[:, complete])
    counts = (values[:, complete, None] == levels).sum(0)
    agreeing = (counts * (counts - 1)).sum(1) / (raters * (raters - 1))
    observed = each @ agreeing / each.sum()
    shares = each @ counts / (each.sum() * raters)
    expected = float((shares**2).sum())
    return float("nan") if expected == 1 else float((observed - expected) / (1 - expected))


def kendall_w(values: Array, weights: Array | None = None) -> float:
    """Compute Kendall's W of the units that all raters rated, corrected for ties.

    Kendall, Babington Smith 1939; correction for ties: Siegel, Castellan 1988, eq. 9.16.

    Args: values, weights: as of `krippendorff_alpha`; two raters at least.
    Returns: nan for fewer than two units, or where every rater gives all units the same value.

    >>> kendall_w(np.array([[1, 2, 3, 4], [1, 2, 3, 4]]))
    1.0
    """
    import scipy.stats

    complete = ~np.isnan(values).any(0)
    rows = values[:, complete]
    if weights is not None:
        rows = np.repeat(rows, weights[complete].astype(int), axis=1)
    raters, count = rows.shape
    if raters < 2 or count < 2:
        return float("nan")
    ranks = scipy.stats.rankdata(rows, axis=1)
    ties = sum(
        float((sizes**3 - sizes).sum())
        for row in ranks
        for sizes in [np.unique(row, return_counts=True)[1]]
    )
    totals = ranks.sum(0)
    spread = 12 * ((totals - totals.mean()) ** 2).sum()
    most = raters**2 * (count**3 - count) - raters * ties
    return float("nan") if most == 0 else float(spread / most)


def equal_share(values: Array, weights: Array | None = None) -> float:
    """Compute the share of pairs of raters who give a unit the same value; nan without a pair.

    Args: values, weights: as of `krippendorff_alpha`.

    >>> equal_share(np.array([[1, 2, 3, 3], [1, 2, 3, 2]]))
    0.75
    """
    each = np.ones(values.shape[1]) if weights is None else weights
    equal = pairs = 0.0
    for first, second in combinations(range(len(values)), 2):
        both = ~(np.isnan(values[first]) | np.isnan(values[second]))
        equal += float(each @ (both & (values[first] == values[second])))
        pairs += float(each @ both)
    return equal / pairs if pairs else float("nan")


@dataclass(frozen=True)
class Agreement:
    """Agreement of raters on one rating.

    Attributes:
        rating: its name.
        raters: number of raters who rated anything.
        units: reports, or comparisons, that at least two raters rated.
        complete: units that all of them rated, which kappa and W are computed of.
        alpha, kappa, w, equal: with intervals over studies.
        level: of measurement, for alpha.
    """

    rating: str
    raters: int
    units: int
    complete: int
    alpha: Interval
    kappa: Interval
    w: Interval
    equal: Interval
    level: str


def rater_agreement(
    rating: str,
    values: Array,
    studies: Sequence[str],
    *,
    level: str = "ordinal",
    resamples: int = 1000,
    seed: int = 0,
) -> Agreement | None:
    """Compute the agreement of raters on one rating, with bootstrap intervals over studies.

    Args:
        values: (k, n); nan where a rater did not rate a unit.
        studies: of the n units.
        level: of measurement, for alpha.

    Returns: None where no unit has two raters.
    """
    rated = values[~np.isnan(values).all(1)]
    shared = (~np.isnan(rated)).sum(0) >= 2
    if not shared.any():
        return None
    rows, names = rated[:, shared], [studies[k] for k in np.flatnonzero(shared).tolist()]
    draws = drawn_weights(len(names), names, resamples=resamples, seed=seed)
    weights = [np.ones(len(names)), *draws]
    levels, pairs = _coincidences(rows)
    matrices = np.tensordot(np.stack(weights), pairs, 1)
    found = {
        "alpha": [_alpha(matrix, levels, level) for matrix in matrices],
        "kappa": [fleiss_kappa(rows, each) for each in weights],
        "w": [kendall_w(rows, each) for each in weights],
        "equal": [equal_share(rows, each) for each in weights],
    }
    count = len(set(names))
    intervals = {
        name: percentiles(drawn[0], np.array(drawn[1:]), 0.95, count)
        for name, drawn in found.items()
    }
    complete = int((~np.isnan(rows).any(0)).sum())
    return Agreement(rating, len(rated), int(shared.sum()), complete, **intervals, level=level)


_STEPS, _PRECISION = 100, 1e-10


@dataclass(frozen=True)
class Preference:
    """Preference of one rater between two systems' reports of one study.

    Attributes:
        answer: 1 where the first is better, -1 where the second is, 0 for a tie.
    """

    study: str
    rater: str
    first: str
    second: str
    answer: int


@dataclass(frozen=True)
class Strength:
    """Strength of a system in the raters' preferences.

    Attributes:
        rating: what the preferences are of.
        group: of raters; "all" for all of them.
        comparisons: that the system is in.
        share: of its comparisons that it wins; a tie counts one half.
        strength: natural logarithm of its worth; the mean over systems is 0; nan where the
            comparisons do not determine it.
    """

    rating: str
    group: str
    system: str
    comparisons: int
    share: Interval
    strength: Interval


def davidson(wins: Array, ties: Array) -> tuple[Array, float]:
    """Fit Bradley and Terry's model with ties by maximum likelihood (Davidson 1970, eq. 2.6).

    The first of two systems of worth p and q wins with probability p / (p + q + v sqrt(p q)), and
    ties with probability v sqrt(p q) / (p + q + v sqrt(p q)). Without a tie, v is 0: the model of
    Bradley and Terry (1952).

    Args:
        wins: (s, s), how often the system of the row wins against that of the column.
        ties: (s, s), symmetric, how often two systems tie.

    Returns: log worth (s,), of mean 0, and v; nan where some systems never lose to the others, or
        are never compared with them, so that the likelihood has no largest value (Ford 1957).

    >>> worth, v = davidson(np.array([[0.0, 3], [1, 0]]), np.zeros((2, 2)))
    >>> round(float(np.exp(worth[0] - worth[1])), 6), v
    (3.0, 0.0)
    """
    count = len(wins)
    if not _is_determined(wins + ties):
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


def _is_determined(beaten: Array) -> bool:
    """Return whether every system reaches every other by wins or ties (Ford 1957)."""
    reach = (beaten > 0) | np.eye(len(beaten), dtype=bool)
    for _ in range(len(beaten)):
        reach = reach @ reach
    return bool(reach.all())


def strengths(
    preferences: Sequence[Preference],
    rating: str,
    group: str = "all",
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> list[Strength]:
    """Return the strength of every system, best first, with bootstrap intervals over studies.

    Resamples in which the strengths are not determined are left out of their intervals; an
    interval is nan if more than a tenth of the resamples are left out.
    """
    systems = sorted({name for each in preferences for name in (each.first, each.second)})
    if not systems:
        return []
    place = {name: k for k, name in enumerate(systems)}
    first = np.array([place[each.first] for each in preferences])
    second = np.array([place[each.second] for each in preferences])
    answers = np.array([each.answer for each in preferences])
    studies = [each.study for each in preferences]
    draws = drawn_weights(len(studies), studies, resamples=resamples, seed=seed)
    shares, worths = [], []
    for weights in (np.ones(len(studies)), *draws):
        wins, ties = np.zeros((2, len(systems), len(systems)))
        winner, loser = np.where(answers < 0, second, first), np.where(answers < 0, first, second)
        decided = answers != 0
        np.add.at(wins, (winner[decided], loser[decided]), weights[decided])
        np.add.at(ties, (first[~decided], second[~decided]), weights[~decided])
        ties = ties + ties.T
        played = (wins + wins.T + ties).sum(1)
        won = (wins + ties / 2).sum(1)
        shares.append(np.where(played > 0, won / np.maximum(played, 1), np.nan))
        worths.append(davidson(wins, ties)[0])
    count = len(set(studies))
    by_share, by_worth = np.stack(shares), np.stack(worths)
    undefined = np.isnan(by_worth[1:]).any(1).mean() > _MOST_UNDEFINED
    found = [
        Strength(
            rating,
            group,
            name,
            int((first == k).sum() + (second == k).sum()),
            percentiles(float(by_share[0, k]), by_share[1:, k], 0.95, count),
            percentiles(float(by_worth[0, k]), by_worth[1:, k], 0.95, 0 if undefined else count),
        )
        for k, name in enumerate(systems)
    ]
    return sorted(found, key=lambda each: (-each.share.estimate, each.system))


# Share of resamples without strengths from which on they have no interval.
_MOST_UNDEFINED = 0.1
