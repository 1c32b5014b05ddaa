"""DICOM files as radiographs: read, decode, turn values into grey levels, turn the picture upright.

Of a header only what `Provenance` lists leaves this module. Messages name the file, the transfer
syntax and the modality, never a value that could identify a patient.
"""

from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from pydicom import DataElement, Dataset
from pydicom.dataelem import RawDataElement
from pydicom.tag import BaseTag

from vlscore.data.images.dicom_file import read_header
from vlscore.data.images.dicom_header import (
    COLOUR,
    bits_stored,
    frames,
    photometric,
    pixel_spacing,
    require_pixels,
    require_radiograph,
)
from vlscore.data.images.dicom_pixels import decode
from vlscore.data.images.dicom_tones import Tones, grey_levels
from vlscore.data.images.file_formats import refusing_damage
from vlscore.data.images.policy import MODALITIES, ImagePolicy, full_range, known_code, limits
from vlscore.data.images.projections import orientation, view_in_header
from vlscore.data.images.radiograph import Provenance, Radiograph, to_grey


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
    stored = to_grey(decode(dataset, frame, name), name)
    bits = bits_stored(dataset)
    if photometric(dataset) in COLOUR:
        tones = _grey_of_colour(dataset, stored, policy.window)
    else:
        tones = grey_levels(dataset, stored, policy.window, name)
    spacing = pixel_spacing(dataset)
    directions = orientation(dataset) or ("", "")
    pixels = upright(tones.pixels, *directions)
    notes = tones.notes
    if pixels is not tones.pixels:
        notes += ("the picture was turned as Patient Orientation of its header states",)
    if spacing is not None and directions[0] in ("H", "F"):
        spacing = spacing[::-1]
    provenance = Provenance(
        format="dicom",
        bits=bits,
        modality=known_code(dataset, "Modality", MODALITIES),
        view=view_in_header(dataset),
        photometric_interpretation=photometric(dataset),
        pixel_spacing=spacing,
        window=tones.window,
        frame=frame if frames(dataset) > 1 else None,
        notes=notes,
    )
    return Radiograph(pixels, provenance, name)


def _grey_of_colour(dataset: Dataset, stored: NDArray[Any], window: str) -> Tones:
    """Convert the grey of a coloured picture as that of other coloured images."""
    bits = bits_stored(dataset)
    if photometric(dataset) == "PALETTE COLOR":
        # Decoders scale palettes to the full range of the type that they return.
        pixels = full_range(stored, 0, 2.0 ** (stored.dtype.itemsize * 8) - 1)
        return Tones(pixels, "full range")
    low, high, words = limits(stored, window, stored=(0, 2.0**bits - 1), bits=bits)
    return Tones(full_range(stored, low, high), words)


def upright(pixels: NDArray[np.float32], rows: str, columns: str) -> NDArray[np.float32]:
    """Turn a picture so that its columns run to the feet; return it unchanged if they do.

    A frontal picture is also mirrored if need be, so that the patient's left is on its right, as
    reports mean left and right. A lateral one is never mirrored: either side may be in front.

    Args:
        rows: direction of the rows in the patient: L, R, H, F, A or P; other texts change nothing.
        columns: direction of the columns.
    """
    if {rows, columns} & {"L", "R"} and {rows, columns} & {"H", "F"}:
        if rows in ("H", "F"):
            pixels, rows, columns = pixels.T, columns, rows
        if rows == "R":
            pixels = pixels[:, ::-1]
        return pixels[::-1] if columns == "H" else pixels
    if {rows, columns} & {"A", "P"} and {rows, columns} & {"H", "F"}:
        quarters = {("F", True): 3, ("H", True): 1, ("H", False): 2}
        key = (rows, True) if rows in ("H", "F") else (columns, False)
        return np.rot90(pixels, quarters[key]) if key in quarters else pixels
    return pixels
