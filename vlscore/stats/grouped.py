"""Bootstrap intervals for values in groups: candidates of one study, or studies of one patient.

Values of a group are not independent of each other, so whole groups are resampled and permuted (the
cluster bootstrap, Davison, Hinkley 1997, section 3.8). A value that is computed from sums over
studies can be computed from sums over groups as well: the sums of a group replace its studies.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vlscore.core import as_floats, generator
from vlscore.errors import InvalidSetting
from vlscore.stats.intervals import (
    Array,
    Interval,
    bootstrap_interval,
    checked,
    sizes_of_parts,
    without_rounding,
)

# Weights drawn at once: bounds the memory whatever the number of groups.
_DRAWN_AT_ONCE = 2_000_000
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
    side = values, groups
    return grouped_means(np.positive, side, level=level, resamples=resamples, seed=seed)


def grouped_means(
    combine: Callable[..., Array],
    *sides: tuple[ArrayLike, Sequence[str]],
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Compute a value of the means of several sides, with a bootstrap interval over groups.

    A group that has values on two sides is drawn for both at once, so its common part cancels, as
    in a paired comparison.

    Args:
        combine: function of the sides' means, each (B,), such as np.subtract or np.divide.
        sides: values (n,), finite, n at least 1, and the group of each.

    >>> grouped_means(np.subtract, ([3.0, 4.0], ["a", "b"]), ([2.0, 3.0], ["a", "b"]))
    Interval(estimate=1.0, low=nan, high=nan)
    """
    for values, groups in sides:
        _check_groups(as_floats(values).size, groups)
    names = sorted({name for _, groups in sides for name in groups})
    totals = np.stack([each for side in sides for each in _totals(*side, names)])
    weights = _drawn_parts(len(names), resamples, seed, len(names))
    drawn = np.concatenate([totals.sum(axis=1)[None], *(each @ totals.T for each in weights)])
    with np.errstate(invalid="ignore", divide="ignore"):
        found = combine(*(drawn[:, k] / drawn[:, k + 1] for k in range(0, len(totals), 2)))
    return bootstrap_interval(found, len(names), level)


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
    sample, positive = as_floats(values), np.asarray(is_positive, dtype=bool)
    codes = _sorted_codes(len(sample), groups)
    count = int(codes.max()) + 1
    ranks = np.unique(without_rounding(sample), return_inverse=True)[1].reshape(-1)
    order = np.argsort(ranks, kind="stable")
    starts = np.flatnonzero(np.diff(ranks[order], prepend=-1))

    def area(weights: Array) -> Array:
        """Compute the area (B,) of groups that count so often (B, groups)."""
        rows = weights[:, codes]
        above, below = (
            np.add.reduceat((rows * side)[:, order], starts, axis=1)
            for side in (positive, ~positive)
        )
        smaller = np.cumsum(below, axis=1) - below / 2
        pairs = above.sum(axis=1) * below.sum(axis=1)
        with np.errstate(invalid="ignore"):
            share: Array = (above * smaller).sum(axis=1) / pairs
        return share

    weights = _drawn_parts(count, resamples, seed, len(codes))
    drawn = np.concatenate([area(np.ones((1, count))), *map(area, weights)])
    return bootstrap_interval(drawn, count, level)


def drawn_weights(
    count: int, groups: Sequence[str] | None = None, *, resamples: int, seed: int
) -> Array:
    """Draw weights (1 + resamples, count): how often each row is drawn, with replacement.

    The sample itself is the first of the resamples: all its weights are 1.

    Args: groups: the group of each row; whole groups are drawn, as many as there are. None draws
        rows.
    """
    codes = np.arange(count)
    if groups is not None or not count:
        codes = _sorted_codes(count, groups or ())
    size = int(codes.max()) + 1
    drawn = _drawn_parts(size, resamples, seed, size)
    return np.concatenate([np.ones((1, count)), *(weights[:, codes] for weights in drawn)])


def _totals(values: ArrayLike, groups: Sequence[str], names: Sequence[str]) -> tuple[Array, Array]:
    """Compute sum and count of the values of each named group."""
    sample = as_floats(values)
    if not np.isfinite(sample).all():
        raise InvalidSetting("an interval needs finite values; leave failed studies out")
    codes = np.searchsorted(names, list(groups))
    sums = np.bincount(codes, weights=sample, minlength=len(names)).astype(np.float64)
    return sums, np.bincount(codes, minlength=len(names)).astype(np.float64)


def _check_groups(count: int, groups: Sequence[str]) -> None:
    if groups is None or isinstance(groups, str):
        raise InvalidSetting(f"groups must be the list of the group of each value, not {groups!r}")
    if count != len(groups) or not count:
        raise InvalidSetting(
            f"there are {len(groups)} groups for {count} values; there must be at least one value, "
            "and each needs a group"
        )


def _sorted_codes(count: int, groups: Sequence[str]) -> NDArray[np.intp]:
    """Return the number of each entry's group, from 0 in the order of their names."""
    _check_groups(count, groups)
    return np.unique(np.asarray(groups, dtype=str), return_inverse=True)[1].reshape(-1)


def _codes_of(count: int, groups: Sequence[str]) -> tuple[NDArray[np.intp], int]:
    """Return the number of each entry's group, from 0 by first appearance, and their count."""
    _check_groups(count, groups)
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(name, len(numbers)) for name in groups]
    return np.array(codes, dtype=np.intp), len(numbers)


def _drawn_parts(count: int, resamples: int, seed: int, width: int) -> Iterator[Array]:
    """Yield how often each of `count` groups is drawn, (some resamples, groups) at a time.

    Args: width: numbers that the caller makes of one resample.
    """
    sizes = sizes_of_parts(resamples, width, _DRAWN_AT_ONCE)
    if len(sizes) == 1:
        yield _drawn_groups(count, resamples, seed)
        return
    rng = generator(seed)
    for size in sizes:
        yield rng.multinomial(count, np.full(count, 1 / count), size=size).astype(np.float64)


@lru_cache(maxsize=4)
def _drawn_groups(count: int, resamples: int, seed: int) -> Array:
    """Draw how often each group is drawn (resamples, groups); cached for the tables' many uses."""
    rng = generator(seed)
    return rng.multinomial(count, np.full(count, 1 / count), size=resamples).astype(np.float64)


def places_by_group(groups: Sequence[str]) -> dict[str, list[int]]:
    """Return group -> places of its values, groups in the order in which they appear."""
    places: dict[str, list[int]] = {}
    for place, group in enumerate(groups):
        places.setdefault(group, []).append(place)
    return places


def sums_by_group(statistics: Array, groups: Sequence[str]) -> Array:
    """Return statistics summed over the studies of each group: (..., n, s) -> (..., m, s).

    Groups are in the order of their first study.

    Args: groups: the group of each of n studies.
    Raises: InvalidSetting if there are not n groups.

    >>> sums_by_group(np.array([[1.0, 1.0], [2.0, 1.0], [4.0, 1.0]]), ["a", "b", "a"]).tolist()
    [[5.0, 2.0], [2.0, 1.0]]
    """
    codes, count = _codes_of(statistics.shape[-2], groups)
    found = np.zeros((*statistics.shape[:-2], count, statistics.shape[-1]))
    np.add.at(np.moveaxis(found, -2, 0), codes, np.moveaxis(statistics, -2, 0))
    return found


def grouped_median(
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

    >>> grouped_median([1.0, 2.0, 9.0], ["a", "a", "b"]).estimate
    2.0
    """
    sample = checked(values)
    codes, count = _codes_of(len(sample), groups)
    order = np.argsort(codes, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(codes, minlength=count))[:-1])
    draws = max(min(resamples, _MOST_VALUES // len(sample)), min(resamples, _LEAST_RESAMPLES))
    rng = generator(seed)
    drawn = [np.median(sample)]
    for _ in range(draws):
        rows = np.concatenate([members[group] for group in rng.integers(count, size=count)])
        drawn.append(np.median(sample[rows]))
    return bootstrap_interval(np.array(drawn), count, level)
