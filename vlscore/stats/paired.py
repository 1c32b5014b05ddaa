"""Several systems over the same studies: intervals, paired differences, and their tests.

Everything is made of sums over studies, so that means and corpus values (corpus BLEU, micro F1) are
treated alike: a mean is the sum of values over the sum of ones.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vlscore.errors import InvalidSetting
from vlscore.stats.intervals import Interval, percentiles

Sums = NDArray[np.float64]
# (m, s) sums -> (m,) values.
Combine = Callable[[Sums], Sums]

# Numbers drawn at once bound the memory; studies times resamples bound the time.
_DRAWN_AT_ONCE = 2_000_000
_MOST_DRAWS = 200_000_000
_LEAST_RESAMPLES = 200
# Differences of sums that are equal but for rounding count as equal.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class PairedDifference:
    """How much one system's value exceeds another's.

    Attributes:
        interval: percentile interval of the paired bootstrap.
        p_value: two-sided, of the permutation test; nan where the difference is not defined.
    """

    interval: Interval
    p_value: float


@dataclass(frozen=True, eq=False)
class PairedSums:
    """Sums of k systems over n studies, and over studies drawn at random.

    All systems share the same draws, so whatever is hard in a study is hard for all of them.

    Attributes:
        count: n.
        totals: (k, s).
        resampled: (r, k, s), over studies that were drawn with replacement.
        halves: (p, k, s), over a random part of the studies, each in it with probability 1/2.
    """

    count: int
    totals: Sums
    resampled: Sums
    halves: Sums

    def value(self, system: int, combine: Combine, *, level: float = 0.95) -> Interval:
        """The value of one system, with its bootstrap interval."""
        with np.errstate(invalid="ignore", divide="ignore"):
            estimate = float(combine(self.totals[system][None])[0])
            return percentiles(estimate, combine(self.resampled[:, system]), level, self.count)

    def difference(
        self, first: int, second: int, combine: Combine, *, level: float = 0.95
    ) -> PairedDifference:
        """The value of one system less that of another, over the same studies.

        The test exchanges the two systems' results in a random part of the studies (approximate
        randomization, Noreen 1989); of means it is the paired permutation test. The observed
        exchange counts as one of the draws, so that p is never 0 (Phipson, Smyth 2010).
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            values = [float(combine(self.totals[k][None])[0]) for k in (first, second)]
            observed = values[0] - values[1]
            drawn = combine(self.resampled[:, first]) - combine(self.resampled[:, second])
            moved = self.halves[:, first] - self.halves[:, second]
            exchanged = combine(self.totals[second] + moved) - combine(self.totals[first] - moved)
        interval = percentiles(observed, drawn, level, self.count)
        if np.isnan(observed):
            return PairedDifference(interval, float("nan"))
        slack = _ROUNDING * max(map(abs, values))
        # A draw without a value counts against the difference.
        as_extreme = int((~(np.abs(exchanged) < abs(observed) - slack)).sum())
        return PairedDifference(interval, (as_extreme + 1) / (len(exchanged) + 1))


def paired_sums(
    statistics: NDArray[np.float64],
    *,
    resamples: int = 2000,
    permutations: int = 9999,
    seed: int = 0,
) -> PairedSums:
    """Draw once for all systems and all pairs of them.

    Args:
        statistics: (k, n, s), finite: what each of n studies adds to each of s sums of a system.
        resamples, permutations: of very many studies fewer are drawn, at least 200.

    Raises: InvalidSetting where there is no study, or a number is not finite.

    >>> values = np.array([[1.0, 2.0], [0.0, 1.0]])
    >>> mean_statistics(values).shape
    (2, 2, 2)
    >>> paired_sums(mean_statistics(values)).difference(0, 1, mean_of_sums).interval
    Interval(estimate=1.0, low=1.0, high=1.0)
    """
    if statistics.ndim != 3 or not statistics.shape[1]:
        raise InvalidSetting(f"statistics are (systems, studies, sums), not {statistics.shape}")
    if not np.isfinite(statistics).all():
        raise InvalidSetting("statistics must be finite; leave failed studies out")
    systems, count, sums = statistics.shape
    by_study = statistics.transpose(1, 0, 2).reshape(count, systems * sums)
    rng = np.random.default_rng(seed)

    def resampling(draws: int) -> NDArray[np.float64]:
        rows = rng.integers(count, size=(draws, count))
        rows += np.arange(draws)[:, None] * count
        times = np.bincount(rows.ravel(), minlength=draws * count)
        return times.reshape(draws, count).astype(np.float64)

    def halving(draws: int) -> NDArray[np.float64]:
        return rng.integers(2, size=(draws, count), dtype=np.int8).astype(np.float64)

    def drawn(wanted: int, weights: Callable[[int], NDArray[np.float64]]) -> Sums:
        most = max(min(wanted, _MOST_DRAWS // count), min(wanted, _LEAST_RESAMPLES))
        step = max(_DRAWN_AT_ONCE // count, 1)
        parts = [weights(min(step, most - k)) @ by_study for k in range(0, most, step)]
        return np.concatenate(parts).reshape(most, systems, sums)

    totals = statistics.sum(axis=1)
    return PairedSums(count, totals, drawn(resamples, resampling), drawn(permutations, halving))


def mean_statistics(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """(k, n) values -> (k, n, 2) what `mean_of_sums` makes means of."""
    return np.stack([values, np.ones_like(values)], axis=-1)


def mean_of_sums(sums: Sums) -> Sums:
    """(m, 2) sums of values and of ones -> (m,) means."""
    means: Sums = sums[:, 0] / sums[:, 1]
    return means
