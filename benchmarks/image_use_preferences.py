"""Does a score use the picture? Its values on phantom scenes whose references may be wrong.

A metric that follows the true errors may still not look at the image: a text metric does, as long
as references are right. Where they are not, only a metric that looks can prefer the candidate that
states what the picture shows.

Numbers and intervals of the image-use test, of one encoder and of several trained alike.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from image_use_scenes import EmbeddedScenes
from imperfect_references import FORMS
from numpy.typing import NDArray
from torch import Tensor

from vlscore.metrics import EmbeddingTriples, Metric, compute
from vlscore.stats import Interval, bootstrap_interval, kendall_tau_b, largest_tau_b

Values = NDArray[np.float64]

# How far beyond the reference a candidate lies that no report should be paid for: three times as
# far from the image.
FAR = 3.0


@dataclass(frozen=True, eq=False)
class ImageUse:
    """One metric under one encoder; higher is better throughout.

    Attributes:
        errors: (n,) true errors of the candidates, against the scene.
        scores: (n,) of the candidates, by right references; with a black image, and with another
            study's, under "black" and "swapped".
        imperfect_rows: (m,) studies that can have an imperfect reference.
        imperfect_scores: (m,) of their candidates by an imperfect reference, one form in turn.
        prefers_true: image -> form -> (k,) 1 where the candidate that follows the picture scores
            better than the one that errs a second time, 0.5 where they are equal; k studies.
        prefers_picture: the same against the candidate that repeats the imperfect reference.
        rows: form -> (k,) their studies.
        far_out: (j,) 1 where a point far beyond the reference scores no worse than a candidate
            with one error; of the studies whose candidate has one.
    """

    errors: NDArray[np.int64]
    scores: Mapping[str, Values]
    imperfect_rows: NDArray[np.int64]
    imperfect_scores: Values
    prefers_true: Mapping[str, Mapping[str, Values]]
    prefers_picture: Mapping[str, Values]
    rows: Mapping[str, NDArray[np.int64]]
    far_out: Values


def image_use(embedded: EmbeddedScenes, metric: Metric) -> ImageUse:
    """Every value that the test needs of one metric of embeddings."""
    scenes = embedded.scenes
    swapped = torch.from_numpy(scenes.other_study)
    shown = {
        "right": embedded.images,
        "black": embedded.black.expand_as(embedded.images),
        "swapped": embedded.images[swapped],
    }

    def score(images: Tensor, candidates: Tensor, references: Tensor) -> Values:
        return _score(metric, embedded, images, candidates, references)

    scores = {
        name: score(images, embedded.candidates, embedded.references)
        for name, images in shown.items()
    }
    prefers_true: dict[str, dict[str, Values]] = {name: {} for name in shown}
    prefers_picture = {}
    imperfect_scores = np.full(len(scenes.studies), np.nan)
    for position, form in enumerate(FORMS):
        each = embedded.imperfect[form]
        for name, images in shown.items():
            true, false = (
                score(images[each.rows], part, each.references) for part in (each.true, each.false)
            )
            prefers_true[name][form] = _preferred(true, false)
        right = embedded.images[each.rows]
        true, copied = (score(right, part, each.references) for part in (each.true, each.copied))
        prefers_picture[form] = _preferred(true, copied)
        here = scenes.imperfect_form[each.rows] == position
        candidates = embedded.candidates[each.rows]
        imperfect_scores[each.rows[here]] = score(right, candidates, each.references)[here]
    rows = np.flatnonzero(np.isfinite(imperfect_scores))
    one = np.flatnonzero(scenes.errors == 1)
    i, r = embedded.images[one], embedded.references[one]
    return ImageUse(
        errors=scenes.errors,
        scores=scores,
        imperfect_rows=rows,
        imperfect_scores=imperfect_scores[rows],
        prefers_true=prefers_true,
        prefers_picture=prefers_picture,
        rows={form: embedded.imperfect[form].rows for form in FORMS},
        far_out=(score(i, i + FAR * (r - i), r) >= scores["right"][one]).astype(float),
    )


def _score(
    metric: Metric, embedded: EmbeddedScenes, images: Tensor, candidates: Tensor, references: Tensor
) -> Values:
    triples = EmbeddingTriples(images, candidates, references, embedded.signature, embedded.C)
    texts = [""] * len(images)
    values = compute([metric], texts, texts, embeddings=triples)[str(metric)]
    signed: Values = metric.sign * values
    return signed


def _preferred(better: Values, worse: Values) -> Values:
    preferred: Values = np.sign(better - worse) / 2 + 0.5
    return preferred


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
        interval = bootstrap_interval(mean, 2)
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
