"""Tables of studies and of reports: every command reads its rows through this module.

`open_studies` and `open_reports` treat ids, duplicates, missing values, undecodable text and
columns in the same way for every command.
"""

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Generic, TypeVar

from vlscore.core import file_digest
from vlscore.data.rows import Record, columns_of, count_rows, read_rows
from vlscore.data.study import (
    BadRow,
    ColumnNames,
    Report,
    SeenIds,
    Study,
    StudyImages,
    check_encodable,
    id_of,
    paths_of,
    text_of,
    views_of,
)
from vlscore.errors import InvalidSetting, InvalidStudy, InvalidTable

ROLES = ("image", "reference", "candidate")

# Names of a report's column, of which the first that exists counts; else the columns to join.
REPORT_COLUMNS = ("report", "text", "reference")
REPORT_SECTIONS = ("findings", "impression")

_REPORT_OPTIONS = {"id": "id_column (--id-column)", "text": "text_column (--text-column)"}

Row = TypeVar("Row", Study, Report)


@dataclass(frozen=True)
class Table(ABC, Generic[Row]):
    """A table that has the wanted columns and at least one row; iterating reads it.

    It can be iterated over again and again, in constant memory except for 40 bytes an id.

    Attributes:
        path: path of the file.
        found: names of its columns; for .jsonl and .json, those of the first 100 rows.
        id_column: name of the column of ids, which may be absent.
        unique: whether a row that repeats an earlier id is a bad row.
        options: option by which a user names each column, for messages.
    """

    path: Path
    found: tuple[str, ...]
    id_column: str
    unique: bool
    options: Mapping[str, str] = field(repr=False)

    @property
    def has_ids(self) -> bool:
        """Return True if there is a column of ids; else a row's id is its number."""
        return self.id_column in self.found

    @property
    def notes(self) -> tuple[str, ...]:
        """Return notes for the user before the results, one sentence each."""
        if self.has_ids or not self.found:
            return ()
        hint = f". Name the ids' column with {self.options['id']}" if "id" in self.options else ""
        return (
            f'{self.path} has no column "{self.id_column}", so row numbers stand for the ids; '
            f"found: {_listed(self.found)}{hint}",
        )

    @cached_property
    def sha256(self) -> str:
        """Return the sha256 of the file's content, hexadecimal."""
        return file_digest(self.path)

    def count(self) -> int | None:
        """Return the number of rows if it is cheap to find, else None."""
        return count_rows(self.path)

    def __iter__(self) -> Iterator[Row | BadRow]:
        seen = SeenIds() if self.unique else None
        for number, record in read_rows(self.path, self._wanted()):
            row = self._row(number, record)
            if seen is not None and not isinstance(row, BadRow):
                first = seen.first_row(row.id, number)
                if first != number:
                    reason = f"id {row.id!r} is already in row {first}; ids must be unique"
                    yield BadRow(number, row.id, reason)
                    continue
            yield row

    @abstractmethod
    def _wanted(self) -> set[str]:
        """Return the names of the columns that are read."""

    @abstractmethod
    def _made(self, id: str, number: int, record: Record) -> Row:
        """Make the row of a record. Raises: InvalidStudy if the record is not usable."""

    def _row(self, number: int, record: Record | str) -> Row | BadRow:
        if isinstance(record, str):
            return BadRow(number, None, _printable(record))
        id = None
        try:
            check_encodable([record.get(self.id_column)], self.id_column)
            id = id_of(record.get(self.id_column), self.id_column)
            return self._made(str(number) if id is None else id, number, record)
        except InvalidStudy as error:
            return BadRow(number, id, _printable(str(error)))


@dataclass(frozen=True)
class StudyTable(Table[Study]):
    """A table of studies; see `open_studies`.

    Attributes:
        columns: names of the columns.
        needs: those of image, reference and candidate that every row must have.
        wants: the others that are read if a row has them.
        root: folder that image paths start from.
        also: further columns that are read.
        parts: columns that are joined to the reference if it has no column.
    """

    columns: ColumnNames
    needs: frozenset[str]
    root: Path
    also: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    wants: frozenset[str] = frozenset()

    @property
    def roles(self) -> frozenset[str]:
        """Those of image, reference and candidate that are read."""
        return self.needs | self.wants

    def _wanted(self) -> set[str]:
        names = {getattr(self.columns, role) for role in self.roles} | {self.columns.id}
        if "image" in self.roles:
            names.add(self.columns.view)
        return names | set(self.also) | (set(self.parts) if "reference" in self.roles else set())

    def _may_lack(self, role: str) -> contextlib.AbstractContextManager[None]:
        is_wanted = role in self.wants
        return contextlib.suppress(InvalidStudy) if is_wanted else contextlib.nullcontext()

    def _made(self, id: str, number: int, record: Record) -> Study:
        names, roles = self.columns, self.roles
        images: tuple[Path, ...] = ()
        views = reference = candidate = parts = None
        if "image" in roles:
            with self._may_lack("image"):
                found = paths_of(record.get(names.image), names.image, self.root)
                views = views_of(record.get(names.view), len(found), names.view)
                images = found
        if "reference" in roles:
            with self._may_lack("reference"):
                if self.parts:
                    parts = _parts(record, self.parts)
                    reference = " ".join(parts.values())
                elif (reference := _text(record, names.reference)) is None:
                    raise InvalidStudy(f'column "{names.reference}" is empty')
        if "candidate" in roles:
            # An empty report is an answer of the generator and is scored.
            candidate = _text(record, names.candidate) or ""
        extra = {name: record[name] for name in self.also if name in record}
        for name, value in extra.items():
            check_encodable([value], name)
        return Study(id, images, reference, candidate, number, views, parts, extra)


@dataclass(frozen=True)
class ReportTable(Table[Report]):
    """A table of reports; see `open_reports`.

    Attributes:
        sources: columns that are joined to a report.
        by_section: whether they are its findings and its impression.
    """

    sources: tuple[str, ...]
    by_section: bool

    def _wanted(self) -> set[str]:
        return {self.id_column, *self.sources}

    def _made(self, id: str, number: int, record: Record) -> Report:
        parts = _parts(record, self.sources)
        text = " ".join(parts.values())
        return Report(id, text, number, parts if self.by_section else None)


def open_studies(
    path: str | Path,
    *,
    needs: Collection[str] = ROLES,
    wants: Collection[str] = (),
    image_root: str | Path | None = None,
    columns: ColumnNames | None = None,
    also: Sequence[str] = (),
    unique: bool = True,
) -> StudyTable:
    """Open a .jsonl, .json, .csv, .tsv or .parquet table of studies; docs/tables.md has the rules.

    Args:
        needs: those of "image", "reference" and "candidate" that every row must have.
        wants: the others that are read if present; a row without them is not a bad row.
        image_root: folder that image paths start from; default: the table's.
        columns: other column names.
        also: further columns to read, into `Study.extra`.
        unique: treat a row that repeats an earlier id as a bad row.

    Returns: an iterable of a Study or a BadRow for every row, in order.

    Raises:
        InvalidTable: the file cannot be read, holds no row, or lacks a column.
        InvalidSetting: `image_root` is no folder.
    """
    path = Path(path)
    names = columns or ColumnNames()
    options = names.options or {role: f"ColumnNames({role}=...)" for role in ("id", "view", *ROLES)}
    if unknown := {*needs, *wants} - set(ROLES):
        raise InvalidSetting(f"a study has {', '.join(ROLES)}; not {', '.join(sorted(unknown))}")
    found = _columns_found(path)
    parts: tuple[str, ...] = ()
    if names.reference == ColumnNames.reference and names.reference not in found:
        parts = tuple(name for name in REPORT_SECTIONS if name in found)
    missing = {role: getattr(names, role) for role in ROLES if role in needs}
    if parts:
        missing.pop("reference", None)
    # A column that the user names must exist; under its default name it may be absent.
    roles = {*needs, *wants}
    named = ("id", *sorted(wants), *(("view",) if "image" in roles else ()))
    missing |= {
        role: getattr(names, role)
        for role in named
        if getattr(names, role) != getattr(ColumnNames, role)
    }
    missing |= {name: name for name in also}
    _check_columns(path, found, missing, options)
    if "image" in roles and image_root is not None and not os.path.isdir(image_root):
        raise InvalidSetting(f"{image_root}: no such folder, and images are looked for in it")
    root = Path(image_root) if image_root is not None else path.parent
    return StudyTable(
        path=path,
        found=tuple(found),
        id_column=names.id,
        unique=unique,
        options=options,
        columns=names,
        needs=frozenset(needs),
        root=root,
        also=tuple(also),
        parts=parts,
        wants=frozenset(
            role
            for role in set(wants) - set(needs)
            if getattr(names, role) in found or (role == "reference" and parts)
        ),
    )


def open_reports(
    path: str | Path,
    *,
    id_column: str = "id",
    text_column: str | None = None,
    unique: bool = True,
    options: Mapping[str, str] | None = None,
) -> ReportTable:
    """Open a table of reports, of the same formats and by the same rules as `open_studies`.

    Args:
        text_column: column of the reports; default: "report", "text" or "reference", the first that
            exists; else "findings" and "impression" joined by a blank.
        unique: treat a row that repeats an earlier id as a bad row.
        options: names of the two column arguments, "id" and "text", in messages.

    Returns: an iterable of a Report or a BadRow for every row, in order.

    Raises: InvalidTable if the file cannot be read, holds no row, or has none of the columns.
    """
    path = Path(path)
    options = {**_REPORT_OPTIONS, **(options or {})}
    found = _columns_found(path)
    named = {"id": id_column} if id_column != ColumnNames.id else {}
    if text_column is not None:
        named["text"] = text_column
    _check_columns(path, found, named, options)
    sources = (text_column,) if text_column is not None else _report_columns(path, found, options)
    by_section = text_column is None and sources[0] in REPORT_SECTIONS
    return ReportTable(path, tuple(found), id_column, unique, options, sources, by_section)


def read_studies(
    path: str | Path,
    *,
    image_root: str | Path | None = None,
    columns: ColumnNames | None = None,
    unique: bool = True,
) -> Iterator[Study | BadRow]:
    """Yield the studies of a table with all their columns, in order; see `open_studies`."""
    return iter(open_studies(path, image_root=image_root, columns=columns, unique=unique))


def read_study_images(
    path: str | Path,
    *,
    image_root: str | Path | None = None,
    columns: ColumnNames | None = None,
    unique: bool = True,
) -> Iterator[StudyImages | BadRow]:
    """Yield the images of the studies of a table, in order; see `open_studies`."""
    table = open_studies(
        path, needs={"image"}, image_root=image_root, columns=columns, unique=unique
    )
    return (
        row if isinstance(row, BadRow) else StudyImages(row.id, row.images, row.views)
        for row in table
    )


def read_reports(
    path: str | Path,
    *,
    id_column: str = "id",
    text_column: str | None = None,
    unique: bool = True,
) -> Iterator[Report | BadRow]:
    """Yield the reports of a table, in order; see `open_reports`."""
    return iter(open_reports(path, id_column=id_column, text_column=text_column, unique=unique))


def _columns_found(path: Path) -> list[str]:
    """Return the columns of a table. Raises: InvalidTable if it has no rows."""
    found = columns_of(path)
    # No column is read, so that none can spoil the answer to whether there is a row.
    number, record = next(read_rows(path, ()), (0, ""))
    if not number:
        raise InvalidTable(f"{path}: holds no rows")
    if not found:
        reason = record if isinstance(record, str) else "it is empty"
        raise InvalidTable(
            f"{path}: none of its first rows has a column; row {number}: {_printable(reason)}"
        )
    return found


def _check_columns(
    path: Path, found: Sequence[str], needed: Mapping[str, str], options: Mapping[str, str]
) -> None:
    """Raise InvalidTable if a column is absent; `missing` names columns by their purpose."""
    missing = {role: name for role, name in needed.items() if name not in found}
    if not missing:
        return
    ways = [options[role] for role in missing if role in options]
    it = "it" if len(missing) == 1 else "them"
    hint = f". Name {it} with {', '.join(ways)}" if ways else ""
    if ways and set(missing) & {"image", "reference", "candidate"}:
        hint += "; or add what another file or a folder of films has by `vlscore pair`"
    raise InvalidTable(
        f"{path}: no column {_listed(missing.values())}; found: {_listed(found)}{hint}"
    )


def _report_columns(
    path: Path, found: Sequence[str], options: Mapping[str, str]
) -> tuple[str, ...]:
    whole = [name for name in REPORT_COLUMNS if name in found][:1]
    sources = whole or [name for name in REPORT_SECTIONS if name in found]
    if not sources:
        wanted = " or ".join((*REPORT_COLUMNS, *REPORT_SECTIONS))
        raise InvalidTable(
            f"{path}: no column {wanted}; found: {_listed(found)}. Name it with {options['text']}"
        )
    return tuple(sources)


def _text(record: Record, column: str) -> str | None:
    if column not in record:
        raise InvalidStudy(f'column "{column}" is absent')
    check_encodable([record[column]], column)
    return text_of(record[column], column)


def _parts(record: Record, columns: Sequence[str]) -> dict[str, str]:
    """Return the texts of the columns that have one, without blanks around them."""
    texts = {name: _text(record, name) for name in columns if name in record}
    parts = {name: text.strip() for name, text in texts.items() if text is not None}
    if not parts:
        raise InvalidStudy(f"no text in {' or '.join(columns)}")
    return parts


def _listed(names: Collection[str]) -> str:
    return _printable(", ".join(names))


def _printable(text: str) -> str:
    """Return the text with half surrogate pairs escaped, so that any file can hold it."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
