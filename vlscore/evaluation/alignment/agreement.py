"""Agreement of metrics with raters: correlations, tests between metrics, the raters' own ceiling.

Every number is oriented so that larger means more agreement: values and ratings change their sign
where smaller is better. Intervals resample whole studies; those that resample pairs, as papers do,
are there too. All metrics and ratings use the same draws. A pair without a value of one metric
counts for the other metrics.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import OnPhase, frame, no_phase
from vlscore.errors import InvalidSetting
from vlscore.evaluation.alignment.rated_pairs import Array, RatedPairs, mean_of_raters
from vlscore.evaluation.command_settings import AlignmentSettings
from vlscore.stats import (
    CORRELATIONS,
    UNDEFINED,
    Interval,
    benjamini_hochberg,
    bootstrap_interval,
    bootstrap_p_value,
    drawn_weights,
    grouped_mean,
    largest_tau_b,
    places_by_group,
    resampled_correlations,
    resampled_units,
    without_rounding,
)

if TYPE_CHECKING:
    from pandas import DataFrame

_MAIN = "tau_b"
ANOTHER_RATER = "another rater"
Record = dict[str, Any]


def compare_with_raters(
    values: Mapping[str, Array],
    pairs: RatedPairs,
    settings: AlignmentSettings | None = None,
    *,
    higher_is_better: Mapping[str, bool] | None = None,
    on_phase: OnPhase = no_phase,
) -> "dict[str, DataFrame]":
    """Compare metrics with raters.

    What is not defined is nan: correlations of fewer than two pairs or of a constant, intervals of
    a single pair or a single study. A single rater has no ceiling but that of ties.

    Args:
        values: name of a metric -> (n,) values, nan where there is none.
        settings: of the bootstrap.
        higher_is_better: name -> direction; default: larger is better.
        on_phase: called at the beginning of the resampling, which takes most of the time.

    Returns:
        "agreements": of a metric with the raters' mean of a rating: n, studies, and each of
            CORRELATIONS, with intervals over studies and (tau_b by pair, ...) over pairs.
        "differences": tau_b of one metric less that of another, on the pairs that both have, of
            the main ratings: difference, p_value (two-sided, of the bootstrap), adjusted_p
            (Benjamini-Hochberg over all pairs of metrics for the rating).
        "raters": tau_b of a metric with one rater alone, of the main ratings.
        "ceilings": the raters' tau_b with each other: between (mean over all pairs of raters),
            against_others (mean over raters of one against the mean of the others), and ties: the
            largest tau_b with the raters' mean that values without ties can have.
        "rankings": see `_rankings`.
        Ranks of two studies cannot be compared: of these there are rankings alone.
    Raises: InvalidSetting for no metric, or values of another number of pairs.
    """
    if not values:
        raise InvalidSetting("no metric to compare with the raters: pass at least one")
    for name, each in values.items():
        if each.shape != (len(pairs),):
            raise InvalidSetting(f"{name} has values of shape {each.shape} for {len(pairs)} pairs")
    settings, better = settings or AlignmentSettings(), higher_is_better or {}
    oriented = {n: each if better.get(n, True) else -each for n, each in values.items()}
    found: dict[str, list[Record]] = {
        name: [] for name in ("agreements", "differences", "raters", "ceilings")
    }
    advance = on_phase("resampling", 4)
    if pairs.meaning != "ranks":
        resampled = _ResampledPairs(pairs, settings)
        found["agreements"], found["differences"] = _of_means(oriented, pairs, resampled)
        advance(1, 0)
        found["raters"] = _per_rater(oriented, pairs, resampled)
        advance(2, 0)
        found["ceilings"] = [
            _ceiling(name, each, resampled) for name, each in pairs.ratings.items()
        ]
        advance(3, 0)
    found["rankings"] = _rankings(oriented, pairs, settings)
    advance(4, 0)
    return {name: frame(rows) for name, rows in found.items()}


class _ResampledPairs:
    """Weights of the pairs in the resamples that all numbers use; the first is the sample."""

    def __init__(self, pairs: RatedPairs, settings: AlignmentSettings) -> None:
        self._studies, self._level = np.asarray(pairs.studies, dtype=str), settings.level
        drawn = {"resamples": settings.resamples, "seed": settings.seed}
        self.by_pair = drawn_weights(len(pairs), None, **drawn)
        self.by_study = drawn_weights(len(pairs), pairs.studies, **drawn)

    def count_studies(self, present: NDArray[np.bool_]) -> int:
        """Return the number of studies of the rows that are present."""
        return len(np.unique(self._studies[present]))

    def units(self, present: NDArray[np.bool_]) -> int:
        """Return the number of studies that an interval of these rows resamples; 0 for two rows."""
        return resampled_units(int(present.sum()), self.count_studies(present))

    def interval(self, drawn: Array, units: int) -> Interval:
        """Return the interval of a number from its values in the sample and in the resamples."""
        return bootstrap_interval(drawn, units, self._level)

    def tau_b(self, xs: Sequence[Array], ys: Sequence[Array]) -> Array:
        """Return (len(xs), len(ys), B) tau_b in the sample and in the resamples of studies."""
        return resampled_correlations(xs, ys, self.by_study, [_MAIN])[_MAIN]


def _there(*columns: Array) -> NDArray[np.bool_]:
    """Return (n,) whether all columns have a value."""
    return np.asarray(~np.isnan(columns).any(axis=0))


def _of_means(
    metrics: Mapping[str, Array], pairs: RatedPairs, resampled: _ResampledPairs
) -> tuple[list[Record], list[Record]]:
    names, xs = list(pairs.ratings), list(metrics.values())
    ys = [pairs.sign_of(name) * pairs.means[name] for name in names]
    by_study, by_pair = (
        resampled_correlations(xs, ys, each) for each in (resampled.by_study, resampled.by_pair)
    )
    found = []
    for j, rating in enumerate(names):
        for k, metric in enumerate(metrics):
            present = _there(xs[k], ys[j])
            n = int(present.sum())
            row = {"metric": metric, "rating": rating, "n": n}
            row["studies"] = resampled.count_studies(present)
            for c in CORRELATIONS:
                row[c] = resampled.interval(by_study[c][k, j], resampled.units(present))
            for c in CORRELATIONS:
                row[f"{c} by pair"] = resampled.interval(by_pair[c][k, j], resampled_units(n, n))
            found.append(row)
    differences = []
    for rating in pairs.primary:
        j = names.index(rating)
        differences += _differences(metrics, rating, ys[j], by_study[_MAIN][:, j], resampled)
    return found, differences


def _differences(
    metrics: Mapping[str, Array], rating: str, y: Array, drawn: Array, resampled: _ResampledPairs
) -> list[Record]:
    """Return the differences of all pairs of metrics; `drawn` has (metrics, B) resamples."""
    rows: list[Record] = []
    for (k, (name, x)), (m, (other, z)) in combinations(enumerate(metrics.items()), 2):
        first, second = drawn[k], drawn[m]
        if (np.isnan(x) != np.isnan(z)).any():
            both = _there(x, z)
            known = [np.where(both, each, np.nan) for each in (x, z)]
            first, second = resampled.tau_b(known, [y])[:, 0]
        present = _there(x, z, y)
        units = resampled.units(present)
        rows.append(
            {
                "metric": name,
                "other": other,
                "rating": rating,
                "n": int(present.sum()),
                "difference": resampled.interval(first - second, units),
                "p_value": bootstrap_p_value((first - second)[1:]) if units > 1 else math.nan,
            }
        )
    adjusted = benjamini_hochberg([row["p_value"] for row in rows])
    return [{**row, "adjusted_p": float(p)} for row, p in zip(rows, adjusted, strict=True)]


def _per_rater(
    metrics: Mapping[str, Array], pairs: RatedPairs, resampled: _ResampledPairs
) -> list[Record]:
    found: list[Record] = []
    for rating in pairs.primary if len(pairs.raters) > 1 else ():
        ys = [pairs.sign_of(rating) * row for row in pairs.ratings[rating]]
        drawn = resampled.tau_b(list(metrics.values()), ys)
        for k, (metric, x) in enumerate(metrics.items()):
            for j, rater in enumerate(pairs.raters):
                present = _there(x, ys[j])
                tau = resampled.interval(drawn[k, j], resampled.units(present))
                row = {"metric": metric, "rater": rater, "rating": rating}
                found.append({**row, "n": int(present.sum()), "tau_b": tau})
    return found


def _ceiling(rating: str, values: Array, resampled: _ResampledPairs) -> Record:
    rated = ~np.isnan(values)
    rows = values[rated.any(axis=1)]
    shared = rated.sum(axis=0) >= 2
    mean = mean_of_raters(values)
    ties = largest_tau_b(mean[~np.isnan(mean)]) if (~np.isnan(mean)).any() else float("nan")
    between = against = None
    if len(rows) > 1:
        pairs = [resampled.tau_b([row], list(rows[k + 1 :]))[0] for k, row in enumerate(rows[:-1])]
        others = [mean_of_raters(np.delete(rows, k, axis=0)) for k in range(len(rows))]
        alone = [resampled.tau_b([x], [y])[0, 0] for x, y in zip(rows, others, strict=True)]
        units = resampled.units(shared)
        between = resampled.interval(_mean(np.concatenate(pairs)), units)
        against = resampled.interval(_mean(np.stack(alone)), units)
    return {
        "rating": rating,
        "raters": len(rows),
        "n": int(shared.sum()),
        "between": between or UNDEFINED,
        "against_others": against or UNDEFINED,
        "ties": ties,
    }


def _mean(drawn: Array) -> Array:
    """Return (B,) means over k of (k, B) values; those that are not defined are left out."""
    counts = (~np.isnan(drawn)).sum(axis=0)
    return np.where(counts > 0, np.nansum(drawn, axis=0) / np.maximum(counts, 1), np.nan)


def _rankings(
    metrics: Mapping[str, Array], pairs: RatedPairs, settings: AlignmentSettings
) -> list[Record]:
    """Compare metrics, and other raters, with single raters on every two candidates of a study.

    Returns: a row a metric ("another rater" for each rater against each other one) and rating:
        comparisons (one is one rater's order of two candidates), studies, same (share where both
        find better, both worse, or both equal), decided (comparisons where the rater prefers one),
        right (of these, the share where the metric agrees; a tie of the metric counts one half),
        rater_ties, metric_ties (shares of ties). Empty where no study has two candidates.
    """
    couples = [c for rows in places_by_group(pairs.studies).values() for c in combinations(rows, 2)]
    if not couples:
        return []
    first, second = np.array(couples, dtype=np.intp).T
    studies = np.array([pairs.studies[k] for k in first])
    found = []
    for rating, values in pairs.ratings.items():
        values = np.array([*map(without_rounding, values)])
        # (k, couples) each rater's order of each couple: 1, 0 or -1; nan where not rated.
        rated = np.sign(pairs.sign_of(rating) * (values[:, first] - values[:, second]))
        for metric, x in metrics.items():
            x = without_rounding(x)
            ordered = np.broadcast_to(np.sign(x[first] - x[second]), rated.shape)
            found.append(
                {"metric": metric, "rating": rating, **_ranked(ordered, rated, studies, settings)}
            )
        others = list(permutations(range(len(pairs.raters)), 2))
        if others:
            ones, twos = (list(each) for each in zip(*others, strict=True))
            row = _ranked(rated[ones], rated[twos], studies, settings)
            found.append({"metric": ANOTHER_RATER, "rating": rating, **row})
    return found


def _ranked(
    ordered: Array, rated: Array, studies: NDArray[np.str_], settings: AlignmentSettings
) -> Record:
    usable = _there(ordered, rated)
    a, b = ordered[usable], rated[usable]
    groups = np.broadcast_to(studies, rated.shape)[usable]
    decided = b != 0

    def share(values: Array, of: NDArray[np.str_]) -> Interval:
        if not len(values):
            return UNDEFINED
        return grouped_mean(
            values, of.tolist(),
            level=settings.level, resamples=settings.resamples, seed=settings.seed,
        )  # fmt: skip

    right = np.where(a == 0, 0.5, (a == b).astype(np.float64))
    return {
        "comparisons": len(a),
        "studies": len(set(groups.tolist())),
        "same": share((a == b).astype(np.float64), groups),
        "decided": int(decided.sum()),
        "right": share(right[decided], groups[decided]),
        "rater_ties": float((b == 0).mean()) if len(b) else float("nan"),
        "metric_ties": float((a == 0).mean()) if len(a) else float("nan"),
    }
