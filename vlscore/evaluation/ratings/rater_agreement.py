"""Agreement of raters, and strengths of systems from their preferences, with intervals.

The formulas are in `vlscore.stats`; here a bootstrap over studies weighs the units.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.stats import (
    Array,
    bootstrap_interval,
    davidson,
    drawn_weights,
    krippendorff_alpha,
    weighted_kappa,
)

if TYPE_CHECKING:
    from pandas import DataFrame

# Share of resamples without strengths from which on they have no interval.
_MOST_UNDEFINED = 0.1


def rater_agreement(
    values: Array,
    studies: Sequence[str],
    *,
    level: str = "ordinal",
    resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Any] | None:
    """Compute the agreement of raters on one rating, with bootstrap intervals over studies.

    Args:
        values: (k, n); nan where a rater did not rate a unit.
        studies: of the n units.
        level: of measurement.

    Returns: raters (who rated anything), units (that at least two of them rated), alpha
        (Krippendorff's) and kappa (weighted; mean over pairs of raters); None where no unit has two
        raters.
    """
    rated = values[~np.isnan(values).all(1)]
    shared = (~np.isnan(rated)).sum(0) >= 2
    if not shared.any():
        return None
    rows, names = rated[:, shared], [studies[k] for k in np.flatnonzero(shared).tolist()]
    weights = drawn_weights(len(names), names, resamples=resamples, seed=seed)
    alpha, kappa = (f(rows, level, weights) for f in (krippendorff_alpha, weighted_kappa))
    count = len(set(names))
    return {
        "raters": len(rated),
        "units": int(shared.sum()),
        "alpha": bootstrap_interval(alpha, count),
        "kappa": bootstrap_interval(kappa, count),
    }


def preferences_of(rows: Iterable[tuple[Any, ...]]) -> "DataFrame":
    """Return preferences between two systems' reports, a row a study, rater and pair of systems.

    Args: rows: study, rater, first and second system, answer (1 where the first is better, -1 where
        the second is, 0 for a tie), and whether the same answer is in another row, of a system with
        an equal report.
    """
    from pandas import DataFrame

    return DataFrame(rows, columns=["study", "rater", "first", "second", "answer", "repeats"])


def strengths(
    preferences: "DataFrame", *, resamples: int = 1000, seed: int = 0
) -> list[dict[str, Any]]:
    """Return the strength of every system, best first, with bootstrap intervals over studies.

    Resamples in which the strengths are not determined are left out of their intervals; an
    interval is nan if more than a tenth of the resamples are left out.

    Args: preferences: see `preferences_of`.

    Returns: a record a system: comparisons that it is in; share of them that it wins, a tie
        counting one half; strength, the natural logarithm of its worth, of mean 0 over systems, nan
        where the comparisons do not determine it.
    """
    if preferences.empty:
        return []
    systems = sorted({*preferences["first"], *preferences["second"]})
    first, second = (np.searchsorted(systems, preferences[name]) for name in ("first", "second"))
    answers = preferences["answer"].to_numpy()
    studies = preferences["study"].tolist()
    shares, worths = [], []
    winner, loser = np.where(answers < 0, second, first), np.where(answers < 0, first, second)
    decided = answers != 0
    for weights in drawn_weights(len(studies), studies, resamples=resamples, seed=seed):
        wins, ties = np.zeros((2, len(systems), len(systems)))
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
        {
            "system": name,
            "comparisons": int((first == k).sum() + (second == k).sum()),
            "share": bootstrap_interval(by_share[:, k], count),
            "strength": bootstrap_interval(by_worth[:, k], 0 if undefined else count),
        }
        for k, name in enumerate(systems)
    ]
    return sorted(found, key=lambda each: (-each["share"].estimate, each["system"]))
