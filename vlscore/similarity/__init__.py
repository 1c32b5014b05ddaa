"""Pure functions on embedded triples: image i, candidate g, reference r."""

from vlscore.similarity.ablations import (
    bounding_sphere_radius,
    clipscore,
    cosine,
    image_centred_cosine,
    refclipscore,
)
from vlscore.similarity.triangle import foot, score_of_area, sides, triangle_area, vlscore

__all__ = [
    "bounding_sphere_radius",
    "clipscore",
    "cosine",
    "foot",
    "image_centred_cosine",
    "refclipscore",
    "score_of_area",
    "sides",
    "triangle_area",
    "vlscore",
]
