"""Mapping stored pixel values to [0, 1]."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def full_range(values: NDArray[Any], low: float, high: float) -> NDArray[np.float32]:
    """`low` to 0 and `high` to 1; values beyond are clipped."""
    # float32 holds integers of 24 bits; deeper values lose digits only after the subtraction.
    wide = values.dtype.itemsize > 2 and values.dtype != np.float32
    scaled = np.subtract(values, low, dtype=np.float64 if wide else np.float32)
    np.divide(scaled, high - low, out=scaled)
    np.clip(scaled, 0, 1, out=scaled)
    pixels: NDArray[np.float32] = scaled.astype(np.float32, copy=False)
    return pixels


def limits(
    values: NDArray[Any], window: str, *, stored: tuple[float, float], bits: int
) -> tuple[float, float, str]:
    """The values that become 0 and 1 under a policy's window, and in words how they were found.

    Args:
        values: (height, width) stored values.
        window: "auto", "header", "minmax", "percentile" or "full"; without a header, "auto" and
            "header" take the full range of images of 8 bits and the own range of deeper ones.
        stored: smallest and largest value the format can hold.
        bits: of a stored value.

    An image of one value has no range of its own: it takes the full range.
    """
    if window == "percentile":
        low, high = np.percentile(values, (0.5, 99.5))
        if low < high:
            return float(low), float(high), "0.5th to 99.5th percentile"
    if window in ("minmax", "percentile") or (window in ("auto", "header") and bits > 8):
        low, high = values.min(), values.max()
        if low < high:
            return float(low), float(high), "minimum to maximum"
    return float(stored[0]), float(stored[1]), "full range"
