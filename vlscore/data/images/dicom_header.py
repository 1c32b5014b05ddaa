"""Headers of DICOM files: whether they describe a chest radiograph, and which view.

Also which files are safe to decode in this process (`is_plain_file`), and which view of the chest
an image shows as far as its file or table says (`stored_view`, `projection`).
"""

import contextlib
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
)
from vlscore.data.images.policy import (
    LEAVE_OR_ACCEPT,
    MODALITIES,
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

# Projection radiography; OT and SC are the codes of scanned radiographs and secondary captures.
_RADIOGRAPHS = {"CR", "DX", "DR", "RG", "RF", "XA", "OT", "SC", ""}

# Limit in bytes for the elements other than the picture in a deflated data set.
_HEADER_ALLOWANCE = 64 * 1024 * 1024


def read_header(stream: BinaryIO, policy: ImagePolicy, name: str, **how: Any) -> "Dataset":
    """Read the data set of a file, its pixel data still encoded.

    Args:
        how: further arguments of `pydicom.dcmread`.
    Raises: UnreadableImage if it would inflate to more than the policy admits; also any error of
        pydicom.
    """
    most = 8 * policy.max_pixels + _HEADER_ALLOWANCE
    # pydicom accepts any object with these methods as a file.
    bounded = cast(BinaryIO, _BoundedStream(stream, most, name))
    from pydicom import dcmread  # slow to import, and PNG files need none of it

    return dcmread(bounded, force=True, **how)


class _BoundedStream:
    """A DICOM file whose deflated part is measured before pydicom inflates all of it.

    pydicom calls `read` without a size only for data that it will inflate, so the measurement
    begins at the same byte as pydicom, whatever length the header contains.
    """

    def __init__(self, stream: BinaryIO, most: int, name: str) -> None:
        self._stream, self._most, self._name = stream, most, name
        self.seek, self.tell = stream.seek, stream.tell

    def read(self, size: int | None = -1) -> bytes:
        content = self._stream.read(-1 if size is None else size)
        if size is None or size < 0:
            inflater = zlib.decompressobj(-zlib.MAX_WBITS)
            inflater.decompress(content, self._most)
            if inflater.unconsumed_tail:
                raise UnreadableImage(
                    f"{self._name}: inflates to more than {self._most:,} bytes, as a decompression "
                    "bomb does; if the image is genuine, raise the limit with "
                    + how_to_set("max_pixels", "NUMBER")
                )
        return content


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
    if "PixelData" not in dataset:
        if rows and columns:
            raise UnreadableImage(
                f"{name}: the DICOM header says {columns} x {rows} pixels, but they are "
                "missing: the file is truncated or stripped; fetch or export it again"
            )
        raise UnreadableImage(
            f"{name}: the DICOM file holds no picture (a report, a plan, an index of other "
            "files); give the image itself"
        )
    if photometric(dataset) not in (*GREY, *COLOUR):
        raise UnreadableImage(
            f"{name}: its photometric interpretation is not understood; convert it to MONOCHROME2"
        )
    if not (rows and columns):
        raise UnreadableImage(f"{name}: the DICOM header has no rows or columns")
    check_size((rows, columns), policy, name)


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
_NO_PIXELS = {
    "stop_before_pixels": True,
    "specific_tags": [
        "ViewPosition",
        "ViewCodeSequence",
        "SeriesDescription",
        "PatientOrientation",
    ],
}
_UNCOMPRESSED = ("1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.2")


def is_plain_file(path: str | os.PathLike[str]) -> bool:
    """Return True if a file has a format whose decoders neither crash nor hang on known damage.

    These are PNG, JPEG, and DICOM without compression. True also for a path that is no file, which
    is refused at no cost. Never raises.
    """
    name = str(path)
    try:
        with opened(Path(path)) as stream:
            first = head(stream, name)
            if not is_dicom(first):
                return first.startswith((PNG, JPEG))
            with hushed():
                header = read_header(stream, ImagePolicy(), name, **_NO_PIXELS)
            return header.file_meta.TransferSyntaxUID in _UNCOMPRESSED
    except UnreadableImage:
        return True
    except Exception:  # a header is untrusted bytes: pydicom may raise any error
        return False


Projection = Literal["frontal", "lateral", "unknown"]

# In a decubitus view the patient lies on one side and is seen from the front or the back.
_FRONTAL_WORDS = {"AP", "PA", "FRONTAL", "LORDOTIC", "LLD", "RLD", "DECUBITUS"}
_LATERAL_WORDS = {"LL", "RL", "LAT", "LATERAL"}
_DECUBITUS = {"LLD", "RLD", "DECUBITUS"}
_LONG_NAMES = {"POSTEROANTERIOR": "PA", "ANTEROPOSTERIOR": "AP"}


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


def stored_view(image: Any) -> str | None:
    """Read the view position in a DICOM header, without the pixels; None if absent.

    None also for files that cannot be read, and for a value that is not a known code; a later read
    of the image reports the fault. Takes about a millisecond.

    Args:
        image: anything that `as_radiograph` takes; for an open file the result is None.
    """
    if (provenance := getattr(image, "provenance", None)) is not None:
        return cast("str | None", provenance.view)
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(hushed())
            if is_dataset(image):
                return view_in_header(image)
            if isinstance(image, bytes | bytearray | memoryview):
                stream: BinaryIO = io.BytesIO(image)
            elif isinstance(image, str | os.PathLike):
                stream = stack.enter_context(opened(Path(image)))
            else:
                return None
            if not is_dicom(head(stream, "")):
                return None
            return view_in_header(read_header(stream, ImagePolicy(), "", **_NO_PIXELS))
    except Exception:  # a header is untrusted bytes: pydicom may raise any error
        return None


def view_in_header(dataset: "Dataset") -> str | None:
    """Return the view position in a header, as a known code; None if the header does not say.

    Digital radiographs often have no View Position. Then the View Code Sequence (PS3.3 C.8.11.5),
    the words of the series' description, and the patient's orientation (PS3.3 C.7.6.1.1.1) say
    whether a view is frontal or lateral; the first of them that does counts. Only a code leaves
    this function, never a word of the header.
    """
    if (code := known_code(dataset, "ViewPosition", VIEWS)) is not None:
        return code
    for item in dataset.get("ViewCodeSequence") or ():
        if (view := _view_in_words(str(item.get("CodeMeaning") or ""))) is not None:
            return view
    if (view := _view_in_words(str(dataset.get("SeriesDescription") or ""))) is not None:
        return view
    # The direction of the rows: to the front or the back of the patient, or to a side.
    directions = [str(part).upper() for part in dataset.get("PatientOrientation") or ()]
    if len(directions) != 2 or directions[1][:1] not in ("F", "H"):
        return None
    return {"A": "LATERAL", "P": "LATERAL", "L": "FRONTAL", "R": "FRONTAL"}.get(directions[0][:1])


def _view_in_words(text: str) -> str | None:
    """Return the view that a description names; None for none, and for two that differ.

    >>> _view_in_words("postero-anterior"), _view_in_words("CHEST LAT"), _view_in_words("PA + LAT")
    ('PA', 'LATERAL', None)
    """
    joined = re.sub(r"\b(POSTERO|ANTERO)[ -]?(?=ANTERIOR|POSTERIOR)", r"\1", text.upper())
    words = {_LONG_NAMES.get(word, word) for word in re.split(r"[^A-Z]+", joined)}
    decubitus = bool(words & _DECUBITUS)
    is_frontal, is_side = bool(words & _FRONTAL_WORDS), bool(words & _LATERAL_WORDS)
    if is_side and not decubitus:
        return None if is_frontal else "LATERAL"
    if not is_frontal:
        return None
    named = words & {"PA", "AP"}
    return named.pop() if len(named) == 1 else "FRONTAL"
