"""Result of a command: what it computed, in which files, and how it is shown.

Every command computes a `Content`: data frames, failed rows, and what a reader must know. One
writer makes the files of it; `Result` reads them. What is shown (tables, figures, a paragraph, the
view of a page) is a function of the result: the `Presentation` of the command, which is defined
in its file. A new command is one file with its presentation, and one line in `_PRESENTATIONS`.

| file | holds |
|---|---|
| run.json | what the results depend on, versions, digests of the files, facts of the run |
| result.json | every data frame, signatures, notes |
| tables.md, tables.tex | the printed tables |
| failures.csv | failed rows: row, id, reason |
| images.parquet | a row for every image file that was read: size, time of the last change, sha256 |
| values.parquet and others | rows of `Content.rows` |
"""

import csv
import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from vlscore.core import (
    IMAGES,
    RECORD,
    FinishedRun,
    Registry,
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
    write_results,
)
from vlscore.errors import Failure, InvalidSetting, UnknownName
from vlscore.stats.intervals import Interval
from vlscore.stats.tables import TextTable, markdown, with_demonstration_note

if TYPE_CHECKING:
    import pandas

CONTENT = "result.json"
FAILURES = "failures.csv"
# Columns of ids and reasons in files of single rows.
TEXT_COLUMNS = ("id", "study_id", "candidate_id", "system", "kind", "error")


@dataclass(frozen=True)
class Content:
    """What a command computed.

    Attributes:
        frames: name -> numbers of the analysis, in full precision.
        rows: file name (.parquet, .csv, .jsonl) -> values of single rows.
        failures: rows without a value.
        signatures: metric, or its name -> what its numbers depend on.
        notes: what a reader must know, one sentence each.
        facts: further entries of run.json.
    """

    frames: Mapping[str, "pandas.DataFrame"]
    rows: Mapping[str, "pandas.DataFrame"] = field(default_factory=dict)
    failures: Sequence[Failure] = ()
    signatures: Mapping[Any, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)


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
        figure: str | None = None,
        other_folders: Collection[str] = (),
        overwrite: bool = False,
        notes: Iterable[str] = (),
    ) -> Self:
        """Compute what a folder lacks, and return what it holds.

        Args:
            out, key, other_folders, overwrite: see `output_folder`.
            compute: called with the folder in which further files can be written, such as figures.
                It is not called where the run ended before.
            images: returns the image files that the results depend on. A later call is refused
                where one of them was replaced.
            figure: format of the figures that are part of the results; None for none.
            notes: `call_notes`.

        Raises: whatever `output_folder` and `compute` raise; InvalidSetting for a replaced image.
        """
        computed: dict[str, Any] = {}

        def write(path: Path) -> dict[str, Any]:
            made = cls.written(path, key, compute(path))
            if figure is not None and (figures := made.presentation.figures) is not None:
                figures(made, figure, ())
            if images is not None and len(found := images_frame(images())):
                write_rows(path / IMAGES, found)
            computed.update({n: vars(made)[n] for n in ("frames", "signatures", "tables")})
            return made.record

        with output_folder(out, key, overwrite=overwrite, other_folders=other_folders) as finished:
            if finished is not None:
                require_same_images(finished.folder)
            run = finished or write_results(Path(out), key, write)
        result = cls(run.folder, run.record, finished is not None, tuple(notes))
        # What was computed is not read again from the disk.
        vars(result).update(computed)
        return result

    @classmethod
    def written(cls, folder: Path, key: Mapping[str, Any], content: Content) -> Self:
        """Write all files of a content but run.json, and return its result, still without digests.

        Args: folder: the empty folder that `write_results` calls its function with.
        """
        signatures = {str(name): str(each) for name, each in content.signatures.items()}
        notes = [*limit_notes(key), *content.notes]
        failed = content.failures
        facts = run_record(**plain({"notes": notes, "failed": len(failed), **content.facts}))
        result = cls(
            folder, {**facts, "key": plain(key), "results": dict.fromkeys(content.rows, "")}
        )
        records = {n: plain(each.to_dict("records")) for n, each in content.frames.items()}
        # The same frames as those that are read from the file.
        frames = {name: frame(each, signatures) for name, each in records.items()}
        vars(result).update(frames=frames, signatures=signatures)
        written = {"frames": records, "signatures": signatures, "notes": notes}
        write_json(folder / CONTENT, written)
        vars(result)["tables"] = tables = result._printed_tables()
        if tables:
            shown = markdown(tables, signatures.values())
            (folder / "tables.md").write_text(shown, encoding="utf-8")
            latex = "\n".join(table.latex() for table in tables)
            (folder / "tables.tex").write_text(latex, encoding="utf-8")
        for name, rows in content.rows.items():
            write_rows(folder / name, rows)
        if failed:
            from pandas import DataFrame

            rows = DataFrame(failed, columns=Failure._fields, dtype=object)
            write_rows(folder / FAILURES, rows)
        return result

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
        return cls(run.folder, run.record)

    @property
    def command(self) -> str:
        """Name of the command, as in "audit read"; "" where run.json has none."""
        return str(self.key.get("command", ""))

    @property
    def presentation(self) -> "Presentation":
        """How the command's results are shown; without tables for an unknown command."""
        # A folder of somebody else's chooses a registered command, never code.
        known = self.command in PRESENTATIONS
        return PRESENTATIONS.find(self.command) if known else Presentation()

    @property
    def content(self) -> dict[str, Any]:
        """Content of result.json, or of run.json where a command has no other: plain data."""
        path = self.folder / (CONTENT if CONTENT in self.digests else RECORD)
        with reading_result(path):
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return found

    @cached_property
    def frames(self) -> dict[str, "pandas.DataFrame"]:
        """Name -> numbers of one part of the analysis, as they were computed."""
        with reading_result(self.folder / CONTENT):
            found = self.content.get("frames", {})
            return {name: frame(each, self.signatures) for name, each in found.items()}

    @cached_property
    def signatures(self) -> dict[str, str]:
        """What the numbers of each metric depend on."""
        with reading_result(self.folder / CONTENT):
            return dict(self.content.get("signatures", {}))

    @cached_property
    def tables(self) -> list[TextTable]:
        """The tables as they are printed.

        Raises: ChecksumMismatch where the frames are not those of this version of the command.
        """
        with reading_result(self.folder / CONTENT):
            return self._printed_tables()

    def _printed_tables(self) -> list[TextTable]:
        return with_demonstration_note(self.presentation.tables(self), self.signatures.values())

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know, one sentence each."""
        return (*self.call_notes, *self.record.get("notes", ()))

    @property
    def failures(self) -> list[Failure]:
        """The rows without a value."""
        path = self.folder / FAILURES
        if FAILURES not in self.digests:
            return []
        with reading_result(path), path.open(encoding="utf-8", newline="") as stream:
            return [
                Failure(int(row) if row.isdigit() else row or None, from_cell(id), from_cell(why))
                for row, id, why in list(csv.reader(stream))[1:]
            ]

    def frame(self, name: str) -> "pandas.DataFrame":
        """Return the numbers of one part of the analysis; signatures in `attrs`.

        Raises: UnknownName that lists the frames there are.
        """
        if name not in self.frames:
            raise UnknownName(f"no frame {name!r}; there are {', '.join(self.frames)}")
        found = self.frames[name]
        # A column without any value holds numbers, as of intervals over one study.
        empty = found.columns[found.isna().all()] if len(found) else ()
        return found.astype(dict.fromkeys(empty, float))

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


def intervals_in(
    rows: "pandas.DataFrame", panel: str, row: str, name: str
) -> dict[str, dict[str, Interval]]:
    """Return the intervals of a frame by two of its columns, in the order of its rows."""
    found: dict[str, dict[str, Interval]] = {}
    for each in rows.to_dict("records"):
        found.setdefault(each[panel], {})[each[row]] = interval_in(each, name)
    return found


class Presentation(NamedTuple):
    """How the results of a command are shown; every part is a function of the `Result`.

    Attributes:
        tables: returns the tables that are printed.
        figures: called with the result, the format ("png", "svg" or "pdf") and the columns that
            are drawn; draws into the result's folder, and returns the paths. None: no figures.
        paragraph: returns the paragraph of a methods section; None: there is none.
        page: "package.module:function" that fills the view of a page, which is imported when a
            page is made; "": the page lists the largest file.
    """

    tables: Callable[[Result], list[TextTable]] = lambda result: []
    figures: Callable[[Result, str, Sequence[str]], list[Path]] | None = None
    paragraph: Callable[[Result], str] | None = None
    page: str = ""


# Command -> its presentation, imported when a result is shown.
_PRESENTATIONS = {
    "align": "vlscore.evaluation.alignment.tables",
    "audit read": "vlscore.evaluation.audit.audit_reading",
    "baseline": "vlscore.evaluation.baselines.baseline_candidates",
    "claims": "vlscore.evaluation.claim_table",
    "compare": "vlscore.evaluation.comparison.tables",
    "controlled": "vlscore.evaluation.controlled_sentences.controlled",
    "evaluate": "vlscore.evaluation.scoring.summary",
    "failure-modes": "vlscore.evaluation.alignment.failures",
    "findings": "vlscore.evaluation.report_labels",
    "judge": "vlscore.evaluation.judgements",
    "oracle": "vlscore.retrieval.table_oracle",
    "ratings read": "vlscore.evaluation.ratings.ratings_read",
    "retrieval": "vlscore.evaluation.retrieval_table",
    "sensitivity": "vlscore.evaluation.sensitivities.kinds_noticed",
    "train": "vlscore.training.result",
    "watch": "vlscore.evaluation.watches.watch",
}
PRESENTATIONS = Registry[Presentation]("command")
for _command, _module in _PRESENTATIONS.items():
    PRESENTATIONS.register(f"{_module}:PRESENTATION", _command)
