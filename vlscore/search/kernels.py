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
    summed: Array = np.add.reduce(np.ascontiguousarray(x * y), axis=-1)
    return summed


def norm(x: Array) -> Array:
    """Lengths of the rows."""
    return np.sqrt(dot(x, x))


def projected(i: Array, g: Array, r: Array, edge: Array, squared: Array) -> tuple[Array, Array]:
    """Foot and height of rows g over the line i (0) to r (1).

    Args:
        i, r: (..., d) float64 that broadcast to g. g: (..., m, d) float64.
        edge, squared: r - i and its squared length, which a search has at hand.

    Returns: foot (..., m), height (..., m); where i = r, 1 and the distance to them. The shorter of
    g - i and g - r is projected, as in `vlscore.similarity.triangle_area`, so that nothing cancels
    near the vertices.
    """
    squared = np.where(squared > 0, squared, 1)
    # From r first: what is found lies mostly nearer to it.
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


def feet(i: Array, g: Array, r: Array) -> tuple[Array, Array, Array]:
    """As `projected`, and the distance |g - r| (m,) as well."""
    edge = r - i
    return *projected(i, g, r, edge, dot(edge, edge)), norm(g - r)


def cosines(g: Array, v: Array) -> Array:
    """Cosines of rows g (m, d) with v (d,); 0 where one of them is the origin."""
    lengths = norm(g) * norm(v)
    return np.clip(dot(g, v) / np.where(lengths > 0, lengths, 1), -1, 1)
