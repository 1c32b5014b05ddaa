"""Radiographs from arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.errors import UnreadableImage
from vlscore.images.policy import ImagePolicy
from vlscore.images.radiograph import Provenance, Radiograph
from vlscore.images.window import apply_window, full_range

# ITU-R 601 luma as Pillow's mode "L" rounds it: weights of 65536.
_LUMA = (19595, 38470, 7471)
# Resizing and arithmetic overshoot by rounding errors; more than those is another scale.
_ROUNDING = 1e-5


def radiograph_from_array(
    array: NDArray[Any], policy: ImagePolicy, *, name: str, format: str = "array"
) -> Radiograph:
    """A radiograph from grey or colour values.

    Args:
        array: (height, width), (height, width, 1|3|4) or (1|3|4, height, width). Integers of 8 and
            16 bits are stored values of their type's range; wider ones, which no detector
            stores, are taken for the narrowest of the two that holds them. Floats must lie in
            [0, 1]. A fourth channel is ignored.
        policy: how integers deeper than 8 bits become grey levels.
        name: for messages.

    Raises: UnreadableImage where shape or values cannot be those of a radiograph.
    """
    values = to_grey(np.asarray(array), name)
    check_size(values.shape, policy, name)
    if values.dtype == np.bool_:
        values = values.astype(np.uint8) * np.uint8(255)
    if np.issubdtype(values.dtype, np.floating):
        pixels = _checked_floats(values, name)
        return Radiograph(pixels, Provenance(format=format, bits=32, window="as given"), name)
    if not np.issubdtype(values.dtype, np.integer):
        raise UnreadableImage(f"{name}: values of type {values.dtype} are not grey levels")
    values = _narrowed(values)
    limits = np.iinfo(values.dtype)
    pixels, window = apply_window(
        values, policy.window, stored=(limits.min, limits.max), bits=limits.bits
    )
    return Radiograph(pixels, Provenance(format=format, bits=limits.bits, window=window), name)


def _narrowed(values: NDArray[Any]) -> NDArray[Any]:
    """8-bit values that arithmetic has widened stay 8-bit values."""
    if values.dtype.itemsize > 2:
        low, high = int(values.min()), int(values.max())
        for narrow in (np.uint8, np.uint16):
            if low >= 0 and high <= np.iinfo(narrow).max:
                return values.astype(narrow)
    return values


def to_grey(values: NDArray[Any], name: str) -> NDArray[Any]:
    """(height, width) from grey or colour; equal channels keep their exact values."""
    if values.size == 0:
        raise UnreadableImage(f"{name}: has no pixels (shape {values.shape})")
    if values.ndim == 2:
        return values
    if values.ndim == 3 and values.shape[0] in (1, 3, 4) and values.shape[2] not in (1, 3, 4):
        values = np.moveaxis(values, 0, 2)
    if values.ndim != 3 or values.shape[2] not in (1, 3, 4):
        raise UnreadableImage(
            f"{name}: shape {values.shape} is not that of one image; "
            "give (height, width), (height, width, 3) or (3, height, width)"
        )
    colours = values[..., :3]
    first = colours[..., 0]
    if values.shape[2] == 1 or (
        np.array_equal(first, colours[..., 1]) and np.array_equal(first, colours[..., 2])
    ):
        return first
    return _luma(colours)


def _luma(colours: NDArray[Any]) -> NDArray[Any]:
    """Grey of the colours' type; integers of 8 bits as Pillow converts them."""
    exact = colours.dtype in (np.uint8, np.uint16)
    grey = np.full(colours.shape[:2], 32768 if exact else 0, np.uint32 if exact else np.float64)
    for channel, weight in enumerate(_LUMA):
        grey += np.multiply(colours[..., channel], weight, dtype=grey.dtype)
    if exact:
        return (grey >> 16).astype(colours.dtype)
    return (grey / 65536).astype(colours.dtype)


def check_size(shape: tuple[int, ...], policy: ImagePolicy, name: str) -> None:
    """Raises UnreadableImage for images larger than the policy admits."""
    pixels = int(np.prod(shape[:2], dtype=np.int64))
    if pixels > policy.max_pixels:
        raise UnreadableImage(
            f"{name}: {shape[1]} x {shape[0]} pixels are more than the {policy.max_pixels:,} "
            "admitted; raise ImagePolicy.max_pixels if the image is genuine"
        )


def _checked_floats(values: NDArray[Any], name: str) -> NDArray[np.float32]:
    if not np.isfinite(values).all():
        raise UnreadableImage(f"{name}: holds values that are not finite")
    low, high = float(values.min()), float(values.max())
    if low < -_ROUNDING or high > 1 + _ROUNDING:
        raise UnreadableImage(
            f"{name}: floating-point values must lie in [0, 1], these reach from {low:g} to "
            f"{high:g}; scale them, or give integers of the stored type"
        )
    return full_range(values, 0, 1)
