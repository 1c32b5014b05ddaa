"""Corpus of a search: float32 vectors with their norms, and float64 kernels over its rows.

The kernels give a row the same bits with any other rows, because equal rows must cost the same, and
the rank of a report must not depend on the chunk or device that found it. Matrix products and
torch's reductions may round a row differently if other rows change. numpy's reduction along the
contiguous axis sums each row alone, so the kernels use nothing else.
"""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vlscore.errors import InvalidSetting

Array = NDArray[Any]


def dot(x: Array, y: Array) -> Array:
    """Compute inner products of the rows of two broadcastable arrays, each row summed alone."""
    summed: Array = np.add.reduce(np.ascontiguousarray(x * y), axis=-1)
    return summed


def norm(x: Array) -> Array:
    """Compute the Euclidean norms of the rows."""
    return np.sqrt(dot(x, x))


def directions_of(vectors: Array) -> Array:
    """Compute the unit vectors of the rows; the origin stays."""
    length = norm(vectors)
    directions: Array = vectors / np.where(length > 0, length, 1)[..., None]
    return directions


def projected(i: Array, g: Array, r: Array, edge: Array, squared: Array) -> tuple[Array, Array]:
    """Compute foot and height of rows g over the line i (0) to r (1).

    Args:
        i, r: (..., d) float64 that broadcast to g. g: (..., m, d) float64.
        edge, squared: r - i and its squared length, which a search has computed before.

    Returns: foot (..., m), height (..., m); if i = r, 1 and the distance to them. The shorter of
    g - i and g - r is projected, as in `triangle_area`, so that nothing cancels near the vertices.
    """
    squared = np.where(squared > 0, squared, 1)
    # r comes first, because most hits are nearer to it.
    shorter = g - r
    along = dot(shorter, edge)
    near_i = along < -0.5 * squared
    if near_i.any():
        shorter[near_i] = from_i = g[near_i] - np.broadcast_to(i, g.shape)[near_i]
        along[near_i] = dot(from_i, np.broadcast_to(edge, g.shape)[near_i])
    along /= squared
    foot = along + 1
    foot[near_i] = along[near_i]
    shorter -= along[..., None] * edge
    return foot, norm(shorter)


def cosines(g: Array, v: Array) -> Array:
    """Compute cosines of rows g (m, d) with v (d,); 0 if one of them is the origin."""
    lengths = norm(g) * norm(v)
    return np.clip(dot(g, v) / np.where(lengths > 0, lengths, 1), -1, 1)


def underflow(terms: int) -> float:
    """Return the largest absolute error of a float32 sum of so many products by underflow."""
    return 16 * terms * 2.0**-126


# Largest norm: beyond it squares and products would leave float32's range.
LARGEST_NORM = 1e18

_SQUARED_AT_ONCE = 1_024
_CPU_CHUNK, _GPU_CHUNK = 10_240, 65_536


class Corpus:
    """Vectors to search.

    Args:
        vectors: (n, d) float32; a memory map is not copied.
        device: device of the matrix products; devices other than the CPU hold a copy.

    Attributes:
        squared_norms: (n,) float32, on the device.
        largest_norm: of a row, rounded up.

    Raises: InvalidSetting for vectors of another shape or type, not finite, or too long.
    """

    def __init__(self, vectors: NDArray[Any], *, device: str | torch.device = "cpu") -> None:
        if vectors.ndim != 2 or vectors.dtype != np.float32:
            raise InvalidSetting(f"a corpus is (n, d) float32, not {vectors.shape} {vectors.dtype}")
        self.vectors = vectors
        self.device = torch.device(device)
        self.chunk = _CPU_CHUNK if self.device.type == "cpu" else _GPU_CHUNK
        self._resident = torch.from_numpy(vectors).to(self.device)
        # Short pieces, because the squares of a piece are in memory.
        pieces = self._resident.split(_SQUARED_AT_ONCE)
        self.squared_norms = torch.cat([torch.linalg.vecdot(piece, piece) for piece in pieces])
        # Enlarged by more than the rounding error, so that it is a true upper bound. Squares of
        # short rows underflow, maybe to 0.
        largest = float(self.squared_norms.max()) + underflow(self.dim) if len(vectors) else 0.0
        self.largest_norm = math.sqrt(largest) * (1 + (self.dim + 16) * 2.0**-23)
        if not self.largest_norm <= LARGEST_NORM:
            raise InvalidSetting(
                f"a vector of the corpus is not finite, or longer than {LARGEST_NORM:g}"
            )

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def dim(self) -> int:
        """Return the dimension of the vectors."""
        return int(self.vectors.shape[1])

    def chunks(self) -> list[slice]:
        """Return consecutive ranges of rows."""
        return [
            slice(begin, min(begin + self.chunk, len(self)))
            for begin in range(0, len(self), self.chunk)
        ]

    def block(self, rows: slice) -> Tensor:
        """Return the rows as (m, d) float32 on the device."""
        return self._resident[rows]

    def rows(self, numbers: NDArray[Any]) -> NDArray[np.float64]:
        """Return rows (..., d) as float64 by their numbers (...)."""
        return np.asarray(self.vectors[numbers], np.float64)
