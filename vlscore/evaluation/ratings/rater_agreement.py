"""Agreement of raters, and strengths of systems from their preferences, with intervals.

The formulas are in `vlscore.stats`; here a bootstrap over studies weighs the units.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vlscore.stats import Interval, alpha_of, coincidences, drawn_weights, percentiles

# `vlscore.evaluation` offers the formulas as well.
from vlscore.stats import davidson as davidson
from vlscore.stats import equal_share as equal_share
from vlscore.stats import fleiss_kappa as fleiss_kappa
from vlscore.stats import kendall_w as kendall_w
from vlscore.stats import krippendorff_alpha as krippendorff_alpha

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Agreement:
    """Agreement of raters on one rating.

    Attributes:
        rating: its name.
        raters: number of raters who rated anything.
        units: reports, or comparisons, that at least two raters rated.
        complete: units that all of them rated, which kappa and W are computed of.
        alpha, kappa, w, equal: with intervals over studies.
        level: of measurement, for alpha.
    """

    rating: str
    raters: int
    units: int
    complete: int
    alpha: Interval
    kappa: Interval
    w: Interval
    equal: Interval
    level: str


def rater_agreement(
    rating: str,
    values: Array,
    studies: Sequence[str],
    *,
    level: str = "ordinal",
    resamples: int = 1000,
    seed: int = 0,
) -> Agreement | None:
    """Compute the agreement of raters on one rating, with bootstrap intervals over studies.

    Args:
        values: (k, n); nan where a rater did not rate a unit.
        studies: of the n units.
        level: of measurement, for alpha.

    Returns: None where no unit has two raters.
    """
    rated = values[~np.isnan(values).all(1)]
    shared = (~np.isnan(rated)).sum(0) >= 2
    if not shared.any():
        return None
    rows, names = rated[:, shared], [studies[k] for k in np.flatnonzero(shared).tolist()]
    draws = drawn_weights(len(names), names, resamples=resamples, seed=seed)
    weights = [np.ones(len(names)), *draws]
    levels, pairs = coincidences(rows)
    matrices = np.tensordot(np.stack(weights), pairs, 1)
    found = {
        "alpha": [alpha_of(matrix, levels, level) for matrix in matrices],
        "kappa": [fleiss_kappa(rows, each) for each in weights],
        "w": [kendall_w(rows, each) for each in weights],
        "equal": [equal_share(rows, each) for each in weights],
    }
    count = len(set(names))
    intervals = {
        name: percentiles(drawn[0], np.array(drawn[1:]), 0.95, count)
        for name, drawn in found.items()
    }
    complete = int((~np.isnan(rows).any(0)).sum())
    return Agreement(rating, len(rated), int(shared.sum()), complete, **intervals, level=level)


@dataclass(frozen=True)
class Preference:
    """Preference of one rater between two systems' reports of one study.

    Attributes:
        answer: 1 where the first is better, -1 where the second is, 0 for a tie.
        repeats: the same answer is in another preference, of a system with an equal report.
    """

    study: str
    rater: str
    first: str
    second: str
    answer: int
    repeats: bool = False


@dataclass(frozen=True)
class Strength:
    """Strength of a system in the raters' preferences.

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


def strengths(
    preferences: Sequence[Preference],
    rating: str,
    group: str = "all",
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> list[Strength]:
    """Return the strength of every system, best first, with bootstrap intervals over studies.

    Resamples in which the strengths are not determined are left out of their intervals; an
    interval is nan if more than a tenth of the resamples are left out.
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
