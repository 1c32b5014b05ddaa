"""Tables of studies, and of reports, row by row."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from vlscore.errors import InvalidStudy, InvalidTable
from vlscore.studies.rows import RawRow, Record, is_missing, read_rows
from vlscore.studies.study import BadRow, ColumnNames, Report, Study, StudyImages

# A report's column, the first that a table has; and those that make one where it has none.
REPORT_COLUMNS = ("report", "text", "reference")
REPORT_SECTIONS = ("findings", "impression")

# How many rows tell what columns a table has.
_HEAD = 100


def read_studies(
    path: str | Path,
    *,
    image_root: str | Path | None = None,
    columns: ColumnNames | None = None,
) -> Iterator[Study | BadRow]:
    """Studies of a .jsonl, .csv or .parquet table, in order; constant memory.

    The image column holds one path, a list of paths, or paths separated by ";" or "|"; the view
    column, where there is one, as many views. Paths are relative to `image_root`, else to the
    table's folder. A path that holds one of the separators is given as a list of one. A row that
    cannot be used becomes a BadRow.

    Raises: InvalidTable where the file cannot be read, or none of its first 100 rows has one of the
    columns image, reference and candidate.
    """
    path = Path(path)
    names = columns or ColumnNames()
    root = Path(image_root) if image_root is not None else path.parent
    rows = _with_columns(path, (names.image, names.reference, names.candidate))
    for number, record in rows:
        yield _row(number, record, names.id, lambda n, r: _study(n, r, names, root))


def read_study_images(
    path: str | Path,
    *,
    image_root: str | Path | None = None,
    columns: ColumnNames | None = None,
) -> Iterator[StudyImages | BadRow]:
    """The images of the studies of a table, in order; reports are neither read nor needed.

    Raises: InvalidTable where the file cannot be read, or its first row has no image column.
    """
    path = Path(path)
    names = columns or ColumnNames()
    root = Path(image_root) if image_root is not None else path.parent
    for number, record in _with_columns(path, (names.image,)):
        yield _row(number, record, names.id, lambda n, r: _study_images(n, r, names, root))


def read_reports(
    path: str | Path, *, id_column: str = "id", text_column: str | None = None
) -> Iterator[Report | BadRow]:
    """Reports of a .jsonl, .csv or .parquet table, in order; constant memory.

    Args:
        text_column: default: "report", "text" or "reference", whichever the table has; else its
            "findings" and "impression" joined by a blank.

    Raises: InvalidTable where the file cannot be read or has none of these columns.
    """
    path = Path(path)
    rows = read_rows(path)
    head = list(islice(rows, _HEAD))
    sources = _report_columns(path, _columns_of(head), text_column)
    for number, record in chain(head, rows):
        yield _row(number, record, id_column, lambda n, r: _report(n, r, id_column, sources))


def _row(number: int, record: Record | str, id_column: str, make: Any) -> Any:
    if isinstance(record, str):
        return BadRow(number, None, record)
    try:
        return make(number, record)
    except InvalidStudy as error:
        name = record.get(id_column)
        known = isinstance(name, str | int | float) and not is_missing(name)
        return BadRow(number, str(name).strip() if known else None, str(error))


def _with_columns(path: Path, needed: Sequence[str]) -> Iterator[RawRow]:
    """The rows; raises InvalidTable if no row of the first ones has a column."""
    rows = read_rows(path)
    # The rows of a jsonl table need not be alike: one without the column may just be a bad one.
    head = list(islice(rows, _HEAD))
    found = _columns_of(head)
    missing = [name for name in needed if name not in found]
    if found and missing:
        raise InvalidTable(
            f"{path}: no column {', '.join(missing)}; found: {', '.join(found)}. Name the columns "
            "with --image-column, --reference-column, --candidate-column"
        )
    yield from chain(head, rows)


def _columns_of(rows: Sequence[RawRow]) -> list[str]:
    """All column names of the rows, in order of appearance."""
    records = [row for _, row in rows if isinstance(row, dict)]
    return list(dict.fromkeys(str(name) for record in records for name in record))


def _study(number: int, record: Record, names: ColumnNames, root: Path) -> Study:
    shown = _study_images(number, record, names, root)
    return Study(
        id=shown.id,
        images=shown.images,
        reference=_text(record, names.reference),
        candidate=_text(record, names.candidate),
        row=number,
        views=shown.views,
    )


def _study_images(number: int, record: Record, names: ColumnNames, root: Path) -> StudyImages:
    images = tuple(root / name for name in _paths(record.get(names.image), names.image))
    views = _views(record.get(names.view), len(images), names.view)
    return StudyImages(_id(record, names.id, number), images, views)


def _report(number: int, record: Record, id_column: str, sources: Sequence[str]) -> Report:
    parts = [record.get(name) for name in sources]
    for name, part in zip(sources, parts, strict=True):
        if not is_missing(part) and not isinstance(part, str):
            raise InvalidStudy(f'column "{name}" holds a {type(part).__name__}, not a text')
    text = " ".join(part.strip() for part in parts if isinstance(part, str) and part.strip())
    if not text:
        raise InvalidStudy(f"no text in {' or '.join(sources)}")
    return Report(_id(record, id_column, number), text, number)


def _report_columns(path: Path, columns: Sequence[str], text_column: str | None) -> tuple[str, ...]:
    """The columns that make a report."""
    if text_column is not None:
        wanted: tuple[str, ...] = (text_column,)
        found = [name for name in wanted if name in columns]
    else:
        wanted = (*REPORT_COLUMNS, *REPORT_SECTIONS)
        whole = [name for name in REPORT_COLUMNS if name in columns][:1]
        found = whole or [name for name in REPORT_SECTIONS if name in columns]
    if columns and not found:
        raise InvalidTable(
            f"{path}: no column {' or '.join(wanted)}; found: {', '.join(columns)}. "
            "Name the column with --text-column"
        )
    return tuple(found) or wanted


def _id(record: Record, column: str, number: int) -> str:
    value = record.get(column)
    if isinstance(value, list | dict):
        raise InvalidStudy(
            f'column "{column}" holds a {type(value).__name__}, not a text or number'
        )
    return str(number) if is_missing(value) else str(value).strip()


def _text(record: Record, column: str) -> str:
    value = record.get(column)
    if is_missing(value):
        raise InvalidStudy(f'column "{column}" is {"absent" if column not in record else "empty"}')
    if not isinstance(value, str):
        raise InvalidStudy(f'column "{column}" holds a {type(value).__name__}, not a text')
    return value


def _paths(value: Any, column: str) -> list[str]:
    names = [name for name in _list(value, column) if name]
    if not names:
        raise InvalidStudy(f'column "{column}" names no image')
    if any("\0" in name for name in names):
        raise InvalidStudy(f'column "{column}" holds a NUL character; no path has one')
    return names


def _views(value: Any, count: int, column: str) -> tuple[str | None, ...] | None:
    views = _list(value, column)
    if not any(views):
        return None
    if len(views) != count:
        raise InvalidStudy(f'column "{column}" names {len(views)} views for {count} images')
    return tuple(view or None for view in views)


def _list(value: Any, column: str) -> list[str]:
    """One text, a list of texts, a json list in a text, or texts separated by ";" or "|"."""
    if is_missing(value):
        return []
    if isinstance(value, str):
        value = _json_list(value, column) if value.lstrip().startswith("[") else _split(value)
    if not isinstance(value, list) or not all(
        item is None or isinstance(item, str) for item in value
    ):
        raise InvalidStudy(f'column "{column}" must hold a text or a list of texts')
    return [(item or "").strip() for item in value]


def _split(text: str) -> list[str]:
    return re.split(r"[;|]", text)


def _json_list(text: str, column: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidStudy(f'column "{column}" begins like a list but is none') from None
