"""How the several images of one study become one image embedding."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vlscore.encoders import JointEncoder
from vlscore.errors import InvalidSetting, InvalidStudy
from vlscore.images.views import is_lateral, projection, stored_view

VIEW_POLICIES = ("first-frontal", "mean", "frontal+lateral")


@dataclass(frozen=True)
class ChosenViews:
    """The images of one study that are embedded.

    Attributes:
        frontal, lateral: images.
        guessed: the frontal image was one of several, and nothing tells that it is frontal.
    """

    frontal: list[Any]
    lateral: list[Any]
    guessed: bool = False


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
) -> ChosenViews:
    """The images of one study to embed.

    Args:
        images: at least one.
        views: view positions where known; None looks into DICOM headers. Unknown is taken for
            frontal.
        policy: "first-frontal": the first frontal image. "mean": all images, as frontal ones.
            "frontal+lateral": the first of each; the lateral may be missing.

    Raises: InvalidStudy where no image is left, or `views` are not as many as the images.
    """
    if not images:
        raise InvalidStudy("the study has no image")
    if views is not None and len(views) != len(images):
        raise InvalidStudy(f"the study has {len(images)} images and {len(views)} views")
    if policy == "mean":
        return ChosenViews(list(images), [])
    given = list(views) if views is not None else [None] * len(images)
    known = [view or stored_view(image) for view, image in zip(given, images, strict=True)]
    pairs = list(zip(images, known, strict=True))
    frontal = [(image, view) for image, view in pairs if not is_lateral(view)]
    lateral = [image for image, view in pairs if is_lateral(view)]
    if not frontal:
        one = len(images) == 1
        raise InvalidStudy(
            f"{'its image is a lateral view' if one else f'all {len(images)} are lateral views'}; "
            'give a frontal one, or choose views="mean" (--views mean)'
        )
    # A frontal image whose view is stated goes before one whose view is unknown.
    stated = [image for image, view in frontal if projection(view) != "unknown"]
    chosen = stated[0] if stated else frontal[0][0]
    return ChosenViews(
        [chosen],
        lateral[:1] if policy == "frontal+lateral" else [],
        guessed=len(frontal) > 1 and not stated,
    )
