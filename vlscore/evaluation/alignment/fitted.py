"""Fitting a composite of metrics to raters, in the manner of RadCliQ-v1 (Yu et al. 2023).

Each metric changes its sign where smaller is better, and is normalised to mean 0 and deviation 1
over the pairs, and so are the ratings. Weights that are not negative and sum to 1 minimise the mean
squared error, plus a pull towards equal weights, which cross-validation chooses: with few pairs the
metrics, which are all alike, would otherwise share the weight by chance. Nested cross-validation
that leaves out whole studies estimates the agreement with raters.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vlscore.errors import InvalidSetting
from vlscore.evaluation.alignment.agreement import MeasuredMetric
from vlscore.evaluation.alignment.rated_pairs import Array, RatedPairs
from vlscore.metrics import Composite, CompositeInput, digests_of
from vlscore.stats import Interval, grouped_tau_b

# Strengths of the pull towards equal weights, in units of the normalised ratings' variance.
RIDGES = (0.0, 0.01, 0.1, 1.0, 10.0)
FOLDS = 5
_LEAST_STUDIES = 4
# Below this a weight is one that the solver could not tell from 0.
_NOTHING = 1e-9


@dataclass(frozen=True)
class CompositeFit:
    """A composite, and how well it agrees with raters whom it was not fitted to.

    Attributes:
        composite: as it is written to a file.
        cross_validated: tau_b of values for studies left out, resampled by study.
        told: the same on the pairs that it was fitted to: an in-sample upper bound.
        alone: metric -> tau_b of each input on the same pairs.
        left_out: metrics that it could not be made of, with the reason.
    """

    composite: Composite
    cross_validated: Interval
    told: Interval
    alone: dict[str, Interval]
    left_out: dict[str, str]


def fit_composite(
    metrics: Sequence[MeasuredMetric],
    pairs: RatedPairs,
    rating: str,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> CompositeFit:
    """Fit a composite to the raters' mean of one rating.

    Pairs that lack the rating, or a value of any metric, are left out; so are metrics that are
    constant on the others.

    Args:
        metrics: with one value a pair; named as the registry finds them again.
        rating: as in "total errors".
        resamples: of the bootstrap.
        seed: of the bootstrap and of the folds.

    Raises: InvalidSetting for an unknown rating, for ranks, for pairs of fewer than four
        studies, or where no metric is left.
    """
    y, there, studies = _rated(metrics, pairs, rating)
    varying = [metric for metric in metrics if np.ptp(metric.values[there]) > 0]
    left_out = {m.name: "all its values are equal" for m in metrics if m not in varying}
    if not varying:
        raise InvalidSetting("no metric is left to make a composite of: all are constant")
    x = np.stack([metric.oriented[there] for metric in varying], axis=1)
    held_out = _nested(x, y, studies, seed)
    ridge = _best_ridge(x, y, studies, seed)
    scaling = _Scaling.of(x)
    weights = simplex_weights(scaling(x), _normalised(y, y), ridge)

    def tau(values: Array) -> Interval:
        return grouped_tau_b(values, y, studies, resamples=resamples, seed=seed)

    validated = tau(held_out)
    composite = Composite(
        inputs=_inputs(varying, scaling, weights),
        rating=rating,
        pairs=len(y),
        studies=len(set(studies)),
        ridge=ridge,
        seen=_study_digests(pairs, there),
    )
    finite = np.isfinite([validated.estimate, validated.low, validated.high])
    if finite.all():
        composite = replace(
            composite, tau_b=validated.estimate, low=validated.low, high=validated.high
        )
    return CompositeFit(
        composite,
        validated,
        tau(scaling(x) @ weights),
        {metric.name: tau(x[:, k]) for k, metric in enumerate(varying)},
        left_out,
    )


def _rated(
    metrics: Sequence[MeasuredMetric], pairs: RatedPairs, rating: str
) -> tuple[Array, NDArray[np.bool_], list[str]]:
    """Return the ratings of the pairs that have all values, which these are, and their studies."""
    if rating not in pairs.ratings:
        known = ", ".join(pairs.ratings)
        raise InvalidSetting(f"{pairs.source} has no rating {rating!r}; it has: {known}")
    if pairs.meaning == "ranks":
        raise InvalidSetting("a composite cannot be fitted to ranks: those of two studies differ")
    if not metrics:
        raise InvalidSetting("no metric is left to make a composite of")
    y = pairs.sign_of(rating) * pairs.means[rating]
    values = np.stack([y, *(metric.values for metric in metrics)])
    there = np.asarray(np.isfinite(values).all(axis=0))
    studies = [study for study, is_there in zip(pairs.studies, there, strict=True) if is_there]
    if len(set(studies)) < _LEAST_STUDIES:
        raise InvalidSetting(
            f"{len(set(studies))} studies have values and ratings; a composite needs "
            f"{_LEAST_STUDIES} at the least"
        )
    y = y[there]
    if np.ptp(y) == 0:
        raise InvalidSetting(f"all {len(y)} pairs have the same {rating}: nothing can be fitted")
    return y, there, studies


def _inputs(
    metrics: Sequence[MeasuredMetric], scaling: "_Scaling", weights: Array
) -> tuple[CompositeInput, ...]:
    """Return the inputs of a composite; their means are those before a change of sign."""
    return tuple(
        CompositeInput(
            metric.name,
            metric.signature or metric.name,
            float(mean) if metric.higher_is_better else -float(mean),
            float(deviation),
            float(weight),
        )
        for metric, mean, deviation, weight in zip(
            metrics, scaling.means, scaling.deviations, weights, strict=True
        )
    )


def simplex_weights(z: Array, y: Array, ridge: float = 0.0) -> Array:
    """Return weights that are at least 0, sum to 1, and fit best.

    Minimises |y - z w|^2 / n + ridge |w - 1/k|^2, a convex problem.

    Args:
        z: (n, k) normalised values.
        y: (n,) normalised ratings.
    """
    # The import takes half a second, and only a fit needs it.
    from scipy import optimize

    n, k = z.shape
    even = np.full(k, 1 / k)
    quadratic = z.T @ z / n + ridge * np.eye(k)
    linear = z.T @ y / n + ridge * even
    found = optimize.minimize(
        lambda w: w @ quadratic @ w - 2 * linear @ w,
        even,
        jac=lambda w: 2 * (quadratic @ w - linear),
        method="SLSQP",
        bounds=[(0.0, 1.0)] * k,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones_like(w)},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    if not found.success:
        raise InvalidSetting(f"the weights could not be fitted: {found.message}")
    weights = np.where(found.x > _NOTHING, found.x, 0.0)
    fitted: Array = weights / weights.sum()
    return fitted


@dataclass(frozen=True, eq=False)
class _Scaling:
    means: Array
    deviations: Array

    @classmethod
    def of(cls, x: Array) -> "_Scaling":
        deviations = x.std(axis=0)
        # Constant in this part of the data, so it adds nothing.
        return cls(x.mean(axis=0), np.where(deviations > 0, deviations, np.inf))

    def __call__(self, x: Array) -> Array:
        scaled: Array = (x - self.means) / self.deviations
        return scaled


def _normalised(y: Array, by: Array) -> Array:
    deviation = by.std()
    scaled: Array = (y - by.mean()) / (deviation if deviation > 0 else 1.0)
    return scaled


def _nested(x: Array, y: Array, studies: Sequence[str], seed: int) -> Array:
    """Return values for each pair by a composite that was fitted to other studies alone.

    The ridge is chosen among those studies, too.
    """
    found = np.empty(len(y))
    for rows in _folds(studies, seed):
        rest = ~rows
        others = [study for study, is_rest in zip(studies, rest, strict=True) if is_rest]
        ridge = _best_ridge(x[rest], y[rest], others, seed)
        scaling = _Scaling.of(x[rest])
        weights = simplex_weights(scaling(x[rest]), _normalised(y[rest], y[rest]), ridge)
        found[rows] = scaling(x[rows]) @ weights
    return found


def _best_ridge(x: Array, y: Array, studies: Sequence[str], seed: int) -> float:
    """Return the ridge with the least squared error for left-out studies; the larger of equals."""
    errors = dict.fromkeys(reversed(RIDGES), 0.0)
    for rows in _folds(studies, seed + 1):
        rest = ~rows
        if not rest.any():
            return RIDGES[-1]
        scaling = _Scaling.of(x[rest])
        z, target = scaling(x[rest]), _normalised(y[rest], y[rest])
        left, truth = scaling(x[rows]), _normalised(y[rows], y[rest])
        for ridge in errors:
            errors[ridge] += float(((truth - left @ simplex_weights(z, target, ridge)) ** 2).sum())
    return min(errors, key=lambda ridge: errors[ridge])


def _folds(studies: Sequence[str], seed: int) -> list[NDArray[np.bool_]]:
    """Return rows of each fold; all pairs of a study are in one."""
    names = sorted(set(studies))
    order = np.random.default_rng(seed).permutation(len(names))
    count = min(FOLDS, len(names))
    fold = {names[place]: k % count for k, place in enumerate(order)}
    numbers = np.array([fold[study] for study in studies])
    return [numbers == k for k in range(count)]


def _study_digests(pairs: RatedPairs, there: NDArray[np.bool_]) -> frozenset[str]:
    found: set[str] = set()
    for row in np.flatnonzero(there):
        found |= digests_of(pairs.studies[row], *texts_of(pairs, int(row)))
    return frozenset(found)


def texts_of(pairs: RatedPairs, row: int) -> tuple[str | None, str | None]:
    """Return reference and candidate of a pair; None where the set has no reports."""
    return (
        pairs.references[row] if pairs.references is not None else None,
        pairs.texts[row] if pairs.texts is not None else None,
    )
