"""DICOM files as radiographs: modality LUT, window, polarity, padding (PS3.3 C.11).

All of these act on one value at a time, so they are computed in float64 once for each value that a
pixel can hold, and pixels are looked up: exact, and without a float64 copy of the image.

Of a header only what `Provenance` lists leaves this module. Messages name the file, the transfer
syntax and the modality, never a value that could identify a patient.
"""

import math
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from pydicom import DataElement, Dataset
from pydicom.dataelem import RawDataElement
from pydicom.pixels.processing import apply_modality_lut, apply_voi
from pydicom.tag import BaseTag

from vlscore.data.images.dicom_header import (
    COLOUR,
    bits_stored,
    frames,
    photometric,
    pixel_spacing,
    read_header,
    require_pixels,
    require_radiograph,
    view_in_header,
)
from vlscore.data.images.dicom_pixels import decode
from vlscore.data.images.file_formats import refusing_damage
from vlscore.data.images.policy import (
    MODALITIES,
    ImagePolicy,
    full_range,
    known_code,
    limits,
)
from vlscore.data.images.radiograph import Provenance, Radiograph, to_grey
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


def grey_levels(
    dataset: Dataset, stored: NDArray[Any], window: str, name: str
) -> tuple[NDArray[np.float32], str]:
    """Convert stored values (rows, columns) to [0, 1]; also return the applied window, in words."""
    for keyword in _OPTIONAL:
        if keyword in dataset and dataset[keyword].is_empty:
            del dataset[keyword]
    levels, index = _levels(stored)
    shown = np.zeros(levels.shape, np.bool_)
    shown[index] = True
    padding = _padding(dataset, levels) & shown
    if (shown & ~padding).any():
        shown &= ~padding
    table, words = _tones(dataset, levels, shown, index, window, name)
    if not np.isfinite(table[shown]).all():
        raise UnreadableImage(f"{name}: the header's lookup table or window makes no picture")
    if photometric(dataset) == "MONOCHROME1":
        table = 1 - table
    table[~shown] = 0
    return table.astype(np.float32)[index], words


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
    if "PixelPaddingValue" not in dataset:
        return np.zeros(levels.shape, np.bool_)
    first = int(dataset.PixelPaddingValue)
    last = int(dataset.get("PixelPaddingRangeLimit", first))
    return (levels >= min(first, last)) & (levels <= max(first, last))


def _tones(
    dataset: Dataset,
    levels: NDArray[Any],
    shown: NDArray[np.bool_],
    index: NDArray[Any],
    window: str,
    name: str,
) -> tuple[NDArray[np.float64], str]:
    """Return the grey value of each level, 0 to 1, before polarity, and the window, in words."""
    values = _modality_values(dataset, levels, shown, name)
    if window in ("auto", "header"):
        tones, words = _by_header(dataset, values)
        if tones is not None and np.ptp(tones[shown]) > 0:
            return tones, words
        if tones is not None:
            # The window is a fault of the header, not of the image.
            low, high, words = limits(values[shown], "minmax", stored=(0, 1), bits=16)
            return _linear(values, low, high), f"{words} (the header's window shows nothing)"
        if window == "header":
            raise UnreadableImage(
                f'{name}: the header has no VOI LUT or window; use window="auto" or "minmax"'
            )
    # Percentiles count pixels, the other windows need levels alone.
    sample = values[index][shown[index]] if window == "percentile" else values[shown]
    low, high, words = limits(
        sample, window, stored=_modality_range(dataset), bits=bits_stored(dataset)
    )
    return _linear(values, low, high), words


def _modality_values(
    dataset: Dataset, levels: NDArray[Any], shown: NDArray[np.bool_], name: str
) -> NDArray[Any]:
    """Return modality values of the levels. Raises: UnreadableImage if all levels get one value.

    A rescale slope of 0, or values beyond the range of a float, would make every image black.
    """
    with np.errstate(all="ignore"):
        values = np.asarray(apply_modality_lut(levels, dataset))
        seen = values[shown].astype(np.float64)
        spread = np.ptp(seen)
    if not np.isfinite(spread) or (spread == 0 and np.ptp(levels[shown]) > 0):
        raise UnreadableImage(
            f"{name}: the header's rescale slope and intercept, or its modality lookup table, make "
            "no picture: they turn all stored values into one value, or into values that are not "
            "finite. Mend the header, or leave this file out"
        )
    return values


def _by_header(dataset: Dataset, values: NDArray[Any]) -> tuple[NDArray[np.float64] | None, str]:
    """Apply the header's first VOI LUT, else its first window; None without a usable one."""
    if "VOILUTSequence" in dataset:
        bits = int(dataset.VOILUTSequence[0].LUTDescriptor[2])
        return _linear(apply_voi(values, dataset, index=0), 0, 2.0**bits - 1), "VOI LUT"
    center, width = _first(dataset, "WindowCenter"), _first(dataset, "WindowWidth")
    function = str(dataset.get("VOILUTFunction", "LINEAR")).upper()
    if center is None or width is None or width < (1 if function == "LINEAR" else 1e-6):
        return None, ""
    return _windowed(values.astype(np.float64), center, width, function), "window of the header"


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


def _modality_range(dataset: Dataset) -> tuple[float, float]:
    """Return the smallest and largest modality value that the stored bits can represent."""
    if "ModalityLUTSequence" in dataset:
        return 0.0, 2.0 ** int(dataset.ModalityLUTSequence[0].LUTDescriptor[2]) - 1
    bits = bits_stored(dataset)
    low = -(2.0 ** (bits - 1)) if dataset.get("PixelRepresentation") else 0.0
    ends = low, low + 2.0**bits - 1
    if "RescaleSlope" in dataset and "RescaleIntercept" in dataset:
        slope, intercept = float(dataset.RescaleSlope), float(dataset.RescaleIntercept)
        ends = ends[0] * slope + intercept, ends[1] * slope + intercept
    return min(ends), max(ends)


def _first(dataset: Dataset, keyword: str) -> float | None:
    value = dataset.get(keyword)
    if value is None:
        return None
    try:
        number = float(value if isinstance(value, int | float | str) else value[0])
    except (TypeError, ValueError, IndexError):
        return None
    return number if math.isfinite(number) else None


def read_dicom(source: BinaryIO | Dataset, policy: ImagePolicy, name: str) -> Radiograph:
    """Read one frame of a DICOM file, or of a data set in memory, which does not change.

    Stored values pass the modality LUT or rescale, then the window of the policy, and are inverted
    if the file stores MONOCHROME1, so that dense tissue is bright. Padding is black.

    Raises: UnreadableImage naming the file and the reason.
    """
    with refusing_damage(name, "DICOM data"):
        if isinstance(source, Dataset):
            dataset = _copied(source)
        else:
            dataset = read_header(source, policy, name)
        require_radiograph(dataset, policy, name)
        require_pixels(dataset, policy, name)
        return _radiograph(dataset, policy, name)


def _copied(dataset: Dataset) -> Dataset:
    """Copy a data set, because reading removes empty elements and adds a transfer syntax."""
    elements: dict[BaseTag, DataElement | RawDataElement] = {
        tag: dataset.get_item(tag)
        for tag in dataset.keys()  # noqa: SIM118  to iterate over it decodes every value
    }
    copy = Dataset(elements)
    implicit, little = dataset.original_encoding
    copy.set_original_encoding(implicit, little, dataset.original_character_set)
    if hasattr(dataset, "file_meta"):
        copy.file_meta = dataset.file_meta
    return copy


def _radiograph(dataset: Dataset, policy: ImagePolicy, name: str) -> Radiograph:
    frame = policy.frame_of(frames(dataset), "frames", name)
    stored = decode(dataset, frame, name)
    bits = bits_stored(dataset)
    if photometric(dataset) in COLOUR:
        # Decoders scale palettes and chroma to the full range of the type that they return.
        depth = stored.dtype.itemsize * 8 if photometric(dataset) == "PALETTE COLOR" else bits
        pixels, window = full_range(to_grey(stored, name), 0, 2.0**depth - 1), "full range"
    else:
        pixels, window = grey_levels(dataset, to_grey(stored, name), policy.window, name)
    provenance = Provenance(
        format="dicom",
        bits=bits,
        modality=known_code(dataset, "Modality", MODALITIES),
        view=view_in_header(dataset),
        photometric_interpretation=photometric(dataset),
        pixel_spacing=pixel_spacing(dataset),
        window=window,
        frame=frame if frames(dataset) > 1 else None,
    )
    return Radiograph(pixels, provenance, name)
