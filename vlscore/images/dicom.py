"""DICOM files as radiographs.

Nothing of a header but what `Provenance` lists leaves this room: messages name the file, the
transfer syntax, the modality and the body part, never a value that could identify a patient.
"""

from collections.abc import Callable
from typing import BinaryIO

from pydicom import DataElement, Dataset
from pydicom.dataelem import RawDataElement
from pydicom.tag import BaseTag

from vlscore.errors import UnreadableImage
from vlscore.images.arrays import to_grey
from vlscore.images.codes import MODALITIES, VIEWS, known_code
from vlscore.images.colour import require_no_photograph
from vlscore.images.dicom_header import (
    COLOUR,
    bits_stored,
    chosen_frame,
    frames,
    photometric,
    pixel_spacing,
    read_header,
    require_pixels,
    require_radiograph,
)
from vlscore.images.dicom_pixels import decode
from vlscore.images.dicom_tone import grey_levels
from vlscore.images.policy import ImagePolicy
from vlscore.images.radiograph import Provenance, Radiograph
from vlscore.images.window import full_range


def read_dicom(stream: BinaryIO, policy: ImagePolicy, name: str) -> Radiograph:
    """Read one frame of a DICOM file.

    Stored values pass the modality LUT or rescale, then the window of the policy, and are inverted
    where the file stores MONOCHROME1, so that dense is bright. Padding is black.

    Raises: UnreadableImage naming the file and the reason.
    """
    return _guarded(lambda: read_header(stream, policy, name), policy, name)


def radiograph_from_dataset(dataset: Dataset, policy: ImagePolicy, name: str) -> Radiograph:
    """The same from a data set in memory, which stays as it is."""
    return _guarded(lambda: _copied(dataset), policy, name)


def _guarded(header: Callable[[], Dataset], policy: ImagePolicy, name: str) -> Radiograph:
    try:
        dataset = header()
        require_radiograph(dataset, policy, name)
        require_pixels(dataset, policy, name)
        return _radiograph(dataset, policy, name)
    except UnreadableImage:
        raise
    except Exception as error:  # a header is untrusted bytes: whatever it breaks is its damage
        raise UnreadableImage(
            f"{name}: the DICOM data is damaged or truncated ({type(error).__name__}); "
            "fetch or export the file again"
        ) from None


def _copied(dataset: Dataset) -> Dataset:
    """A data set of the same elements; reading removes empty ones and adds a transfer syntax."""
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
    frame = chosen_frame(dataset, policy, name)
    stored = decode(dataset, frame, name)
    bits = bits_stored(dataset)
    if photometric(dataset) in COLOUR:
        if policy.other_modalities == "refuse":
            require_no_photograph(stored, name)
        # Decoders scale palettes and chroma to all bits of the type they return.
        depth = stored.dtype.itemsize * 8 if photometric(dataset) == "PALETTE COLOR" else bits
        pixels, window = full_range(to_grey(stored, name), 0, 2.0**depth - 1), "full range"
    else:
        pixels, window = grey_levels(dataset, to_grey(stored, name), policy.window, name)
    provenance = Provenance(
        format="dicom",
        bits=bits,
        modality=known_code(dataset, "Modality", MODALITIES),
        view=known_code(dataset, "ViewPosition", VIEWS),
        photometric_interpretation=photometric(dataset),
        pixel_spacing=pixel_spacing(dataset),
        window=window,
        frame=frame if frames(dataset) > 1 else None,
    )
    return Radiograph(pixels, provenance, name)
