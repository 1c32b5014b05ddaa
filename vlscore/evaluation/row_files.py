"""Tables whose rows become lines of files one by one, in constant memory and resumably."""

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

from vlscore.core import Chunk, OnProgress, ResumableFolder, cell
from vlscore.data import BadRow
from vlscore.stats import FAILURES, Run

Row = TypeVar("Row")

# Seconds of work, which is what a kill can cost.
_ROWS_IN_CHUNK = 1000


class RowFiles(ABC, Generic[Row]):
    """Makes the parts of all files for some rows, and counts what comes of them.

    Attributes:
        rows: how many were done, by earlier calls too.
        bad: how many of them failed.
        rows_in_chunk: rows after which the files are written; None for the default.
    """

    rows_in_chunk: int | None = None

    def __init__(self) -> None:
        self.rows = self.bad = 0

    def count(self, rows: int, note: Mapping[str, Any]) -> None:
        """Add what a chunk of rows came to."""
        self.rows += rows
        self.bad += note["bad"]

    @abstractmethod
    def take(
        self, rows: Sequence[Row | BadRow], on_progress: OnProgress
    ) -> tuple[dict[str, str], dict[str, Any]]:
        """Return file -> its part for these rows, and the note for `count`."""

    def take_all(
        self, folder: ResumableFolder, table: Iterable[Row | BadRow], on_progress: OnProgress
    ) -> None:
        """Take the rows of a table that earlier calls left over, a chunk at a time."""
        for chunk in folder.chunks():
            self.count(chunk.rows, chunk.note)
        on_progress(self.rows, self.bad)
        left = islice(table, folder.rows, None)
        while some := list(islice(left, self.rows_in_chunk or _ROWS_IN_CHUNK)):
            files, note = self.take(some, on_progress)
            self.count(len(some), note)
            with folder.append(len(some), note) as place:
                for name, content in files.items():
                    (place / name).write_bytes(content.encode("utf-8"))


def join_parts(chunks: Iterable[Chunk], name: str, whole: Path, head: str = "") -> None:
    """Write the parts of a file that the chunks hold, one after the other, behind a head."""
    with whole.open("wb") as joined:
        joined.write(head.encode("utf-8"))
        for chunk in chunks:
            joined.write((chunk.path / name).read_bytes())


def join_failures(chunks: Iterable[Chunk], place: Path) -> None:
    """Write failures.csv from the parts of the chunks."""
    join_parts(chunks, FAILURES, place / FAILURES, csv_of([("row", "id", "error")]))


def csv_of(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as csv text, in which no cell is a formula."""
    stream = io.StringIO()
    safe = ([cell(value) for value in row] for row in rows)
    csv.writer(stream, lineterminator="\n").writerows(safe)
    return stream.getvalue()


def bad_rows_of(run: Run) -> list[BadRow]:
    """Return the rows that failures.csv of a run lists."""
    failures = run.first_failures()
    return [BadRow(int(each.row or 0), each.id or None, each.reason) for each in failures]
