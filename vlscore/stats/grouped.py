"""Bootstrap intervals for values in groups: candidates of one study, or studies of one patient.

Values of a group are not independent of each other, so whole groups are resampled and permuted (the
cluster bootstrap, Davison, Hinkley 1997, section 3.8). A value that is computed from sums over
studies can be computed from sums over groups as well: the sums of a group replace its studies.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vlscore.errors import InvalidSetting
from vlscore.stats.intervals import Interval, checked, percentiles

# Weights drawn at once: bounds the memory whatever the number of groups.
_DRAWN_AT_ONCE = 2_000_000
# Above this, groups are joined into blocks, which are independent of each other as well: bounds
# the matrices of pairs of groups.
_MOST_BLOCKS = 1000
# Limit of values that all resamples of a median read together: bounds the time.
_MOST_VALUES = 50_000_000
_LEAST_RESAMPLES = 200


def grouped_mean(
    values: ArrayLike,
    groups: Sequence[str],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Compute the mean of all values, with a bootstrap interval over groups.

    Args:
        values: (n,), finite, n at least 1.
        groups: the group of each value.

    >>> grouped_mean([1.0, 1.0, 4.0], ["a", "a", "b"]).estimate
    2.0
    """
    names = sorted(set(groups))
    sums, counts = _totals(values, groups, names)
    totals = _resample(np.stack([sums, counts]), resamples, seed)
    estimate = float(sums.sum() / counts.sum())
    return percentiles(estimate, totals[:, 0] / totals[:, 1], level, len(names))


def grouped_difference(
    values: ArrayLike,
    groups: Sequence[str],
    others: ArrayLike,
    other_groups: Sequence[str],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Compute the mean of `values` minus that of `others`, with a bootstrap interval over groups.

    A group that has values on both sides is drawn for both at once, so its common part cancels, as
    in a paired comparison.

    >>> grouped_difference([3.0, 4.0], ["a", "b"], [2.0, 3.0], ["a", "b"])
    Interval(estimate=1.0, low=1.0, high=1.0)
    """
    names = sorted({*groups, *other_groups})
    sums, counts = _totals(values, groups, names)
    other_sums, other_counts = _totals(others, other_groups, names)
    totals = _resample(np.stack([sums, counts, other_sums, other_counts]), resamples, seed)
    with np.errstate(invalid="ignore"):
        drawn = totals[:, 0] / totals[:, 1] - totals[:, 2] / totals[:, 3]
    estimate = float(sums.sum() / counts.sum() - other_sums.sum() / other_counts.sum())
    return percentiles(estimate, drawn, level, len(names))


def grouped_tau_b(
    x: ArrayLike,
    y: ArrayLike,
    groups: Sequence[str],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Compute Kendall's tau_b of two (n,) variables, with a bootstrap interval over groups.

    Every resample's tau_b is exact: concordant and tied pairs between any two groups are counted
    once, and weighted by how often the groups are drawn.

    >>> grouped_tau_b([1.0, 2.0, 3.0], [1.0, 3.0, 2.0], ["a", "b", "c"]).estimate
    0.3333333333333333
    """
    a, b = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)

    def pairs(rows: slice) -> list[NDArray[np.float64]]:
        in_x = np.sign(a[rows, None] - a[None])
        in_y = np.sign(b[rows, None] - b[None])
        return [in_x * in_y, np.abs(in_x), np.abs(in_y)]

    def tau(agreeing: NDArray[Any], in_x: NDArray[Any], in_y: NDArray[Any]) -> NDArray[Any]:
        correlation: NDArray[np.float64] = agreeing / np.sqrt(in_x * in_y)
        return correlation

    return _of_pairs(pairs, tau, len(a), groups, level, resamples, seed)


def grouped_auc(
    values: ArrayLike,
    is_positive: ArrayLike,
    groups: Sequence[str],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Compute the ROC AUC of `values` for (n,) truths, with a bootstrap interval over groups.

    >>> grouped_auc([3.0, 2.0, 1.0], [True, False, False], ["a", "b", "c"]).estimate
    1.0
    """
    sample, positive = np.asarray(values, dtype=np.float64), np.asarray(is_positive, dtype=bool)

    def pairs(rows: slice) -> list[NDArray[np.float64]]:
        compared = (positive[rows, None] & ~positive[None]).astype(np.float64)
        above = np.sign(sample[rows, None] - sample[None]) / 2 + 0.5
        return [above * compared, compared]

    def area(above: NDArray[Any], compared: NDArray[Any]) -> NDArray[Any]:
        share: NDArray[np.float64] = above / compared
        return share

    return _of_pairs(pairs, area, len(sample), groups, level, resamples, seed)


def _of_pairs(
    pairs: Callable[[slice], list[NDArray[np.float64]]],
    statistic: Callable[..., NDArray[np.float64]],
    count: int,
    groups: Sequence[str],
    level: float,
    resamples: int,
    seed: int,
) -> Interval:
    """Compute a statistic of sums over all ordered pairs of rows.

    Args:
        pairs: function of rows that returns matrices (rows, n), the pairs' part of each sum.
        statistic: function of the sums, one array each, that returns values.
    """
    _check_groups(count, groups)
    place = {name: k for k, name in enumerate(sorted(set(groups)))}
    codes = np.array([place[name] for name in groups]) % _MOST_BLOCKS
    blocks = _block_sums(pairs, codes)
    rng = np.random.default_rng(seed)
    size = blocks.shape[1]
    weights = rng.multinomial(size, np.full(size, 1 / size), size=resamples).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = statistic(*(((weights @ block) * weights).sum(axis=1) for block in blocks))
        estimate = statistic(*(block.sum() for block in blocks))
    return percentiles(float(estimate), drawn, level, size)


def _block_sums(
    pairs: Callable[[slice], list[NDArray[np.float64]]], codes: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Compute sums over the pairs of rows of any two groups, (k, groups, groups)."""
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    step = max(_DRAWN_AT_ONCE // len(codes), 1)
    sums: NDArray[np.float64] | None = None
    for start in range(0, len(codes), step):
        rows = slice(start, start + step)
        matrices = pairs(rows)
        if sums is None:
            sums = np.zeros((len(matrices), len(starts), len(starts)))
        for total, matrix in zip(sums, matrices, strict=True):
            np.add.at(total, codes[rows], np.add.reduceat(matrix[:, order], starts, axis=1))
    assert sums is not None
    return sums


def _totals(
    values: ArrayLike, groups: Sequence[str], names: list[str]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Compute sum and count of the values of each named group."""
    sample = np.asarray(values, dtype=np.float64)
    _check_groups(len(sample), groups)
    if not np.isfinite(sample).all():
        raise InvalidSetting("an interval needs finite values; leave failed studies out")
    place = {name: k for k, name in enumerate(names)}
    codes = np.array([place[name] for name in groups])
    sums = np.bincount(codes, weights=sample, minlength=len(names)).astype(np.float64)
    return sums, np.bincount(codes, minlength=len(names)).astype(np.float64)


def _check_groups(count: int, groups: Sequence[str]) -> None:
    if count != len(groups) or not count:
        raise InvalidSetting(
            f"there are {len(groups)} groups for {count} values; there must be at least one value, "
            "and each needs a group"
        )


def _resample(totals: NDArray[np.float64], resamples: int, seed: int) -> NDArray[np.float64]:
    """Draw groups with replacement: totals (k, groups) -> totals (resamples, k)."""
    count = totals.shape[1]
    if count * resamples <= _DRAWN_AT_ONCE:
        return _drawn_groups(count, resamples, seed) @ totals.T
    rng = np.random.default_rng(seed)
    drawn = np.empty((resamples, len(totals)))
    step = max(_DRAWN_AT_ONCE // count, 1)
    for start in range(0, resamples, step):
        stop = min(start + step, resamples)
        weights = rng.multinomial(count, np.full(count, 1 / count), size=stop - start)
        drawn[start:stop] = weights.astype(np.float64) @ totals.T
    return drawn


@lru_cache(maxsize=4)
def _drawn_groups(count: int, resamples: int, seed: int) -> NDArray[np.float64]:
    """Draw how often each group is drawn (resamples, groups); cached for the tables' many uses."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(count, np.full(count, 1 / count), size=resamples).astype(np.float64)


def places_by_group(groups: Sequence[str]) -> dict[str, list[int]]:
    """Return group -> places of its values, groups in the order in which they appear."""
    places: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        places.setdefault(group, []).append(place)
    return places


def sums_by_group(statistics: NDArray[np.float64], groups: Sequence[str]) -> NDArray[np.float64]:
    """Return statistics summed over the studies of each group: (..., n, s) -> (..., m, s).

    Groups are in the order of their first study.

    Args: groups: the group of each of n studies.
    Raises: InvalidSetting if there are not n groups.

    >>> sums_by_group(np.array([[1.0, 1.0], [2.0, 1.0], [4.0, 1.0]]), ["a", "b", "a"]).tolist()
    [[5.0, 2.0], [2.0, 1.0]]
    """
    if len(groups) != statistics.shape[-2]:
        raise InvalidSetting(
            f"there are {len(groups)} groups for {statistics.shape[-2]} studies; each needs one"
        )
    codes, count = codes_of(groups)
    found = np.zeros((*statistics.shape[:-2], count, statistics.shape[-1]))
    np.add.at(np.moveaxis(found, -2, 0), codes, np.moveaxis(statistics, -2, 0))
    return found


def clustered_median(
    values: ArrayLike,
    groups: Sequence[str],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Return the median of all values, with a bootstrap interval over groups.

    For more than 25,000 values fewer resamples are drawn, at least 200.

    Args:
        values: (n,), finite, n at least 1.
        groups: the group of each value.

    >>> clustered_median([1.0, 2.0, 9.0], ["a", "a", "b"]).estimate
    2.0
    """
    sample = checked(values)
    codes, count = codes_of(groups)
    order = np.argsort(codes, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(codes, minlength=count))[:-1])
    draws = max(min(resamples, _MOST_VALUES // len(sample)), min(resamples, _LEAST_RESAMPLES))
    rng = np.random.default_rng(seed)
    drawn = np.empty(draws)
    for k in range(draws):
        rows = np.concatenate([members[group] for group in rng.integers(count, size=count)])
        drawn[k] = np.median(sample[rows])
    return percentiles(float(np.median(sample)), drawn, level, count)


def codes_of(groups: Sequence[str]) -> tuple[NDArray[np.intp], int]:
    """Return the number of each entry's group, from 0 by first appearance, and their count.

    `grouped_mean` and others number groups by their sorted names instead. Draws belong to numbers,
    so one common order would change the last digits of published intervals.
    """
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(name, len(numbers)) for name in groups]
    return np.array(codes, dtype=np.intp), len(numbers)
