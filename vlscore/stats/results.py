"""Result of a command: what it computed, in which files, and how it is read again.

Every command computes a `Content`: data frames, the tables that are printed, failed rows, and what
a reader must know. One writer makes the files of it; `Result` reads them.

| file | holds |
|---|---|
| run.json | what the results depend on, versions, digests of the files, facts of the run |
| result.json | every data frame, the printed tables, signatures, notes |
| tables.md, tables.tex | the printed tables |
| failures.csv | failed rows: row, id, reason |
| images.parquet | a row for every image file that was read: size, time of the last change, sha256 |
| values.parquet and others | rows of `Content.rows` |
"""

import csv
import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from vlscore.core import (
    IMAGES,
    RECORD,
    FinishedRun,
    cells,
    finished_run,
    frame,
    from_cell,
    images_frame,
    json_line,
    limit_notes,
    output_folder,
    plain,
    read_frame,
    reading_result,
    require_same_images,
    run_record,
    write_json,
)
from vlscore.errors import Failure, InvalidSetting
from vlscore.stats.intervals import Interval
from vlscore.stats.tables import (
    NOTHING,
    TextTable,
    interval,
    number,
    p_value,
    tables_of,
    write_tables,
)

if TYPE_CHECKING:
    import pandas

CONTENT = "result.json"
FAILURES = "failures.csv"
# Columns of ids and reasons in files of single rows.
TEXT_COLUMNS = ("id", "study_id", "candidate_id", "system", "kind", "error")
_P_VALUES = ("p", "p_value", "adjusted_p")


@dataclass(frozen=True)
class Content:
    """What a command computed.

    Attributes:
        frames: name -> numbers of the analysis, in full precision.
        tables: the tables as they are printed.
        rows: file name (.parquet, .csv, .jsonl) -> values of single rows.
        failures: rows without a value.
        signatures: metric -> what its numbers depend on.
        notes: what a reader must know, one sentence each.
        facts: further entries of run.json.
    """

    frames: Mapping[str, "pandas.DataFrame"]
    tables: Sequence[TextTable] = ()
    rows: Mapping[str, "pandas.DataFrame"] = field(default_factory=dict)
    failures: Sequence[Failure] = ()
    signatures: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> dict[str, Any]:
        """Write all files, and return the entries of run.json."""
        signatures = {name: str(each) for name, each in self.signatures.items()}
        content = {
            "frames": {name: each.to_dict("records") for name, each in self.frames.items()},
            "tables": list(self.tables),
            "signatures": signatures,
            "notes": list(self.notes),
        }
        write_json(folder / CONTENT, content)
        if self.tables:
            write_tables(folder, list(self.tables), signatures.values())
        for name, rows in self.rows.items():
            write_rows(folder / name, rows)
        if self.failures:
            from pandas import DataFrame

            failed = DataFrame(self.failures, columns=Failure._fields, dtype=object)
            write_rows(folder / FAILURES, failed)
        facts = {"notes": list(self.notes), "failed": len(self.failures), **self.facts}
        return run_record(**plain(facts))


@dataclass(frozen=True)
class Result(FinishedRun):
    """The result of a command: the same for a new run and for one that ended before.

    Attributes:
        folder: with the files.
        record: content of run.json.
        key: settings and inputs that the results depend on.
        unchanged: everything was there already; nothing was computed.
        call_notes: what a user should know of this call, besides the notes in run.json.
    """

    unchanged: bool = False
    call_notes: tuple[str, ...] = ()

    @classmethod
    def make(
        cls,
        out: str | Path,
        key: Mapping[str, Any],
        compute: Callable[[Path], Content],
        *,
        images: Callable[[], Iterable[Path]] | None = None,
        beside: Collection[str] = (),
        overwrite: bool = False,
        notes: Iterable[str] = (),
    ) -> Self:
        """Compute what a folder lacks, and return what it holds.

        Args:
            out, key, beside, overwrite: see `output_folder`.
            compute: called with the folder in which further files can be written, such as figures.
                It is not called where the run ended before.
            images: returns the image files that the results depend on. A later call is refused
                where one of them was replaced.
            notes: `call_notes`.

        Raises: whatever `output_folder` and `compute` raise; InvalidSetting for a replaced image.
        """

        def write(path: Path) -> dict[str, Any]:
            content = compute(path)
            notes = [*limit_notes(key), *content.notes]
            record = replace(content, notes=notes).write(path)
            if images is not None and len(found := images_frame(images())):
                write_rows(path / IMAGES, found)
            return record

        with output_folder(out, key, overwrite=overwrite, beside=beside) as folder:
            record = folder.record
            if record is None:
                record = folder.finish(write)
            elif folder.unchanged:
                require_same_images(folder.out)
        return cls(folder.out, record, folder.unchanged, tuple(notes))

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Return the result that a finished command wrote; its files are compared with run.json.

        Raises: InvalidSetting where no command finished there; ChecksumMismatch.
        """
        run = finished_run(folder)
        if run is None:
            raise InvalidSetting(
                f"{folder} has no {RECORD}: name the folder that a finished command wrote "
                "(its --out)"
            )
        run.check()
        return cls.of(run)

    @classmethod
    def of(cls, run: FinishedRun) -> Self:
        """Return the result of a finished run; its files are not compared with run.json."""
        return cls(run.folder, run.record)

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the result files."""
        return tuple(self.digests)

    @cached_property
    def content(self) -> dict[str, Any]:
        """Content of result.json, or of run.json where a command has no other: plain data."""
        path = self.folder / (CONTENT if CONTENT in self.files else RECORD)
        with reading_result(path):
            content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            tables_of(content)
        return content

    @property
    def tables(self) -> list[TextTable]:
        """The tables as they are printed."""
        return tables_of(self.content)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know, one sentence each."""
        return (*self.call_notes, *self.record.get("notes", ()))

    @property
    def signatures(self) -> dict[str, str]:
        """What the numbers of each metric depend on."""
        return dict(self.content.get("signatures", {}))

    @property
    def failures(self) -> list[Failure]:
        """The rows without a value."""
        path = self.folder / FAILURES
        if FAILURES not in self.files:
            return []
        with reading_result(path), path.open(encoding="utf-8", newline="") as stream:
            return [
                Failure(int(row) if row.isdigit() else row or None, from_cell(id), from_cell(why))
                for row, id, why in list(csv.reader(stream))[1:]
            ]

    def frame(self, name: str) -> "pandas.DataFrame":
        """Return the numbers of one part of the analysis; signatures in `attrs`."""
        with reading_result(self.folder / CONTENT):
            found = frame(self.content["frames"][name], self.signatures)
        # A column without any value holds numbers, as of intervals over one study.
        for column in found.columns[found.isna().all()]:
            found[column] = found[column].astype(float)
        return found

    def rows(self, name: str, texts: Iterable[str] = TEXT_COLUMNS) -> "pandas.DataFrame":
        """Return the values of single rows, as in "scores.parquet"; signatures in `attrs`.

        Args: texts: columns of a csv that are texts, even if they look like numbers.
        """
        path = self.file(name)
        with reading_result(path):
            return read_frame(path, texts, self.signatures)


def write_rows(path: Path, rows: "pandas.DataFrame") -> None:
    """Write a frame by the file's suffix; texts of a csv are made safe for spreadsheets."""
    if path.suffix == ".parquet":
        rows.to_parquet(path, index=False)
        return
    if path.suffix == ".jsonl":
        records = rows.astype(object).where(rows.notna(), None).to_dict("records")
        path.write_text("".join(map(json_line, records)), encoding="utf-8", newline="")
        return
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(cells(rows.columns))
        for row in rows.astype(object).where(rows.notna(), None).itertuples(index=False):
            writer.writerow(cells(row))


def interval_in(row: Mapping[Any, Any], name: str) -> Interval:
    """Return the interval in the columns x, x.low and x.high of a frame's row; nan for None."""
    found = (row[f"{name}{bound}"] for bound in ("", ".low", ".high"))
    return Interval(*(math.nan if each is None else float(each) for each in found))


def text_table(
    title: str,
    rows: "pandas.DataFrame",
    caption: str = "",
    *,
    columns: Mapping[str, str] | None = None,
    digits: int = 3,
) -> TextTable:
    """Return a frame as it is printed: intervals in one cell, rounded numbers.

    The columns x, x.low and x.high become one cell; columns called p are p values.

    Args: columns: columns that are printed -> their headings; default: all, by their names.
    """
    if columns is not None:
        bounded = {
            f"{name}{bound}": f"{shown}{bound}"
            for name, shown in columns.items()
            for bound in ("", ".low", ".high")
        }
        rows = rows[[name for name in bounded if name in rows]].rename(columns=bounded)
    bounds = {f"{name}.{bound}" for name in rows.columns for bound in ("low", "high")}
    names = [name for name in rows.columns if name not in bounds]
    printed = [
        tuple(_cell(name, record, digits) for name in names) for record in rows.to_dict("records")
    ]
    return TextTable(title, tuple(map(str, names)), tuple(printed), caption)


def _cell(name: Any, record: Mapping[Any, Any], digits: int) -> str:
    value = record[name]
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, float):
        return str(value)
    if str(name).split(".")[-1] in _P_VALUES and value == value:
        return p_value(value)
    low, high = (record.get(f"{name}.{bound}") for bound in ("low", "high"))
    if low is None or high is None:
        return number(value, digits)
    return interval(Interval(value, low, high), digits)
