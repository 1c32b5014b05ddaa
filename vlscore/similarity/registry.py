"""Similarities by name, each with its direction and range. A new one is one line here."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from vlscore.errors import UnknownName
from vlscore.similarity import ablations, triangle


@dataclass(frozen=True)
class Similarity:
    """A function of embedded triples (i, g, r), each (n, d), to (n,) float64.

    Attributes:
        name: the name `similarity` takes.
        description: one sentence.
        compute: (i, g, r, C) -> (n,); C is used where `uses_C`.
        higher_is_better: direction.
        bounds: smallest and largest possible value, None where there is no bound.
        uses_image, uses_reference: which embeddings besides the candidate's the value depends on.
        uses_C: whether the encoder's constant enters.
        citation: where it was published.
    """

    name: str
    description: str
    compute: Callable[[Tensor, Tensor, Tensor, float], Tensor]
    higher_is_better: bool
    bounds: tuple[float | None, float | None]
    uses_image: bool
    uses_reference: bool
    uses_C: bool
    citation: str


_VLSCORE_PAPER = "Dawidowicz, Hirsch, Tal 2024, VLScore, NeurIPS"
_CLIPSCORE_PAPER = "Hessel et al. 2021, CLIPScore, EMNLP"

SIMILARITIES: dict[str, Similarity] = {
    similarity.name: similarity
    for similarity in (
        Similarity(
            name="vlscore",
            description="max(1 - T/C, 0) with T the area of the triangle image, candidate, "
            "reference",
            compute=triangle.vlscore,
            higher_is_better=True,
            bounds=(0.0, 1.0),
            uses_image=True,
            uses_reference=True,
            uses_C=True,
            citation=_VLSCORE_PAPER,
        ),
        Similarity(
            name="cosine",
            description="cosine of candidate and reference; does not look at the image",
            compute=lambda i, g, r, C: ablations.cosine(g, r),
            higher_is_better=True,
            bounds=(-1.0, 1.0),
            uses_image=False,
            uses_reference=True,
            uses_C=False,
            citation=_VLSCORE_PAPER,
        ),
        Similarity(
            name="image_centred_cosine",
            description="cosine of the angle at the image between candidate and reference",
            compute=lambda i, g, r, C: ablations.image_centred_cosine(i, g, r),
            higher_is_better=True,
            bounds=(-1.0, 1.0),
            uses_image=True,
            uses_reference=True,
            uses_C=False,
            citation=_VLSCORE_PAPER,
        ),
        Similarity(
            name="bounding_sphere",
            description="radius of the smallest sphere around image, candidate and reference",
            compute=lambda i, g, r, C: ablations.bounding_sphere_radius(i, g, r),
            higher_is_better=False,
            bounds=(0.0, None),
            uses_image=True,
            uses_reference=True,
            uses_C=False,
            citation=_VLSCORE_PAPER,
        ),
        Similarity(
            name="clipscore",
            description="2.5 max(cos, 0) of image and candidate; does not look at the reference",
            compute=lambda i, g, r, C: ablations.clipscore(i, g),
            higher_is_better=True,
            bounds=(0.0, 2.5),
            uses_image=True,
            uses_reference=False,
            uses_C=False,
            citation=_CLIPSCORE_PAPER,
        ),
        Similarity(
            name="refclipscore",
            description="harmonic mean of CLIPScore and max(cosine, 0) of candidate and reference",
            compute=lambda i, g, r, C: ablations.refclipscore(i, g, r),
            higher_is_better=True,
            bounds=(0.0, 10 / 7),
            uses_image=True,
            uses_reference=True,
            uses_C=False,
            citation=_CLIPSCORE_PAPER,
        ),
    )
}


def find_similarity(name: str) -> Similarity:
    """The similarity of that name; raises UnknownName listing those there are."""
    try:
        return SIMILARITIES[name]
    except KeyError:
        known = ", ".join(SIMILARITIES)
        raise UnknownName(f"no similarity is called {name!r}; known: {known}") from None
