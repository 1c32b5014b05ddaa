"""Checks of an index that take their time."""

import numpy as np

from vlscore.errors import InvalidIndex
from vlscore.oracle.approximate import ApproximateIndex
from vlscore.oracle.corpus import Corpus
from vlscore.oracle.oracle import Oracle, recall
from vlscore.oracle.store import Index

_ROWS = 10_000


def check_vectors(index: Index) -> None:
    """Raises InvalidIndex at the first vector that is not finite."""
    for start in range(0, len(index), _ROWS):
        finite = np.isfinite(index.vectors[start : start + _ROWS]).all(axis=1)
        if not finite.all():
            row = start + int(np.flatnonzero(~finite)[0])
            raise InvalidIndex(f"{index.path}: row {row} is not finite; build the index again")


def measure_recall(
    index: Index, sample: int, seed: int, effort: int | None = None
) -> dict[int, float]:
    """recall@1 and @10 of the line search in the approximate index, against exact search.

    Queries are made of the corpus itself: references are sampled rows, images lie half-way between
    the reference and another sampled row.

    Raises: InvalidIndex where the index has no approximate part.
    """
    path = index.file("approximate")
    corpus = Corpus(index.vectors)
    rng = np.random.default_rng(seed)
    references = index.vectors[rng.integers(len(index), size=sample)].astype(np.float64)
    others = index.vectors[rng.integers(len(index), size=sample)].astype(np.float64)
    approximate = ApproximateIndex(path, corpus, effort=effort)
    oracle = Oracle(corpus, C=1.0, approximate=approximate)
    images = (references + others) / 2 + 1e-3 * rng.standard_normal(references.shape)
    references = references + 1e-3 * rng.standard_normal(references.shape)
    return {k: recall(oracle, images, references, k=k) for k in (1, 10)}
