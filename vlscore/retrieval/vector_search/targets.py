"""What a search can look for, by name: metrics of embeddings, and plain directions of retrieval."""

from dataclasses import dataclass

from vlscore.core import Registry


@dataclass(frozen=True)
class Sought:
    """What is best under one name.

    Attributes:
        name: a metric's, as metrics call it, or that of a direction of retrieval.
        needs: which embeddings a query must have: "image", "reference".
        description: one sentence.
        rows: what the rows of the corpus are: "report" or "image".
        is_metric: whether a metric has this name; a direction only ranks.
    """

    name: str
    needs: tuple[str, ...]
    description: str
    rows: str = "report"
    is_metric: bool = True


OBJECTIVES: Registry[Sought] = Registry("oracle metric")
for _sought, _aliases in (
    (Sought("vlscore", ("image", "reference"), "smallest area of the triangle"), ()),
    (Sought("cosine", ("reference",), "largest cosine with the reference"), ("text-to-text",)),
    (
        Sought(
            "image-centred-cosine",
            ("image", "reference"),
            "largest cosine with the reference, both seen from the image",
        ),
        (),
    ),
    (Sought("clipscore", ("image",), "largest cosine with the image, 2.5 times"), ()),
    (Sought("height", ("image", "reference"), "smallest distance from their line"), ()),
    (
        Sought("segment-distance", ("image", "reference"), "smallest distance from their segment"),
        (),
    ),
    (
        Sought(
            "midpoint-distance", ("image", "reference"), "smallest distance from their midpoint"
        ),
        (),
    ),
    (
        Sought(
            "image-gain-distance",
            ("image", "reference"),
            "smallest distance from the point between them that the image's weight says",
        ),
        (),
    ),
    (
        Sought(
            "image-gain-cosine",
            ("image", "reference"),
            "largest cosine with the weighted sum of their directions",
        ),
        (),
    ),
    (
        Sought(
            "image-to-text",
            ("image",),
            "largest cosine with the image: retrieval of reports by a radiograph",
            is_metric=False,
        ),
        (),
    ),
    (
        Sought(
            "text-to-image",
            ("reference",),
            "largest cosine with the reference: retrieval of radiographs by a report",
            rows="image",
            is_metric=False,
        ),
        (),
    ),
):
    OBJECTIVES.register(_sought, aliases=_aliases)
