"""Agreement of raters: Krippendorff's alpha, Fleiss' kappa, Kendall's W, share of equal ratings.

Every number is a function of sums over units, so that a bootstrap over studies weighs the units.
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
