"""Choice of the images of a study that are combined into one embedding."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from vlscore.core import check_word
from vlscore.data import projection, stored_view
from vlscore.encoders import JointEncoder
from vlscore.errors import InvalidSetting, InvalidStudy

# The first frontal image, compared with the patient's earlier one where the study has one.
WITH_PRIOR = "first-frontal+prior"
VIEW_POLICIES = ("first-frontal", "mean", "frontal+lateral", WITH_PRIOR)


class ChosenViews(NamedTuple):
    """The images of one study that are embedded.

    Attributes:
        frontal, lateral: images.
        guessed: True if the frontal image was one of several and its view is unknown.
    """

    frontal: list[Any]
    lateral: list[Any]
    guessed: bool = False


def check_view_policy(policy: str, encoder: JointEncoder) -> str:
    """Return the policy. Raises: InvalidSetting if it is unknown or impossible with the encoder."""
    check_word("views", policy, VIEW_POLICIES)
    if policy == "frontal+lateral" and not encoder.has_lateral_tower:
        raise InvalidSetting(
            f"{encoder.card.name} has no tower for lateral views; "
            'use views="first-frontal" or views="mean"'
        )
    if policy == WITH_PRIOR and not encoder.takes_prior:
        raise InvalidSetting(
            f'{encoder.card.name} does not take an earlier image; use views="first-frontal"'
        )
    return policy


def choose_views(
    images: Sequence[Any],
    views: Sequence[str | None] | None,
    policy: str,
    view_of: Callable[[Any], str | None] = stored_view,
) -> ChosenViews:
    """Choose the images of one study to embed.

    Args:
        images: at least one.
        views: view positions, if known; None reads DICOM headers. Unknown counts as frontal.
        policy: "first-frontal" and "first-frontal+prior": the first frontal image. "mean": all
            images, as frontal ones. "frontal+lateral": the first of each; the lateral may be
            missing.
        view_of: reads the view position of an image; None if it is unknown.

    Raises: InvalidStudy if no image is left, or `views` are not as many as the images.
    """
    if not images:
        raise InvalidStudy("the study has no image")
    if views is not None and len(views) != len(images):
        raise InvalidStudy(f"the study has {len(images)} images and {len(views)} views")
    if policy == "mean":
        return ChosenViews(list(images), [])
    stated = views or [None] * len(images)
    pairs = [
        (image, projection(view or view_of(image)))
        for image, view in zip(images, stated, strict=True)
    ]
    # An unknown view counts as frontal.
    frontal = [image for image, side in pairs if side != "lateral"]
    lateral = [image for image, side in pairs if side == "lateral"]
    if not frontal:
        one = len(images) == 1
        raise InvalidStudy(
            f"{'its image is a lateral view' if one else f'all {len(images)} are lateral views'}; "
            'give a frontal one, or choose views="mean" (--views mean)'
        )
    # A frontal image with a known view comes before one with an unknown view.
    known = [image for image, side in pairs if side == "frontal"]
    return ChosenViews(
        (known or frontal)[:1],
        lateral[:1] if policy == "frontal+lateral" else [],
        guessed=len(frontal) > 1 and not known,
    )


def view_notes(encoder: JointEncoder, views: str) -> tuple[str, ...]:
    """Return a note if an encoder reads lateral views, but the view policy uses none; else nothing.

    Args: views: a view policy.
    """
    if views == "frontal+lateral" or not encoder.has_lateral_tower:
        return ()
    return (
        f"{encoder.card.name} has a tower for lateral views, which views={views} does not use; "
        'views="frontal+lateral" (--views frontal+lateral) embeds both views of a study',
    )
