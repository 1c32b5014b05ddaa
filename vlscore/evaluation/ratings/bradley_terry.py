"""Strengths of systems from pairwise preferences: Bradley-Terry's model, with Davidson's ties."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vlscore.stats import Interval, drawn_weights, percentiles

Array = NDArray[np.float64]
_STEPS, _PRECISION = 100, 1e-10


@dataclass(frozen=True)
class Preference:
    """What one rater says of two systems' reports of one study.

    Attributes:
        answer: 1 where the first is better, -1 where the second is, 0 for a tie.
    """

    study: str
    rater: str
    first: str
    second: str
    answer: int


@dataclass(frozen=True)
class Strength:
    """How often raters prefer a system.

    Attributes:
        rating: what the preferences are of.
        group: of raters; "all" for all of them.
        comparisons: that the system is in.
        share: of its comparisons that it wins; a tie counts one half.
        strength: natural logarithm of its worth; the mean over systems is 0; nan where the
            comparisons do not determine it.
    """

    rating: str
    group: str
    system: str
    comparisons: int
    share: Interval
    strength: Interval


def davidson(wins: Array, ties: Array) -> tuple[Array, float]:
    """Fit Bradley and Terry's model with ties by maximum likelihood (Davidson 1970, eq. 2.6).

    The first of two systems of worth p and q wins with probability p / (p + q + v sqrt(p q)), and
    ties with probability v sqrt(p q) / (p + q + v sqrt(p q)). Without a tie, v is 0: the model of
    Bradley and Terry (1952).

    Args:
        wins: (s, s), how often the system of the row wins against that of the column.
        ties: (s, s), symmetric, how often two systems tie.

    Returns: log worth (s,), of mean 0, and v; nan where some systems never lose to the others, or
        are never compared with them, so that the likelihood has no largest value (Ford 1957).

    >>> worth, v = davidson(np.array([[0.0, 3], [1, 0]]), np.zeros((2, 2)))
    >>> round(float(np.exp(worth[0] - worth[1])), 6), v
    (3.0, 0.0)
    """
    count = len(wins)
    if not _is_determined(wins + ties):
        return np.full(count, np.nan), float("nan")
    first, second = np.triu_indices(count, 1)
    played = wins[first, second], wins[second, first], ties[first, second]
    counts = np.stack(played, 1)
    has_ties = bool(counts[:, 2].any())
    unit = np.eye(count)
    # (pairs, outcomes, parameters): log worth of each system, and log v.
    zero = np.zeros(len(first))
    outcomes = [
        np.column_stack([unit[first], zero]),
        np.column_stack([unit[second], zero]),
        np.column_stack([(unit[first] + unit[second]) / 2, zero + 1]),
    ]
    features = np.stack(outcomes if has_ties else outcomes[:2], 1)
    counts = counts[:, : features.shape[1]]
    # The last system has log worth 0 while the model is fitted.
    free = [*range(count - 1), *([count] if has_ties else [])]
    found = np.zeros(count + 1)
    found[free] = _most_likely(features[:, :, free], counts)
    v = float(np.exp(found[count])) if has_ties else 0.0
    return found[:count] - found[:count].mean(), v


def _most_likely(features: Array, counts: Array) -> Array:
    """Maximise the likelihood of a log-linear model, which is concave, by Newton's method."""
    at = np.zeros(features.shape[2])
    totals = counts.sum(1)

    def likelihood(where: Array) -> float:
        scores = features @ where
        top = scores.max(1, keepdims=True)
        sums = (np.log(np.exp(scores - top).sum(1)) + top[:, 0]) * totals
        return float((counts * scores).sum() - sums.sum())

    value = likelihood(at)
    for _ in range(_STEPS):
        scores = features @ at
        chances = np.exp(scores - scores.max(1, keepdims=True))
        chances /= chances.sum(1, keepdims=True)
        means = np.einsum("po,pof->pf", chances, features)
        slope = np.einsum("po,pof->f", counts - totals[:, None] * chances, features)
        centred = features - means[:, None]
        curve = np.einsum("p,po,pof,pog->fg", totals, chances, centred, centred)
        step = np.linalg.lstsq(curve, slope, rcond=None)[0]
        size = 1.0
        while (new := likelihood(at + size * step)) < value and size > _PRECISION:
            size /= 2
        at = at + size * step
        value = new
        if np.abs(size * step).max() < _PRECISION:
            break
    return at


def _is_determined(beaten: Array) -> bool:
    """Whether every system reaches every other by wins or ties (Ford 1957)."""
    reach = (beaten > 0) | np.eye(len(beaten), dtype=bool)
    for _ in range(len(beaten)):
        reach = reach @ reach
    return bool(reach.all())


def strengths(
    preferences: Sequence[Preference],
    rating: str,
    group: str = "all",
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> list[Strength]:
    """Return the strength of every system, best first, with bootstrap intervals over studies.

    Resamples in which the strengths are not determined are left out of their intervals; the
    caller is told by an interval that is nan where that are more than a tenth.
    """
    systems = sorted({name for each in preferences for name in (each.first, each.second)})
    if not systems:
        return []
    place = {name: k for k, name in enumerate(systems)}
    first = np.array([place[each.first] for each in preferences])
    second = np.array([place[each.second] for each in preferences])
    answers = np.array([each.answer for each in preferences])
    studies = [each.study for each in preferences]
    draws = drawn_weights(len(studies), studies, resamples=resamples, seed=seed)
    shares, worths = [], []
    for weights in (np.ones(len(studies)), *draws):
        wins, ties = np.zeros((2, len(systems), len(systems)))
        winner, loser = np.where(answers < 0, second, first), np.where(answers < 0, first, second)
        decided = answers != 0
        np.add.at(wins, (winner[decided], loser[decided]), weights[decided])
        np.add.at(ties, (first[~decided], second[~decided]), weights[~decided])
        ties = ties + ties.T
        played = (wins + wins.T + ties).sum(1)
        won = (wins + ties / 2).sum(1)
        shares.append(np.where(played > 0, won / np.maximum(played, 1), np.nan))
        worths.append(davidson(wins, ties)[0])
    count = len(set(studies))
    by_share, by_worth = np.stack(shares), np.stack(worths)
    undefined = np.isnan(by_worth[1:]).any(1).mean() > _MOST_UNDEFINED
    found = [
        Strength(
            rating,
            group,
            name,
            int((first == k).sum() + (second == k).sum()),
            percentiles(float(by_share[0, k]), by_share[1:, k], 0.95, count),
            percentiles(float(by_worth[0, k]), by_worth[1:, k], 0.95, 0 if undefined else count),
        )
        for k, name in enumerate(systems)
    ]
    return sorted(found, key=lambda each: (-each.share.estimate, each.system))


# Share of resamples without strengths from which on they have no interval.
_MOST_UNDEFINED = 0.1
