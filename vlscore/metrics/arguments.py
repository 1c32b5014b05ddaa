"""Arguments of a call: a caller's images and reports as one row for each study."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vlscore.core import warn_caller
from vlscore.data import images_in
from vlscore.errors import InvalidStudy
from vlscore.metrics.batch import as_list, as_texts

if TYPE_CHECKING:
    from vlscore.embedding import StudyViews


@dataclass(frozen=True)
class Needs:
    """Inputs that every study must have for a plan.

    Attributes:
        images, references, embeddings: whether any metric looks at them.
        embedded_references: whether any metric looks at the references' embeddings.
    """

    images: bool
    references: bool
    embeddings: bool
    embedded_references: bool

    @property
    def roles(self) -> set[str]:
        """Return the columns that every row of a table must have, for `open_studies`."""
        images = {"image"} if self.images else set()
        references = {"reference"} if self.references else set()
        return {"candidate"} | images | references


@dataclass(eq=False)
class Item:
    """One study to be scored.

    Attributes:
        candidate, reference: reports; the reference may be None if no metric looks at it.
        shown: its images; None if no metric looks at them.
        parts: findings and impression of the reference, if they are known separately.
        lacking: "image" or "reference" -> why the study has none; only metrics that look at it
            have no value then.
        position: row of the table, from 0, by which stored vectors are found.
    """

    candidate: str
    reference: str | None
    shown: "StudyViews | None" = None
    parts: Mapping[str, str] | None = None
    lacking: Mapping[str, str] = field(default_factory=dict)
    position: int | None = None


def items_of(
    image: Any, candidate: Any, reference: Any, needs: Needs, *, all_texts: bool = True
) -> tuple[list[Item], bool]:
    """Return the studies of a call, and whether the call was a batch.

    Args: all_texts: whether each report of a batch must be a text; else scoring fails its study.
    Raises: InvalidStudy if lengths differ, a needed input is absent, or an array could be one
        image as well as several.
    """
    listed = as_texts if all_texts else as_list
    candidates = listed("candidates", candidate) if _is_many(candidate) else None
    references = listed("references", reference) if _is_many(reference) else None
    texts = {len(given) for given in (candidates, references) if given is not None}
    images = _images(image, texts)
    if needs.images and image is None:
        raise InvalidStudy("a metric needs the image, but image is None")
    if needs.references and reference is None:
        hint = ": the arguments are image, candidate, reference; without an image, pass None first"
        hint = "" if needs.images or image is None else hint
        raise InvalidStudy(f"a metric needs the reference, but reference is None{hint}")
    given = {"images": images, "candidates": candidates, "references": references}
    lengths = {len(values) for values in given.values() if values is not None}
    if not lengths:
        return [Item(candidate, reference, _views(image, needs))], False
    if len(lengths) > 1:
        shown = ", ".join(
            f"{name} {'single' if values is None else len(values)}"
            for name, values in given.items()
        )
        raise InvalidStudy(f"lists must have the same length; these have: {shown}")
    (count,) = lengths
    if images is not None and count > 1:
        _check_texts_of_several(candidates, references, count, needs)
    items = [
        Item(
            candidate if candidates is None else candidates[k],
            reference if references is None else references[k],
            _views(image if images is None else images[k], needs),
        )
        for k in range(count)
    ]
    return items, True


def row_labels(**given: Any) -> Any:
    """Return the index of those arguments that are a pandas Series; None where none is.

    Args: given: "candidates" -> the argument.
    Raises: InvalidStudy where two have different indexes: their rows would be paired by order.
    """
    found: dict[str, Any] = {
        name: each.index
        for name, each in given.items()
        if hasattr(each, "tolist") and hasattr(each, "index") and not callable(each.index)
    }
    if not found:
        return None
    (first, labels), *others = found.items()
    for name, own in others:
        if len(own) == len(labels) and not own.equals(labels):
            row = next(k for k in range(len(own)) if own[k] != labels[k])
            raise InvalidStudy(
                f"{first} and {name} are columns with different indexes: row {row} is "
                f"{labels[row]!r} of the one and {own[row]!r} of the other; join the tables by "
                "the id of the study, or pass both with .tolist() if their order is the same"
            )
    return labels


def _check_texts_of_several(
    candidates: list[str] | None, references: list[str] | None, count: int, needs: Needs
) -> None:
    if candidates is None and references is None:
        raise InvalidStudy(
            f"there are {count} images, but one candidate and one reference. A list of images is a "
            "batch of studies; write several views of one study as a tuple"
        )
    looked_at = {"candidate": candidates, "reference": references if needs.references else ()}
    for role, texts in looked_at.items():
        if texts is None:
            warn_caller(f"the same {role} is used for all {count} studies")


def _is_many(texts: Any) -> bool:
    return isinstance(texts, list | tuple) or (
        not isinstance(texts, str | bytes) and hasattr(texts, "tolist")
    )


def _views(image: Any, needs: Needs) -> "StudyViews | None":
    """Return the views of one study; the images of a folder are views, too."""
    if not needs.images:
        return None
    from vlscore.embedding import StudyViews  # loads torch

    views: list[Any] = []
    for each in image if isinstance(image, tuple) else (image,):
        is_folder = isinstance(each, str | os.PathLike) and os.path.isdir(each)
        views += images_in(each) if is_folder else (each,)
    return StudyViews(tuple(views))


def _images(image: Any, texts: set[int]) -> list[Any] | None:
    """Return several images, one for each study; None if the argument is one study's image.

    With n texts an array (n, height, width) is a batch, never one image of n channels. So is an
    array of four axes, in which each image has its channels. A column of a table holds paths.
    """
    if isinstance(image, list):
        return image
    shape = tuple(image.shape) if hasattr(image, "shape") else ()
    if len(shape) == 1 and hasattr(image, "tolist"):
        return list(image.tolist())
    if len(shape) == 4:
        if len(texts) == 1 and shape[0] in texts:
            return [image[k] for k in range(shape[0])]
        raise InvalidStudy(
            f"an array of the shape {shape} is a batch of images: pass list(batch), and one "
            "candidate and one reference for each image"
        )
    if len(shape) != 3 or len(texts) != 1 or shape[0] not in texts:
        return None
    is_colour = shape[0] in (1, 3, 4)
    if is_colour and bool((image == image[:1]).all()):
        return None
    if is_colour and shape[0] > 1 and shape[2] not in (3, 4):
        raise InvalidStudy(
            f"an array of the shape {shape} with {shape[0]} texts may be {shape[0]} images, or one "
            "image in colour: pass list(batch) for several images, or a list that has the colour "
            "image once for each text"
        )
    return [image[k] for k in range(shape[0])]
