"""Bootstrap intervals for values in groups: candidates of one study, or studies of one patient.

Values of a group are not independent of each other, so whole groups are resampled and permuted (the
cluster bootstrap, Davison, Hinkley 1997, section 3.8). A value that is computed from sums over
studies can be computed from sums over groups as well: the sums of a group replace its studies.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vlscore.errors import InvalidSetting
from vlscore.stats.intervals import Interval, checked, percentiles, without_rounding

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
    return _of_means(lambda mean: mean, level, resamples, seed, (values, groups))


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
    Interval(estimate=1.0, low=nan, high=nan)
    """
    sides = (values, groups), (others, other_groups)
    return _of_means(np.subtract, level, resamples, seed, *sides)


def grouped_ratio(
    values: ArrayLike,
    groups: Sequence[str],
    others: ArrayLike,
    other_groups: Sequence[str],
    *,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Compute the mean of `values` over that of `others`, with a bootstrap interval over groups.

    Groups are drawn as by `grouped_difference`.

    >>> grouped_ratio([3.0, 1.0], ["a", "b"], [4.0, 4.0], ["a", "b"]).estimate
    0.5
    """
    sides = (values, groups), (others, other_groups)
    return _of_means(np.divide, level, resamples, seed, *sides)


def _of_means(
    combine: Callable[..., NDArray[np.float64]],
    level: float,
    resamples: int,
    seed: int,
    *sides: tuple[ArrayLike, Sequence[str]],
) -> Interval:
    """Compute a value of the means of some sides, each values and their groups."""
    names = sorted({name for _, groups in sides for name in groups})
    totals = np.stack([each for side in sides for each in _totals(*side, names)])
    weights = _draws(len(names), resamples, seed, len(names))
    drawn = np.concatenate([totals.sum(axis=1)[None], *(each @ totals.T for each in weights)])
    with np.errstate(invalid="ignore", divide="ignore"):
        found = combine(*(drawn[:, k] / drawn[:, k + 1] for k in range(0, len(totals), 2)))
    return percentiles(float(found[0]), found[1:], level, len(names))


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
    _check_groups(len(sample), groups)
    codes = sorted_codes(groups)
    count = int(codes.max()) + 1
    ranks = np.unique(without_rounding(sample), return_inverse=True)[1].reshape(-1)
    order = np.argsort(ranks, kind="stable")
    starts = np.flatnonzero(np.diff(ranks[order], prepend=-1))

    def area(weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the area (B,) of rows that count so often (B, n)."""
        above, below = (
            np.add.reduceat((weights * side)[:, order], starts, axis=1)
            for side in (positive, ~positive)
        )
        smaller = np.cumsum(below, axis=1) - below / 2
        with np.errstate(invalid="ignore"):
            share: NDArray[np.float64] = (above * smaller).sum(axis=1) / (
                above.sum(axis=1) * below.sum(axis=1)
            )
        return share

    parts = _draws(count, resamples, seed, len(codes))
    drawn = np.concatenate([area(weights[:, codes]) for weights in parts])
    return percentiles(float(area(np.ones((1, len(codes))))[0]), drawn, level, count)


def _totals(
    values: ArrayLike, groups: Sequence[str], names: Sequence[str]
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


def _draws(count: int, resamples: int, seed: int, width: int) -> Iterator[NDArray[np.float64]]:
    """Yield how often each of `count` groups is drawn, (some resamples, groups) at a time.

    Args: width: numbers that the caller makes of one resample.
    """
    if width * resamples <= _DRAWN_AT_ONCE:
        yield _drawn_groups(count, resamples, seed)
        return
    rng = np.random.default_rng(seed)
    step = max(_DRAWN_AT_ONCE // width, 1)
    for start in range(0, resamples, step):
        some = min(step, resamples - start)
        yield rng.multinomial(count, np.full(count, 1 / count), size=some).astype(np.float64)


@lru_cache(maxsize=4)
def _drawn_groups(count: int, resamples: int, seed: int) -> NDArray[np.float64]:
    """Draw how often each group is drawn (resamples, groups); cached for the tables' many uses."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(count, np.full(count, 1 / count), size=resamples).astype(np.float64)


def sorted_codes(groups: Sequence[str]) -> NDArray[np.intp]:
    """Return the number of each entry's group, from 0 in the order of their names."""
    return np.unique(np.asarray(groups, dtype=str), return_inverse=True)[1].reshape(-1)


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
    codes, count = _codes_of(groups)
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
    codes, count = _codes_of(groups)
    order = np.argsort(codes, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(codes, minlength=count))[:-1])
    draws = max(min(resamples, _MOST_VALUES // len(sample)), min(resamples, _LEAST_RESAMPLES))
    rng = np.random.default_rng(seed)
    drawn = np.empty(draws)
    for k in range(draws):
        rows = np.concatenate([members[group] for group in rng.integers(count, size=count)])
        drawn[k] = np.median(sample[rows])
    return percentiles(float(np.median(sample)), drawn, level, count)


def _codes_of(groups: Sequence[str]) -> tuple[NDArray[np.intp], int]:
    """Return the number of each entry's group, from 0 by first appearance, and their count."""
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(name, len(numbers)) for name in groups]
    return np.array(codes, dtype=np.intp), len(numbers)
