"""One self-contained HTML page for a rater: reports, the questions, and films on request."""

import base64
import hashlib
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vlscore.core import atomic_write
from vlscore.data import BadRow, StudyImages, read_image
from vlscore.errors import VLScoreError
from vlscore.evaluation.ratings.questions import Question
from vlscore.evaluation.ratings.sheet_files import AnyItem, sheet_name

_PAGE = Path(__file__).with_name("rating_page.html")
_STUDY = "@STUDY@"
# Pixels of the longer side of an embedded film, and quality of its JPEG.
_LONGEST, _QUALITY = 768, 85

# Films of a study: the data of an image, or why there is none.
Films = Mapping[str, Sequence[Mapping[str, str]]]


def embedded_films(
    images: Mapping[str, StudyImages | BadRow], studies: Iterable[str]
) -> tuple[dict[str, list[dict[str, str]]], list[str]]:
    """Return the films of studies as data for a page, shrunk to 768 pixels, and notes.

    A film that cannot be read is replaced by a sentence; a note gives the number of them. Neither
    names a file, because its name may tell who the patient is.
    """
    films: dict[str, list[dict[str, str]]] = {}
    unread = lacking = 0
    for study in dict.fromkeys(studies):
        found = images.get(study)
        if not isinstance(found, StudyImages):
            lacking += 1
            films[study] = [{"alt": "This study has no film."}]
            continue
        films[study] = []
        for number, path in enumerate(found.images, start=1):
            alt = f"film {number} of {len(found.images)}"
            try:
                films[study].append({"src": _shrunk(path), "alt": alt})
            except VLScoreError:
                unread += 1
                films[study].append({"alt": f"The {alt} cannot be read."})
    notes = [f"{lacking} studies have no film"] if lacking else []
    if unread:
        notes.append(f"{unread} films cannot be read; the page says so in their place")
    return films, notes


def _shrunk(path: Any) -> str:
    """Return a film as a data address. Raises: UnreadableImage."""
    from PIL import Image

    picture = Image.fromarray(read_image(path).to_uint8())
    picture.thumbnail((_LONGEST, _LONGEST), Image.Resampling.LANCZOS)
    written = io.BytesIO()
    picture.save(written, "JPEG", quality=_QUALITY)
    return "data:image/jpeg;base64," + base64.b64encode(written.getvalue()).decode("ascii")


def write_page(
    path: Path,
    rater: str,
    items: Sequence[AnyItem],
    questions: Sequence[Question],
    films: Films | None = None,
) -> None:
    """Write the page of a rater.

    Args: films: by study; None where none are embedded. The page names no study.
    """
    numbers = {study: str(k) for k, study in enumerate(dict.fromkeys(i.study for i in items))}
    content: dict[str, Any] = {
        "title": f"Reading study, {rater}",
        "file": sheet_name(rater),
        "questions": [question.to_dict() for question in questions],
        "items": [
            {"name": item.name, "texts": item.texts, "film": numbers[item.study]} for item in items
        ],
        "has_films": films is not None,
        "films": {number: list(films.get(study, ())) for study, number in numbers.items()}
        if films is not None
        else {},
    }
    # A browser stores the answers under this name: another study, or another rater, has another.
    known = json.dumps([rater, content["questions"], content["items"]]).encode("utf-8")
    content["id"] = hashlib.sha256(known).hexdigest()[:24]
    page = _PAGE.read_text(encoding="utf-8").replace(_STUDY, _in_script(content))
    with atomic_write(path) as stream:
        stream.write(page)


def _in_script(content: Mapping[str, Any]) -> str:
    """Return json that cannot end the element that holds it, nor begin another."""
    text = json.dumps(content, ensure_ascii=True)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
