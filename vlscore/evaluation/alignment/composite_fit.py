"""Fitting a composite of metrics to raters, in the manner of RadCliQ-v1 (Yu et al. 2023).

Each metric changes its sign where smaller is better, and is normalised to mean 0 and deviation 1
over the pairs, and so are the ratings. Weights that are not negative and sum to 1 minimise the mean
squared error, plus a pull towards equal weights, which cross-validation chooses: with few pairs the
metrics, which are all alike, would otherwise share the weight by chance. Nested cross-validation
that leaves out whole studies estimates the agreement with raters.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import frame, generator, with_noun
from vlscore.errors import InvalidSetting
from vlscore.evaluation.alignment.rated_pairs import RatedPairs
from vlscore.evaluation.command_settings import IN_SAMPLE, AlignmentSettings
from vlscore.evaluation.scored import Scored
from vlscore.metrics import Composite, CompositeInput, digests_of
from vlscore.stats import Array, Interval, correlation_interval, without_rounding

if TYPE_CHECKING:
    from pandas import DataFrame

# Strengths of the pull towards equal weights, in units of the normalised ratings' variance.
RIDGES = (0.0, 0.01, 0.1, 1.0, 10.0)
FOLDS = 5
_LEAST_STUDIES = 4
# Below this a weight is one that the solver could not tell from 0.
_NOTHING = 1e-9


def fit_composite(
    scored: Scored, pairs: RatedPairs, settings: AlignmentSettings
) -> "tuple[Composite, DataFrame, list[str]]":
    """Fit a composite to the raters' mean of one rating.

    Pairs that lack the rating, or a value of any metric, are left out; so are metrics that are
    constant on the others.

    Args:
        scored: values of metrics, which the registry finds again by these names.
        settings: `fit` names the rating, `seed` draws the folds, too.

    Returns: the composite; a row for each input, with its weight and its tau_b alone, and for the
        composite: cross-validated, for studies left out, and on the pairs that it was fitted to, an
        in-sample upper bound; and notes on metrics that are left out.
    Raises: InvalidSetting for an unknown rating, for ranks, for pairs of fewer than four
        studies, or where no metric is left.
    """
    rating, seed = settings.fit or "", settings.seed
    values = scored.values
    signs = {name: 1 if better else -1 for name, better in scored.higher_is_better.items()}
    y, there, studies = _rated(values, pairs, rating)
    varying = [name for name in values if np.ptp(without_rounding(values[name][there])) > 0]
    notes = [f"{n} is left out: all its values are equal" for n in values if n not in varying]
    if not varying:
        raise InvalidSetting("no metric is left to make a composite of: all are constant")
    x = np.stack([signs[name] * values[name][there] for name in varying], axis=1)
    held_out = _nested(x, y, studies, seed)
    ridge = _best_ridge(x, y, studies, seed)
    means, deviations = _scaling(x)
    z, target = _normalised(x, y, np.ones(len(y), dtype=bool))
    weights = simplex_weights(z, target, ridge)

    def tau(values: Array) -> Interval:
        return correlation_interval(
            values, y, groups=studies, resamples=settings.resamples, seed=seed
        )

    validated = tau(held_out)
    columns = zip(varying, means.tolist(), deviations.tolist(), weights.tolist(), strict=True)
    composite = Composite(
        inputs=tuple(
            # The mean is that before a change of sign.
            CompositeInput(
                name, str(scored.signatures.get(name, name)), signs[name] * mean, sd, weight
            )
            for name, mean, sd, weight in columns
        ),
        rating=rating,
        pairs=len(y),
        studies=len(set(studies)),
        ridge=ridge,
        seen=frozenset().union(
            *(
                digests_of(pairs.studies[k], *pairs.texts_at(k))
                for k in np.flatnonzero(there).tolist()
            )
        ),
    )
    if np.isfinite([validated.estimate, validated.low, validated.high]).all():
        composite = replace(
            composite, tau_b=validated.estimate, low=validated.low, high=validated.high
        )
    counts = {"n": len(y), "studies": composite.studies}
    rows: list[dict[str, Any]] = [
        {"metric": each.metric, "weight": each.weight, "tau_b": tau(x[:, k]), **counts}
        for k, each in enumerate(composite.inputs)
    ]
    rows.sort(key=lambda row: -row["weight"])
    for name, found in (("cross-validated", validated), (None, tau(z @ weights))):
        shown = f"composite, {name}" if name else f"composite ({IN_SAMPLE})"
        rows.append({"metric": shown, "weight": None, "tau_b": found, **counts})
    return composite, frame(rows), notes


def _rated(
    values: Mapping[str, Array], pairs: RatedPairs, rating: str
) -> tuple[Array, NDArray[np.bool_], list[str]]:
    """Return the ratings of the pairs that have all values, which these are, and their studies."""
    if rating not in pairs.ratings:
        known = ", ".join(pairs.ratings)
        raise InvalidSetting(f"{pairs.source} has no rating {rating!r}; it has: {known}")
    if pairs.meaning == "ranks":
        raise InvalidSetting("a composite cannot be fitted to ranks: those of two studies differ")
    if not values:
        raise InvalidSetting("no metric is left to make a composite of")
    y = pairs.sign_of(rating) * pairs.means[rating]
    there = np.asarray(np.isfinite([y, *values.values()]).all(axis=0))
    studies = list(compress(pairs.studies, there))
    if len(set(studies)) < _LEAST_STUDIES:
        raise InvalidSetting(
            f"{with_noun(len(set(studies)), 'study')} with values and ratings; a composite needs "
            f"{_LEAST_STUDIES} at the least"
        )
    y = y[there]
    if np.ptp(y) == 0:
        raise InvalidSetting(f"all {len(y)} pairs have the same {rating}: nothing can be fitted")
    return y, there, studies


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


def _scaling(x: Array) -> tuple[Array, Array]:
    """Return means and deviations (k,); what is constant in this part of the data adds nothing."""
    deviations = x.std(axis=0)
    return x.mean(axis=0), np.where(deviations > 0, deviations, np.inf)


def _normalised(x: Array, y: Array, by: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return values and ratings, normalised by the pairs `by`."""
    means, deviations = _scaling(x[by])
    scaled: Array = (y - y[by].mean()) / (y[by].std() or 1.0)
    return (x - means) / deviations, scaled


def _nested(x: Array, y: Array, studies: Sequence[str], seed: int) -> Array:
    """Return values for each pair by a composite that was fitted to other studies alone.

    The ridge is chosen among those studies, too.
    """
    found = np.empty(len(y))
    for rows in _folds(studies, seed):
        rest = ~rows
        ridge = _best_ridge(x[rest], y[rest], list(compress(studies, rest)), seed)
        z, target = _normalised(x, y, rest)
        found[rows] = z[rows] @ simplex_weights(z[rest], target[rest], ridge)
    return found


def _best_ridge(x: Array, y: Array, studies: Sequence[str], seed: int) -> float:
    """Return the ridge with the least squared error for left-out studies; the larger of equals."""
    errors = dict.fromkeys(reversed(RIDGES), 0.0)
    for rows in _folds(studies, seed + 1):
        rest = ~rows
        if not rest.any():
            return RIDGES[-1]
        z, target = _normalised(x, y, rest)
        for ridge in errors:
            weights = simplex_weights(z[rest], target[rest], ridge)
            errors[ridge] += float(((target[rows] - z[rows] @ weights) ** 2).sum())
    return min(errors, key=lambda ridge: errors[ridge])


def _folds(studies: Sequence[str], seed: int) -> list[NDArray[np.bool_]]:
    """Return rows of each fold; all pairs of a study are in one."""
    names = sorted(set(studies))
    order = generator(seed).permutation(len(names))
    count = min(FOLDS, len(names))
    fold = {names[place]: k % count for k, place in enumerate(order)}
    numbers = np.array([fold[study] for study in studies])
    return [numbers == k for k in range(count)]
