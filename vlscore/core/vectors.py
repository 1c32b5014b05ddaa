"""Vectors as rows of an array."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def unit_rows(vectors: NDArray[Any]) -> NDArray[Any]:
    """Return rows (n, d) divided by their Euclidean lengths; a row of zeros stays one.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1))
