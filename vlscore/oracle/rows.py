"""Float64 kernels of one query against many rows, the same bits for a row in any company.

The rank of a report must not depend on the shard, chunk or device that found it. Matrix products
and torch's reductions may round a row differently when its neighbours change; numpy's reduction
along the contiguous axis sums each row alone, so these kernels use nothing else.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def dot(x: Array, y: Array) -> Array:
    """Inner products of the rows of two broadcastable arrays, each row summed alone."""
    return np.add.reduce(np.ascontiguousarray(x * y), axis=-1)


def norm(x: Array) -> Array:
    """Lengths of the rows."""
    return np.sqrt(dot(x, x))


def feet(i: Array, g: Array, r: Array) -> tuple[Array, Array, Array]:
    """Foot, height and distance to r of rows g over the line i (0) to r (1).

    Args: i, r: (d,) float64, different. g: (m, d) float64.
    Returns: foot (m,), height (m,), |g - r| (m,). The shorter of g - i and g - r is projected, as
    in `vlscore.similarity.triangle_area`, so that nothing cancels near the vertices.
    """
    edge = r - i
    squared = dot(edge, edge)
    from_i, from_r = g - i, g - r
    is_near_r = dot(from_i, edge) > 0.5 * squared
    nearest = np.where(is_near_r[:, None], from_r, from_i)
    along = dot(nearest, edge) / squared
    height = norm(nearest - along[:, None] * edge)
    return along + is_near_r, height, norm(from_r)


def cosines(g: Array, v: Array) -> Array:
    """Cosines of rows g (m, d) with v (d,); 0 where one of them is the origin."""
    lengths = norm(g) * norm(v)
    return np.clip(dot(g, v) / np.where(lengths > 0, lengths, 1), -1, 1)
