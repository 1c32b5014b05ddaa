"""Intervals for studies in groups, such as those of one patient, which are not independent.

Whole groups are resampled and permuted (the cluster bootstrap, Davison, Hinkley 1997, section
3.8). A value that is computed from sums over studies can be computed from sums over groups as well,
so the sums of a group replace its studies.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vlscore.errors import InvalidSetting
from vlscore.stats.intervals import Interval, checked, percentiles

# Limit of values that all resamples of a median read together: bounds the time.
_MOST_VALUES = 50_000_000
_LEAST_RESAMPLES = 200


def sums_by_group(statistics: NDArray[np.float64], groups: Sequence[str]) -> NDArray[np.float64]:
    """Return statistics summed over the studies of each group: (..., n, s) -> (..., m, s).

    Groups are in the order of their first study.

    Args: groups: the group of each of n studies.
    Raises: InvalidSetting if there are not n groups.

    >>> sums_by_group(np.array([[1.0, 1.0], [2.0, 1.0], [4.0, 1.0]]), ["a", "b", "a"]).tolist()
    [[5.0, 2.0], [2.0, 1.0]]
    """
    if len(groups) != statistics.shape[-2]:
        raise InvalidSetting(f"{len(groups)} groups for {statistics.shape[-2]} studies")
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
    """Return the number of each entry's group, from 0 by first appearance, and their count."""
    numbers: dict[str, int] = {}
    codes = [numbers.setdefault(name, len(numbers)) for name in groups]
    return np.array(codes, dtype=np.intp), len(numbers)
