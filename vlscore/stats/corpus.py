"""Intervals of values that are computed from sums over a corpus, such as corpus BLEU."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vlscore.stats.intervals import Interval, percentiles

Sums = NDArray[np.float64]

# Numbers drawn at once bound the memory; rows times resamples bound the time.
_MOST_DRAWS = 200_000_000


def bootstrap_sums(
    statistics: Sums,
    combine: Callable[[Sums], Sums],
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Percentile interval of a value of summed statistics; candidates are resampled.

    Args:
        statistics: (n, s) of n candidates, n at least 1.
        combine: (k, s) sums -> (k,) values.
        resamples: of more than 200,000 candidates fewer are drawn, at least 200.

    >>> precision = lambda sums: sums[:, 0] / sums[:, 1]
    >>> bootstrap_sums(np.array([[1.0, 2.0], [1.0, 2.0]]), precision)
    Interval(estimate=0.5, low=0.5, high=0.5)
    """
    count = len(statistics)
    drawn = max(min(resamples, _MOST_DRAWS // max(count, 1)), min(resamples, 200))
    rng = np.random.default_rng(seed)
    sums = np.empty((drawn, statistics.shape[1]))
    for k in range(drawn):
        times = np.bincount(rng.integers(count, size=count), minlength=count)
        sums[k] = times @ statistics
    estimate = float(combine(statistics.sum(0, keepdims=True))[0])
    return percentiles(estimate, combine(sums), level, count)
