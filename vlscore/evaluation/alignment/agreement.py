"""Agreement of metrics with raters: correlations, tests between metrics, the raters' own ceiling.

Every number is oriented so that larger means more agreement: values and ratings change their sign
where smaller is better. Intervals resample whole studies; those that resample pairs, as papers do,
are there too. All metrics and ratings use the same draws. A pair without a value of one metric
counts for the other metrics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from vlscore.errors import InvalidSetting
from vlscore.evaluation.alignment.candidate_orders import RankingAgreement, ranking_agreement
from vlscore.evaluation.alignment.rated_pairs import Array, RatedPairs, mean_of_raters
from vlscore.metrics import Metric
from vlscore.stats import (
    CORRELATIONS,
    Interval,
    adjusted_p_values,
    bootstrap_p_value,
    drawn_weights,
    largest_tau_b,
    percentiles,
    resampled_correlations,
    resampled_units,
)

_MAIN = "tau_b"


@dataclass(frozen=True)
class MeasuredMetric:
    """Values of one metric for n pairs, computed here or elsewhere.

    Attributes:
        name: as in tables.
        values: (n,) float64, nan where there is none.
        higher_is_better: direction.
        signature: what the numbers depend on; None if it is not known.
    """

    name: str
    values: Array
    higher_is_better: bool = True
    signature: str | None = None

    @classmethod
    def of(cls, metric: Metric, values: Array, signature: str | None = None) -> "MeasuredMetric":
        """Return values of a metric of the registry."""
        return cls(str(metric), values, metric.higher_is_better, signature)

    @property
    def oriented(self) -> Array:
        """Return (n,) values, larger is better."""
        return self.values if self.higher_is_better else -self.values


@dataclass(frozen=True)
class MetricAgreement:
    """One metric against the raters' mean of one rating.

    Attributes:
        metric, rating: names.
        n, studies: pairs with both, and the studies that they are of.
        by_study, by_pair: each of CORRELATIONS -> estimate and interval.
    """

    metric: str
    rating: str
    n: int
    studies: int
    by_study: Mapping[str, Interval]
    by_pair: Mapping[str, Interval]


@dataclass(frozen=True)
class MetricDifference:
    """tau_b of one metric less that of another, on the pairs that both have, resampled by study.

    Attributes:
        p_value: two-sided, of the bootstrap.
        adjusted_p: Benjamini-Hochberg, over all pairs of metrics for this rating; nan where `p` is.
    """

    metric: str
    other: str
    rating: str
    n: int
    difference: Interval
    p_value: float
    adjusted_p: float


@dataclass(frozen=True)
class RaterAgreement:
    """tau_b of one metric with one rater alone, resampled by study."""

    metric: str
    rater: str
    rating: str
    n: int
    tau_b: Interval


@dataclass(frozen=True)
class Ceiling:
    """Agreement of the raters with each other: tau_b, resampled by study; None for a single rater.

    Attributes:
        raters: how many of them rated anything.
        n: pairs that at least two raters rated.
        between: mean over all pairs of raters; compare a metric's tau_b with single raters.
        against_others: mean over raters of one against the mean of the others; compare a metric's
            tau_b with the raters' mean.
        ties: largest tau_b with the raters' mean that values without ties can have; nan where
            all means are equal.
    """

    rating: str
    raters: int
    n: int
    between: Interval | None
    against_others: Interval | None
    ties: float


@dataclass(frozen=True)
class Alignment:
    """All numbers of metrics against a rated set.

    Attributes:
        metrics: that were looked at, in order.
        agreements: one a metric and rating; empty where ratings are ranks, which cannot be
            compared between studies.
        differences, per_rater: of the headlines.
        ceilings: one a rating; empty where ratings are ranks.
        rankings: agreement on which of two candidates of one study is better.
        headlines: the ratings that have tables of their own; default: the first two.
    """

    metrics: Sequence[MeasuredMetric]
    agreements: Sequence[MetricAgreement]
    differences: Sequence[MetricDifference]
    per_rater: Sequence[RaterAgreement]
    ceilings: Sequence[Ceiling]
    rankings: Sequence[RankingAgreement]
    headlines: Sequence[str] = ()


def alignment_of(
    metrics: Sequence[MeasuredMetric],
    pairs: RatedPairs,
    *,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Alignment:
    """Compare metrics with raters.

    What is not defined is nan: correlations of fewer than two pairs or of a constant, intervals of
    a single pair or a single study. A single rater has no ceiling but that of ties.

    Args:
        metrics: with one value a pair each.
        level, resamples, seed: of the bootstrap.

    Raises: InvalidSetting for no metric, two of one name, or values of another number of pairs.
    """
    _check(metrics, pairs)
    rankings = ranking_agreement(
        {metric.name: metric.oriented for metric in metrics},
        pairs,
        level=level,
        resamples=resamples,
        seed=seed,
    )
    if pairs.meaning == "ranks":
        return Alignment(metrics, (), (), (), (), rankings, pairs.headlines)
    draws = _Draws(pairs, level, resamples, seed)
    agreements, differences = _of_means(metrics, pairs, draws)
    return Alignment(
        metrics,
        agreements,
        differences,
        _per_rater(metrics, pairs, draws),
        [_ceiling(name, values, draws) for name, values in pairs.ratings.items()],
        rankings,
        pairs.headlines,
    )


def _check(metrics: Sequence[MeasuredMetric], pairs: RatedPairs) -> None:
    names = [metric.name for metric in metrics]
    if not names:
        raise InvalidSetting("no metric to compare with the raters: pass at least one")
    if twice := [name for name in names if names.count(name) > 1]:
        raise InvalidSetting(f"two metrics have the name {twice[0]}; rename one of them")
    for metric in metrics:
        if metric.values.shape != (len(pairs),):
            raise InvalidSetting(
                f"{metric.name} has values of shape {metric.values.shape} for {len(pairs)} pairs"
            )


class _Draws:
    """Resamples that all numbers use; the first of them is the sample itself."""

    def __init__(self, pairs: RatedPairs, level: float, resamples: int, seed: int) -> None:
        names = np.asarray(pairs.studies, dtype=str)
        self._studies = np.unique(names, return_inverse=True)[1].reshape(-1)
        self._level = level
        whole = np.ones((1, len(pairs)))
        by_pair = drawn_weights(len(pairs), resamples=resamples, seed=seed)
        by_study = drawn_weights(len(pairs), pairs.studies, resamples=resamples, seed=seed)
        self.by_pair = np.concatenate([whole, by_pair])
        self.by_study = np.concatenate([whole, by_study])

    def count_studies(self, present: NDArray[np.bool_]) -> int:
        """Return the number of studies of the rows that are present."""
        return len(np.unique(self._studies[present]))

    def units(self, present: NDArray[np.bool_]) -> int:
        """Return the number of studies that an interval of these rows resamples; 0 for two rows."""
        return resampled_units(int(present.sum()), self.count_studies(present))

    def interval(self, drawn: Array, units: int) -> Interval:
        """Return the interval of a number from its values in the sample and in the resamples."""
        return percentiles(float(drawn[0]), drawn[1:], self._level, units)


def _of_means(
    metrics: Sequence[MeasuredMetric], pairs: RatedPairs, draws: _Draws
) -> tuple[list[MetricAgreement], list[MetricDifference]]:
    names = list(pairs.ratings)
    xs = [metric.oriented for metric in metrics]
    ys = [pairs.sign_of(name) * pairs.means[name] for name in names]
    by_study = resampled_correlations(xs, ys, draws.by_study)
    by_pair = resampled_correlations(xs, ys, draws.by_pair)
    found = []
    for j, name in enumerate(names):
        for k, metric in enumerate(metrics):
            present = ~(np.isnan(xs[k]) | np.isnan(ys[j]))
            n, studies = int(present.sum()), draws.count_studies(present)
            units, rows = draws.units(present), resampled_units(n, n)
            found.append(
                MetricAgreement(
                    metric.name,
                    name,
                    n,
                    studies,
                    {c: draws.interval(by_study[c][k, j], units) for c in CORRELATIONS},
                    {c: draws.interval(by_pair[c][k, j], rows) for c in CORRELATIONS},
                )
            )
    differences = [
        difference
        for name in pairs.headlines
        for difference in _differences(
            metrics, xs, name, ys[names.index(name)], by_study[_MAIN][:, names.index(name)], draws
        )
    ]
    return found, differences


def _differences(
    metrics: Sequence[MeasuredMetric],
    xs: Sequence[Array],
    rating: str,
    y: Array,
    drawn: Array,
    draws: _Draws,
) -> list[MetricDifference]:
    """Return the differences of all pairs of metrics; `drawn` has (metrics, B) resamples."""
    rows = []
    for k, m in combinations(range(len(metrics)), 2):
        first, second = drawn[k], drawn[m]
        missing = np.isnan(xs[k]) | np.isnan(xs[m])
        own, other = np.where(missing, np.nan, xs[k]), np.where(missing, np.nan, xs[m])
        if (np.isnan(xs[k]) != np.isnan(xs[m])).any():
            first, second = resampled_correlations([own, other], [y], draws.by_study, [_MAIN])[
                _MAIN
            ][:, 0]
        difference = first - second
        present = ~(missing | np.isnan(y))
        interval = draws.interval(difference, draws.units(present))
        known = np.isfinite(interval.low)
        p_value = bootstrap_p_value(difference[1:]) if known else float("nan")
        rows.append((metrics[k].name, metrics[m].name, int(present.sum()), interval, p_value))
    adjusted = adjusted_p_values([p_value for *_, p_value in rows])
    return [
        MetricDifference(name, other, rating, n, interval, p_value, float(p))
        for (name, other, n, interval, p_value), p in zip(rows, adjusted, strict=True)
    ]


def _per_rater(
    metrics: Sequence[MeasuredMetric], pairs: RatedPairs, draws: _Draws
) -> list[RaterAgreement]:
    if len(pairs.raters) < 2:
        return []
    xs = [metric.oriented for metric in metrics]
    found = []
    for name in pairs.headlines:
        ys = [pairs.sign_of(name) * row for row in pairs.ratings[name]]
        drawn = resampled_correlations(xs, ys, draws.by_study, [_MAIN])[_MAIN]
        for k, metric in enumerate(metrics):
            for j, rater in enumerate(pairs.raters):
                present = ~(np.isnan(xs[k]) | np.isnan(ys[j]))
                interval = draws.interval(drawn[k, j], draws.units(present))
                n = int(present.sum())
                found.append(RaterAgreement(metric.name, rater, name, n, interval))
    return found


def _ceiling(name: str, values: Array, draws: _Draws) -> Ceiling:
    rated = ~np.isnan(values)
    rows = values[rated.any(axis=1)]
    shared = rated.sum(axis=0) >= 2
    mean = mean_of_raters(values)
    ties = largest_tau_b(mean[~np.isnan(mean)]) if (~np.isnan(mean)).any() else float("nan")
    if len(rows) < 2:
        return Ceiling(name, len(rows), int(shared.sum()), None, None, ties)
    units = draws.units(shared)
    every = [
        resampled_correlations([row], list(rows[k + 1 :]), draws.by_study, [_MAIN])[_MAIN][0]
        for k, row in enumerate(rows[:-1])
    ]
    between = np.concatenate(every)
    others = [mean_of_raters(np.delete(rows, k, axis=0)) for k in range(len(rows))]
    against = np.stack(
        [
            resampled_correlations([row], [other], draws.by_study, [_MAIN])[_MAIN][0, 0]
            for row, other in zip(rows, others, strict=True)
        ]
    )
    return Ceiling(
        name,
        len(rows),
        int(shared.sum()),
        draws.interval(_mean(between), units),
        draws.interval(_mean(against), units),
        ties,
    )


def _mean(drawn: Array) -> Array:
    """Return (B,) means over k of (k, B) values; those that are not defined are left out."""
    counts = (~np.isnan(drawn)).sum(axis=0)
    return np.where(counts > 0, np.nansum(drawn, axis=0) / np.maximum(counts, 1), np.nan)
