"""Test of the image's effect: the same candidates with the right, another and a black image.

A metric that never looks at the image gives the same values and ranks whatever image it is shown:
it is a text metric, even if an image enters its formula.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vlscore.core import plain_dict
from vlscore.errors import InvalidSetting
from vlscore.evaluation.sensitivities.changed_pairs import EmbeddedPairs, Pair, means_by_study
from vlscore.evaluation.sensitivities.pair_values import PairValues, chosen_metrics, pair_values
from vlscore.metrics import METRICS, Metric
from vlscore.stats import (
    Interval,
    benjamini_hochberg,
    grouped_auc,
    grouped_mean,
    grouped_tau_b,
    paired_test,
    places_by_group,
)


@dataclass(frozen=True)
class SwapResult:
    """One metric with one wrong image against the right one; intervals resample studies.

    Attributes:
        metric, signature: which metric.
        image: "other study" or "black".
        pairs: how many were scored.
        right, wrong: mean value with the right and with the wrong image.
        shift: mean absolute change of a value; 0 where the image does not count.
        relative_shift: shift over the standard deviation of the values with the right image.
        preference: probability that a candidate does better with the right image than with the
            wrong one (ties count half); 0.5 where the image does not count.
        rank_agreement: Kendall's tau_b of all candidates' values with right and wrong image; 1
            where the image does not count.
        rank_agreement_within: the same among the candidates of one study, averaged over studies.
        detection_right, detection_wrong: area under the ROC curve by which the values tell
            significant from insignificant changes, with the right and with the wrong image.
        test, p_value, adjusted_p: paired test of right against wrong values, on means per study;
            adjusted (Benjamini-Hochberg) over all results of the run.
    """

    metric: str
    signature: str
    image: str
    pairs: int
    right: Interval
    wrong: Interval
    shift: Interval
    relative_shift: float
    preference: Interval
    rank_agreement: Interval
    rank_agreement_within: Interval | None
    detection_right: Interval | None
    detection_wrong: Interval | None
    test: str
    p_value: float
    adjusted_p: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for json: None replaces numbers that are not finite."""
        return plain_dict(self)


def image_swap(
    pairs: Sequence[Pair],
    embedded: EmbeddedPairs,
    metrics: Any = None,
    *,
    text: str | None = None,
    resamples: int = 2000,
    seed: int = 0,
) -> list[SwapResult]:
    """Compare metrics with another study's image, and with a black one; two results a metric.

    The perturbed reports are the candidates, the originals the references. All metrics are compared
    on the same pairs: those that each has a value for, whatever the image.

    Args:
        embedded: from `embed_pairs`, with images.
        metrics: names; those that do not look at embeddings are left out. Default: every metric
            that looks at the image, and cosine, which does not, as a control.
        text: how the text policy that was applied to the pairs is printed.

    Raises: InvalidSetting without images, or with those of one study only.
    """
    if embedded.images is None or embedded.studies.black is None:
        raise InvalidSetting("swapping images needs images: pass a table of studies")
    chosen = swapped_metrics(metrics, embedded)
    others = {
        "other study": _images_of_others(pairs, embedded, seed),
        "black": embedded.studies.black.expand_as(embedded.images),
    }
    right = pair_values(pairs, chosen, embedded, text=text)
    wrong = {
        name: pair_values(pairs, chosen, embedded, text=text, images=images)
        for name, images in others.items()
    }
    every = [*right, *(values for each in wrong.values() for values in each)]
    rows = np.flatnonzero(np.all([np.isfinite(values.perturbed) for values in every], axis=0))
    if not len(rows):
        raise InvalidSetting("none of the pairs could be embedded")
    results = [
        _swap(pairs, rows.tolist(), right[k], name, wrong[name][k].perturbed, resamples, seed)
        for k in range(len(chosen))
        for name in others
    ]
    return _adjusted(results)


def swapped_metrics(metrics: Any, embedded: EmbeddedPairs) -> list[Metric]:
    """Return the metrics of embeddings among those asked for, else all that can run, and cosine."""
    triples = embedded.triples(embedded.perturbed)
    found, _ = chosen_metrics(metrics, triples)
    looking = [metric for metric in found if metric.uses_embeddings]
    if metrics is None:
        looking = [metric for metric in looking if metric.uses_image]
        looking.append(METRICS.find("cosine"))
    return looking


def _images_of_others(pairs: Sequence[Pair], embedded: EmbeddedPairs, seed: int) -> torch.Tensor:
    """Return another study's image for each pair; all pairs of a study get the same."""
    assert embedded.images is not None
    first_row: dict[str, int] = {}
    for position, pair in enumerate(pairs):
        if position not in embedded.failures:
            first_row.setdefault(pair.study_id, position)
    studies = sorted(first_row)
    if len(studies) < 2:
        raise InvalidSetting("swapping images needs two studies at least")
    shuffled = np.random.default_rng(seed).permutation(len(studies)).tolist()
    # Each study gets the image of the next one in a shuffled cycle, so none gets its own.
    donor = {
        studies[here]: studies[there]
        for here, there in zip(shuffled, [*shuffled[1:], shuffled[0]], strict=True)
    }
    rows = [first_row[donor.get(pair.study_id, studies[0])] for pair in pairs]
    return embedded.images[rows]


def _swap(
    pairs: Sequence[Pair],
    rows: list[int],
    values: PairValues,
    image: str,
    wrong: NDArray[np.float64],
    resamples: int,
    seed: int,
) -> SwapResult:
    metric, sign = values.metric, values.metric.sign
    right, wrong = values.perturbed[rows], wrong[rows]
    studies = [pairs[k].study_id for k in rows]
    significant = np.array([pairs[k].is_significant for k in rows])
    options: dict[str, Any] = {"resamples": resamples, "seed": seed}
    better = np.sign(sign * (right - wrong)) / 2 + 0.5
    spread = float(right.std())
    moved = np.abs(right - wrong)
    detection = [
        grouped_auc(-sign * values, significant, studies, **options)
        if significant.any() and not significant.all()
        else None
        for values in (right, wrong)
    ]
    means = (list(means_by_study(studies, each).values()) for each in (right, wrong))
    tested = paired_test(*means)
    return SwapResult(
        metric=str(metric),
        signature=str(values.signature),
        image=image,
        pairs=len(rows),
        right=grouped_mean(right, studies, **options),
        wrong=grouped_mean(wrong, studies, **options),
        shift=grouped_mean(moved, studies, **options),
        relative_shift=float(moved.mean() / spread) if spread > 0 else float("nan"),
        preference=grouped_mean(better, studies, **options),
        rank_agreement=grouped_tau_b(right, wrong, studies, **options),
        rank_agreement_within=_within_studies(studies, right, wrong, options),
        detection_right=detection[0],
        detection_wrong=detection[1],
        test=tested.name,
        p_value=tested.p_value,
        adjusted_p=tested.p_value,
    )


def _within_studies(
    studies: Sequence[str],
    right: NDArray[np.float64],
    wrong: NDArray[np.float64],
    options: dict[str, Any],
) -> Interval | None:
    """Return the agreement within studies; None without candidates of different values."""
    found = {
        study: _small_tau_b(right[rows], wrong[rows])
        for study, rows in places_by_group(studies).items()
        if len(rows) > 1
    }
    found = {study: tau for study, tau in found.items() if np.isfinite(tau)}
    if not found:
        return None
    return grouped_mean(list(found.values()), list(found), **options)


def _small_tau_b(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Return tau_b of few values; nan where one of the variables is constant."""
    in_x, in_y = (np.sign(values[:, None] - values[None]) for values in (x, y))
    ordered = float(np.abs(in_x).sum() * np.abs(in_y).sum())
    return float((in_x * in_y).sum()) / ordered**0.5 if ordered > 0 else float("nan")


def _adjusted(results: list[SwapResult]) -> list[SwapResult]:
    adjusted = benjamini_hochberg([result.p_value for result in results]).tolist()
    return [replace(r, adjusted_p=p) for r, p in zip(results, adjusted, strict=True)]
