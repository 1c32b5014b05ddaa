"""Perturbed reports and images for the benchmarks' tests, with the hash encoder."""

import numpy as np

from tests.doubles import HashEncoder
from vlscore.meta import EmbeddedPairs, Pair, embed_pairs
from vlscore.scorer import Scorer
from vlscore.studies import StudyImages

WORDS = ["small", "large", "left", "right", "effusion", "the", "heart", "normal", "lung", "clear"]
KINDS = {
    "remove-pathology": True,
    "remove-insignificant": False,
    "change-location": True,
    "change-severity": True,
    "replace-uninformative": False,
    "standard-normal": False,
}


def make_pairs(studies: int = 8) -> list[Pair]:
    """Significant changes replace 4 to 7 of ten words, insignificant ones 1 or 2."""
    rng = np.random.default_rng(1)
    pairs = []
    for k in range(studies):
        words = rng.choice(WORDS, 10).tolist()
        for kind, is_significant in KINDS.items():
            changed = list(words)
            count = rng.integers(4, 8) if is_significant else rng.integers(1, 3)
            for place in rng.permutation(10)[:count].tolist():
                changed[place] = f"other{rng.integers(50)}"
            pairs.append(Pair(str(k), kind, is_significant, " ".join(words), " ".join(changed)))
    return pairs


def make_images(studies: int = 8) -> dict[str, StudyImages]:
    rng = np.random.default_rng(2)
    return {
        str(k): StudyImages(str(k), (rng.random((8, 8)).astype(np.float32),))
        for k in range(studies)
    }


def embed(pairs: list[Pair], images: dict[str, StudyImages] | None) -> EmbeddedPairs:
    return embed_pairs(pairs, Scorer(HashEncoder()), images)
