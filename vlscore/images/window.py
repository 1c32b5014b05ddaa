"""Mapping stored pixel values to [0, 1]."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.errors import UnreadableImage


def full_range(values: NDArray[Any], low: float, high: float) -> NDArray[np.float32]:
    """`low` to 0 and `high` to 1; values beyond are clipped."""
    scaled = (values.astype(np.float32) - np.float32(low)) / np.float32(high - low)
    return np.clip(scaled, 0, 1, out=scaled)


def own_range(values: NDArray[Any], name: str) -> NDArray[np.float32]:
    """The image's minimum to 0 and its maximum to 1."""
    low, high = float(values.min()), float(values.max())
    if low == high:
        raise UnreadableImage(f"{name}: every pixel has the value {low:g}; it shows nothing")
    return full_range(values, low, high)


def percentiles(values: NDArray[Any], name: str) -> NDArray[np.float32]:
    """The 0.5th percentile to 0 and the 99.5th to 1; the image's own range if they are equal."""
    low, high = np.percentile(values, (0.5, 99.5))
    return own_range(values, name) if low == high else full_range(values, float(low), float(high))


def apply_window(
    values: NDArray[Any], window: str, name: str, *, stored: tuple[float, float], bits: int
) -> tuple[NDArray[np.float32], str]:
    """[0, 1] pixels under a policy's window, and in words what was done.

    Args:
        values: (height, width) stored values.
        window: "auto", "header", "minmax", "percentile" or "full"; without a header, "auto" and
            "header" take the full range of images of 8 bits and the own range of deeper ones.
        name: of the image, for messages.
        stored: smallest and largest value the format can hold.
        bits: of a stored value.
    """
    if window == "percentile":
        return percentiles(values, name), "0.5th to 99.5th percentile"
    if window == "minmax" or (window in ("auto", "header") and bits > 8):
        return own_range(values, name), "minimum to maximum"
    return full_range(values, *stored), "full range"
