"""Tables of studies, and of reports, row by row."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from vlscore.errors import InvalidStudy, InvalidTable
from vlscore.studies.rows import RawRow, Record, is_missing, read_rows
from vlscore.studies.study import BadRow, ColumnNames, Report, Study

# The columns that make a report where a table has no single text column.
REPORT_SECTIONS = ("findings", "impression")


def read_studies(
    path: str | Path,
    *,
    image_root: str | Path | None = None,
    columns: ColumnNames | None = None,
) -> Iterator[Study | BadRow]:
    """Studies of a .jsonl, .csv or .parquet table, in order; constant memory.

    The image column holds one path, a list of paths, or paths separated by ";" or "|"; the view
    column, where there is one, as many views. Paths are relative to `image_root`, else to the
    table's folder. A row that cannot be used becomes a BadRow.

    Raises: InvalidTable where the file cannot be read, or its first row lacks the columns.
    """
    path = Path(path)
    names = columns or ColumnNames()
    root = Path(image_root) if image_root is not None else path.parent
    rows = _with_columns(path, (names.image, names.reference, names.candidate))
    for number, record in rows:
        yield _row(number, record, names.id, lambda n, r: _study(n, r, names, root))


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
    first = next(rows, None)
    if first is None:
        return
    sources = _report_columns(path, first, text_column)
    for number, record in chain([first], rows):
        yield _row(number, record, id_column, lambda n, r: _report(n, r, id_column, sources))


def _row(number: int, record: Record | str, id_column: str, make: Any) -> Any:
    if isinstance(record, str):
        return BadRow(number, None, record)
    try:
        return make(number, record)
    except InvalidStudy as error:
        return BadRow(number, _id(record, id_column, number), str(error))


def _with_columns(path: Path, needed: Sequence[str]) -> Iterator[RawRow]:
    """The rows; raises InvalidTable if the first readable one lacks every trace of a column."""
    rows = read_rows(path)
    for number, record in rows:
        if isinstance(record, dict):
            missing = [name for name in needed if name not in record]
            # In csv and parquet all rows have the same columns; in jsonl one row may just be bad.
            if missing and (not _is_jsonl(path) or len(missing) == len(needed)):
                found = ", ".join(map(str, record)) or "none"
                raise InvalidTable(
                    f"{path}: no column {', '.join(missing)}; found: {found}. Name the columns "
                    "with --image-column, --reference-column, --candidate-column"
                )
            yield number, record
            break
        yield number, record
    yield from rows


def _is_jsonl(path: Path) -> bool:
    return path.name.lower().removesuffix(".gz").endswith(".jsonl")


def _study(number: int, record: Record, names: ColumnNames, root: Path) -> Study:
    images = tuple(root / name for name in _paths(record.get(names.image), names.image))
    views = _views(record.get(names.view), len(images), names.view)
    return Study(
        id=_id(record, names.id, number),
        images=images,
        reference=_text(record, names.reference),
        candidate=_text(record, names.candidate),
        row=number,
        views=views,
    )


def _report(number: int, record: Record, id_column: str, sources: Sequence[str]) -> Report:
    parts = [record.get(name) for name in sources]
    for name, part in zip(sources, parts, strict=True):
        if not is_missing(part) and not isinstance(part, str):
            raise InvalidStudy(f'column "{name}" holds a {type(part).__name__}, not a text')
    text = " ".join(part.strip() for part in parts if isinstance(part, str) and part.strip())
    if not text:
        raise InvalidStudy(f"no text in {' or '.join(sources)}")
    return Report(_id(record, id_column, number), text, number)


def _report_columns(path: Path, first: RawRow, text_column: str | None) -> tuple[str, ...]:
    record = first[1] if isinstance(first[1], dict) else {}
    if text_column is not None:
        if record and text_column not in record and not _is_jsonl(path):
            found = ", ".join(map(str, record))
            raise InvalidTable(f"{path}: no column {text_column}; found: {found}")
        return (text_column,)
    for name in ("report", "text", "reference"):
        if name in record:
            return (name,)
    if record and not any(name in record for name in REPORT_SECTIONS):
        found = ", ".join(map(str, record)) or "none"
        raise InvalidTable(
            f"{path}: no column report, text, reference, findings or impression; found: {found}. "
            "Name the column with --text-column"
        )
    return REPORT_SECTIONS


def _id(record: Record, column: str, number: int) -> str:
    value = record.get(column)
    return str(number) if is_missing(value) else str(value)


def _text(record: Record, column: str) -> str:
    value = record.get(column)
    if is_missing(value):
        raise InvalidStudy(f'column "{column}" is {"absent" if column not in record else "empty"}')
    if not isinstance(value, str):
        raise InvalidStudy(f'column "{column}" holds a {type(value).__name__}, not a text')
    return value


def _paths(value: Any, column: str) -> list[str]:
    names = _list(value, column)
    if not names:
        raise InvalidStudy(f'column "{column}" names no image')
    return names


def _views(value: Any, count: int, column: str) -> tuple[str | None, ...] | None:
    if is_missing(value):
        return None
    views = _list(value, column)
    if len(views) != count:
        raise InvalidStudy(f'column "{column}" names {len(views)} views for {count} images')
    return tuple(view or None for view in views)


def _list(value: Any, column: str) -> list[str]:
    """One text, a list of texts, a json list in a text, or texts separated by ";" or "|"."""
    if is_missing(value):
        return []
    if isinstance(value, str):
        if value.lstrip().startswith("["):
            try:
                value = json.loads(value)
            except ValueError:
                raise InvalidStudy(f'column "{column}" begins like a list but is none') from None
        else:
            value = re.split(r"[;|]", value)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidStudy(f'column "{column}" must hold a path or a list of paths')
    return [item.strip() for item in value if item.strip()]
