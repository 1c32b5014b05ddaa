"""Headers of DICOM files: whether they describe a chest radiograph, and what is kept of them."""

import math
import zlib
from pathlib import Path

from pydicom import Dataset, FileDataset, dcmread
from pydicom.errors import InvalidDicomError
from pydicom.filereader import read_file_meta_info
from pydicom.uid import DeflatedExplicitVRLittleEndian, MediaStorageDirectoryStorage

from vlscore.errors import UnreadableImage
from vlscore.images.arrays import check_size
from vlscore.images.policy import ImagePolicy

GREY = ("MONOCHROME1", "MONOCHROME2")
COLOUR = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_RCT", "YBR_ICT", "PALETTE COLOR")

# Projection radiography; OT and SC are what scanned films and secondary captures are called.
_RADIOGRAPHS = {"CR", "DX", "DR", "RG", "RF", "XA", "OT", "SC", ""}

# Body parts that are certainly not the chest (terms of PS3.16 Annex L and common variants). Words
# not listed, in other languages for instance, are no reason to refuse.
_CHEST = ("CHEST", "THORAX", "LUNG", "RIB", "HEART", "STERNUM", "TORSO", "TRUNK")
# fmt: off
_NOT_CHEST = (
    "ABDOMEN", "ABDOMINAL", "ANKLE", "ARM", "BLADDER", "BRAIN", "BREAST", "CALCANEUS", "CALF",
    "CAROTID", "CLAVICLE", "COCCYX", "COLON", "ELBOW", "EXTREMITY", "FACE", "FACIAL", "FEET",
    "FEMUR", "FIBULA", "FINGER", "FOOT", "FOREARM", "HAND", "HEAD", "HEEL", "HIP", "HUMERUS",
    "ILIUM", "INTESTINE", "JAW", "JOINT", "KIDNEY", "KNEE", "LEG", "LIVER", "LUMBAR",
    "MANDIBLE", "MAXILLA", "NASAL", "NECK", "ORBIT", "PATELLA", "PELVIS", "PELVIC", "RADIUS",
    "SACRUM", "SCAPULA", "SCROTUM", "SHOULDER", "SINUS", "SKULL", "SPINE", "TEETH",
    "TEMPORAL", "THIGH", "THUMB", "TIBIA", "TOE", "TOOTH", "ULNA", "UTERUS", "WRIST",
    "ZYGOMA",
)
# fmt: on

# What the elements beside the picture may take up in a deflated data set.
_HEADER_ALLOWANCE = 64 * 1024 * 1024
_INFLATE_STEP = 1024 * 1024


def is_dicom(head: bytes) -> bool:
    """Whether a file begins like a DICOM file, with preamble or (older writers) without."""
    if head[128:132] == b"DICM":
        return True
    # Without preamble the first element is one of group 0002 or 0008, in either byte order.
    little = head[:2] in (b"\x02\x00", b"\x08\x00") and head[3:4] == b"\x00"
    big = head[:2] in (b"\x00\x02", b"\x00\x08") and head[2:3] == b"\x00"
    explicit = head[4:6].isalpha() and head[4:6].isupper()
    implicit = little and int.from_bytes(head[4:8], "little") <= 1024
    return (little or big) and (explicit or implicit)


def read_header(path: Path, policy: ImagePolicy, name: str) -> FileDataset:
    """The data set of a file, its pixel data still encoded."""
    _refuse_deflated_bomb(path, policy, name)
    return dcmread(path, force=True)


def _refuse_deflated_bomb(path: Path, policy: ImagePolicy, name: str) -> None:
    """pydicom inflates a deflated data set whole: measure it first, in constant memory."""
    try:
        meta = read_file_meta_info(path)
    except InvalidDicomError:
        return
    if meta.get("TransferSyntaxUID") != DeflatedExplicitVRLittleEndian:
        return
    most = 8 * policy.max_pixels + _HEADER_ALLOWANCE
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    inflated = 0
    with path.open("rb") as stream:
        # Preamble and prefix, then the element that tells the length of those that follow it.
        stream.seek(132 + 12 + int(meta.FileMetaInformationGroupLength))
        while chunk := inflater.unconsumed_tail or stream.read(_INFLATE_STEP):
            inflated += len(inflater.decompress(chunk, _INFLATE_STEP))
            if inflated > most:
                raise UnreadableImage(
                    f"{name}: inflates to more than {most:,} bytes, as a decompression bomb does; "
                    "raise ImagePolicy.max_pixels if the image is genuine"
                )


def require_radiograph(dataset: Dataset, policy: ImagePolicy, name: str) -> None:
    """Refuse what its own header calls no chest radiograph, unless the policy accepts it."""
    if policy.other_modalities == "accept":
        return
    accept = 'leave the file out, or accept it with ImagePolicy(other_modalities="accept")'
    modality = short_code(dataset, "Modality") or ""
    if modality.upper() not in _RADIOGRAPHS:
        raise UnreadableImage(
            f"{name}: modality {modality} is no projection radiograph of the chest; {accept}"
        )
    part = _body_part(dataset)
    if part is not None and _is_other_part(part):
        raise UnreadableImage(f"{name}: body part {part} is not the chest; {accept}")


def _is_other_part(part: str) -> bool:
    part = "".join(character for character in part.upper() if character.isalpha())
    if "SPINE" in part:
        return True
    return not any(word in part for word in _CHEST) and any(word in part for word in _NOT_CHEST)


def _body_part(dataset: Dataset) -> str | None:
    part = short_code(dataset, "BodyPartExamined")
    regions = dataset.get("AnatomicRegionSequence")
    if part is None and regions:
        return short_code(regions[0], "CodeMeaning")
    return part


def require_pixels(dataset: Dataset, policy: ImagePolicy, name: str) -> None:
    """Refuse files without a picture, of a kind of picture not understood, or too large."""
    if _is_directory(dataset):
        raise UnreadableImage(f"{name}: is a DICOMDIR, an index of other files; give one of those")
    rows, columns = int(dataset.get("Rows") or 0), int(dataset.get("Columns") or 0)
    if "PixelData" not in dataset:
        if rows and columns:
            raise UnreadableImage(
                f"{name}: the DICOM header announces {columns} x {rows} pixels, but they are "
                "missing: the file is truncated or stripped; fetch or export it again"
            )
        raise UnreadableImage(
            f"{name}: the DICOM file holds no picture (a report, a plan, a waveform); "
            "give the image itself"
        )
    if photometric(dataset) not in (*GREY, *COLOUR):
        raise UnreadableImage(
            f"{name}: photometric interpretation {photometric(dataset)} is not understood; "
            "convert the file to MONOCHROME2"
        )
    if not (rows and columns):
        raise UnreadableImage(f"{name}: the DICOM header states no rows or columns")
    check_size((rows, columns), policy, name)


def _is_directory(dataset: Dataset) -> bool:
    meta = getattr(dataset, "file_meta", {})
    return bool(meta.get("MediaStorageSOPClassUID") == MediaStorageDirectoryStorage)


def chosen_frame(dataset: Dataset, policy: ImagePolicy, name: str) -> int:
    """The index of the frame to read; raises UnreadableImage where the policy must name one."""
    count = frames(dataset)
    if count == 1:
        return 0
    if policy.frame is None:
        raise UnreadableImage(
            f"{name}: holds {count} frames; name one with ImagePolicy(frame=...), counted from 0"
        )
    if not 0 <= policy.frame < count:
        raise UnreadableImage(f"{name}: has no frame {policy.frame}; it holds {count}")
    return policy.frame


def frames(dataset: Dataset) -> int:
    """How many frames the file holds."""
    return max(1, int(dataset.get("NumberOfFrames") or 1))


def photometric(dataset: Dataset) -> str | None:
    """The photometric interpretation as stored, e.g. "MONOCHROME2"."""
    return short_code(dataset, "PhotometricInterpretation")


def bits_stored(dataset: Dataset) -> int:
    """How many bits of a stored value carry the picture."""
    return int(dataset.get("BitsStored") or dataset.get("BitsAllocated") or 8)


def pixel_spacing(dataset: Dataset) -> tuple[float, float] | None:
    """(row, column) spacing in millimetres, of the body or else of the detector."""
    for keyword in ("PixelSpacing", "ImagerPixelSpacing"):
        try:
            row, column = (float(value) for value in dataset.get(keyword) or ())
        except (TypeError, ValueError):
            continue
        if 0 < row < math.inf and 0 < column < math.inf:
            return row, column
    return None


def short_code(dataset: Dataset, keyword: str) -> str | None:
    """A code of the header, of at most 16 letters, digits, blanks and underscores: no free text."""
    value = str(dataset.get(keyword) or "").strip()
    if not value or len(value) > 16:
        return None
    return value if value.replace(" ", "").replace("_", "").isalnum() else None
