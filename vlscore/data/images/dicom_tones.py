"""From stored values of a DICOM file to grey levels (PS3.3 C.11).

Modality LUT or rescale, window, polarity and padding act on one value at a time, so they are
computed in float64 once for each value that a pixel can hold, and pixels are looked up: exact, and
without a float64 copy of the image.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset

from vlscore.data.images.dicom_header import bits_stored, photometric
from vlscore.data.images.lookup_tables import lookup_table
from vlscore.data.images.policy import known_code, limits
from vlscore.errors import UnreadableImage

# Empty elements count as absent.
_OPTIONAL = (
    "WindowCenter",
    "WindowWidth",
    "VOILUTFunction",
    "VOILUTSequence",
    "ModalityLUTSequence",
    "RescaleSlope",
    "RescaleIntercept",
    "PixelPaddingValue",
    "PixelPaddingRangeLimit",
)
_SHAPES = frozenset(("IDENTITY", "INVERSE"))


class Tones(NamedTuple):
    """Grey levels of the pixels of one image, or of each value that a pixel can hold.

    Attributes:
        pixels: (rows, columns), float32 in [0, 1], dense tissue bright; of values (n,) float64,
            before polarity.
        window: the applied window, in words.
        notes: where the header contradicts itself, and what was done.
    """

    pixels: NDArray[Any]
    window: str
    notes: tuple[str, ...] = ()


class _Modality(NamedTuple):
    """Modality values of the levels, and the smallest and largest one that there can be."""

    values: NDArray[Any]
    low: float
    high: float


def grey_levels(dataset: Dataset, stored: NDArray[Any], window: str, name: str) -> Tones:
    """Convert stored values (rows, columns) to grey levels in [0, 1]."""
    for keyword in _OPTIONAL:
        if keyword in dataset and dataset[keyword].is_empty:
            del dataset[keyword]
    levels, index = _levels(stored)
    shown = np.zeros(levels.shape, np.bool_)
    shown[index] = True
    padding = _padding(dataset, levels) & shown
    if (shown & ~padding).any():
        shown &= ~padding
    table, words, notes = _tones(dataset, levels, shown, index, window, name)
    if not np.isfinite(table[shown]).all():
        raise UnreadableImage(f"{name}: the header's lookup table or window gives no usable image")
    is_inverted, contradiction = _polarity(dataset)
    if is_inverted:
        table = 1 - table
    table[~shown] = 0
    return Tones(table.astype(np.float32)[index], words, notes + contradiction)


def _polarity(dataset: Dataset) -> tuple[bool, tuple[str, ...]]:
    """Return whether dense tissue is stored dark, and a note if two elements contradict.

    MONOCHROME1 says so, and Presentation LUT Shape INVERSE (PS3.3 C.11.6). The standard requires
    both or neither. A file that states one of them is inverted: a device writes it on purpose,
    while MONOCHROME2 and IDENTITY are what software fills in.
    """
    interpretation = photometric(dataset)
    shape = known_code(dataset, "PresentationLUTShape", _SHAPES)
    is_dark = interpretation == "MONOCHROME1"
    if shape is None or is_dark == (shape == "INVERSE"):
        return is_dark, ()
    return True, (
        f"Photometric Interpretation {interpretation} and Presentation LUT Shape {shape} "
        "contradict each other; the picture was inverted",
    )


def _levels(stored: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return every value that a pixel can hold, and the index of its value for each pixel."""
    if stored.dtype.itemsize > 2:
        levels, index = np.unique(stored, return_inverse=True)
        return levels, index.reshape(stored.shape)
    unsigned = np.dtype(f"u{stored.dtype.itemsize}")
    native = stored.astype(stored.dtype.newbyteorder("="), copy=False)
    levels = np.arange(2 ** (8 * stored.dtype.itemsize), dtype=unsigned).view(native.dtype)
    return levels, np.ascontiguousarray(native).view(unsigned)


def _padding(dataset: Dataset, levels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the levels that are padding around the picture (PS3.3 C.7.5.1.1.2)."""
    stated = [_first(dataset, n) for n in ("PixelPaddingValue", "PixelPaddingRangeLimit")]
    if stated[0] is None:
        return np.zeros(levels.shape, np.bool_)
    ends = [int(number) for number in stated if number is not None]
    return (levels >= min(ends)) & (levels <= max(ends))


def _tones(
    dataset: Dataset,
    levels: NDArray[Any],
    shown: NDArray[np.bool_],
    index: NDArray[Any],
    window: str,
    name: str,
) -> Tones:
    """Return the grey value of each level, 0 to 1, before polarity, and the window."""
    modality = _modality_values(dataset, levels, shown, name)
    values = modality.values
    if window in ("auto", "header"):
        stated = _by_header(dataset, modality, shown)
        if stated is not None and np.ptp(stated.pixels[shown]) > 0:
            return stated
        if stated is not None:
            # The window is a fault of the header, not of the image.
            low, high, words = limits(values[shown], "minmax", stored=(0, 1), bits=16)
            words += " (the header's window shows nothing)"
            return Tones(_linear(values, low, high), words)
        if window == "header":
            raise UnreadableImage(
                f'{name}: the header has no VOI LUT or window that can be used; use window="auto" '
                'or "minmax"'
            )
    # Percentiles count pixels, the other windows need levels alone.
    sample = values[index][shown[index]] if window == "percentile" else values[shown]
    low, high, words = limits(
        sample, window, stored=(modality.low, modality.high), bits=bits_stored(dataset)
    )
    return Tones(_linear(values, low, high), words)


def _modality_values(
    dataset: Dataset, levels: NDArray[Any], shown: NDArray[np.bool_], name: str
) -> _Modality:
    """Return modality values of the levels. Raises: UnreadableImage if all levels get one value.

    A rescale slope of 0, or values beyond the range of a float, would make every image black.
    """
    bits = bits_stored(dataset)
    low = -(2.0 ** (bits - 1)) if dataset.get("PixelRepresentation") else 0.0
    high = low + 2.0**bits - 1
    values: NDArray[Any] = levels
    with np.errstate(all="ignore"):
        if (table := lookup_table(dataset, "ModalityLUTSequence")) is not None:
            values, low, high = table(levels, shown=shown, lowest=low), 0.0, table.white
        elif "RescaleSlope" in dataset and "RescaleIntercept" in dataset:
            slope = _number(dataset, "RescaleSlope", name)
            intercept = _number(dataset, "RescaleIntercept", name)
            values = levels.astype(np.float64) * slope
            values += intercept
            low, high = sorted((low * slope + intercept, high * slope + intercept))
        spread = np.ptp(values[shown].astype(np.float64))
    if not np.isfinite(spread) or (spread == 0 and np.ptp(levels[shown]) > 0):
        raise UnreadableImage(
            f"{name}: the header's rescale slope and intercept, or its modality lookup table, give "
            "no usable image: they turn all stored values into one value, or into values that are "
            "not finite. Correct the header, or leave this file out"
        )
    return _Modality(values, low, high)


def _by_header(dataset: Dataset, modality: _Modality, shown: NDArray[np.bool_]) -> Tones | None:
    """Apply the header's first VOI LUT, else its first window; None without a usable one."""
    values = modality.values
    if (table := lookup_table(dataset, "VOILUTSequence")) is not None:
        looked_up = table(values, shown=shown, lowest=modality.low)
        notes: tuple[str, ...] = ()
        if table.misstated:
            notes = (
                "the VOI LUT has other bits than its descriptor states; its largest entry is white",
            )
        return Tones(_linear(looked_up, 0, table.white), "VOI LUT", notes)
    center, width = _first(dataset, "WindowCenter"), _first(dataset, "WindowWidth")
    function = str(dataset.get("VOILUTFunction", "LINEAR")).upper()
    if center is None or width is None or width < (1 if function == "LINEAR" else 1e-6):
        return None
    windowed = _windowed(values.astype(np.float64), center, width, function)
    return Tones(windowed, "window of the header")


def _windowed(
    values: NDArray[np.float64], center: float, width: float, function: str
) -> NDArray[np.float64]:
    """Apply a window with an output range of [0, 1] (PS3.3 C.11.2.1.2 and C.11.2.1.3)."""
    if function == "SIGMOID":
        exponent = np.clip(-4 * (values - center) / width, -700, 700)
        return 1 / (1 + np.exp(exponent))
    if function != "LINEAR_EXACT":
        center, width = center - 0.5, width - 1
    if width == 0:
        return (values > center).astype(np.float64)
    return np.clip((values - center) / width + 0.5, 0, 1)


def _linear(values: NDArray[Any], low: float, high: float) -> NDArray[np.float64]:
    return np.clip((values.astype(np.float64) - low) / (high - low), 0, 1)


def _number(dataset: Dataset, keyword: str, name: str) -> float:
    """Return the number of an element. Raises: UnreadableImage that names the element."""
    element = dataset[keyword]
    try:
        return float(element.value)
    except (TypeError, ValueError):
        raise UnreadableImage(
            f"{name}: {element.name} {element.tag} of the header is no number (a decimal comma, "
            "or words); write it with a decimal point, or leave this file out"
        ) from None


def _first(dataset: Dataset, keyword: str) -> float | None:
    value = dataset.get(keyword)
    if value is None:
        return None
    try:
        number = float(value if isinstance(value, int | float | str) else value[0])
    except (TypeError, ValueError, IndexError):
        return None
    return number if math.isfinite(number) else None
