"""Pure functions on embedded triples: image i, candidate g, reference r."""

from vlscore.similarity.ablations import (
    bounding_sphere_radius,
    clipscore,
    cosine,
    image_centred_cosine,
    refclipscore,
)
from vlscore.similarity.registry import SIMILARITIES, Similarity, find_similarity
from vlscore.similarity.triangle import foot, score_of_area, sides, triangle_area, vlscore

__all__ = [
    "SIMILARITIES",
    "Similarity",
    "bounding_sphere_radius",
    "clipscore",
    "cosine",
    "find_similarity",
    "foot",
    "image_centred_cosine",
    "refclipscore",
    "score_of_area",
    "sides",
    "triangle_area",
    "vlscore",
]
