"""How the several images of one study become one image embedding."""

from collections.abc import Sequence
from typing import Any

from vlscore.encoders import JointEncoder
from vlscore.errors import InvalidSetting, InvalidStudy
from vlscore.images.views import is_lateral, stored_view

VIEW_POLICIES = ("first-frontal", "mean", "frontal+lateral")


def check_view_policy(policy: str, encoder: JointEncoder) -> str:
    """The policy itself; raises InvalidSetting where it is unknown or beyond the encoder."""
    if policy not in VIEW_POLICIES:
        raise InvalidSetting(f"views is one of {', '.join(VIEW_POLICIES)}, not {policy!r}")
    if policy == "frontal+lateral" and not encoder.has_lateral_tower:
        raise InvalidSetting(
            f"{encoder.card.name} has no tower for lateral views; "
            'use views="first-frontal" or views="mean"'
        )
    return policy


def choose_views(
    images: Sequence[Any], views: Sequence[str | None] | None, policy: str
) -> tuple[list[Any], list[Any]]:
    """The images of one study to embed, as (frontal, lateral).

    Args:
        images: at least one.
        views: view positions where known; None looks into DICOM headers. Unknown is frontal.
        policy: "first-frontal": the first frontal image. "mean": all images, as frontal ones.
            "frontal+lateral": the first of each; the lateral may be missing.

    Raises: InvalidStudy where no image is left.
    """
    if not images:
        raise InvalidStudy("the study has no image")
    if policy == "mean":
        return list(images), []
    if len(images) == 1 and views is None:
        return list(images), []
    known = list(views) if views is not None else [None] * len(images)
    known = [view or stored_view(image) for view, image in zip(known, images, strict=True)]
    frontal = [image for image, view in zip(images, known, strict=True) if not is_lateral(view)]
    lateral = [image for image, view in zip(images, known, strict=True) if is_lateral(view)]
    if not frontal:
        raise InvalidStudy(
            f"all {len(images)} images are lateral views; "
            'give a frontal one, or choose views="mean"'
        )
    return frontal[:1], lateral[:1] if policy == "frontal+lateral" else []
