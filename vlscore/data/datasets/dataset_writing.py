"""Write a data set as a table for every command: parquet, jsonl or csv, whole or not at all.

Films that were squeezed to a square can be restored to the proportions of the original. In a
squeezed film the heart is wider, or the lung longer, than in the patient. If a data set has the
original's rows and columns, the shorter side stays as it is and the other is stretched, so that
nothing is lost.
"""

import csv
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from vlscore.core import atomic_write, json_line, write_json
from vlscore.data.datasets.dataset_base import DAMAGED, Dataset, DatasetStudy, Film, Omission
from vlscore.data.datasets.registry import DatasetReading, read_dataset
from vlscore.errors import InvalidSetting, InvalidTable, UnreadableImage

SPLIT_FIELD, _NO_SPLIT = "{split}", "none"
_LISTS, _NUMBERS = ("image", "view"), ("rows", "columns")
_ROWS_AT_ONCE = 1024
# A side that was rounded by a pixel does not count as squeezed.
_SAME = 0.01
_MOST_ELONGATED = 4.0


@dataclass
class ProportionCounts:
    """Counts of films by their proportions.

    Attributes:
        restored: films that were squeezed and now are restored.
        right: films that had the right proportions already.
        unknown: films whose original size is not published; they do not change.
    """

    restored: int = 0
    right: int = 0
    unknown: int = 0


@dataclass
class DatasetSummary:
    """Summary of a data set that was written.

    Attributes:
        dataset: name of the data set.
        tables: files that were written, by part; "" for a single table.
        studies, films: numbers by part ("train", ...; "none" for studies without one).
        omitted: (what, reason) -> number of the studies and films that are left out.
        faults: number of these that are faults of the files.
        rows_file: table of what is left out.
        from_last_paragraph: studies whose findings are the last paragraph of their report.
        proportions: counts of restored films, if films were checked.
    """

    dataset: str
    tables: dict[str, Path] = field(default_factory=dict)
    studies: Counter[str] = field(default_factory=Counter)
    films: Counter[str] = field(default_factory=Counter)
    omitted: Counter[tuple[str, str]] = field(default_factory=Counter)
    faults: int = 0
    rows_file: Path | None = None
    from_last_paragraph: int = 0
    proportions: ProportionCounts | None = None

    @property
    def notes(self) -> list[str]:
        """Return notes for the user besides the numbers, one sentence each."""
        found = []
        if self.from_last_paragraph:
            found.append(
                f"{self.from_last_paragraph} reports have no heading of findings or impression; "
                "their last paragraph is taken for the findings"
            )
        if self.proportions is not None:
            counts = self.proportions
            found.append(
                f"{counts.restored} films were squeezed and are stretched back, {counts.right} had "
                f"their proportions, {counts.unknown} stay as they are: nothing states their size"
            )
        return found

    def content(self) -> dict[str, Any]:
        """Return the summary as plain data, for json."""
        return {
            "dataset": self.dataset,
            "tables": {part: path.name for part, path in self.tables.items()},
            "studies": dict(self.studies),
            "films": dict(self.films),
            "left_out": [
                {"what": what, "reason": reason, "count": count}
                for (what, reason), count in sorted(self.omitted.items())
            ],
            "faults": self.faults,
            "notes": self.notes,
        }


def dataset(
    name: str | Dataset,
    folder: str | Path,
    out: str | Path,
    *,
    films: str | Path | None = None,
    reports: str | Path | None = None,
    split: str | Iterable[str] = (),
    needs_films: bool = True,
    check_files: bool = True,
    proportions: str | Path | None = None,
    relative: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> DatasetSummary:
    """Write the studies of a data set as a table, and a second table of what is left out.

    Args:
        name, folder, films, reports, split, needs_films, check_files: as in `read_dataset`.
        out: the table, .parquet, .jsonl or .csv; with "{split}" in its name there is a table for
            each part. The same folder gets NAME.rows.csv, which lists what is left out, and
            NAME.json, with the numbers.
        proportions: folder for copies of squeezed films with their original proportions; the table
            then names the copies.
        relative: write paths from the films' folder on, which later is `--image-root`; default:
            paths from the table's own folder.
        on_progress: called with (studies, studies and films left out).

    Raises: as `read_dataset`; InvalidSetting for an unknown format; InvalidTable if no study is
        left; OutputFailed.
    """
    reading = read_dataset(
        name,
        folder,
        films=films,
        reports=reports,
        split=split,
        needs_films=needs_films,
        check_files=check_files,
    )
    if proportions is not None and not reading.dataset.has_sizes:
        raise InvalidSetting(f"{reading.dataset.name} does not state the films' original size")
    if proportions is not None and relative:
        raise InvalidSetting("restored films lie in a folder of their own; leave relative out")
    writing = _Writing(reading, Path(out), proportions, relative)
    return writing.run(on_progress or (lambda done, omitted: None))


class _Writing:
    """Open tables and counts of one call of `dataset`."""

    def __init__(
        self, reading: DatasetReading, out: Path, proportions: str | Path | None, relative: bool
    ) -> None:
        self._reading, self._out, self._relative = reading, out, relative
        # A copy's path, and that of a film with its proportions, must not depend on the folder
        # that the data set's films are relative to.
        self._proportions = None if proportions is None else Path(os.path.abspath(proportions))
        self._columns = _columns_of(reading.dataset)
        if out.suffix not in _WRITERS:
            raise InvalidSetting(f"{out}: a table is one of {', '.join(_WRITERS)}")
        self._writers: dict[str, _TableWriter] = {}
        self._summary = DatasetSummary(reading.dataset.name)
        if proportions is not None:
            self._summary.proportions = ProportionCounts()

    def run(self, on_progress: Callable[[int, int], None]) -> DatasetSummary:
        summary, stem = self._summary, self._stem()
        summary.rows_file = stem.with_name(f"{stem.name}.rows.csv")
        with ExitStack() as files:
            rows = csv.writer(files.enter_context(atomic_write(summary.rows_file)))
            rows.writerow(["file", "row", "id", "what", "reason", "detail"])
            for done, each in enumerate(self._studies(), start=1):
                if isinstance(each, Omission):
                    summary.omitted[each.what, each.reason.text] += 1
                    summary.faults += each.reason.is_fault
                    cells = (each.file, each.row, each.id, each.what, each.reason.text, each.detail)
                    rows.writerow(cells)
                else:
                    self._write(each, files)
                if done % 100 == 0:
                    on_progress(summary.studies.total(), summary.omitted.total())
            if not self._writers:
                raise InvalidTable(_nothing(self._reading, summary))
            for writer in self._writers.values():
                writer.close()
        on_progress(summary.studies.total(), summary.omitted.total())
        write_json(stem.with_name(f"{stem.name}.json"), summary.content())
        return summary

    def _stem(self) -> Path:
        """Return the table's path without suffix and "{split}"."""
        plain = self._out.name.removesuffix(self._out.suffix).replace(SPLIT_FIELD, "")
        return self._out.with_name(plain.strip("-_.") or self._reading.dataset.name)

    def _studies(self) -> Iterator[DatasetStudy | Omission]:
        counts = self._summary.proportions
        for each in self._reading:
            if isinstance(each, Omission) or self._proportions is None or counts is None:
                yield each
            else:
                root = Path(os.path.abspath(self._reading.film_root))
                yield from with_proportions(each, root, self._proportions, counts)

    def _write(self, study: DatasetStudy, files: ExitStack) -> None:
        part = study.split or _NO_SPLIT
        summary = self._summary
        summary.studies[part] += 1
        summary.films[part] += len(study.films)
        summary.from_last_paragraph += study.from_last_paragraph
        key = part if SPLIT_FIELD in self._out.name else ""
        if key not in self._writers:
            # The name of a part becomes a file's name, so it may hold no separator.
            name = self._out.name.replace(
                SPLIT_FIELD, "".join(c if c.isalnum() else "-" for c in key)
            )
            path = self._out.with_name(name)
            stream = files.enter_context(atomic_write(path, _WRITERS[self._out.suffix].mode))
            self._writers[key] = _WRITERS[self._out.suffix](stream, self._columns)
            summary.tables[key] = path
        self._writers[key].write(self._row(study))

    def _row(self, study: DatasetStudy) -> dict[str, Any]:
        row: dict[str, Any] = {
            "id": study.id,
            "patient": study.patient,
            "split": study.split,
            "image": [self._path(film.path) for film in study.films],
            "view": [film.view for film in study.films],
            "rows": [film.rows for film in study.films],
            "columns": [film.columns for film in study.films],
            "full_report": study.report or None,
            **{name: study.sections.get(name) for name in self._reading.dataset.sections},
            **{name: study.extra.get(name) or None for name in self._reading.dataset.extra},
        }
        return {name: row[name] for name in self._columns}

    def _path(self, path: str) -> str:
        """Return a film's path for commands: relative to the table's folder if it lies below."""
        if self._relative:
            return path
        whole = Path(os.path.abspath(self._reading.film_root / path))
        folder = Path(os.path.abspath(self._out.parent))
        return whole.relative_to(folder).as_posix() if whole.is_relative_to(folder) else str(whole)


class _TableWriter:
    """Writer of rows to an open file as json lines."""

    mode = "w"

    def __init__(self, stream: IO[Any], columns: Sequence[str]) -> None:
        self._stream, self._columns = stream, columns

    def write(self, row: dict[str, Any]) -> None:
        """Write one row."""
        self._stream.write(json_line({name: row[name] for name in self._columns}))

    def close(self) -> None:
        """Write the rows that are still in memory."""


class _CsvWriter(_TableWriter):
    """Writer of rows as csv; lists are json in their cells."""

    def __init__(self, stream: IO[Any], columns: Sequence[str]) -> None:
        super().__init__(stream, columns)
        self._csv = csv.writer(stream)
        self._csv.writerow(columns)

    def write(self, row: dict[str, Any]) -> None:
        cells = (row[name] for name in self._columns)
        self._csv.writerow(
            json.dumps(cell, ensure_ascii=False) if isinstance(cell, list) else cell
            for cell in cells
        )


class _ParquetWriter(_TableWriter):
    """Writer of rows as parquet, some thousand at a time."""

    mode = "wb"

    def __init__(self, stream: IO[Any], columns: Sequence[str]) -> None:
        super().__init__(stream, columns)
        import pyarrow as pa
        import pyarrow.parquet as pq

        lists = {name: pa.list_(pa.string()) for name in _LISTS}
        numbers = {name: pa.list_(pa.int64()) for name in _NUMBERS}
        types = lists | numbers
        self._schema = pa.schema([(name, types.get(name, pa.string())) for name in columns])
        self._table = pa.Table
        self._writer = pq.ParquetWriter(stream, self._schema)
        self._rows: list[dict[str, Any]] = []

    def write(self, row: dict[str, Any]) -> None:
        self._rows.append(row)
        if len(self._rows) >= _ROWS_AT_ONCE:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._table.from_pylist(self._rows, schema=self._schema))
            self._rows = []


_WRITERS: dict[str, type[_TableWriter]] = {
    ".parquet": _ParquetWriter,
    ".jsonl": _TableWriter,
    ".csv": _CsvWriter,
}


def _columns_of(dataset: Dataset) -> list[str]:
    return [
        "id",
        "patient",
        "split",
        *_LISTS,
        *(_NUMBERS if dataset.has_sizes else ()),
        *dataset.sections,
        *dataset.extra,
        *(("full_report",) if dataset.has_report else ()),
    ]


def _nothing(reading: DatasetReading, summary: DatasetSummary) -> str:
    """Return why no study is left, for an error message."""
    reasons = "; ".join(
        f"{count} times ({what}): {reason}"
        for (what, reason), count in summary.omitted.most_common(3)
    )
    wanted = ", ".join(sorted(reading.choice.splits))
    of_part = f" of the part {wanted}" if wanted else ""
    return (
        f"{reading.files.file or reading.files.folder}: no study{of_part} can be used"
        + (f". {reasons}" if reasons else "")
        + f". {reading.dataset.name} needs {reading.dataset.needs}"
    )


def with_proportions(
    study: DatasetStudy, root: Path, out: Path, counts: ProportionCounts
) -> Iterator[DatasetStudy | Omission]:
    """Yield the study with restored copies of its squeezed films, and films that cannot be read.

    Args:
        study: study whose films' paths start from `root`.
        root: absolute path, as the films of the yielded studies have absolute paths.
        out: absolute path of the folder of the copies, PNG of 8 bits under the films' own names.
            An existing copy that is newer than its film is used again.
        counts: counts to which the films are added.
    """
    films = []
    for film in study.films:
        if film.rows is None or film.columns is None:
            counts.unknown += 1
            films.append(replace(film, path=str(root / film.path)))
            continue
        try:
            films.append(_restored(film, root, out, counts))
        except UnreadableImage:
            yield Omission(study.file, study.row, study.id, "film", DAMAGED, film.path)
    if films or not study.films:
        yield replace(study, films=tuple(films))
    else:
        yield Omission(study.file, study.row, study.id, "study", DAMAGED, "no film can be read")


def restored_size(height: int, width: int, rows: int, columns: int) -> tuple[int, int] | None:
    """Return (height, width) with the proportions of rows and columns; None if no change is needed.

    >>> restored_size(256, 256, 2828, 2320), restored_size(1414, 1160, 2828, 2320)
    ((312, 256), None)
    """
    wanted, present = rows / columns, height / width
    if abs(wanted / present - 1) <= _SAME or max(wanted, 1 / wanted) > _MOST_ELONGATED:
        return None
    if wanted > present:
        return round(width * wanted), width
    return height, round(height / wanted)


def _restored(film: Film, root: Path, out: Path, counts: ProportionCounts) -> Film:
    import cv2

    from vlscore.data.images.policy import ImagePolicy
    from vlscore.data.images.read import read_image

    assert film.rows is not None
    assert film.columns is not None
    source = root / film.path
    copy = (out / film.path).with_suffix(".png")
    if _is_newer(copy, source):
        counts.restored += 1
        return replace(film, path=str(copy))
    pixels = read_image(source, ImagePolicy(other_modalities="accept")).to_uint8()
    height, width = pixels.shape
    size = restored_size(height, width, film.rows, film.columns)
    if size is None:
        counts.right += 1
        return replace(film, path=str(source))
    stretched = cv2.resize(pixels, size[::-1], interpolation=cv2.INTER_CUBIC)
    done, content = cv2.imencode(".png", stretched)
    assert done
    with atomic_write(copy, "wb") as stream:
        stream.write(content.tobytes())
    counts.restored += 1
    return replace(film, path=str(copy))


def _is_newer(copy: Path, source: Path) -> bool:
    try:
        return os.stat(copy).st_mtime_ns > os.stat(source).st_mtime_ns
    except OSError:
        return False
