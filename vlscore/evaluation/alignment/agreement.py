"""Agreement of metrics with raters: correlations, tests between metrics, the raters' own ceiling.

Every number is oriented so that larger means more agreement: values and ratings change their sign
where smaller is better. Intervals resample whole studies; those that resample pairs, as papers do,
are there too. All metrics and ratings use the same draws. A pair without a value of one metric
counts for the other metrics.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import combinations, compress, permutations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import OnPhase, frame, no_phase
from vlscore.errors import InvalidSetting
from vlscore.evaluation.alignment.rated_pairs import RatedPairs, mean_of_raters
from vlscore.evaluation.command_settings import AlignmentSettings
from vlscore.evaluation.scored import Scored
from vlscore.stats import (
    CORRELATIONS,
    UNDEFINED,
    Array,
    Interval,
    bootstrap_interval,
    bootstrap_p_value,
    drawn_weights,
    grouped_mean,
    largest_tau_b,
    mean_of_defined,
    places_by_group,
    resampled_correlations,
    resampled_units,
    with_adjusted_p,
    without_rounding,
)

if TYPE_CHECKING:
    from pandas import DataFrame

_MAIN = "tau_b"
ANOTHER_RATER = "another rater"
Record = dict[str, Any]


def compare_with_raters(
    scored: Scored,
    pairs: RatedPairs,
    settings: AlignmentSettings | None = None,
    *,
    on_phase: OnPhase = no_phase,
) -> "dict[str, DataFrame]":
    """Compare metrics with raters.

    What is not defined is nan: correlations of fewer than two pairs or of a constant, intervals of
    a single pair or a single study. A single rater has no ceiling but that of ties.

    Args:
        scored: values of metrics for the n pairs, nan where there is none, and their directions.
        settings: of the bootstrap.
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
    if not scored.higher_is_better:
        raise InvalidSetting("no metric to compare with the raters: pass at least one")
    if len(scored.rows) != len(pairs):
        raise InvalidSetting(f"there are {len(scored.rows)} rows of values for {len(pairs)} pairs")
    settings = settings or AlignmentSettings()
    better = scored.higher_is_better
    oriented = {name: each if better[name] else -each for name, each in scored.values.items()}
    found: dict[str, list[Record]] = {
        name: [] for name in ("agreements", "differences", "raters", "ceilings")
    }
    advance = on_phase("resampling", 4)
    if pairs.meaning != "ranks":
        options = {"resamples": settings.resamples, "seed": settings.seed}
        weights = drawn_weights(len(pairs), pairs.studies, **options)
        by_pair = drawn_weights(len(pairs), None, **options)
        found["agreements"], found["differences"] = _of_means(oriented, pairs, weights, by_pair)
        advance(1, 0)
        found["raters"] = _per_rater(oriented, pairs, weights)
        advance(2, 0)
        found["ceilings"] = [_ceiling(rating, pairs, weights) for rating in pairs.ratings]
        advance(3, 0)
    found["rankings"] = _rankings(oriented, pairs, settings)
    advance(4, 0)
    return {name: frame(rows) for name, rows in found.items()}


def _there(*columns: Array) -> NDArray[np.bool_]:
    """Return (n,) whether all columns have a value."""
    return np.asarray(~np.isnan(columns).any(axis=0))


def _tau_b(xs: Sequence[Array], ys: Sequence[Array], weights: Array) -> Array:
    """Return (len(xs), len(ys), 1 + B) tau_b in the sample and in its resamples."""
    return resampled_correlations(xs, ys, weights, [_MAIN])[_MAIN]


def _of_means(
    metrics: Mapping[str, Array], pairs: RatedPairs, weights: Array, by_pair: Array
) -> tuple[list[Record], list[Record]]:
    names, xs = list(pairs.ratings), list(metrics.values())
    ys = [pairs.sign_of(name) * pairs.means[name] for name in names]
    by_study = resampled_correlations(xs, ys, weights)
    of_pairs = resampled_correlations(xs, ys, by_pair)
    ways = (("", pairs.studies, by_study), (" by pair", None, of_pairs))
    found = []
    for j, rating in enumerate(names):
        for k, metric in enumerate(metrics):
            present = _there(xs[k], ys[j])
            row = {"metric": metric, "rating": rating, "n": int(present.sum())}
            row["studies"] = len(set(compress(pairs.studies, present)))
            for suffix, groups, drawn in ways:
                units = resampled_units(present, groups)
                row |= {
                    f"{c}{suffix}": bootstrap_interval(drawn[c][k, j], units) for c in CORRELATIONS
                }
            found.append(row)
    differences = []
    for rating in pairs.primary:
        j = names.index(rating)
        taus = by_study[_MAIN][:, j]
        differences += _differences(metrics, rating, ys[j], taus, pairs.studies, weights)
    return found, differences


def _differences(
    metrics: Mapping[str, Array],
    rating: str,
    y: Array,
    drawn: Array,
    studies: Sequence[str],
    weights: Array,
) -> list[Record]:
    """Return the differences of all pairs of metrics; `drawn` has (metrics, 1 + B) tau_b."""
    rows: list[Record] = []
    for (k, (name, x)), (m, (other, z)) in combinations(enumerate(metrics.items()), 2):
        first, second = drawn[k], drawn[m]
        if (np.isnan(x) != np.isnan(z)).any():
            both = _there(x, z)
            first, second = _tau_b([np.where(both, v, np.nan) for v in (x, z)], [y], weights)[:, 0]
        present, less = _there(x, z, y), first - second
        units = resampled_units(present, studies)
        row = {"metric": name, "other": other, "rating": rating, "n": int(present.sum())}
        row["difference"] = bootstrap_interval(less, units)
        rows.append({**row, "p_value": bootstrap_p_value(less[1:]) if units > 1 else math.nan})
    return with_adjusted_p(rows)


def _per_rater(metrics: Mapping[str, Array], pairs: RatedPairs, weights: Array) -> list[Record]:
    found: list[Record] = []
    for rating in pairs.primary if len(pairs.raters) > 1 else ():
        ys = [pairs.sign_of(rating) * row for row in pairs.ratings[rating]]
        drawn = _tau_b(list(metrics.values()), ys, weights)
        for k, (metric, x) in enumerate(metrics.items()):
            for j, rater in enumerate(pairs.raters):
                present = _there(x, ys[j])
                tau = bootstrap_interval(drawn[k, j], resampled_units(present, pairs.studies))
                row = {"metric": metric, "rater": rater, "rating": rating}
                found.append({**row, "n": int(present.sum()), "tau_b": tau})
    return found


def _ceiling(rating: str, pairs: RatedPairs, weights: Array) -> Record:
    values = pairs.ratings[rating]
    rated = ~np.isnan(values)
    rows = values[rated.any(axis=1)]
    shared = rated.sum(axis=0) >= 2
    mean = mean_of_raters(values)
    ties = largest_tau_b(mean[~np.isnan(mean)]) if (~np.isnan(mean)).any() else math.nan
    between = against = UNDEFINED
    if len(rows) > 1:
        couples = [
            _tau_b([row], list(rows[k + 1 :]), weights)[0] for k, row in enumerate(rows[:-1])
        ]
        others = [mean_of_raters(np.delete(rows, k, axis=0)) for k in range(len(rows))]
        alone = [_tau_b([x], [y], weights)[0, 0] for x, y in zip(rows, others, strict=True)]
        units = resampled_units(shared, pairs.studies)
        between = bootstrap_interval(mean_of_defined(np.concatenate(couples)), units)
        against = bootstrap_interval(mean_of_defined(np.stack(alone)), units)
    return {
        "rating": rating,
        "raters": len(rows),
        "n": int(shared.sum()),
        "between": between,
        "against_others": against,
        "ties": ties,
    }


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
        drawn = {"resamples": settings.resamples, "seed": settings.seed}
        return grouped_mean(values, of.tolist(), **drawn)

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
