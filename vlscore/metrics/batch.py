"""Inputs and results of a metric: arguments of a call, batches of studies, computed columns.

`items_of` converts a caller's images and reports into rows, one for each study. `EmbeddingTriples`
holds the embeddings of image, candidate and reference. `Batch` is the input of a provider,
`Computed` what it returns, and `MetricValues` the checked result of a plan.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import Signature, warn_caller
from vlscore.data import images_in
from vlscore.errors import InvalidReport, InvalidSetting, InvalidStudy, VLScoreError
from vlscore.metrics.metric import Metric
from vlscore.metrics.networks.model_files import AnnotationCache


@dataclass(frozen=True, eq=False)
class EmbeddingTriples:
    """Embeddings of n studies under one encoder.

    Attributes:
        images, candidates, references: (n, d) arrays or tensors; images or references may be None
            where no metric looks at them.
        signature: what the embeddings depend on (encoder, checksum, policies): a Signature, or
            the same as printed.
        C: the encoder's constant of VLScore, a positive number; None if it is unknown.
        failures: row -> why it has no embeddings; such rows hold nan.

    Raises: InvalidSetting where shapes differ, or C is not a positive number.
    """

    images: Any
    candidates: Any
    references: Any
    signature: Signature | str
    C: float | None = None
    failures: Mapping[int, VLScoreError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = [x for x in (self.images, self.candidates, self.references) if x is not None]
        shapes = [tuple(np.shape(x)) for x in given]
        if self.candidates is None or len(set(shapes)) != 1 or len(shapes[0]) != 2:
            raise InvalidSetting(f"embeddings must have the same shape (n, d); these have {shapes}")
        check_constant(self.C)
        if isinstance(self.signature, str):
            parsed = Signature.parse(f"embeddings|{self.signature}")
            object.__setattr__(self, "signature", parsed)

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def facts(self) -> Signature:
        """Return the signature as a `Signature`, parsed if it was printed."""
        assert isinstance(self.signature, Signature)
        return self.signature

    def take(self, rows: Sequence[int]) -> "EmbeddingTriples":
        """Return the triples of the rows named."""
        chosen = list(rows)
        parts: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[chosen]
            for name in ("images", "candidates", "references")
        }
        failures = {k: self.failures[row] for k, row in enumerate(chosen) if row in self.failures}
        return replace(self, **parts, failures=failures)


def check_constant(C: Any) -> None:
    """Raise InvalidSetting unless C is None or a finite positive number."""
    if C is None:
        return
    if isinstance(C, bool) or not isinstance(C, int | float) or not (C > 0 and math.isfinite(C)):
        raise InvalidSetting(f"C must be a positive number, not {C!r}")


Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Batch:
    """Batch of n studies, to all texts of which the text policy has been applied.

    Attributes:
        candidates: n generated reports; an empty one is scored, not refused.
        references: n reference reports; None where no metric looks at them.
        embeddings: of the same studies; None where no metric looks at them.
        artefacts: name -> one value for each candidate and one for each reference.
        values: for a metric that is computed from others, the values of each of its `inputs`,
            under the key that `inputs` has for it.
        annotations: cache of what networks read in reports, shared by several runs.
        fitted: what the current metric was fitted to, as its provider's `fit` returned it; None
            for a metric that is not fitted.

    Raises: InvalidSetting where lengths differ.
    """

    candidates: Sequence[str]
    references: Sequence[str] | None = None
    embeddings: EmbeddingTriples | None = None
    artefacts: Mapping[str, tuple[Sequence[Any], Sequence[Any]]] = field(default_factory=dict)
    values: Mapping[str | Metric, "MetricValues"] = field(default_factory=dict)
    fitted: Any = None
    annotations: AnnotationCache = field(default_factory=AnnotationCache)

    def __post_init__(self) -> None:
        lengths = {"candidates": len(self.candidates)}
        if self.references is not None:
            lengths["references"] = len(self.references)
        if self.embeddings is not None:
            lengths["embeddings"] = len(self.embeddings)
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise InvalidSetting(f"lists must have the same length; these have: {shown}")

    def __len__(self) -> int:
        return len(self.candidates)

    def pairs(self) -> list[tuple[str, str]]:
        """Return (candidate, reference) of each study; raise InvalidSetting without references."""
        if self.references is None:
            raise InvalidSetting(
                "the metric reads references, but its definition does not ask for them: set "
                "uses_reference=True"
            )
        return list(zip(self.candidates, self.references, strict=True))


@dataclass(frozen=True, eq=False)
class Computed:
    """Result of a provider for n candidates, not yet checked.

    Attributes:
        columns: one (n,) array for each output of the metric, in their order.
        statistics: (n, s) sums that corpus values are computed from; None where there are none.
        failures: row -> why it has no value; its numbers are ignored.
    """

    columns: Sequence[Values]
    statistics: Values | None = None
    failures: Mapping[int, VLScoreError] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class MetricValues:
    """Values of one metric for n candidates.

    Attributes:
        metric: which metric.
        columns: column name -> (n,) float64; nan where the candidate has no value. The first
            column is the metric's own.
        statistics: (n, s) float64, additive over candidates; None where the metric has no corpus
            value. Rows without a value are 0.
        failures: row -> why it has no value.
        signature: what the numbers depend on.
    """

    metric: Metric
    columns: Mapping[str, Values]
    statistics: Values | None
    failures: Mapping[int, VLScoreError]
    signature: Signature

    @property
    def headline(self) -> Values:
        """Return (n,) the metric's first number."""
        return self.columns[str(self.metric)]

    def __len__(self) -> int:
        return len(self.headline)


def as_texts(name: str, texts: Any) -> list[str]:
    """Return a list of texts from a list, tuple, numpy array or pandas Series of them.

    Raises: InvalidReport if it is one text, or holds anything but texts.
    """
    if isinstance(texts, str | bytes):
        raise InvalidReport(f"{name} must be a list of reports, not one text")
    try:
        found = texts.tolist() if hasattr(texts, "tolist") else list(texts)
    except TypeError:
        found = None
    if not isinstance(found, list):
        raise InvalidReport(f"{name} must be a list of reports, not a {type(texts).__name__}")
    for position, text in enumerate(found):
        if not isinstance(text, str):
            raise InvalidReport(f"{name}[{position}] must be a text, not a {type(text).__name__}")
    return [str(text) for text in found]


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


Row = tuple[tuple[Any, ...] | None, str, str | None]


def items_of(image: Any, candidate: Any, reference: Any, needs: Needs) -> tuple[list[Row], bool]:
    """Return (images, candidate, reference) of each study, and whether the call was a batch.

    Raises: InvalidStudy if lengths differ, a needed input is absent, or an array could be one
        image as well as several.
    """
    candidates = as_texts("candidates", candidate) if _is_many(candidate) else None
    references = as_texts("references", reference) if _is_many(reference) else None
    texts = {len(given) for given in (candidates, references) if given is not None}
    images = _images(image, texts)
    if needs.images and image is None:
        raise InvalidStudy("a metric needs the image, but image is None")
    if needs.references and reference is None:
        raise InvalidStudy("a metric needs the reference, but reference is None")
    given = {"images": images, "candidates": candidates, "references": references}
    lengths = {len(values) for values in given.values() if values is not None}
    if not lengths:
        return [(_views(image), candidate, reference)], False
    if len(lengths) > 1:
        shown = ", ".join(
            f"{name} {'single' if values is None else len(values)}"
            for name, values in given.items()
        )
        raise InvalidStudy(f"lists must have the same length; these have: {shown}")
    (count,) = lengths
    if images is not None and count > 1:
        _check_texts_of_several(candidates, references, count, needs)
    rows: list[Row] = [
        (
            _views(image if images is None else images[k]),
            candidate if candidates is None else candidates[k],
            reference if references is None else references[k],
        )
        for k in range(count)
    ]
    return rows, True


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


def _views(image: Any) -> tuple[Any, ...] | None:
    if image is None:
        return None
    given = image if isinstance(image, tuple) else (image,)
    return tuple(view for each in given for view in _images_of(each))


def _images_of(image: Any) -> tuple[Any, ...]:
    """Return the image itself, or the images of a folder, which are views of one study."""
    if isinstance(image, str | os.PathLike) and os.path.isdir(image):
        return images_in(image)
    return (image,)


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
