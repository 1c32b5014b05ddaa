"""Tables of rows with ids: what tables of studies and tables of reports have in common."""

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from vlscore.core import LIMIT, file_digest
from vlscore.data.cells import id_of, text_of
from vlscore.data.rows import Record, columns_of, count_rows, read_rows
from vlscore.data.study import Report, Study
from vlscore.errors import Failure, InvalidSetting, InvalidStudy, InvalidTable

ROLES = ("image", "reference", "candidate")
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
    def notes(self) -> tuple[str, ...]:
        """Return notes for the user before the results, one sentence each."""
        if self.id_column in self.found:
            return ()
        return (
            f'{self.path} has no column "{self.id_column}", so row numbers stand for the ids; '
            f"found: {listed(self.found)}. {how_to_name('id')}",
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
            return Failure(number, "", printable_text(record))
        id = None
        try:
            id = id_of(record.get(self.id_column), self.id_column)
            return self._made(str(number) if id is None else id, number, record)
        except InvalidStudy as error:
            return Failure(number, id or "", printable_text(str(error)))


def checked_limit(limit: int | None) -> int | None:
    """Return a limit of rows; None for all rows. Raises: InvalidSetting if it is below 1."""
    if limit is not None and limit < 1:
        raise InvalidSetting(f"limit must be a number of rows, at least 1, not {limit}")
    return limit


def path_of(table: Any) -> Path:
    """Return the path of a table. Raises: InvalidTable for a data frame, or anything else."""
    if isinstance(table, str | os.PathLike):
        return Path(table)
    frame = 'write it first, as in frame.to_parquet("studies.parquet", index=False), and '
    raise InvalidTable(
        f"a table is the path of a file, not a {type(table).__name__}: "
        f"{frame if hasattr(table, 'to_parquet') else ''}give the path"
    )


def columns_found(path: Path) -> list[str]:
    """Return the columns of a table. Raises: InvalidTable if it has no rows."""
    found = columns_of(path)
    # No column is read, so that none can spoil the answer to whether there is a row.
    if next(read_rows(path, ()), None) is None:
        raise InvalidTable(f"{path}: holds no rows")
    if not found:
        number, record = next(read_rows(path))
        reason = record if isinstance(record, str) else "it is empty"
        raise InvalidTable(
            f"{path}: none of its first rows has a column; row {number}: {printable_text(reason)}"
        )
    return found


def check_columns(path: Path, found: Sequence[str], needed: Mapping[str, str]) -> None:
    """Raise InvalidTable if a column is absent; `needed` has them by their role."""
    missing = {role: name for role, name in needed.items() if name not in found}
    if not missing:
        return
    roles = [role for role in missing if role in ("id", "view", "text", *ROLES)]
    # Without a column of ids, rows would silently be matched by their numbers.
    if roles and not {"id"} & {*needed, *found}:
        roles = ["id", *roles]
    hint = f". {how_to_name(*roles)}" if roles else ""
    if not set(missing).isdisjoint(ROLES):
        hint += "; or join the file that has it by `vlscore pair`"
    raise InvalidTable(
        f"{path}: no column {listed(missing.values())}; found: {listed(found)}{hint}"
    )


def how_to_name(*roles: str) -> str:
    it = "it" if len(roles) == 1 else "them"
    names = ",".join(f"{role}=NAME" for role in roles)
    return f"Name {it} with --rename {names} (Python: columns=)"


def text_in(record: Record, column: str) -> str | None:
    if column not in record:
        raise InvalidStudy(f'column "{column}" is absent')
    return text_of(record[column], column)


def parts_in(record: Record, columns: Sequence[str]) -> dict[str, str]:
    """Return the texts of the columns that have one, without blanks around them."""
    texts = {name: text_in(record, name) for name in columns if name in record}
    parts = {name: text.strip() for name, text in texts.items() if text is not None}
    if not parts:
        raise InvalidStudy(f"no text in {' or '.join(columns)}")
    return parts


def listed(names: Collection[str]) -> str:
    return printable_text(", ".join(names))


def printable_text(text: str) -> str:
    """Return the text with half surrogate pairs escaped, so that any file can hold it."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
