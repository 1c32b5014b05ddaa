"""Views of the chest: which one an image shows, as its file's header or its table says.

`view_in_words` reads every statement of a view: a cell of a table, a View Position, the meaning of
a View Code, a description. `projection` says whether it is frontal or lateral.
"""

import contextlib
import io
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, cast

from vlscore.data.images.dicom_file import read_header
from vlscore.data.images.file_formats import head, is_dataset, is_dicom, opened
from vlscore.data.images.policy import VIEWS, ImagePolicy, hushed, known_code

if TYPE_CHECKING:
    from pydicom import Dataset

Projection = Literal["frontal", "lateral", "unknown"]

# In a decubitus view the patient lies on one side and is seen from the front or the back.
_DECUBITUS = {"LLD", "RLD", "DECUBITUS", "DECUB"}
_FRONTAL_WORDS = {"AP", "PA", "FRONTAL", "FRONTALE", "FRONT", "FACE", "LORDOTIC", *_DECUBITUS}
_LATERAL_WORDS = {"LL", "RL", "LAT", "LATERAL", "LATERALE", "PROFILE", "PROFIL", "PERFIL"}
_LATERAL_WORDS |= {"LATEROLATERAL", "SEITLICH", "LLAT", "RLAT"}
_LONG_NAMES = {
    **dict.fromkeys(("POSTEROANTERIOR", "POSTERIORANTERIOR", "POSTEROANT", "DORSOVENTRAL"), "PA"),
    **dict.fromkeys(("ANTEROPOSTERIOR", "ANTERIORPOSTERIOR", "ANTEROPOST", "VENTRODORSAL"), "AP"),
}
# Both halves of a long name, and the initials: with a hyphen, a blank, a point, a slash or nothing.
_HALVES = re.compile(
    r"\b(POSTERO|POSTERIO|POSTERIOR|ANTERO|ANTERIO|ANTERIOR|DORSO|VENTRO|LATERO)"
    r"[^A-Z]{0,3}(?:TO[^A-Z]+)?(ANTERIOR|POSTERIOR|ANT|POST|VENTRAL|DORSAL|LATERAL)\b"
)
_INITIALS = re.compile(r"\b([AP])[./ -]{1,2}([AP])\b")
# Codes of View Code Sequence (PS3.16 CID 4010) in SRT and SCT, for headers without a meaning.
_CODES = {
    **dict.fromkeys(("R-10202", "399033003"), "FRONTAL"),
    **dict.fromkeys(("R-10206", "399348003"), "AP"),
    **dict.fromkeys(("R-10214", "R-40888", "272479007"), "PA"),
    **dict.fromkeys(("R-102CD", "399067008"), "LATERAL"),
    **dict.fromkeys(("R-10232", "399198007"), "RIGHT LATERAL"),
    **dict.fromkeys(("R-10236", "399173006"), "LEFT LATERAL"),
}

_HEADER = {
    "stop_before_pixels": True,
    "specific_tags": [
        "ViewPosition",
        "ViewCodeSequence",
        "SeriesDescription",
        "PatientOrientation",
    ],
}


def projection(view: str | None) -> Projection:
    """Return the projection that a statement of a view names: "frontal", "lateral" or "unknown".

    >>> projection("postero-anterior"), projection("Cross-table lateral"), projection("other")
    ('frontal', 'lateral', 'unknown')
    """
    found = view_in_words(view) if view else None
    if found is None:
        return "unknown"
    return "lateral" if found == "LATERAL" else "frontal"


def view_in_words(text: str) -> str | None:
    """Return the view that words name, as "PA", "AP", "FRONTAL" or "LATERAL".

    None for words that name no view, and for those that name a frontal and a lateral one.

    >>> view_in_words("postero-anterior"), view_in_words("CHEST LAT"), view_in_words("PA + LAT")
    ('PA', 'LATERAL', None)
    """
    joined = _HALVES.sub(_joined, text.upper())
    joined = _INITIALS.sub(lambda found: found[1] + found[2], joined)
    words = {_LONG_NAMES.get(word, word) for word in re.split(r"[^A-Z]+", joined)}
    if words - {""} == {"L"}:  # PadChest's word for a lateral view
        return "LATERAL"
    decubitus = bool(words & _DECUBITUS)
    is_frontal, is_side = bool(words & _FRONTAL_WORDS), bool(words & _LATERAL_WORDS)
    if is_side and not decubitus:
        return None if is_frontal else "LATERAL"
    if not is_frontal:
        return None
    named = words & {"PA", "AP"}
    return named.pop() if len(named) == 1 else "FRONTAL"


def _joined(halves: re.Match[str]) -> str:
    first = {"POSTERIOR": "POSTERO", "POSTERIO": "POSTERO"}.get(halves[1], halves[1])
    first = {"ANTERIOR": "ANTERO", "ANTERIO": "ANTERO"}.get(first, first)
    return first + {"ANT": "ANTERIOR", "POST": "POSTERIOR"}.get(halves[2], halves[2])


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
            return view_in_header(read_header(stream, ImagePolicy(), "", **_HEADER))
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
    statements = [str(dataset.get("ViewPosition") or "")]
    for item in dataset.get("ViewCodeSequence") or ():
        statements.append(str(item.get("CodeMeaning") or ""))
        statements.append(_CODES.get(str(item.get("CodeValue") or "").strip(), ""))
    statements.append(str(dataset.get("SeriesDescription") or ""))
    for statement in statements:
        if (view := view_in_words(statement)) is not None:
            return view
    directions = orientation(dataset)
    if directions is None or directions[1] not in "FH":
        return None
    return "LATERAL" if directions[0] in "AP" else "FRONTAL"


def orientation(dataset: "Dataset") -> tuple[str, str] | None:
    """Return the main directions of rows and columns in the patient, as in ("L", "F").

    They are letters of Patient Orientation (PS3.3 C.7.6.1.1.1): left, right, head, feet, anterior,
    posterior. None if it is absent, or states no two directions that are perpendicular.
    """
    parts = [str(part).strip().upper()[:1] for part in dataset.get("PatientOrientation") or ()]
    axes = [
        next((axis for axis in ("LR", "HF", "AP") if part in axis), "") for part in parts if part
    ]
    if len(parts) != 2 or len(axes) != 2 or "" in axes or axes[0] == axes[1]:
        return None
    return parts[0], parts[1]
