"""Headers of DICOM files: whether they describe a chest radiograph, and which view.

Also which files are safe to decode in this process (`is_plain_file`), and which view of the chest
an image shows as far as its file or table says (`stored_view`, `projection`).
"""

import io
import math
import os
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

from vlscore.data.images.file_formats import (
    JPEG,
    PNG,
    head,
    is_dataset,
    is_dicom,
    opened,
    require_bounded_effort,
)
from vlscore.data.images.policy import (
    LEAVE_OR_ACCEPT,
    MODALITIES,
    PHOTOMETRIC_INTERPRETATIONS,
    VIEWS,
    ImagePolicy,
    how_to_set,
    hushed,
    known_code,
    short_code,
)
from vlscore.data.images.radiograph import check_size
from vlscore.errors import UnreadableImage

if TYPE_CHECKING:
    from pydicom import Dataset

GREY = ("MONOCHROME1", "MONOCHROME2")
COLOUR = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_RCT", "YBR_ICT", "PALETTE COLOR")

# Projection radiography; OT and SC are the codes of scanned films and secondary captures.
_RADIOGRAPHS = {"CR", "DX", "DR", "RG", "RF", "XA", "OT", "SC", ""}

# Body parts that are certainly not the chest (terms of PS3.16 Annex L and common variants). Other
# words, in other languages for instance, are no reason to refuse.
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

# Limit in bytes for the elements other than the picture in a deflated data set.
_HEADER_ALLOWANCE = 64 * 1024 * 1024
_DEFLATED_STEP, _INFLATED_STEP = 16 * 1024, 1024 * 1024


def read_header(stream: BinaryIO, policy: ImagePolicy, name: str, **how: Any) -> "Dataset":
    """Read the data set of a file, its pixel data still encoded.

    Args:
        how: further arguments of `pydicom.dcmread`.
    Raises: UnreadableImage if it would inflate to more than the policy admits; also any error of
        pydicom.
    """
    most = 8 * policy.max_pixels + _HEADER_ALLOWANCE
    # pydicom accepts any object with these methods as a file.
    measured = cast(BinaryIO, _MeasuredStream(stream, most, name))
    from pydicom import dcmread  # slow to import, and PNG files need none of it

    return dcmread(measured, force=True, **how)


class _MeasuredStream:
    """A DICOM file whose deflated part is measured before pydicom inflates all of it.

    pydicom calls `read` without a size only for data that it will inflate. So the measurement
    begins at the same byte as pydicom, whatever length the header contains.
    """

    def __init__(self, stream: BinaryIO, most: int, name: str) -> None:
        self._stream = stream
        self._most = most
        self._name = name
        self.seek = stream.seek
        self.tell = stream.tell

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size >= 0:
            return self._stream.read(size)
        deflated = self._stream.read()
        if _inflates_beyond(deflated, self._most):
            raise UnreadableImage(
                f"{self._name}: inflates to more than {self._most:,} bytes, as a decompression "
                "bomb does; if the image is genuine, raise the limit with "
                + how_to_set("max_pixels", "NUMBER")
            )
        return deflated


def _inflates_beyond(deflated: bytes, most: int) -> bool:
    """Return True if the data inflates to more than `most` bytes; constant memory."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    inflated = 0
    for start in range(0, len(deflated), _DEFLATED_STEP):
        rest = deflated[start : start + _DEFLATED_STEP]
        while rest and inflated <= most:
            inflated += len(inflater.decompress(rest, _INFLATED_STEP))
            rest = inflater.unconsumed_tail
        if inflater.eof:
            break
    return inflated > most


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
    part = _other_part(_body_part(dataset) or "")
    if part is not None:
        raise UnreadableImage(f"{name}: body part {part} is not the chest; {LEAVE_OR_ACCEPT}")


def _other_part(part: str) -> str | None:
    """Return the listed word for another body part; the header's text may name a person."""
    part = "".join(character for character in part.upper() if character.isalpha())
    if "SPINE" in part:
        return "SPINE"
    if any(word in part for word in _CHEST):
        return None
    # The longest match, so that "CARPAL FOREARM" is not read as ARM.
    return max((word for word in _NOT_CHEST if word in part), key=len, default=None)


def _body_part(dataset: "Dataset") -> str | None:
    part = short_code(dataset, "BodyPartExamined")
    regions = dataset.get("AnatomicRegionSequence")
    if part is None and regions:
        return short_code(regions[0], "CodeMeaning")
    return part


def require_pixels(dataset: "Dataset", policy: ImagePolicy, name: str) -> None:
    """Refuse files without a picture, with an unknown kind of picture, or too large."""
    if _is_directory(dataset):
        raise UnreadableImage(f"{name}: is a DICOMDIR, an index of other files; give one of those")
    rows, columns = int(dataset.get("Rows") or 0), int(dataset.get("Columns") or 0)
    if "PixelData" not in dataset:
        if rows and columns:
            raise UnreadableImage(
                f"{name}: the DICOM header says {columns} x {rows} pixels, but they are "
                "missing: the file is truncated or stripped; fetch or export it again"
            )
        raise UnreadableImage(
            f"{name}: the DICOM file holds no picture (a report, a plan, a waveform); "
            "give the image itself"
        )
    if photometric(dataset) not in (*GREY, *COLOUR):
        shown = known_code(dataset, "PhotometricInterpretation", PHOTOMETRIC_INTERPRETATIONS)
        raise UnreadableImage(
            f"{name}: photometric interpretation {shown or 'an unknown code'} is not understood; "
            "convert the file to MONOCHROME2"
        )
    if not (rows and columns):
        raise UnreadableImage(f"{name}: the DICOM header has no rows or columns")
    check_size((rows, columns), policy, name)


def _is_directory(dataset: "Dataset") -> bool:
    from pydicom.uid import MediaStorageDirectoryStorage

    meta = getattr(dataset, "file_meta", {})
    return bool(meta.get("MediaStorageSOPClassUID") == MediaStorageDirectoryStorage)


def chosen_frame(dataset: "Dataset", policy: ImagePolicy, name: str) -> int:
    """Return the index of the frame to read. Raises: UnreadableImage if the policy must name it."""
    count = frames(dataset)
    if count == 1:
        return 0
    if policy.frame is None:
        raise UnreadableImage(
            f"{name}: holds {count} frames; name one, counted from 0, with "
            + how_to_set("frame", "NUMBER")
        )
    if not 0 <= policy.frame < count:
        raise UnreadableImage(f"{name}: has no frame {policy.frame}; it holds {count}")
    return policy.frame


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


# Implicit little endian, explicit little endian and explicit big endian (PS3.5 section 10).
_UNCOMPRESSED = ("1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.2")


def is_plain_file(path: str | os.PathLike[str]) -> bool:
    """Return True if a file has a format whose decoders neither crash nor hang on known damage.

    These are PNG, JPEG of few scans, and DICOM without compression. True also for a path that is
    no file, which is refused at no cost. Never raises.
    """
    name = str(path)
    try:
        with opened(Path(path)) as stream:
            first = head(stream, name)
            return _is_plain(stream, first, name)
    except UnreadableImage:
        return True


def _is_plain(stream: BinaryIO, first: bytes, name: str) -> bool:
    try:
        if is_dicom(first):
            with hushed():
                header = read_header(
                    stream, ImagePolicy(), name, stop_before_pixels=True, specific_tags=["Rows"]
                )
            return header.file_meta.get("TransferSyntaxUID", "") in _UNCOMPRESSED
        require_bounded_effort(stream, first, name)
        return first.startswith((PNG, JPEG))
    except Exception:  # a header is untrusted bytes: pydicom may raise any error
        return False


Projection = Literal["frontal", "lateral", "unknown"]

# In a decubitus film the patient lies on one side and is seen from the front or the back.
_FRONTAL_WORDS = {"AP", "PA", "FRONTAL", "LORDOTIC", "LLD", "RLD", "DECUBITUS"}
_LATERAL_WORDS = {"LL", "RL", "LAT", "LATERAL"}


def projection(view: str | None) -> Projection:
    """Return the projection of a view position: "frontal", "lateral" or "unknown".

    >>> projection("PA"), projection("Cross-table lateral"), projection(None), projection("other")
    ('frontal', 'lateral', 'unknown', 'unknown')
    """
    words = set(re.split(r"[^A-Z]+", (view or "").upper()))
    if words & _FRONTAL_WORDS:
        return "frontal"
    if words & _LATERAL_WORDS:
        return "lateral"
    return "unknown"


def is_lateral(view: str | None) -> bool:
    """Return True if a view position is a lateral view; unknown views count as frontal.

    >>> is_lateral("LL"), is_lateral("PA"), is_lateral(None)
    (True, False, False)
    """
    return projection(view) == "lateral"


def stored_view(image: Any) -> str | None:
    """Read the view position in a DICOM header, without the pixels; None if absent.

    None also for files that cannot be read, and for a value that is not a known code; a later read
    of the image reports the fault. Takes about a millisecond.

    Args:
        image: anything that `as_radiograph` takes; for an open file the result is None.
    """
    provenance = getattr(image, "provenance", None)
    if provenance is not None:
        view: str | None = provenance.view
        return view
    try:
        if is_dataset(image):
            with hushed():
                return known_code(image, "ViewPosition", VIEWS)
        if isinstance(image, bytes | bytearray | memoryview):
            return _view_in(io.BytesIO(image), "bytes")
        if isinstance(image, str | os.PathLike):
            with opened(Path(image)) as stream:
                return _view_in(stream, str(image))
    except UnreadableImage:
        return None
    except Exception:  # a header is untrusted bytes: pydicom may raise any error
        return None
    return None


def _view_in(stream: BinaryIO, name: str) -> str | None:
    if not is_dicom(head(stream, name)):
        return None

    with hushed():
        header = read_header(
            stream, ImagePolicy(), name, stop_before_pixels=True, specific_tags=["ViewPosition"]
        )
        return known_code(header, "ViewPosition", VIEWS)
