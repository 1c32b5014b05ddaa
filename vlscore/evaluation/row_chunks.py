"""Rows of a table, computed chunk by chunk into a resumable folder, in constant memory.

Every command over the rows of a table uses it: `ChunkWriter` counts rows and failures and
reports progress; a chunk holds arrays (`write_arrays`), or parts of result files (`RowFiles`).
"""

import contextlib
import csv
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from vlscore.core import Chunk, OnProgress, ResumableFolder, cell, no_progress, write_json
from vlscore.data import BadRow
from vlscore.stats import FAILURES, Run

Row = TypeVar("Row")

_FACTS = "facts.json"
# Seconds of work, which is what a kill can cost.
_ROWS_IN_CHUNK = 1000


class ChunkWriter:
    """Writer of the chunks that a folder lacks; it counts rows and failures of all chunks.

    Args: on_progress: called at once and after every chunk with (rows done, rows failed).

    Attributes:
        done: number of rows in all chunks, those of earlier calls included.
        failed: how many of them failed.
    """

    def __init__(self, folder: ResumableFolder, on_progress: OnProgress | None = None) -> None:
        self.folder = folder
        self.on_progress = on_progress or no_progress
        self.done = folder.rows
        self.failed = sum(chunk.note["failed"] for chunk in folder.chunks())
        self.on_progress(self.done, self.failed)

    @contextlib.contextmanager
    def append(
        self, rows: int, failed: int, inputs: Iterable[str | Path] = (), **note: Any
    ) -> Iterator[Path]:
        """Return the folder of the next chunk, which counts when the block ends.

        Args:
            rows, failed: numbers of rows in the chunk, and of those that failed.
            inputs: files that the rows were made from, such as images.
            note: further plain data about the chunk.
        """
        with self.folder.append(rows, {"failed": failed, **note}, inputs) as place:
            yield place
        self.done, self.failed = self.done + rows, self.failed + failed
        self.on_progress(self.done, self.failed)


def chunks_of_kind(folder: ResumableFolder, kind: str) -> list[Chunk]:
    """Return the chunks whose note has this `kind`."""
    return [chunk for chunk in folder.chunks() if chunk.note["kind"] == kind]


def both(one: OnProgress | None, other: OnProgress) -> OnProgress:
    """Return a function that reports progress to both."""
    if one is None:
        return other
    first = one

    def call(done: int, failed: int) -> None:
        first(done, failed)
        other(done, failed)

    return call


def write_arrays(place: Path, facts: Any, **arrays: NDArray[Any]) -> None:
    """Write the arrays of a chunk, and plain data about them."""
    for name, array in arrays.items():
        np.save(place / f"{name}.npy", array, allow_pickle=False)
    write_json(place / _FACTS, facts)


def read_arrays(place: Path) -> tuple[dict[str, NDArray[Any]], Any]:
    """Return the arrays of a chunk by name, and the plain data, as `write_arrays` wrote them."""
    arrays = {path.stem: np.load(path, allow_pickle=False) for path in place.glob("*.npy")}
    return arrays, json.loads((place / _FACTS).read_text(encoding="utf-8"))


class RowFiles(ABC, Generic[Row]):
    """Maker of the parts of all result files for some rows, which also counts them.

    Attributes:
        rows: number of rows that were done, by earlier calls too.
        bad: number of them that failed.
        rows_in_chunk: rows after which the files are written; None for the default.
    """

    rows_in_chunk: int | None = None

    def __init__(self) -> None:
        self.rows = self.bad = 0

    def count(self, rows: int, note: Mapping[str, Any]) -> None:
        """Add the counts of a chunk of rows."""
        self.rows += rows
        self.bad += note["failed"]

    @abstractmethod
    def take(
        self, rows: Sequence[Row | BadRow], on_progress: OnProgress
    ) -> tuple[dict[str, str], dict[str, Any]]:
        """Return file -> its part for these rows, and the note for `count`."""

    def take_all(
        self, folder: ResumableFolder, table: Iterable[Row | BadRow], on_progress: OnProgress
    ) -> None:
        """Make the files of the rows of a table that no chunk holds yet."""
        for chunk in folder.chunks():
            self.count(chunk.rows, chunk.note)
        on_progress(self.rows, self.bad)
        chunks = ChunkWriter(folder)
        left = islice(table, folder.rows, None)
        while some := list(islice(left, self.rows_in_chunk or _ROWS_IN_CHUNK)):
            files, note = self.take(some, on_progress)
            self.count(len(some), note)
            with chunks.append(len(some), **note) as place:
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


class RunOfRows(Run):
    """Result of a command over the rows of a table; failures.csv lists rows without a result."""

    @property
    def bad_rows(self) -> list[BadRow]:
        """Return the rows that could not be used, with the reasons."""
        failures = self.first_failures()
        return [BadRow(int(each.row or 0), each.id or None, each.reason) for each in failures]
