"""Notes of an alignment: ratings or metrics that look reversed, and metrics with fewer values."""

from collections.abc import Collection

import numpy as np

from vlscore.evaluation.alignment.agreement import Alignment
from vlscore.evaluation.alignment.rated_pairs import Meaning, RatedPairs
from vlscore.stats import Interval

_REVERSED = {
    meaning: f"every metric agrees negatively with the ratings, which are read as {meaning}: are "
    f"they {other}? Then give --ratings-are {other}"
    for meaning, other in (("errors", "quality"), ("quality", "errors"))
} | {
    "ranks": "every metric orders candidates against the ranks, of which 1 is read as the best: is "
    "1 the worst? Then reverse the ranks"
}


def direction_notes(result: Alignment, pairs: RatedPairs, read: Collection[str]) -> list[str]:
    """Return notes on ratings, or on metrics computed elsewhere, that look reversed.

    Args: read: names of metrics whose values were read from a table.
    """
    first = next(iter(pairs.ratings), None)
    found, even = _agreements(result, first, pairs.meaning)
    reversed_ones = [name for name, agreement in found.items() if agreement.high < even]
    if not reversed_ones:
        return []
    notes = []
    if all(agreement.estimate < even for agreement in found.values()):
        notes.append(_REVERSED[pairs.meaning])
    higher = {metric.name: metric.higher_is_better for metric in result.metrics}
    for name in reversed_ones:
        if name in read:
            size, way = ("smaller", "name it in") if higher[name] else ("larger", "leave it out of")
            notes.append(
                f"{name} disagrees with the raters: are its {size} values better? Then {way} "
                "--lower-is-better"
            )
    return notes


def _agreements(
    result: Alignment, rating: str | None, meaning: Meaning
) -> tuple[dict[str, Interval], float]:
    """Return metric -> its agreement with a rating, where it has one, and the value by chance."""
    if meaning != "ranks":
        taus = {e.metric: e.by_study["tau_b"] for e in result.agreements if e.rating == rating}
        return {name: tau for name, tau in taus.items() if np.isfinite(tau.estimate)}, 0.0
    names = {metric.name for metric in result.metrics}
    shares = {e.metric: e.right for e in result.rankings if e.rating == rating}
    return {n: share for n, share in shares.items() if n in names and share is not None}, 0.5


def unequal_note(result: Alignment, pairs: RatedPairs) -> str:
    """Return a sentence on metrics without a value for some pairs; "" where all have the same."""
    present = {metric.name: np.isfinite(metric.values) for metric in result.metrics}
    every = np.any(list(present.values()), axis=0)
    fewer = [name for name, there in present.items() if (there != every).any()]
    if not fewer:
        return ""
    counts = ", ".join(f"{name} {int(present[name].sum())}" for name in fewer)
    note = f"Metrics without a value for some of the {int(every.sum())} pairs: {counts}; "
    if pairs.meaning == "ranks":
        return note + "their numbers are of fewer pairs than those of other metrics."
    return note + (
        "their rows are of fewer pairs. Compare two metrics by the table of differences, which is "
        "of the pairs that both have."
    )
