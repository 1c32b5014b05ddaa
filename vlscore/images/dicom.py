"""DICOM files: decoding, modality and VOI transformations, polarity.

Nothing of a header but what `Provenance` lists leaves this file: messages name the file, the
transfer syntax, the modality and the body part, never a value that could identify a patient.
"""

import logging
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom import FileDataset, dcmread
from pydicom.errors import InvalidDicomError
from pydicom.pixels import apply_modality_lut, apply_voi_lut, get_decoder
from pydicom.uid import UID

from vlscore.errors import UnreadableImage
from vlscore.images.arrays import check_size, to_grey
from vlscore.images.policy import ImagePolicy
from vlscore.images.radiograph import Provenance, Radiograph
from vlscore.images.window import apply_window, full_range, own_range

# Projection radiography, and what secondary captures of it are called.
_RADIOGRAPHS = {"CR", "DX", "RG", "RF", "XA", "IO", "PX", "OT", "SC", ""}
_CHEST = {"CHEST", "THORAX", "LUNG", "RIB", "RIBS", "TORSO", "TSPINE", "HEART", "ABDOMENCHEST"}
_GREY = ("MONOCHROME1", "MONOCHROME2")
_COLOUR = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_RCT", "YBR_ICT", "PALETTE COLOR")


def is_dicom(head: bytes) -> bool:
    """Whether a file begins like a DICOM file, with preamble or (older writers) without."""
    if head[128:132] == b"DICM":
        return True
    # A file without preamble starts with a tag of group 0002 or 0008, little endian.
    return head[:4] in (b"\x08\x00\x00\x00", b"\x08\x00\x05\x00", b"\x08\x00\x08\x00") or (
        head[:2] == b"\x02\x00" and head[2:4] in (b"\x00\x00", b"\x01\x00", b"\x02\x00")
    )


def read_dicom(path: Path, policy: ImagePolicy) -> Radiograph:
    """Read one frame of a DICOM file.

    Stored values pass the modality LUT or rescale, then the window of the policy, and are inverted
    where the file stores MONOCHROME1, so that dense is bright.

    Raises: UnreadableImage naming the file and the reason.
    """
    name = str(path)
    dataset = _header(path, name)
    _require_radiograph(dataset, policy, name)
    _require_pixels(dataset, policy, name)
    frame = _frame(dataset, policy, name)
    stored = _decode(dataset, frame, name)
    photometric = str(dataset.get("PhotometricInterpretation", ""))
    values = to_grey(stored, name)
    bits = int(dataset.get("BitsStored", values.dtype.itemsize * 8))
    if photometric in _COLOUR:
        pixels, window = full_range(values, 0, float(2**bits - 1)), "full range"
    else:
        pixels, window = _windowed(dataset, values, policy, bits, name)
        if photometric == "MONOCHROME1":
            pixels = np.float32(1) - pixels
    return Radiograph(
        pixels,
        Provenance(
            format="dicom",
            bits=bits,
            modality=_text(dataset, "Modality"),
            view=_text(dataset, "ViewPosition"),
            photometric_interpretation=photometric or None,
            pixel_spacing=_spacing(dataset),
            window=window,
            frame=policy.frame if _frames(dataset) > 1 else None,
        ),
        name,
    )


def _header(path: Path, name: str) -> FileDataset:
    logging.getLogger("pydicom").setLevel(logging.CRITICAL)
    try:
        return dcmread(path, force=True)
    except (InvalidDicomError, EOFError, OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(name, error) from None
    except Exception as error:  # a header is untrusted bytes: whatever it breaks is its damage
        raise _damaged(name, error) from None


def _damaged(name: str, error: Exception) -> UnreadableImage:
    return UnreadableImage(
        f"{name}: the DICOM data is damaged or truncated ({type(error).__name__}); "
        "fetch or export the file again"
    )


def _require_radiograph(dataset: FileDataset, policy: ImagePolicy, name: str) -> None:
    if policy.other_modalities == "accept":
        return
    modality = (_text(dataset, "Modality") or "").upper()
    if modality not in _RADIOGRAPHS:
        raise UnreadableImage(
            f"{name}: modality {modality} is no projection radiograph; leave the file out, or "
            'accept it with ImagePolicy(other_modalities="accept")'
        )
    part = (_text(dataset, "BodyPartExamined") or "").upper().replace(" ", "").replace("_", "")
    if part and not any(word in part for word in _CHEST):
        raise UnreadableImage(
            f"{name}: body part {part} is not the chest; leave the file out, or accept it with "
            'ImagePolicy(other_modalities="accept")'
        )


def _require_pixels(dataset: FileDataset, policy: ImagePolicy, name: str) -> None:
    if "PixelData" not in dataset:
        raise UnreadableImage(
            f"{name}: the DICOM file holds no pixel data (a report, an index, or a stripped "
            "copy); give the image itself"
        )
    photometric = str(dataset.get("PhotometricInterpretation", ""))
    if photometric not in (*_GREY, *_COLOUR):
        raise UnreadableImage(
            f"{name}: photometric interpretation {photometric[:16]!r} is not understood; convert "
            "the file to MONOCHROME2"
        )
    shape = (int(dataset.get("Rows", 0) or 0), int(dataset.get("Columns", 0) or 0))
    if not all(shape):
        raise UnreadableImage(f"{name}: the DICOM header states no rows or columns")
    check_size(shape, policy, name)


def _frames(dataset: FileDataset) -> int:
    try:
        return int(dataset.get("NumberOfFrames", 1) or 1)
    except (TypeError, ValueError):
        return 1


def _frame(dataset: FileDataset, policy: ImagePolicy, name: str) -> int:
    frames = _frames(dataset)
    if frames == 1:
        return 0
    if policy.frame is None:
        raise UnreadableImage(
            f"{name}: holds {frames} frames; name one with ImagePolicy(frame=...), counted from 0"
        )
    if not 0 <= policy.frame < frames:
        raise UnreadableImage(f"{name}: has no frame {policy.frame}; it holds {frames}")
    return policy.frame


def _decode(dataset: FileDataset, frame: int, name: str) -> NDArray[Any]:
    if getattr(dataset, "file_meta", None) is None or "TransferSyntaxUID" not in dataset.file_meta:
        raise UnreadableImage(
            f"{name}: the DICOM header states no transfer syntax; write the file anew with one"
        )
    syntax = UID(dataset.file_meta.TransferSyntaxUID)
    try:
        decoder = get_decoder(syntax)
    except NotImplementedError:
        raise UnreadableImage(
            f"{name}: transfer syntax {syntax.name} cannot be decoded; convert the file to "
            "Explicit VR Little Endian"
        ) from None
    if not decoder.is_available:
        raise UnreadableImage(
            f"{name}: transfer syntax {syntax.name} needs one of: "
            f"{'; '.join(decoder.missing_dependencies)}"
        )
    try:
        values, _ = decoder.as_array(dataset, index=frame, raw=False)
    except Exception as error:  # decoders of untrusted bytes raise whatever they like
        raise _damaged(name, error) from None
    return values


def _windowed(
    dataset: FileDataset, stored: NDArray[Any], policy: ImagePolicy, bits: int, name: str
) -> tuple[NDArray[np.float32], str]:
    stored, valid = _without_padding(dataset, stored)
    try:
        values = apply_modality_lut(stored, dataset)
    except Exception as error:  # LUT descriptors are untrusted too
        raise _damaged(name, error) from None
    has_window = "VOILUTSequence" in dataset or (
        "WindowCenter" in dataset and "WindowWidth" in dataset
    )
    if policy.window == "header" and not has_window:
        raise UnreadableImage(
            f'{name}: the header has no VOI LUT or window; use window="auto" or "minmax"'
        )
    if policy.window in ("auto", "header") and has_window:
        return _by_header(dataset, values, name)
    if valid is not None:
        # Padding lies outside the picture: it takes the darkest value that lies inside.
        values = np.where(valid, values, values[valid].min())
    signed = bool(dataset.get("PixelRepresentation", 0))
    limits = (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1) if signed else (0.0, 2.0**bits - 1)
    low, high = sorted(_rescaled(dataset, limit) for limit in limits)
    return apply_window(values, policy.window, name, stored=(low, high), bits=bits)


def _by_header(
    dataset: FileDataset, values: NDArray[Any], name: str
) -> tuple[NDArray[np.float32], str]:
    """The header's first VOI LUT or window, scaled to its own output range."""
    lut = "VOILUTSequence" in dataset
    try:
        seen = apply_voi_lut(values, dataset, index=0, prefer_lut=True)
        low, high = _output_range(dataset, values, lut)
    except Exception as error:  # LUT descriptors are untrusted too
        raise _damaged(name, error) from None
    seen = np.asarray(seen)
    if seen.min() == seen.max():
        # A window that shows nothing says more of the header than of the film.
        return own_range(values, name), "minimum to maximum (the header's window shows nothing)"
    return full_range(seen, low, high), "VOI LUT" if lut else "window of the header"


def _output_range(dataset: FileDataset, values: NDArray[Any], lut: bool) -> tuple[float, float]:
    if lut:
        entries = int(dataset.VOILUTSequence[0].LUTDescriptor[2])
        return 0.0, float(2**entries - 1)
    return _window_output_range(dataset)


def _window_output_range(dataset: FileDataset) -> tuple[float, float]:
    """The range that pydicom maps a window to: that of the stored bits, rescaled (PS3.3 C.11.2)."""
    bits = int(dataset.BitsStored)
    if "ModalityLUTSequence" in dataset:
        return 0.0, float(2 ** int(dataset.ModalityLUTSequence[0].LUTDescriptor[2]) - 1)
    if dataset.PixelRepresentation:
        low, high = -(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1
    else:
        low, high = 0.0, 2.0**bits - 1
    ends = sorted(_rescaled(dataset, end) for end in (low, high))
    return ends[0], ends[1]


def _rescaled(dataset: FileDataset, value: float) -> float:
    if "RescaleSlope" in dataset and "RescaleIntercept" in dataset:
        return value * float(dataset.RescaleSlope) + float(dataset.RescaleIntercept)
    return value


def _without_padding(
    dataset: FileDataset, stored: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """The stored values, and which of them are no padding (None where all are picture)."""
    padding = dataset.get("PixelPaddingValue")
    if padding is None:
        return stored, None
    valid = stored != padding
    return (stored, valid) if valid.any() and not valid.all() else (stored, None)


def _spacing(dataset: FileDataset) -> tuple[float, float] | None:
    for keyword in ("PixelSpacing", "ImagerPixelSpacing"):
        value = dataset.get(keyword)
        try:
            if value is not None and len(value) == 2 and min(value) > 0:
                return float(value[0]), float(value[1])
        except (TypeError, ValueError):
            continue
    return None


def _text(dataset: FileDataset, keyword: str) -> str | None:
    """A short code of the header, letters and digits only: never free text."""
    value = str(dataset.get(keyword, "") or "").strip()
    return value if value and len(value) <= 16 and value.replace(" ", "").isalnum() else None
