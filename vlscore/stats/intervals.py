"""Bootstrap intervals, and the check of samples before any statistic.

Percentile intervals (Efron, Tibshirani 1993, chapter 13) of the mean, the median, and any
statistic of paired samples. A million values take about a second, and memory does not grow with
the product of values and resamples. In every array of resampled values, the first is that of the
sample itself.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vlscore.core import as_floats, generator
from vlscore.errors import InvalidSetting

Array = NDArray[np.float64]


def checked(values: ArrayLike) -> Array:
    """Return a sample as (n,) float64, n at least 1, finite.

    Raises: InvalidSetting for any other sample.
    """
    sample = as_floats(values)
    if sample.ndim != 1 or not len(sample):
        raise InvalidSetting(
            f"a sample must be a list of at least one number, not an array of shape {sample.shape}"
        )
    if not np.isfinite(sample).all():
        where = int(np.flatnonzero(~np.isfinite(sample))[0])
        raise InvalidSetting(
            f"a sample must have finite values, but value {where} is {sample[where]}; leave failed "
            "studies out"
        )
    return sample


def checked_pairs(*samples: ArrayLike) -> tuple[Array, ...]:
    """Return paired samples, each as `checked` returns it.

    Raises: InvalidSetting if their lengths differ.
    """
    arrays = tuple(map(checked, samples))
    lengths = [len(array) for array in arrays]
    if len(set(lengths)) > 1:
        raise InvalidSetting(f"paired samples must have the same length; these have {lengths}")
    return arrays


# Results of the same sum in another order differ by some 1e-16 of what is summed.
ROUNDING = 1e-12


def without_rounding(values: ArrayLike, scale: ArrayLike | None = None) -> Array:
    """Return values (n,), those that are equal except for rounding made equal.

    In floating point (.1 + .2 + .3) / 3 is not (.3 + .2 + .1) / 3. Every rank, tie, sign and test
    of `vlscore.stats` takes two neighbours for equal if they differ by at most 1e-12 of the scale.

    Args: scale: (n,) or one number, the size of what each value was computed from; values within
        1e-12 of it are 0. Default: the size of the value. Give it for differences and means of
        signed numbers: rounding leaves an error there that is no small part of the result.

    >>> without_rounding([0.1 + 0.2, 0.3, 0.4]).tolist()
    [0.3, 0.3, 0.4]
    >>> without_rounding([0.1 + 0.2 - 0.3, 0.0], scale=0.3).tolist()
    [0.0, 0.0]
    """
    found = np.array(values, dtype=np.float64)
    sizes = np.abs(found if scale is None else np.broadcast_to(scale, found.shape))
    slack = np.where(np.isfinite(sizes), ROUNDING * sizes, 0.0)
    if scale is not None:
        found[np.abs(found) <= slack] = 0.0
    order = np.argsort(found, kind="stable")
    ordered, slack = found[order], slack[order]
    with np.errstate(invalid="ignore"):
        is_same = np.diff(ordered) <= np.maximum(slack[1:], slack[:-1])
    starts = np.concatenate([[True], ~is_same])[: len(ordered)]
    found[order] = ordered[starts][np.cumsum(starts) - 1]
    return found


def difference_of(x: Array, y: Array) -> Array:
    """Return paired differences (n,) without rounding: 0 for equal values, equal sizes equal."""
    difference = x - y
    sizes = without_rounding(np.abs(difference), np.maximum(np.abs(x), np.abs(y)))
    return np.copysign(sizes, difference) + 0.0


def mean_of_defined(values: Array) -> Array:
    """Return (n,) means of (k, n) values over k, those that are not nan; nan without any."""
    counts = (~np.isnan(values)).sum(axis=0)
    return np.where(counts > 0, np.nansum(values, axis=0) / np.maximum(counts, 1), np.nan)


# Up to this many values, resampled means are drawn value by value.
_DRAWN_SINGLY = 1000
# Larger samples are drawn in bins: the extremes one by one, the rest in equal shares.
_EXTREMES = 256
_BINS_BETWEEN = 512
# Numbers in memory at once: bounds the memory of the bootstrap of the mean.
_DRAWN_AT_ONCE = 1_000_000


#: Occurrences in the references from which on the F1 of an observation gets an interval.
LEAST_SUPPORT = 10


@dataclass(frozen=True)
class Interval:
    """An estimate and the interval around it.

    Where nothing is known about variation there is no interval, and `low` and `high` are nan, in
    every function that makes an interval: of a single value or a single group, and where all
    resamples have the same value. An interval without width would say that the number is certain.
    """

    estimate: float
    low: float
    high: float

    def supported(self, support: float | None) -> "Interval":
        """Return the same without low and high where the support is too small for a bootstrap.

        Resampling cannot draw what the sample does not hold. With few mentions of an observation,
        the sample often has no hit, or no error, by chance: then all resamples agree, or nearly.
        benchmarks/results/interval_coverage.md shows how seldom they then include the truth.

        Args: support: occurrences in the references; None for a number without a support.

        >>> Interval(0.5, 0.2, 0.8).supported(9)
        Interval(estimate=0.5, low=nan, high=nan)
        """
        if support is None or support >= LEAST_SUPPORT:
            return self
        return Interval(self.estimate, math.nan, math.nan)


#: Interval of a number that has no value, as of a mean over no study.
UNDEFINED = Interval(math.nan, math.nan, math.nan)


def bootstrap_mean(
    values: ArrayLike, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Interval:
    """Compute a bootstrap interval of the mean.

    Up to 1,000 values are drawn one by one. For more, a resample is a multinomial draw: the number
    of its values in each of some 1,000 bins of the sorted sample. Values in a bin vary little, and
    their sum is drawn as normal about the mean of the bin. The 256 smallest and largest have their
    own bins, so skewed samples and rare large values have their full weight.

    Args:
        values: (n,), n at least 1, finite.

    Raises: InvalidSetting for other values.

    >>> bootstrap_mean([2.0, 2.0, 2.0])
    Interval(estimate=2.0, low=nan, high=nan)
    """
    sample = checked(values)
    draw = _means_of_drawn if len(sample) <= _DRAWN_SINGLY else _means_of_bins
    means = draw(sample, resamples, generator(seed))
    return bootstrap_interval(np.append(sample.mean(), means), len(sample), level)


def bootstrap_median(
    values: ArrayLike, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Interval:
    """Compute a bootstrap interval of the median, for any number of values.

    The median of a resample is an order statistic of the sample. Its rank follows from a uniform
    order statistic, a beta variable, so that no resample needs to be drawn: exact in distribution
    (for even n the two middle ranks are drawn jointly).

    >>> bootstrap_median([1.0, 1.0, 1.0, 9.0]).estimate
    1.0
    """
    check_resamples(resamples)
    ordered = np.sort(checked(values))
    rng = generator(seed)
    n = len(ordered)
    upper = n // 2 + 1
    high = rng.beta(upper, n - upper + 1, resamples)
    if n % 2:
        medians = ordered[_rank(high, n)]
    else:
        # Given the upper middle uniform order statistic, the one below it is the largest of
        # upper - 1 uniforms under it.
        low = high * rng.random(resamples) ** (1 / (upper - 1))
        medians = (ordered[_rank(low, n)] + ordered[_rank(high, n)]) / 2
    return bootstrap_interval(np.append(np.median(ordered), medians), n, level)


def bootstrap(
    statistic: Callable[..., float],
    *samples: ArrayLike,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Compute a bootstrap interval of a statistic of one or several paired samples.

    Args:
        statistic: function of as many (n,) arrays as there are samples; their rows are resampled
            together. Resamples on which it is nan (for example, all values tied) are left out.
        samples: (n,) arrays of one length, finite.

    Raises: InvalidSetting without samples, or if their lengths differ.
    """
    if not samples:
        raise InvalidSetting("a bootstrap needs at least one sample")
    arrays = checked_pairs(*samples)
    rng = generator(seed)
    n = len(arrays[0])
    drawn = [statistic(*arrays)]
    for _ in range(resamples):
        rows = rng.integers(n, size=n)
        drawn.append(statistic(*(array[rows] for array in arrays)))
    return bootstrap_interval(np.array(drawn, dtype=np.float64), n, level)


def bootstrap_interval(drawn: Array, count: int, level: float = 0.95) -> Interval:
    """Return the interval with the middle `level` of resampled values, without nan.

    Args:
        drawn: (1 + B,) the value of the sample, then those of B resamples.
        count: number of resampled values or groups.

    Returns: an interval of nan for fewer than two values or groups, or equal resamples.
    Raises: InvalidSetting for a level outside of 0 to 1, or without resamples.
    """
    if not 0 < level < 1:
        raise InvalidSetting(f"level must lie between 0 and 1, not {level}")
    if len(drawn) < 2:
        raise InvalidSetting("resamples must be 1 or more")
    estimate, drawn = float(drawn[0]), drawn[1:][~np.isnan(drawn[1:])]
    if not len(drawn) or count < 2:
        return Interval(estimate, math.nan, math.nan)
    tail = (1 - level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail]).tolist()
    # Resamples of equal values differ in rounding alone.
    if high - low <= ROUNDING * max(abs(low), abs(high)):
        return Interval(estimate, math.nan, math.nan)
    return Interval(estimate, low, high)


def _means_of_drawn(sample: Array, resamples: int, rng: np.random.Generator) -> Array:
    n = len(sample)
    parts = sizes_of_parts(resamples, n, _DRAWN_AT_ONCE)
    return np.concatenate([sample[rng.integers(n, size=(k, n))].mean(axis=1) for k in parts])


def _means_of_bins(sample: Array, resamples: int, rng: np.random.Generator) -> Array:
    n = len(sample)
    # Centred, so that the variances below lose no digits to a large mean.
    centre = sample.mean()
    ordered = np.sort(sample) - centre
    between = np.linspace(_EXTREMES, n - _EXTREMES, _BINS_BETWEEN + 1).astype(np.intp)
    starts = np.unique(np.concatenate([np.arange(_EXTREMES), between, np.arange(n - _EXTREMES, n)]))
    sizes = np.diff(starts, append=n)
    means = np.add.reduceat(ordered, starts) / sizes
    deviations = ordered - np.repeat(means, sizes)
    variances = np.add.reduceat(deviations**2, starts) / sizes
    drawn = []
    for size in sizes_of_parts(resamples, len(sizes), _DRAWN_AT_ONCE):
        counts = rng.multinomial(n, sizes / n, size=size)
        drawn.append(counts @ means + np.sqrt(counts @ variances) * rng.standard_normal(size))
    # No mean lies outside the sample; rounding and the normal sums could exceed it.
    found: Array = np.clip(centre + np.concatenate(drawn) / n, sample.min(), sample.max())
    return found


def check_resamples(resamples: int) -> None:
    """Raise InvalidSetting for a number of resamples below 1."""
    if resamples < 1:
        raise InvalidSetting(f"resamples must be 1 or more, not {resamples}")


def sizes_of_parts(resamples: int, width: int, at_once: int) -> list[int]:
    """Return how many resamples are drawn at a time, so that memory is bounded.

    Args:
        width: numbers that are made of one resample.
        at_once: so many numbers at most, where one resample has no more.
    """
    check_resamples(resamples)
    step = max(at_once // width, 1)
    return [min(step, resamples - k) for k in range(0, resamples, step)]


def _rank(uniform: Array, n: int) -> NDArray[np.intp]:
    return np.minimum((uniform * n).astype(np.intp), n - 1)


# Numbers drawn at once bound the memory; rows times resamples bound the time.
_SUMS_AT_ONCE = 2_000_000
_MOST_DRAWS = 200_000_000
_LEAST_RESAMPLES = 200


def resampled_sums(statistics: Array, resamples: int, rng: np.random.Generator) -> Array:
    """Return sums over rows that are drawn with replacement, as many as there are.

    The draws depend on the generator and on n alone. So a value has the same interval whether its
    statistics are resampled alone or together with those of other systems.

    Args:
        statistics: (n, s), n at least 1.
        resamples: number of resamples; for more than 100,000 rows fewer, at least 200.

    Returns: (r, s).
    """
    count = len(statistics)

    def times_drawn(draws: int) -> Array:
        rows = rng.integers(count, size=(draws, count))
        rows += np.arange(draws)[:, None] * count
        times = np.bincount(rows.ravel(), minlength=draws * count)
        return times.reshape(draws, count).astype(np.float64)

    return weighted_sums(statistics, resamples, times_drawn)


def weighted_sums(statistics: Array, wanted: int, weights: Callable[[int], Array]) -> Array:
    """Return (r, s) weighted sums of (n, s) statistics, r at most `wanted`.

    Args: weights: function of a number of draws that returns (draws, n); called in parts that
        fit into memory.
    """
    count = len(statistics)
    most = max(min(wanted, _MOST_DRAWS // count), min(wanted, _LEAST_RESAMPLES))
    parts = sizes_of_parts(most, count, _SUMS_AT_ONCE)
    return np.concatenate([weights(draws) @ statistics for draws in parts])
