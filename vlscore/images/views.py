"""Which view of the chest an image shows, as far as its file or table says."""

import io
import os
import re
from pathlib import Path
from typing import Any, BinaryIO, Literal

from vlscore.errors import UnreadableImage
from vlscore.images.codes import VIEWS, known_code
from vlscore.images.files import head, is_dataset, is_dicom, opened
from vlscore.images.policy import ImagePolicy
from vlscore.images.quiet import hushed

Projection = Literal["frontal", "lateral", "unknown"]

# In a decubitus film the patient lies on one side and is seen from the front or the back.
_FRONTAL_WORDS = {"AP", "PA", "FRONTAL", "LORDOTIC", "LLD", "RLD", "DECUBITUS"}
_LATERAL_WORDS = {"LL", "RL", "LAT", "LATERAL"}


def projection(view: str | None) -> Projection:
    """What a view position says: "frontal", "lateral", or "unknown" where it says neither.

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
    """Whether a view position names a lateral view; unknown views count as frontal.

    >>> is_lateral("LL"), is_lateral("PA"), is_lateral(None)
    (True, False, False)
    """
    return projection(view) == "lateral"


def stored_view(image: Any) -> str | None:
    """The view position in a DICOM header, read without its pixels; None where there is none.

    Files that cannot be read have none, and neither have headers with anything but a known code:
    reading the image says what is wrong with it. Costs about a millisecond.

    Args:
        image: whatever `as_radiograph` takes; an open file is not looked into.
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
    except Exception:  # a header is untrusted bytes: pydicom raises whatever it likes
        return None
    return None


def _view_in(stream: BinaryIO, name: str) -> str | None:
    if not is_dicom(head(stream, name)):
        return None
    from vlscore.images.dicom_header import read_header

    with hushed():
        header = read_header(
            stream, ImagePolicy(), name, stop_before_pixels=True, specific_tags=["ViewPosition"]
        )
        return known_code(header, "ViewPosition", VIEWS)
