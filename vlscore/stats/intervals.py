"""Bootstrap intervals.

Percentile intervals (Efron, Tibshirani 1993, chapter 13) of the mean, the median, and of any
statistic of paired samples. Means and medians of a million values take seconds and little memory.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vlscore.errors import InvalidSetting

# Drawn resample indices held at once: bounds the memory of the bootstrap of the mean.
_DRAWN_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class Interval:
    """An estimate and the interval around it."""

    estimate: float
    low: float
    high: float


def bootstrap_mean(
    values: ArrayLike, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Interval:
    """Bootstrap interval of the mean.

    Beyond 4,000 values the resampled means are drawn from the normal distribution that they have in
    the limit (mean and standard error of the sample): the difference is far below the printed
    digits, the cost no longer grows with the product of values and resamples.

    Args:
        values: (n,), n at least 1, finite.

    >>> bootstrap_mean([2.0, 2.0, 2.0])
    Interval(estimate=2.0, low=2.0, high=2.0)
    """
    sample = _checked(values)
    rng = np.random.default_rng(seed)
    estimate = float(sample.mean())
    if len(sample) > 4000:
        error = sample.std() / np.sqrt(len(sample))
        means = rng.normal(estimate, error, resamples)
    else:
        means = np.empty(resamples)
        step = max(_DRAWN_AT_ONCE // len(sample), 1)
        for start in range(0, resamples, step):
            stop = min(start + step, resamples)
            drawn = rng.integers(len(sample), size=(stop - start, len(sample)))
            means[start:stop] = sample[drawn].mean(axis=1)
    return _percentiles(estimate, means, level)


def bootstrap_median(
    values: ArrayLike, *, level: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Interval:
    """Bootstrap interval of the median, for any number of values.

    The median of a resample is an order statistic of the sample. Its rank follows from a uniform
    order statistic, a beta variable, so that no resample needs to be drawn (exact for odd n; for
    even n the two middle ranks are drawn jointly).

    >>> bootstrap_median([1.0, 1.0, 1.0, 9.0]).estimate
    1.0
    """
    ordered = np.sort(_checked(values))
    rng = np.random.default_rng(seed)
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
    return _percentiles(float(np.median(ordered)), medians, level)


def bootstrap(
    statistic: Callable[..., float],
    *samples: ArrayLike,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Bootstrap interval of a statistic of one or several paired samples.

    Args:
        statistic: takes as many (n,) arrays as there are samples; their rows are resampled
            together. Resamples on which it is nan (all values tied, say) are left out.
        samples: (n,) arrays of one length.

    Raises: InvalidSetting where the lengths differ.
    """
    arrays = [np.asarray(sample) for sample in samples]
    if len({len(array) for array in arrays}) != 1 or len(arrays[0]) == 0:
        raise InvalidSetting(f"samples must have one length; these have {[len(a) for a in arrays]}")
    rng = np.random.default_rng(seed)
    n = len(arrays[0])
    drawn = np.empty(resamples)
    for k in range(resamples):
        rows = rng.integers(n, size=n)
        drawn[k] = statistic(*(array[rows] for array in arrays))
    return _percentiles(float(statistic(*arrays)), drawn[~np.isnan(drawn)], level)


def _rank(uniform: NDArray[np.float64], n: int) -> NDArray[np.intp]:
    return np.minimum((uniform * n).astype(np.intp), n - 1)


def _percentiles(estimate: float, drawn: NDArray[np.float64], level: float) -> Interval:
    if not 0 < level < 1:
        raise InvalidSetting(f"level lies between 0 and 1, not at {level}")
    if not len(drawn):
        return Interval(estimate, float("nan"), float("nan"))
    tail = (1 - level) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return Interval(estimate, float(low), float(high))


def _checked(values: ArrayLike) -> NDArray[np.float64]:
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or not len(sample):
        raise InvalidSetting(f"an interval needs a list of values; these have shape {sample.shape}")
    if not np.isfinite(sample).all():
        raise InvalidSetting("an interval needs finite values; leave failed studies out")
    return sample
