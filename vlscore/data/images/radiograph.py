"""One radiograph in memory with its provenance, and radiographs from arrays."""

import base64
import io
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.data.images.policy import ImagePolicy, full_range, how_to_set, limits
from vlscore.errors import UnreadableImage


@dataclass(frozen=True)
class Provenance:
    """Origin of an image: its format and acquisition. Holds nothing that identifies a patient.

    Attributes:
        format: container: "dicom", "png", "jpeg", "tiff", "array", ...
        bits: stored bits of one pixel, before any window was applied.
        modality: DICOM modality ("CR", "DX", ...), None if absent or not a known code.
        view: view position ("PA", "AP", "LL", "LATERAL", ...), None if absent or not a
            known code.
        photometric_interpretation: as stored ("MONOCHROME1", "MONOCHROME2", "RGB", ...).
        pixel_spacing: (row, column) in millimetres, None if unknown.
        window: how stored values were mapped to [0, 1], in words.
        frame: the frame taken from a multi-frame file, None for a single frame.
        notes: where a header contradicts itself or describes a turned picture, and what was done,
            one sentence each; without a value of the header that could identify a patient.
    """

    format: str
    bits: int
    modality: str | None = None
    view: str | None = None
    photometric_interpretation: str | None = None
    pixel_spacing: tuple[float, float] | None = None
    window: str = "full range"
    frame: int | None = None
    notes: tuple[str, ...] = ()


class Radiograph:
    """A greyscale radiograph, bright where the body is dense.

    Args:
        pixels: (height, width), float32 in [0, 1] or uint8, 0 black and 255 white. Float pixels of
            uint8 are computed on first use: encoders that take 8 bits do not need them, which saves
            half of the time of reading a large file.
        provenance: where the pixels come from.
        name: name for messages: the file's path, or "array 3".
    """

    def __init__(
        self,
        pixels: NDArray[np.float32] | NDArray[np.uint8],
        provenance: Provenance,
        name: str = "image",
    ) -> None:
        self._stored: NDArray[Any] = pixels
        self.provenance = provenance
        self.name = name

    @cached_property
    def pixels(self) -> NDArray[np.float32]:
        """Grey values, float32 (height, width) in [0, 1]."""
        is_uint8 = self._stored.dtype == np.uint8
        return full_range(self._stored, 0, 255) if is_uint8 else self._stored

    @property
    def shape(self) -> tuple[int, int]:
        height, width = self._stored.shape
        return height, width

    @property
    def is_blank(self) -> bool:
        """Return True if every pixel has the same value."""
        return bool(self._stored.min() == self._stored.max())

    def to_uint8(self) -> NDArray[np.uint8]:
        """Return grey levels 0 to 255 (height, width), rounded; exact for images stored in 8 bits.

        Raises: UnreadableImage if a pixel is not finite, because it would become black.
        """
        if self._stored.dtype == np.uint8:
            return self._stored.copy()
        if not np.isfinite(self._stored).all():
            raise UnreadableImage(f"{self.name}: a pixel is not finite")
        grey: NDArray[np.uint8] = np.rint(self._stored * np.float32(255)).astype(np.uint8)
        return grey

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.pixels, dtype=dtype, copy=True if copy is None else copy)


def shrunk_url(levels: NDArray[np.uint8], longest: int, format: str, **options: Any) -> str:
    """Return grey levels (height, width) as a data URL, its longer side `longest` at most.

    Args: options: of Pillow's writer of the format, such as `quality`.
    """
    from PIL import Image

    picture = Image.fromarray(levels)
    picture.thumbnail((longest, longest), Image.Resampling.LANCZOS)
    written = io.BytesIO()
    picture.save(written, format, **options)
    return f"data:image/{format};base64,{base64.b64encode(written.getvalue()).decode('ascii')}"


# ITU-R 601 luma as Pillow's mode "L" rounds it: weights of 65536.
_LUMA = (19595, 38470, 7471)
# Resizing and arithmetic may exceed [0, 1] by rounding errors; more than this is another scale.
_ROUNDING = 1e-5
# Mean distance of two channels, as a share of the range of their values. Two radiographs lie above
# 0.1, two phantoms above 0.019, the channels of a grey JPEG stored in colour below 0.008.
_CHANNELS_APART = 0.01
# Genuine radiographs are at most three times as long as wide. Several encoders pad to a square, and
# a long strip would become a huge one.
_LONG_SIDE, _MOST_ELONGATED = 4096, 4


def radiograph_from_array(
    array: NDArray[Any], policy: ImagePolicy, *, name: str, format: str = "array"
) -> Radiograph:
    """Make a radiograph from grey or colour values.

    Args:
        array: (height, width), (height, width, 1|3|4), or (1|3|4, height, width) of equal
            channels: unequal ones may be several patients in a batch. Integers of 8 and 16 bits are
            stored values of their type's range. No detector stores wider ones: they are treated as
            8 bits if their values fit, else as 16 bits. Floats must lie in [0, 1]. A fourth channel
            is ignored.
        policy: how integers deeper than 8 bits become grey levels.
        name: name for messages.

    Raises: UnreadableImage if shape or values cannot be those of a radiograph.
    """
    values = to_grey(np.asarray(array), name)
    check_size(values.shape, policy, name)
    if values.dtype == np.bool_:
        values = values.astype(np.uint8) * np.uint8(255)
    if np.issubdtype(values.dtype, np.floating):
        if not np.isfinite(values).all():
            raise UnreadableImage(f"{name}: holds values that are not finite")
        low, high = float(values.min()), float(values.max())
        if low < -_ROUNDING or high > 1 + _ROUNDING:
            raise UnreadableImage(
                f"{name}: floating-point values must lie in [0, 1], these reach from {low:g} to "
                f"{high:g}; scale them, or give integers of the stored type"
            )
        provenance = Provenance(format=format, bits=32, window="as given")
        return Radiograph(full_range(values, 0, 1), provenance, name)
    if not np.issubdtype(values.dtype, np.integer):
        raise UnreadableImage(f"{name}: values of type {values.dtype} are not grey levels")
    if values.dtype.itemsize > 2 and values.min() >= 0:
        # Arithmetic may have widened them.
        for narrow in (np.uint16, np.uint8):
            values = values.astype(narrow) if values.max() <= np.iinfo(narrow).max else values
    kind = np.iinfo(values.dtype)
    low, high, window = limits(values, policy.window, stored=(kind.min, kind.max), bits=kind.bits)
    provenance = Provenance(format=format, bits=kind.bits, window=window)
    if values.dtype == np.uint8 and (low, high) == (kind.min, kind.max):
        # Copied, because the caller's array may change before the pixels are used.
        values = values.copy() if format == "array" else np.ascontiguousarray(values)
        return Radiograph(values, provenance, name)
    return Radiograph(full_range(values, low, high), provenance, name)


def radiograph_from_masked(array: Any, policy: ImagePolicy, *, name: str) -> Radiograph:
    """Make a radiograph of a masked array: masked pixels are black and no part of the range.

    Args: array: as for `radiograph_from_array`; of a colour, one masked channel masks the pixel.
    """
    mask = np.ma.getmaskarray(array)
    if mask.all():
        raise UnreadableImage(f"{name}: every pixel is masked; it shows nothing")
    values = np.ma.filled(array, array.min())
    if not mask.any():
        return radiograph_from_array(values, policy, name=name)
    shown = radiograph_from_array(values, policy, name=name)
    hidden: NDArray[Any] = _channels_last(mask, name)
    hidden = np.asarray(hidden.any(axis=2)) if hidden.ndim == 3 else hidden
    pixels = np.where(hidden, np.float32(0), shown.pixels)
    return Radiograph(pixels, shown.provenance, name)


def to_grey(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Convert grey or colour to (height, width); equal channels give their exact values.

    Colours of 8 and 16 bits become what Pillow makes of them.
    """
    colours = _channels_last(values, name)
    if colours.ndim == 2:
        return colours
    first = colours[..., 0]
    if colours.shape[2] == 1 or (
        np.array_equal(first, colours[..., 1]) and np.array_equal(first, colours[..., 2])
    ):
        return first
    is_exact = colours.dtype in (np.uint8, np.uint16)
    wide: Any = np.uint32 if is_exact else np.float64
    grey = np.full(colours.shape[:2], 32768 if is_exact else 0, wide)
    for channel, weight in enumerate(_LUMA):
        grey += np.multiply(colours[..., channel], weight, dtype=wide)
    return (grey >> 16 if is_exact else grey / 65536).astype(colours.dtype)


def _channels_last(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Return (height, width) unchanged, else (height, width, 1|3|4) from either order of axes."""
    if values.size == 0:
        raise UnreadableImage(f"{name}: has no pixels (shape {values.shape})")
    if values.ndim == 2:
        return values
    if values.ndim == 3 and values.shape[2] in (1, 3, 4):
        return values
    if values.ndim == 3 and values.shape[0] in (1, 3, 4):
        _require_one_image(values, name)
        return np.moveaxis(values, 0, 2)
    is_batch = values.ndim == 4 or (values.ndim == 3 and values.shape[0] < min(values.shape[1:]))
    raise UnreadableImage(
        f"{name}: shape {values.shape} is not that of one image; "
        + (
            f"if it is a batch of {values.shape[0]} images, give list(batch)"
            if is_batch
            else "give (height, width), (height, width, 3) or (3, height, width)"
        )
    )


def _require_one_image(values: NDArray[Any], name: str) -> None:
    """Refuse (3|4, height, width) whose channels are different pictures, of several patients.

    Radiographs are grey, so the channels of one are equal, except for the rounding of a JPEG
    stored in colour. The fourth channel may be transparency, with one value everywhere.
    """
    count = values.shape[0]
    if values.dtype.kind not in "uif":
        return
    span = float(values.max()) - float(values.min())
    others = values[1:3] if count == 4 and values[3].min() == values[3].max() else values[1:]
    apart = [
        float(np.abs(np.subtract(other, values[0], dtype=np.float64)).mean()) for other in others
    ]
    if any(distance > _CHANNELS_APART * span for distance in apart):
        raise UnreadableImage(
            f"{name}: shape {values.shape} with channels that differ is neither clearly one "
            f"image nor {count}: if it is a batch of {count} images, give list(batch); if it "
            "is one picture in colour, give (height, width, 3)"
        )


def too_elongated(height: int, width: int) -> bool:
    """Return True if an image is so elongated that padding it to a square would need gigabytes.

    >>> too_elongated(3000, 2500), too_elongated(40_000, 1)
    (False, True)
    """
    longer, shorter = max(height, width), min(height, width)
    return longer > _LONG_SIDE and longer > _MOST_ELONGATED * shorter


def check_size(shape: tuple[int, ...], policy: ImagePolicy, name: str) -> None:
    """Raise UnreadableImage for images larger than the policy admits, or too elongated."""
    height, width = int(shape[0]), int(shape[1])
    if height * width > policy.max_pixels:
        raise UnreadableImage(
            f"{name}: {width} x {height} pixels are more than the {policy.max_pixels:,} "
            "admitted; if the image is genuine, raise the limit with "
            + how_to_set("max_pixels", "NUMBER")
        )
    if too_elongated(height, width):
        raise UnreadableImage(
            f"{name}: {width} x {height} pixels are too elongated for a radiograph; crop it"
        )
