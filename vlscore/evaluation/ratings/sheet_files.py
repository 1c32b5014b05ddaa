"""Files of a reading study: sheets as csv and xlsx, and the key that names the system of each item.

A folder holds a sheet for each rater, `sheet-NAME.csv`, `.xlsx` or `.html`, with a row for each
item: a reference and a report to be judged, or a reference and two reports to be compared. Only
`key.csv` names the study of an item, and the systems of its reports.
"""

import base64
import csv
import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlscore.core import atomic_write, cells, from_cell, printable, write_json
from vlscore.data import BadRow, StudyImages, columns_of, name_of, read_image, read_rows
from vlscore.errors import InvalidStudy, InvalidTable, MissingDependency, VLScoreError
from vlscore.evaluation.alignment.rating_builder import Pair, missing_columns
from vlscore.evaluation.ratings.questions import (
    FIRST,
    PREFERENCES,
    SECOND,
    Question,
    error_questions,
)

KEY, QUESTIONS = "key.csv", "questions.json"
SHEET, CSV, XLSX = "sheet-", ".csv", ".xlsx"
FORMATS = ("csv", "xlsx", "html")
ITEM, REFERENCE, CANDIDATE = "item", "reference", "candidate"
REPORT_A, REPORT_B = f"report {FIRST}", f"report {SECOND}"
_KEY_COLUMNS = (ITEM, "study_id", "candidate_id", REFERENCE, CANDIDATE)
_SIDE, _RATERS = "side", "raters"


@dataclass(frozen=True)
class SheetItem:
    """Report that raters judge once, although several systems may have written or chosen it.

    Attributes:
        name: what raters read.
        study: id.
        candidates: systems that wrote, or metrics that chose, this report for the study.
        reference, text: the reports.
        raters: who are asked; empty in folders of earlier versions, which asked all.
    """

    name: str
    study: str
    candidates: tuple[str, ...]
    reference: str
    text: str
    raters: tuple[str, ...] = ()

    @property
    def pairs(self) -> list[Pair]:
        """Return (study, candidate) for each system or metric that wrote or chose the report."""
        return [(self.study, candidate) for candidate in self.candidates]

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the reports that a rater reads: the reference, then what is to be judged."""
        return (self.reference, self.text)


@dataclass(frozen=True)
class ItemPair:
    """Two reports of one study to be compared: `first` is report A.

    Attributes:
        name: what raters read; the other order of the same two has another name.
        first, second: the reports.
        raters: who are asked in this order.
    """

    name: str
    first: SheetItem
    second: SheetItem
    raters: tuple[str, ...] = ()

    @property
    def study(self) -> str:
        """Return id of the study."""
        return self.first.study

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the reports that a rater reads: the reference, then A and B."""
        return (self.first.reference, self.first.text, self.second.text)


AnyItem = SheetItem | ItemPair


def sheet_name(rater: str, suffix: str = CSV) -> str:
    """Return the name of a rater's sheet."""
    return f"{SHEET}{rater}{suffix}"


def headings(questions: Sequence[Question]) -> list[str]:
    """Return the columns of a sheet."""
    compares = questions[0].ask == PREFERENCES
    shown = [REPORT_A, REPORT_B] if compares else [CANDIDATE]
    return [ITEM, REFERENCE, *shown, *(question.name for question in questions)]


def sheet_rows(items: Iterable[AnyItem], questions: Sequence[Question]) -> Iterator[list[Any]]:
    """Yield the rows of an empty sheet; no text in them is a formula of a spreadsheet."""
    yield headings(questions)
    for item in items:
        yield cells([item.name, *item.texts, *[""] * len(questions)])


def write_csv_sheet(path: Path, items: Iterable[AnyItem], questions: Sequence[Question]) -> None:
    """Write an empty sheet; it does not name the systems."""
    with atomic_write(path) as stream:
        csv.writer(stream).writerows(sheet_rows(items, questions))


def write_xlsx_sheet(path: Path, items: Iterable[AnyItem], questions: Sequence[Question]) -> None:
    """Write an empty sheet as a workbook; the same items give the same bytes.

    Raises: MissingDependency without openpyxl.
    """
    openpyxl = _openpyxl()
    from openpyxl.styles import Alignment, Font, PatternFill
    from openpyxl.utils import get_column_letter

    book = openpyxl.Workbook()
    page = book.active
    page.title = "ratings"
    # A workbook can hold no control characters.
    for row in sheet_rows(items, questions):
        page.append([printable(text) if isinstance(text, str) else text for text in row])
    columns = headings(questions)
    texts = len(columns) - len(questions)
    for number in range(1, len(columns) + 1):
        is_text = 1 < number <= texts
        page.column_dimensions[get_column_letter(number)].width = 60 if is_text else 14
        for cell in page[get_column_letter(number)]:
            cell.alignment = Alignment(wrap_text=True, vertical="top")
            cell.font = Font(bold=cell.row == 1)
            if number > texts and cell.row > 1:
                cell.fill = PatternFill("solid", fgColor="FFF6D6")
    page.freeze_panes = "B2"
    written = io.BytesIO()
    book.save(written)
    path.write_bytes(_without_times(written.getvalue()))


def _without_times(content: bytes) -> bytes:
    """Return an archive with the same files, without the times of their creation."""
    made = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as given,
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name in given.namelist():
            if name != "docProps/core.xml":
                archive.writestr(zipfile.ZipInfo(name), given.read(name))
                continue
            times = b"<dcterms:created", b"<dcterms:modified"
            text = given.read(name)
            for tag in times:
                start, end = text.find(tag), text.find(b"Z</dcterms", text.find(tag))
                if start >= 0 and end >= 0:
                    begin = text.find(b">", start) + 1
                    text = text[:begin] + b"2000-01-01T00:00:00" + text[end:]
            archive.writestr(zipfile.ZipInfo(name), text)
    return made.getvalue()


def read_sheet(path: Path) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield (number, row) of a sheet, counted from 1 below the headings; a text is an error.

    Raises: InvalidTable where the file cannot be read; MissingDependency for xlsx without openpyxl.
    """
    if path.suffix == CSV:
        yield from read_rows(path)
        return
    rows = _xlsx_rows(path)
    names = [str(name) for name in next(rows, ()) if name is not None]
    for number, row in enumerate(rows, start=1):
        if any(value is not None for value in row):
            values = [from_cell(v) if isinstance(v, str) else v for v in row]
            yield number, dict(zip(names, values, strict=False))


def sheet_columns(path: Path) -> list[str]:
    """Return the columns of a sheet. Raises: InvalidTable where the file cannot be read."""
    if path.suffix == CSV:
        return list(columns_of(path))
    return [str(name) for name in next(_xlsx_rows(path), ()) if name is not None]


def _xlsx_rows(path: Path) -> Iterator[tuple[Any, ...]]:
    openpyxl = _openpyxl()
    try:
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        page = book["ratings"] if "ratings" in book.sheetnames else book[book.sheetnames[0]]
        yield from page.iter_rows(values_only=True)
        book.close()
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise InvalidTable(f"{path}: is no workbook that can be read ({error})") from None


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError:
        raise MissingDependency(
            "sheets as xlsx need openpyxl: pip install 'vlscore[xlsx]'; or leave xlsx out"
        ) from None
    return openpyxl


def write_key(path: Path, items: Iterable[AnyItem]) -> None:
    """Write the key: the systems of each item, and its raters."""
    with atomic_write(path) as stream:
        writer = csv.writer(stream)
        writer.writerow([*_KEY_COLUMNS, _SIDE, _RATERS])
        for item in items:
            raters = ";".join(item.raters)
            sides = [("", item)] if isinstance(item, SheetItem) else _sides(item)
            for side, shown in sides:
                for candidate in shown.candidates:
                    row = [item.name, item.study, candidate, shown.reference, shown.text]
                    writer.writerow(cells([*row, side, raters]))


def _sides(pair: ItemPair) -> list[tuple[str, SheetItem]]:
    return [(FIRST, pair.first), (SECOND, pair.second)]


def read_key(path: Path) -> dict[str, AnyItem]:
    """Return the items of a key by name. Raises: InvalidTable, naming the row."""
    missing_columns(path, columns_of(path), _KEY_COLUMNS)
    sides: dict[str, dict[str, SheetItem]] = {}
    for number, record in read_rows(path):
        if isinstance(record, str):
            raise InvalidTable(f"{path}, row {number}: {record}")
        try:
            name, study, candidate = (name_of(record[c], c) for c in _KEY_COLUMNS[:3])
        except InvalidStudy as error:
            raise InvalidTable(f"{path}, row {number}: {error}") from None
        side = str(record.get(_SIDE) or "")
        known = sides.setdefault(name, {})
        earlier = known[side].candidates if side in known else ()
        reports = (str(record[REFERENCE] or ""), str(record[CANDIDATE] or ""))
        raters = tuple(filter(None, str(record.get(_RATERS) or "").split(";")))
        known[side] = SheetItem(name, study, (*earlier, candidate), *reports, raters)
    found: dict[str, AnyItem] = {}
    for name, known in sides.items():
        if set(known) == {""}:
            found[name] = known[""]
        elif set(known) == {FIRST, SECOND}:
            found[name] = ItemPair(name, known[FIRST], known[SECOND], known[FIRST].raters)
        else:
            raise InvalidTable(f"{path}: {name!r} needs a report {FIRST} and a report {SECOND}")
    return found


def write_questions(path: Path, questions: Sequence[Question]) -> None:
    """Write the questions for raters."""
    content = {"questions": [question.to_dict() for question in questions]}
    write_json(path, content)


def read_questions(folder: Path) -> list[Question]:
    """Return the questions of a folder; without a file, numbers of errors.

    Raises: InvalidTable where the file cannot be used.
    """
    path = folder / QUESTIONS
    if not path.exists():
        return error_questions()
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = [Question.of_dict(each) for each in content["questions"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidTable(f"{path}: holds no questions ({error})") from None
    if not found:
        raise InvalidTable(f"{path}: holds no questions")
    return found


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
