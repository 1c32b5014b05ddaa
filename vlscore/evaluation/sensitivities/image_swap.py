"""Whether the image counts: the same candidates with the right image, another study's, a black one.

A metric that never looks at the image gives the same values and ranks.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.core import frame, generator
from vlscore.errors import InvalidSetting
from vlscore.evaluation.command_settings import SensitivitySettings
from vlscore.evaluation.sensitivities.changed_pairs import ENDS, score_pairs
from vlscore.evaluation.sensitivities.kinds_noticed import WILCOXON, drawn_by
from vlscore.evaluation.study_images import ImagesOf
from vlscore.metrics import Scorer, find_metric
from vlscore.stats import (
    Array,
    Interval,
    correlation_interval,
    difference_of,
    grouped_auc,
    grouped_mean,
    kendall_tau_b,
    paired_p_value,
    places_by_group,
    with_adjusted_p,
)

if TYPE_CHECKING:
    from pandas import DataFrame


def image_swap(
    pairs: "DataFrame",
    scorer: Scorer,
    shown: ImagesOf,
    settings: SensitivitySettings | None = None,
    *,
    workers: int = 0,
) -> "DataFrame":
    """Compare the metrics of the image with another study's image, and with a black one.

    `cosine`, which does not look at the image, is the control. The perturbed reports are the
    candidates. All metrics are compared on the pairs that each has a value for, whatever the image.

    Returns: a row a metric and image: right, wrong (mean values), shift (mean absolute change),
        relative_shift (over the standard deviation of the values with the right image), preference
        (chance that a candidate does better with the right image; ties count half),
        rank_agreement (tau_b of all candidates), rank_agreement_within (of those of one study,
        averaged over studies), detection_right and detection_wrong (areas under the ROC curve by
        which the values tell significant from insignificant changes), test, p_value, adjusted_p.
    Raises: InvalidSetting without images of two studies.
    """
    from vlscore.embedding import StudyViews

    embedder = scorer.embedder
    if embedder is None:
        raise InvalidSetting("swapping images needs images: pass a table of studies")
    options = drawn_by(settings)
    looking = [m for m in scorer.metrics if m.uses_embeddings and m.uses_image]
    control = [m for m in scorer.metrics if m.name == "cosine"] or [find_metric("cosine")]
    scorer = scorer.with_metrics([*looking, *control])

    def values(images: ImagesOf) -> "DataFrame":
        scored = score_pairs(pairs, scorer, images, which=["perturbed"], workers=workers)
        names = {name + ENDS[1]: name for name in scored.higher_is_better}
        return scored.rows[[*names]].rename(columns=names)

    right = values(shown)
    donor = _donors(sorted(set(pairs["study_id"][np.isfinite(right).all(axis=1)])), options["seed"])
    black = embedder.embed_black()
    wrong = {
        "other study": values(lambda study: shown(donor.get(study, study))),
        "black": values(lambda study: StudyViews((), vector=black)),
    }
    rows = np.all([np.isfinite(each).all(axis=1) for each in (right, *wrong.values())], axis=0)
    if not rows.any():
        raise InvalidSetting("none of the pairs could be embedded")
    found = [
        {
            "metric": str(metric),
            "signature": str(scorer.signatures[str(metric)]),
            "image": image,
            "pairs": int(rows.sum()),
            **_swap(
                right[str(metric)][rows].to_numpy(),
                values_of[str(metric)][rows].to_numpy(),
                metric.sign,
                pairs[rows],
                options,
            ),
        }
        for metric in scorer.metrics
        for image, values_of in wrong.items()
    ]
    return frame(with_adjusted_p(found))


def _donors(studies: Sequence[str], seed: int) -> dict[str, str]:
    """Return study -> the study whose image it is shown: the next one in a shuffled cycle."""
    if len(studies) < 2:
        raise InvalidSetting("swapping images needs two studies at least")
    shuffled = generator(seed).permutation(len(studies)).tolist()
    following = [*shuffled[1:], shuffled[0]]
    return {studies[k]: studies[n] for k, n in zip(shuffled, following, strict=True)}


def _swap(
    right: Array, wrong: Array, sign: int, pairs: "DataFrame", options: Mapping[str, Any]
) -> dict[str, Any]:
    studies, significant = pairs["study_id"].tolist(), pairs["is_significant"].to_numpy(dtype=bool)
    spread, moved = float(right.std()), np.abs(right - wrong)
    better = np.sign(sign * difference_of(right, wrong)) / 2 + 0.5
    within, means = {}, []
    for study, rows in places_by_group(studies).items():
        means.append((right[rows].mean(), wrong[rows].mean()))
        if not math.isnan(tau := kendall_tau_b(right[rows], wrong[rows])):
            within[study] = tau
    p_value = paired_p_value(*np.transpose(means))
    has_both = significant.any() and not significant.all()

    def detection(values: Array) -> Interval | None:
        return grouped_auc(-sign * values, significant, studies, **options) if has_both else None

    return {
        "right": grouped_mean(right, studies, **options),
        "wrong": grouped_mean(wrong, studies, **options),
        "shift": grouped_mean(moved, studies, **options),
        "relative_shift": float(moved.mean() / spread) if spread > 0 else float("nan"),
        "preference": grouped_mean(better, studies, **options),
        "rank_agreement": correlation_interval(right, wrong, groups=studies, **options),
        "rank_agreement_within": grouped_mean(list(within.values()), list(within), **options)
        if within
        else None,
        "detection_right": detection(right),
        "detection_wrong": detection(wrong),
        "test": WILCOXON,
        "p_value": p_value,
    }
