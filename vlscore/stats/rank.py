"""Rank correlation with raters, and what ties allow of it."""

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from vlscore.stats.intervals import Interval, bootstrap


def kendall_tau_b(x: ArrayLike, y: ArrayLike) -> float:
    """Kendall's tau_b of two (n,) variables, in [-1, 1]; nan if one of them is constant."""
    return float(stats.kendalltau(x, y, variant="b").statistic)


def kendall_tau_b_interval(
    x: ArrayLike, y: ArrayLike, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Interval:
    """tau_b with a bootstrap interval over the n pairs."""
    return bootstrap(kendall_tau_b, x, y, level=level, resamples=resamples, seed=seed)


def largest_tau_b(y: ArrayLike) -> float:
    """The largest tau_b that a variable without ties can have with y.

    With n0 pairs, of which n2 are tied in y, the best score orders all others rightly:
    tau_b = (n0 - n2) / sqrt(n0 (n0 - n2)) = sqrt(1 - n2 / n0) (Kendall 1945).

    >>> largest_tau_b([1, 2, 3]), round(largest_tau_b([1, 1, 2]), 4)
    (1.0, 0.8165)
    """
    _, counts = np.unique(np.asarray(y), return_counts=True)
    n = int(counts.sum())
    pairs = n * (n - 1) / 2
    tied = float((counts * (counts - 1) / 2).sum())
    return float(np.sqrt(1 - tied / pairs)) if pairs else float("nan")


def difference_of_taus(
    x: ArrayLike,
    other: ArrayLike,
    y: ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """tau_b(x, y) - tau_b(other, y) with a paired bootstrap interval.

    The difference is significant at 1 - level where the interval leaves out 0.
    """
    return bootstrap(
        lambda a, b, c: kendall_tau_b(a, c) - kendall_tau_b(b, c),
        x,
        other,
        y,
        level=level,
        resamples=resamples,
        seed=seed,
    )
