"""Pure functions on embedded triples: image i, candidate g, reference r."""

from vlscore.similarity.ablations import (
    bounding_sphere_radius,
    clipscore,
    cosine,
    image_centred_cosine,
    refclipscore,
)
from vlscore.similarity.distances import (
    height,
    image_gain_cosine,
    image_gain_distance,
    midpoint_distance,
    segment_distance,
)
from vlscore.similarity.space import SharedSpace
from vlscore.similarity.triangle import foot, score_of_area, sides, triangle_area, vlscore

__all__ = [
    "SharedSpace",
    "bounding_sphere_radius",
    "clipscore",
    "cosine",
    "foot",
    "height",
    "image_centred_cosine",
    "image_gain_cosine",
    "image_gain_distance",
    "midpoint_distance",
    "refclipscore",
    "score_of_area",
    "segment_distance",
    "sides",
    "triangle_area",
    "vlscore",
]
