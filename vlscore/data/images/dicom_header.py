"""Headers of DICOM files: whether they describe a chest radiograph, and its pixels."""

import math
from typing import TYPE_CHECKING

from vlscore.data.images.policy import LEAVE_OR_ACCEPT, MODALITIES, ImagePolicy, short_code
from vlscore.data.images.radiograph import check_size
from vlscore.errors import UnreadableImage

if TYPE_CHECKING:
    from pydicom import Dataset

GREY = ("MONOCHROME1", "MONOCHROME2")
# What the pixels cannot be read without, besides rows and columns.
_NEEDED = ("BitsAllocated", "BitsStored", "PixelRepresentation")
_FLOATS = ("FloatPixelData", "DoubleFloatPixelData")
COLOUR = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_RCT", "YBR_ICT", "PALETTE COLOR")

# Projection radiography; OT and SC are the codes of scanned radiographs and secondary captures.
_RADIOGRAPHS = {"CR", "DX", "DR", "RG", "RF", "XA", "OT", "SC", ""}


def require_radiograph(dataset: "Dataset", policy: ImagePolicy, name: str) -> None:
    """Refuse an image whose header says that it is no chest radiograph, unless accepted."""
    if policy.other_modalities == "accept":
        return
    modality = (short_code(dataset, "Modality") or "").upper()
    if modality not in _RADIOGRAPHS:
        shown = modality if modality in MODALITIES else "an unknown code"
        raise UnreadableImage(
            f"{name}: modality {shown} is no projection radiograph of the chest; {LEAVE_OR_ACCEPT}"
        )


def require_pixels(dataset: "Dataset", policy: ImagePolicy, name: str) -> None:
    """Refuse files without a picture, with an unknown kind of picture, or too large."""
    rows, columns = int(dataset.get("Rows") or 0), int(dataset.get("Columns") or 0)
    if "PixelData" not in dataset or dataset["PixelData"].is_empty:
        if floats := [word for word in _FLOATS if word in dataset]:
            raise UnreadableImage(
                f"{name}: its pixels are {dataset[floats[0]].name} (a parametric map), which no "
                "radiograph has and which is not supported; convert it to whole numbers"
            )
        if rows and columns:
            raise UnreadableImage(
                f"{name}: the DICOM header says {columns} x {rows} pixels, but they are "
                "missing: the file is truncated or stripped; fetch or export it again"
            )
        if _is_image_class(dataset):
            raise UnreadableImage(
                f"{name}: the DICOM file is that of an image, but ends before its pixels: it is "
                "truncated or stripped; fetch or export it again"
            )
        raise UnreadableImage(
            f"{name}: the DICOM file holds no picture (a report, a plan, an index of other "
            "files); give the image itself"
        )
    if not dataset.get("PhotometricInterpretation"):
        raise _lacks(name, "PhotometricInterpretation")
    if photometric(dataset) not in (*GREY, *COLOUR):
        raise UnreadableImage(
            f"{name}: its photometric interpretation is not understood; convert it to MONOCHROME2"
        )
    if not (rows and columns):
        raise UnreadableImage(f"{name}: the DICOM header has no rows or columns")
    check_size((rows, columns), policy, name)
    for keyword in _NEEDED:
        # pydicom gives numbers for these, unless other software has written words.
        if not isinstance(dataset.get(keyword), int):
            raise _lacks(name, keyword)
    try:
        frames(dataset)
    except (TypeError, ValueError):
        raise _lacks(name, "NumberOfFrames") from None
    if not isinstance(dataset.get("SamplesPerPixel"), int):
        # A new element: the one that there may be belongs to the caller.
        dataset.add_new("SamplesPerPixel", "US", samples(dataset))


def _is_image_class(dataset: "Dataset") -> bool:
    """Return True if the file's storage class is one of images."""
    meta = getattr(dataset, "file_meta", {})
    uid = dataset.get("SOPClassUID") or meta.get("MediaStorageSOPClassUID")
    return "Image Storage" in getattr(uid, "name", "")


def _lacks(name: str, keyword: str) -> UnreadableImage:
    from pydicom.datadict import dictionary_description, tag_for_keyword

    tag = tag_for_keyword(keyword) or 0
    return UnreadableImage(
        f"{name}: the DICOM header has no {dictionary_description(tag)} "
        f"({tag >> 16:04X},{tag & 0xFFFF:04X}), or none that can be read, and without it the "
        "pixels mean nothing; export the file again"
    )


def samples(dataset: "Dataset") -> int:
    """Return the numbers of one pixel: as stated, else 3 for colours and 1 for grey."""
    stated = dataset.get("SamplesPerPixel")
    if isinstance(stated, int):
        return stated
    return 1 if photometric(dataset) in (*GREY, "PALETTE COLOR") else 3


def frames(dataset: "Dataset") -> int:
    """Return the number of frames in the file."""
    return max(1, int(dataset.get("NumberOfFrames") or 1))


def photometric(dataset: "Dataset") -> str | None:
    """Return the photometric interpretation as stored, e.g. "MONOCHROME2"."""
    return short_code(dataset, "PhotometricInterpretation")


def bits_stored(dataset: "Dataset") -> int:
    """Return the number of bits of a stored value that belong to the picture."""
    return int(dataset.get("BitsStored") or dataset.get("BitsAllocated") or 8)


def pixel_spacing(dataset: "Dataset") -> tuple[float, float] | None:
    """Return (row, column) spacing in millimetres, of the body or else of the detector."""
    for keyword in ("PixelSpacing", "ImagerPixelSpacing"):
        try:
            row, column = (float(value) for value in dataset.get(keyword) or ())
        except (TypeError, ValueError):
            continue
        if 0 < row < math.inf and 0 < column < math.inf:
            return row, column
    return None
