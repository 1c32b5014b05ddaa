"""Files of a reading study: sheets as csv and html, and the key that names the systems.

A folder holds a sheet for each rater, `sheet-NAME.csv` or `.html`, with a row for each item: a
reference and a report to be judged, or a reference and two reports to be compared. Only `key.csv`
names the study of an item, and the systems of its reports.
"""

import csv
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlscore.core import cells, from_plain, plain, read_frame, reading_result, with_noun
from vlscore.data import Study, read_image, shrunk_url
from vlscore.errors import Failure, VLScoreError
from vlscore.evaluation.ratings.questions import FIRST, PREFERENCES, SECOND, Question

KEY, QUESTIONS = "key.csv", "questions.json"
SHEET, CSV = "sheet-", ".csv"
ITEM, REFERENCE, CANDIDATE = "item", "reference", "candidate"
REPORT_A, REPORT_B = f"report {FIRST}", f"report {SECOND}"
_KEY_COLUMNS = (ITEM, "study_id", "candidate_id", REFERENCE, CANDIDATE)
_SIDE, _RATERS = "side", "raters"


@dataclass(frozen=True)
class SheetItem:
    """What raters judge at once: one report, or two that they compare.

    Attributes:
        name: what raters read; the other order of the same two reports has another name.
        study: id.
        reference: the reference report.
        reports: the report to be judged, or report A and report B -> the systems that wrote it, or
            the metrics that chose it.
        raters: who are asked.
    """

    name: str
    study: str
    reference: str
    reports: Mapping[str, tuple[str, ...]]
    raters: tuple[str, ...] = ()

    @property
    def systems(self) -> list[tuple[str, ...]]:
        """Return the systems of each report."""
        return list(self.reports.values())


def sheet_name(rater: str, suffix: str = CSV) -> str:
    """Return the name of a rater's sheet."""
    return f"{SHEET}{rater}{suffix}"


def write_sheet(path: Path, items: Iterable[SheetItem], questions: Sequence[Question]) -> None:
    """Write an empty sheet; it does not name the systems, and no text in it is a formula."""
    shown = [REPORT_A, REPORT_B] if questions[0].ask == PREFERENCES else [CANDIDATE]
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([ITEM, REFERENCE, *shown, *(question.name for question in questions)])
        for item in items:
            texts = [item.name, item.reference, *item.reports]
            writer.writerow(cells(texts + [""] * len(questions)))


def write_key(path: Path, items: Iterable[SheetItem]) -> None:
    """Write the key: the systems of each item, and its raters."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*_KEY_COLUMNS, _SIDE, _RATERS])
        for item in items:
            sides = ("",) if len(item.reports) == 1 else (FIRST, SECOND)
            for side, (text, systems) in zip(sides, item.reports.items(), strict=True):
                for system in systems:
                    row = [item.name, item.study, system, item.reference, text]
                    writer.writerow(cells([*row, side, ";".join(item.raters)]))


def read_key(path: Path) -> dict[str, SheetItem]:
    """Return the items of a key by name. Raises: ChecksumMismatch where it is none."""
    items = {}
    with reading_result(path):
        rows = read_frame(path, (*_KEY_COLUMNS, _SIDE, _RATERS)).astype(object)
        rows = rows.where(rows.notna(), "")
        for name, own in rows.groupby(ITEM, sort=False):
            _, study, _, reference, _, _, raters = own.iloc[0]
            reports = {
                each[CANDIDATE].iloc[0]: tuple(each["candidate_id"])
                for _, each in own.groupby(_SIDE)
            }
            asked = tuple(filter(None, raters.split(";")))
            items[str(name)] = SheetItem(str(name), study, reference, reports, asked)
    return items


def read_questions(folder: Path) -> list[Question]:
    """Return the questions of a folder. Raises: ChecksumMismatch where it has none."""
    with reading_result(folder / QUESTIONS):
        content = json.loads((folder / QUESTIONS).read_text(encoding="utf-8"))
        questions: list[Question] = from_plain(list[Question], content["questions"])
    return questions


_PAGE = Path(__file__).with_name("rating_page.html")
_STUDY = "@STUDY@"
# Pixels of the longer side of an embedded image, and quality of its JPEG.
_LONGEST, _QUALITY = 768, 85

# Images of a study: the data of an image, or why there is none.
Images = Mapping[str, Sequence[Mapping[str, str]]]


def embedded_images(
    images: Mapping[str, Study | Failure], studies: Iterable[str]
) -> tuple[dict[str, list[dict[str, str]]], list[str]]:
    """Return the images of studies as data for a page, shrunk to 768 pixels, and notes.

    An image that cannot be read is replaced by a sentence; a note gives the number of them. Neither
    names a file, because its name may tell who the patient is.
    """
    shown: dict[str, list[dict[str, str]]] = {}
    unread = lacking = 0
    for study in dict.fromkeys(studies):
        found = images.get(study)
        if not isinstance(found, Study):
            lacking += 1
            shown[study] = [{"alt": "This study has no image."}]
            continue
        shown[study] = []
        for number, path in enumerate(found.images, start=1):
            alt = f"image {number} of {len(found.images)}"
            try:
                levels = read_image(path).to_uint8()
                url = shrunk_url(levels, _LONGEST, "jpeg", quality=_QUALITY)
                shown[study].append({"src": url, "alt": alt})
            except VLScoreError:
                unread += 1
                shown[study].append({"alt": f"The {alt} cannot be read."})
    notes = [f"without an image: {with_noun(lacking, 'study')}"] if lacking else []
    if unread:
        notes.append(f"{with_noun(unread, 'image')} cannot be read; the page says so in that place")
    return shown, notes


def write_page(
    path: Path,
    rater: str,
    items: Sequence[SheetItem],
    questions: Sequence[Question],
    images: Images | None = None,
) -> None:
    """Write the page of a rater.

    Args: images: by study; None where none are embedded. The page names no study.
    """
    numbers = {study: str(k) for k, study in enumerate(dict.fromkeys(i.study for i in items))}
    shown = images or {}
    content: dict[str, Any] = {
        "title": f"Reading study, {rater}",
        "file": sheet_name(rater),
        "questions": plain(list(questions)),
        "items": [
            {
                "name": item.name,
                "texts": [item.reference, *item.reports],
                "images": numbers[item.study],
            }
            for item in items
        ],
        "has_images": images is not None,
        "images": {n: list(shown.get(study, ())) for study, n in numbers.items() if images},
    }
    # A browser stores the answers under this name: another study, or another rater, has another.
    known = json.dumps([rater, content["questions"], content["items"]]).encode("utf-8")
    content["id"] = hashlib.sha256(known).hexdigest()[:24]
    # json that cannot end the element that holds it, nor begin another.
    text = json.dumps(content, ensure_ascii=True)
    for sign in "&<>":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    path.write_text(_PAGE.read_text(encoding="utf-8").replace(_STUDY, text), encoding="utf-8")
