"""Targets of a search, by name: metrics of embeddings, and directions of retrieval."""

from dataclasses import dataclass

from vlscore.core import Registry


@dataclass(frozen=True)
class SearchTarget:
    """Target of a search.

    Attributes:
        name: name of a metric, or of a direction of retrieval.
        needs: which embeddings a query must have: "image", "reference".
        description: one sentence.
        rows: kind of the corpus's rows: "report" or "image".
        is_metric: whether it is a metric; a direction of retrieval only ranks.
    """

    name: str
    needs: tuple[str, ...]
    description: str
    rows: str = "report"
    is_metric: bool = True


OBJECTIVES: Registry[SearchTarget] = Registry("oracle metric")
for _target, _aliases in (
    (SearchTarget("vlscore", ("image", "reference"), "smallest area of the triangle"), ()),
    (
        SearchTarget("cosine", ("reference",), "largest cosine with the reference"),
        ("text-to-text",),
    ),
    (
        SearchTarget(
            "image-centred-cosine",
            ("image", "reference"),
            "largest cosine with the reference, both seen from the image",
        ),
        (),
    ),
    (SearchTarget("clipscore", ("image",), "largest cosine with the image, 2.5 times"), ()),
    (SearchTarget("height", ("image", "reference"), "smallest distance from their line"), ()),
    (
        SearchTarget(
            "segment-distance", ("image", "reference"), "smallest distance from their segment"
        ),
        (),
    ),
    (
        SearchTarget(
            "midpoint-distance", ("image", "reference"), "smallest distance from their midpoint"
        ),
        (),
    ),
    (
        SearchTarget(
            "image-gain-distance",
            ("image", "reference"),
            "smallest distance from the point between them that the image's weight says",
        ),
        (),
    ),
    (
        SearchTarget(
            "image-gain-cosine",
            ("image", "reference"),
            "largest cosine with the weighted sum of their directions",
        ),
        (),
    ),
    (
        SearchTarget(
            "image-to-text",
            ("image",),
            "largest cosine with the image: retrieval of reports by a radiograph",
            is_metric=False,
        ),
        (),
    ),
    (
        SearchTarget(
            "text-to-image",
            ("reference",),
            "largest cosine with the reference: retrieval of radiographs by a report",
            rows="image",
            is_metric=False,
        ),
        (),
    ),
):
    OBJECTIVES.register(_target, aliases=_aliases)
