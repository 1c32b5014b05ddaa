"""Detection of a change in daily values, at a stated rate of false alarms under daily looks.

A quiet time is one in which the days of one kind are exchangeable: every order of them is equally
probable. Nothing else is assumed. Studies of a day may depend on one another, and so may streams of
values. The days so far are the reference, so that no mean has to be known beforehand.

1. The mean of a day is ranked among the days up to it. In a quiet time these conformal p values are
   independent and uniform (Vovk, Nouretdinov, Gammerman 2003, ICML; within kinds of days: Vovk,
   Gammerman, Shafer 2022, Algorithmic Learning in a Random World, chapters 4 and 8).
2. Each p value is bet on; a bet is an e-value, of mean 1 in a quiet time. The evidence is the sum,
   over every day on which the change may have begun, of the product of the bets since then
   (Shiryaev-Roberts; as an e-detector: Shin, Ramdas, Rinaldo 2024, New England Journal of
   Statistics in Data Science 2, 229-260). After t quiet days its expectation is t, and it reaches c
   within t days with a probability of at most t / c (Doob, Ville).
3. The evidence of a stream counts with a weight; the weights have the sum 1, and an alarm is given
   when one weighed evidence reaches c. By Bonferroni the probability remains at most t / c, however
   the streams depend on one another. (The mean of the streams has the expectation t, too, but is no
   martingale where p values of several streams are known together.)
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from vlscore.errors import InvalidSetting
from vlscore.stats.intervals import Array

#: Shifts of a day's mean that are bet on, in standard deviations between days.
BETS = (0.5, 1.0, 1.5, 2.0, 2.5)
# A product of many bets is beyond what a float holds; a smaller evidence is valid as well.
_LARGEST = 1e200
# Decimals to which equal days agree, however their sums were rounded.
_DECIMALS = 9


def sequential_p_values(
    counts: ArrayLike, sums: ArrayLike, kinds: Sequence[str], seed: int = 0
) -> Array:
    """Return the conformal p value of each day among the days of its kind up to it.

    The value of a day is (mean - mean of the days so far) * sqrt(count), because the mean of a few
    studies varies more. The p value is the share of the days with a larger value, small where the
    day's mean is high; ties, and the day itself, count with a random weight between 0 and 1.

    Args:
        counts, sums: (days, streams): how many studies have a value on each day, and the sum of
            their values.
        kinds: (days,): only days of one kind are compared, as in "weekend".
        seed: of the random weights. Those of a day do not depend on the days that follow.

    Returns: (days, streams), in (0, 1); nan where a day has no value.
    Raises: InvalidSetting where the shapes differ.

    >>> rising = sequential_p_values([[4]] * 9, [[k] for k in range(9)], ["day"] * 9)
    >>> bool((rising[:, 0] <= 1 / np.arange(1, 10)).all())
    True
    """
    n, total = np.asarray(counts, np.float64), np.asarray(sums, np.float64)
    if n.ndim != 2 or n.shape != total.shape or len(kinds) != len(n):
        raise InvalidSetting(
            f"counts and sums must be (days, streams), and kinds (days,); they are {n.shape}, "
            f"{total.shape} and ({len(kinds)},)"
        )
    weights = np.random.default_rng(seed).integers(1, 2**32, n.shape) / 2**32
    found = np.full(n.shape, np.nan)
    names = np.asarray(kinds, dtype=str)
    for kind in np.unique(names):
        own = np.flatnonzero(names == kind)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = total[own] / n[own]
            so_far = np.cumsum(total[own], axis=0) / np.cumsum(n[own], axis=0)
        for place, day in enumerate(own):
            values = (means[: place + 1] - so_far[place]) * np.sqrt(n[own[: place + 1]])
            scale = np.maximum(np.nan_to_num(np.abs(values)).max(axis=0), np.finfo(float).tiny)
            values = np.round(values / scale, _DECIMALS)
            larger, equal = (
                each.sum(axis=0) for each in (values > values[-1], values == values[-1])
            )
            known = np.maximum((n[own[: place + 1]] > 0).sum(axis=0), 1)
            found[day] = np.where(n[day] > 0, (larger + weights[day] * equal) / known, np.nan)
    return found


def evidence_of_change(p_values: ArrayLike, directions: Sequence[int]) -> Array:
    """Return the evidence for a change of each stream, after each day.

    A bet on a shift m is exp(m z - m ** 2 / 2), with z the normal quantile of the p value; the
    evidence is the mean over the bets of `BETS`.

    Args:
        p_values: (days, streams), of `sequential_p_values`; nan is no bet, and changes nothing.
        directions: of each stream: 1 where only a rise is a change, -1 where only a fall is, 0 for
            both.

    Returns: (days, streams), at least 0; its expectation after t quiet days is at most t.

    >>> evidence_of_change([[0.5], [0.01]], [1]).round(1).tolist()
    [[0.4], [12.2]]
    """
    z = _normal_quantiles(p_values)
    signs = np.array([[each or 1, each or -1] for each in directions], np.float64)
    shifts = signs[:, :, None] * np.array(BETS)
    evidence, found = np.zeros(shifts.shape), np.zeros(z.shape)
    for day, own in enumerate(z):
        has = ~np.isnan(own)
        bets = np.exp(shifts[has] * own[has, None, None] - shifts[has] ** 2 / 2)
        evidence[has] = np.minimum((1 + evidence[has]) * bets, _LARGEST)
        found[day] = evidence.mean(axis=(1, 2))
    return found


def most_likely_begin(p_values: ArrayLike, direction: int) -> int:
    """Return the day, from 0, since which the p values (days,) of one stream speak for a change.

    Args: direction: as of `evidence_of_change`.

    >>> most_likely_begin([0.4, 0.7, 0.5, 0.01, 0.02, 0.01], 1)
    3
    """
    z = _normal_quantiles(p_values)
    best, day = -math.inf, 0
    for shift in BETS:
        for sign in (direction,) if direction else (1, -1):
            logs = np.nan_to_num(sign * shift * z - shift**2 / 2)
            since = np.cumsum(logs[::-1])[::-1]
            if since.max() > best:
                best, day = float(since.max()), int(since.argmax())
    return day


def _normal_quantiles(p_values: ArrayLike) -> Array:
    """Return the normal quantiles of 1 - p: large where p is small."""
    from scipy.special import ndtri

    found: Array = -ndtri(np.asarray(p_values, np.float64))
    return found
