"""Where image, candidate and reference lie: numbers that help to judge a score."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from vlscore.metrics import EmbeddingTriples
from vlscore.similarity import foot, sides, triangle_area

NUMBERS = ("area", "image_candidate", "image_reference", "candidate_reference", "foot")
FLAGS = ("candidate_truncated", "reference_truncated")


def geometry(triples: EmbeddingTriples) -> dict[str, NDArray[Any]]:
    """Name -> (n,) float64 of what the given embeddings allow; see `Score` for each."""
    i, g, r = (
        None if part is None else torch.as_tensor(part)
        for part in (triples.images, triples.candidates, triples.references)
    )
    assert g is not None
    if i is not None and r is not None:
        image_candidate, image_reference, candidate_reference = sides(i, g, r)
        found = {
            "area": triangle_area(i, g, r),
            "image_candidate": image_candidate,
            "image_reference": image_reference,
            "candidate_reference": candidate_reference,
            "foot": foot(i, g, r),
        }
    elif r is not None:
        found = {"candidate_reference": sides(r, g, r)[0]}
    elif i is not None:
        found = {"image_candidate": sides(i, g, i)[0]}
    else:
        found = {}
    return {name: np.array(values.double().numpy()) for name, values in found.items()}
