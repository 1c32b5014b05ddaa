"""Tables of studies and tables of reports: the rules that all commands read them by."""

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from vlscore.core import LIMIT, file_digest
from vlscore.data.cells import check_encodable, id_of, is_missing, paths_of, text_of, views_of
from vlscore.data.reports import TextPolicy
from vlscore.data.rows import Record, columns_of, count_rows, read_rows
from vlscore.data.study import ColumnNames, Report, Study
from vlscore.errors import Failure, InvalidReport, InvalidSetting, InvalidStudy, InvalidTable

ROLES = ("image", "reference", "candidate")
# Column with the path of the patient's earlier image.
PRIOR = "prior"

# Names of a report's column, of which the first that exists counts; else the columns to join.
REPORT_COLUMNS = ("report", "text", "reference")
REPORT_SECTIONS = ("findings", "impression")

Row = TypeVar("Row", Study, Report)
Usable = TypeVar("Usable")


def split_failures(rows: Iterable[Usable | Failure]) -> tuple[list[Usable], list[Failure]]:
    """Return the rows that can be used, and those that cannot."""
    usable: list[Usable] = []
    bad: list[Failure] = []
    for row in rows:
        if isinstance(row, Failure):
            bad.append(row)
        else:
            usable.append(row)
    return usable, bad


@dataclass(frozen=True)
class Table(ABC, Generic[Row]):
    """A table that has the wanted columns and at least one row; iterating reads it.

    It can be iterated over again and again, in constant memory except for the ids.

    Attributes:
        path: path of the file.
        found: names of its columns; for .jsonl and .json, those of the first 100 rows.
        id_column: name of the column of ids, which may be absent.
        unique: whether a row that repeats an earlier id is a bad row.
        limit: how many rows are read, the first ones of the file; None for all.
    """

    path: Path
    found: tuple[str, ...]
    id_column: str
    unique: bool
    limit: int | None = field(default=None, kw_only=True)

    @property
    def has_ids(self) -> bool:
        """Return True if there is a column of ids; else a row's id is its number."""
        return self.id_column in self.found

    @property
    def notes(self) -> tuple[str, ...]:
        """Return notes for the user before the results, one sentence each."""
        if self.has_ids:
            return ()
        return (
            f'{self.path} has no column "{self.id_column}", so row numbers stand for the ids; '
            f"found: {_listed(self.found)}. {_how_to_name('id')}",
        )

    @cached_property
    def sha256(self) -> str:
        """Return the sha256 of the file's content, hexadecimal."""
        return file_digest(self.path)

    def count(self) -> int | None:
        """Return the number of rows that are read if it is cheap to find, else None."""
        return count_rows(self.path, self.limit)

    def __iter__(self) -> Iterator[Row | Failure]:
        first_rows: dict[str, int] = {}
        for number, record in islice(read_rows(self.path, self._wanted()), self.limit):
            row = self._row(number, record)
            if self.unique and not isinstance(row, Failure):
                first = first_rows.setdefault(row.id, number)
                if first != number:
                    reason = f"id {row.id!r} is already in row {first}; ids must be unique"
                    yield Failure(number, row.id, reason)
                    continue
            yield row

    @property
    def limit_key(self) -> dict[str, int]:
        """Return the entry of a key for the number of rows; empty where all are read."""
        return {} if self.limit is None else {LIMIT: self.limit}

    @abstractmethod
    def _wanted(self) -> set[str]:
        """Return the names of the columns that are read."""

    @abstractmethod
    def _made(self, id: str, number: int, record: Record) -> Row:
        """Make the row of a record. Raises: InvalidStudy if the record is not usable."""

    def _row(self, number: int, record: Record | str) -> Row | Failure:
        if isinstance(record, str):
            return Failure(number, "", _printable(record))
        id = None
        try:
            id = id_of(record.get(self.id_column), self.id_column)
            return self._made(str(number) if id is None else id, number, record)
        except InvalidStudy as error:
            return Failure(number, id or "", _printable(str(error)))


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
    wants: frozenset[str]
    root: Path
    also: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()

    @property
    def roles(self) -> frozenset[str]:
        """Those of image, reference and candidate that are read."""
        return self.needs | self.wants

    @property
    def key(self) -> dict[str, Any]:
        """Return what results depend on: bytes, columns, rows, and where the images lie."""
        root = str(self.root.resolve()) if self.root != self.path.parent else None
        return {
            **self.limit_key,
            "table_sha256": self.sha256,
            "columns": self.columns.to_dict(),
            "image_root": root if "image" in self.roles else None,
        }

    def image_files(self) -> Iterator[Path]:
        """Yield the path of every image that the rows name, if images are read."""
        if "image" in self.roles:
            for row in self:
                if isinstance(row, Study):
                    yield from row.files

    def with_roles(
        self, needs: Collection[str], wants: Collection[str] = (), also: Sequence[str] = ()
    ) -> "StudyTable":
        """Return the same table, opened for other roles; `needs`, ... are those of `open_studies`.

        Raises: InvalidTable if it lacks a column; InvalidSetting.
        """
        names, found, roles = self.columns, self.found, {*needs, *wants}
        if unknown := roles - set(ROLES):
            raise InvalidSetting(
                f"a study has {', '.join(ROLES)}; not {', '.join(sorted(unknown))}"
            )
        parts: tuple[str, ...] = ()
        if names.reference == ColumnNames.reference and names.reference not in found:
            parts = tuple(name for name in REPORT_SECTIONS if name in found)
        needed = {role: getattr(names, role) for role in ROLES if role in needs}
        if parts:
            needed.pop("reference", None)
        # A column that the user names must exist; under its default name it may be absent.
        named = {role: getattr(names, role) for role in ("id", *sorted(wants))}
        if "image" in roles:
            named["view"] = names.view
        needed |= {role: name for role, name in named.items() if name != getattr(ColumnNames, role)}
        _check_columns(self.path, found, needed | {name: name for name in also})
        if "image" in roles and self.root != self.path.parent and not os.path.isdir(self.root):
            raise InvalidSetting(f"{self.root}: no such folder, and images are looked for in it")
        present = {role for role in wants if getattr(names, role) in found}
        if parts and "reference" in wants:
            present.add("reference")
        return replace(
            self,
            needs=frozenset(needs),
            wants=frozenset(present - set(needs)),
            also=tuple(also),
            parts=parts,
        )

    def required(self, roles: Collection[str]) -> "StudyTable":
        """Return the same table, of which rows need these roles alone and have the others or not.

        Every column must be there already, as `needs` says.
        """
        needs = self.needs & frozenset(roles)
        return replace(self, needs=needs, wants=self.wants | (self.needs - needs))

    @property
    def has_priors(self) -> bool:
        """Return whether the table has the column "prior", of earlier images."""
        return PRIOR in self.found

    def _wanted(self) -> set[str]:
        names = {getattr(self.columns, role) for role in self.roles} | {self.columns.id}
        if "image" in self.roles:
            names |= {self.columns.view, PRIOR}
        return names | set(self.also) | (set(self.parts) if "reference" in self.roles else set())

    def _made(self, id: str, number: int, record: Record) -> Study:
        names, roles = self.columns, self.roles
        images: tuple[Path, ...] = ()
        views = reference = candidate = parts = prior = None
        lacking: dict[str, str] = {}
        if "image" in roles:
            with self._noting("image", lacking):
                found = paths_of(record.get(names.image), names.image, self.root)
                views = views_of(record.get(names.view), len(found), names.view)
                images = found
                if not is_missing(record.get(PRIOR)):
                    prior = paths_of(record[PRIOR], PRIOR, self.root)[0]
        if "reference" in roles:
            with self._noting("reference", lacking):
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
        return Study(id, images, views, reference, candidate, number, parts, extra, prior, lacking)

    @contextlib.contextmanager
    def _noting(self, role: str, lacking: dict[str, str]) -> Iterator[None]:
        """Note why a row lacks what it need not have; raise where it must have it."""
        try:
            yield
        except InvalidStudy as error:
            if role in self.needs:
                raise
            lacking[role] = _printable(str(error))


@dataclass(frozen=True)
class ReportTable(Table[Report]):
    """A table of reports; see `open_reports`.

    Attributes:
        sources: columns that are joined to a report.
        by_section: whether they are its findings and its impression.
    """

    sources: tuple[str, ...]
    by_section: bool

    @property
    def key(self) -> dict[str, Any]:
        """Return what results depend on: bytes, columns and rows."""
        return {
            **self.limit_key,
            "table_sha256": self.sha256,
            "columns": [self.id_column, *self.sources],
        }

    def selected(self, policy: TextPolicy) -> Iterator[Report | Failure]:
        """Yield each report with the part that the policy scores; a bad row where it has none."""
        for row in self:
            try:
                yield row if isinstance(row, Failure) else row.selected(policy)
            except InvalidReport as error:
                yield Failure(row.row, row.id, str(error))

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
    columns: ColumnNames | Mapping[str, str] | None = None,
    also: Sequence[str] = (),
    unique: bool = True,
    limit: int | None = None,
) -> StudyTable:
    """Open a .jsonl, .json, .csv, .tsv or .parquet table of studies; docs/tables.md has the rules.

    Args:
        needs: those of "image", "reference" and "candidate" that every row must have.
        wants: the others that are read if present; a row without them is not a bad row.
        image_root: folder that image paths start from; default: the table's.
        columns: other names of columns, as in {"reference": "gt"}.
        also: further columns to read, into `Study.extra`.
        unique: treat a row that repeats an earlier id as a bad row.
        limit: read only so many rows, the first ones; None for all.

    Returns: an iterable of a Study or a Failure for every row, in order.

    Raises:
        InvalidTable: the file cannot be read, holds no row, or lacks a column.
        InvalidSetting: `image_root` is no folder, a role is unknown, or `limit` is below 1.
    """
    path = Path(path)
    names, found = ColumnNames.named(columns), _columns_found(path)
    opened = StudyTable(
        path=path,
        found=tuple(found),
        id_column=names.id,
        unique=unique,
        columns=names,
        needs=frozenset(),
        wants=frozenset(),
        root=path.parent if image_root is None else Path(image_root),
        limit=checked_limit(limit),
    )
    return opened.with_roles(needs, wants, also)


def as_table(
    table: str | Path | StudyTable,
    needs: Collection[str] = (),
    wants: Collection[str] = (),
    *,
    also: Sequence[str] = (),
    unique: bool = True,
) -> StudyTable:
    """Return a table of studies, opened for some roles: what functions do with their argument.

    Args:
        table: path; or a table that is open already, of whatever roles: its columns, the folder of
            its images and its limit count.
        needs, wants, also, unique: as of `open_studies`.

    Raises: as `open_studies`.
    """
    if not isinstance(table, StudyTable):
        return open_studies(table, needs=needs, wants=wants, also=also, unique=unique)
    return replace(table, unique=unique).with_roles(needs, wants, also)


def open_reports(
    path: str | Path,
    *,
    id_column: str = "id",
    text_column: str | None = None,
    unique: bool = True,
    limit: int | None = None,
) -> ReportTable:
    """Open a table of reports, of the same formats and by the same rules as `open_studies`.

    Args:
        text_column: column of the reports; default: "report", "text" or "reference", the first that
            exists; else "findings" and "impression" joined by a blank.
        unique: treat a row that repeats an earlier id as a bad row.
        limit: read only so many rows, the first ones; None for all.

    Returns: an iterable of a Report or a Failure for every row, in order.

    Raises: InvalidTable if the file cannot be read, holds no row, or has none of the columns.
    """
    path = Path(path)
    found = _columns_found(path)
    named = {"id": id_column} if id_column != ColumnNames.id else {}
    if text_column is not None:
        named["text"] = text_column
        sources = [text_column]
    else:
        sources = [name for name in REPORT_COLUMNS if name in found][:1]
        sources = sources or [name for name in REPORT_SECTIONS if name in found]
    _check_columns(path, found, named)
    if not sources:
        wanted = " or ".join((*REPORT_COLUMNS, *REPORT_SECTIONS))
        raise InvalidTable(
            f"{path}: no column {wanted}; found: {_listed(found)}. {_how_to_name('text')}"
        )
    by_section = text_column is None and sources[0] in REPORT_SECTIONS
    return ReportTable(
        path,
        tuple(found),
        id_column,
        unique,
        tuple(sources),
        by_section,
        limit=checked_limit(limit),
    )


def checked_limit(limit: int | None) -> int | None:
    """Return a limit of rows; None for all rows. Raises: InvalidSetting if it is below 1."""
    if limit is not None and limit < 1:
        raise InvalidSetting(f"limit must be a number of rows, at least 1, not {limit}")
    return limit


def _columns_found(path: Path) -> list[str]:
    """Return the columns of a table. Raises: InvalidTable if it has no rows."""
    found = columns_of(path)
    # No column is read, so that none can spoil the answer to whether there is a row.
    if next(read_rows(path, ()), None) is None:
        raise InvalidTable(f"{path}: holds no rows")
    if not found:
        number, record = next(read_rows(path))
        reason = record if isinstance(record, str) else "it is empty"
        raise InvalidTable(
            f"{path}: none of its first rows has a column; row {number}: {_printable(reason)}"
        )
    return found


def _check_columns(path: Path, found: Sequence[str], needed: Mapping[str, str]) -> None:
    """Raise InvalidTable if a column is absent; `needed` has them by their role."""
    missing = {role: name for role, name in needed.items() if name not in found}
    if not missing:
        return
    roles = [role for role in missing if role in ("id", "view", "text", *ROLES)]
    hint = f". {_how_to_name(*roles)}" if roles else ""
    if not set(missing).isdisjoint(ROLES):
        hint += "; or join the file that has it by `vlscore pair`"
    raise InvalidTable(
        f"{path}: no column {_listed(missing.values())}; found: {_listed(found)}{hint}"
    )


def _how_to_name(*roles: str) -> str:
    it = "it" if len(roles) == 1 else "them"
    names = ",".join(f"{role}=NAME" for role in roles)
    return f"Name {it} with --rename {names} (Python: columns=)"


def _text(record: Record, column: str) -> str | None:
    if column not in record:
        raise InvalidStudy(f'column "{column}" is absent')
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
