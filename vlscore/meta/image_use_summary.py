"""Numbers and intervals of the image-use test, of one encoder and of several trained alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vlscore.meta.image_use import ImageUse
from vlscore.phantom.imperfect import FORMS
from vlscore.stats import Interval, kendall_tau_b, largest_tau_b, percentiles

# What is measured, in the order of the tables.
TAU, TAU_SCENE, TAU_BLACK, TAU_SWAPPED = "tau", "tau scene", "tau black", "tau swapped"
PREFERS, PREFERS_BLACK, PREFERS_SWAPPED = "prefers true", "black", "swapped"
FOLLOWS, FAR_OUT = "follows picture", "far out"
QUANTITIES = (TAU, TAU_SCENE, TAU_BLACK, TAU_SWAPPED, PREFERS, *FORMS)
QUANTITIES += (PREFERS_BLACK, PREFERS_SWAPPED, FOLLOWS, FAR_OUT)

Resampled = Mapping[str, NDArray[np.float64]]


@dataclass(frozen=True)
class Summary:
    """One quantity of encoders that were trained alike.

    Attributes:
        interval: mean over the encoders, with a 95 % bootstrap interval over the test studies; the
            same studies are drawn for all encoders.
        low, high: smallest and largest among the encoders.
    """

    interval: Interval
    low: float
    high: float


def resample(use: ImageUse, *, resamples: int = 200, seed: int = 0) -> Resampled:
    """Quantity -> (1 + resamples,): its value, then that of each resample of the studies.

    tau is Kendall's tau_b with the true errors as a share of the largest that any score can reach;
    with a wrong image it is not resampled.
    """
    n = len(use.errors)
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(n, np.full(n, 1 / n), size=resamples)
    weights = np.concatenate([np.ones((1, n), weights.dtype), weights])
    everyone = np.arange(n)
    found = {TAU: _taus(use.scores["right"], use.errors, everyone, weights)}
    for name, image in ((TAU_BLACK, "black"), (TAU_SWAPPED, "swapped")):
        # By far the slowest numbers here, and of these no interval is printed.
        found[name] = _taus(use.scores[image], use.errors, everyone, weights[:1])
        found[name] = np.repeat(found[name], len(weights))
    errors = use.errors[use.imperfect_rows]
    found[TAU_SCENE] = _taus(use.imperfect_scores, errors, use.imperfect_rows, weights)
    rows = [use.rows[form] for form in FORMS]
    for name, image in ((PREFERS, "right"), (PREFERS_BLACK, "black"), (PREFERS_SWAPPED, "swapped")):
        preferred = [use.prefers_true[image][form] for form in FORMS]
        found[name] = _mean_of_means(preferred, rows, weights)
        if image == "right":
            for form, each in zip(FORMS, preferred, strict=True):
                found[form] = _mean_of_means([each], [use.rows[form]], weights)
    found[FOLLOWS] = _mean_of_means([use.prefers_picture[form] for form in FORMS], rows, weights)
    one = np.flatnonzero(use.errors == 1)
    found[FAR_OUT] = _mean_of_means([use.far_out], [one], weights)
    return {name: found[name] for name in QUANTITIES}


def summarise(encoders: Sequence[Resampled]) -> dict[str, Summary]:
    """Every quantity over encoders that were trained alike but for the seed."""
    summaries = {}
    for name in QUANTITIES:
        drawn = np.stack([each[name] for each in encoders])
        mean = drawn.mean(axis=0)
        interval = percentiles(float(mean[0]), mean[1:], 0.95, 2)
        summaries[name] = Summary(interval, float(drawn[:, 0].min()), float(drawn[:, 0].max()))
    return summaries


def _taus(
    scores: NDArray[np.float64],
    errors: NDArray[np.int64],
    rows: NDArray[np.int64],
    weights: NDArray[np.int64],
) -> NDArray[np.float64]:
    drawn = np.empty(len(weights))
    for k, each in enumerate(weights):
        chosen = np.repeat(np.arange(len(rows)), each[rows])
        drawn[k] = -kendall_tau_b(scores[chosen], errors[chosen]) / largest_tau_b(errors[chosen])
    return drawn


def _mean_of_means(
    values: Sequence[NDArray[np.float64]],
    rows: Sequence[NDArray[np.int64]],
    weights: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Mean over the forms of the mean over their studies."""
    means = [
        (weights[:, where] @ each) / weights[:, where].sum(axis=1)
        for each, where in zip(values, rows, strict=True)
    ]
    found: NDArray[np.float64] = np.mean(means, axis=0)
    return found
