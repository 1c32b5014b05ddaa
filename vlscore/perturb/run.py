"""Perturbation of every report of a table, into a data set in a folder."""

import hashlib
import io
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from vlscore.core import (
    OnProgress,
    ResumableFolder,
    __version__,
    frame,
    no_progress,
    resource_path,
    settings_in,
    warn_caller,
    with_former_calls,
)
from vlscore.data import BadRow, Report, ReportTable, open_reports
from vlscore.errors import InvalidTable
from vlscore.findings import extract
from vlscore.perturb.edits import PerturbationSettings
from vlscore.perturb.generate import NormalSentences, perturb_report, perturbations_of, why_nothing
from vlscore.perturb.parsed_report import ReadReport
from vlscore.perturb.registry import KINDS, AnyKind, Kind, NeedsStandardNormal, kinds_named
from vlscore.stats import Failure, Run, TextTable

if TYPE_CHECKING:
    import pandas


PERTURBATIONS_FILE = "perturbations.jsonl"
SKIPPED_FILE = "skipped.jsonl"
RUN_FILE = "run.json"
RESULTS = (PERTURBATIONS_FILE, SKIPPED_FILE)

# Rows of a chunk: a few seconds of work, which is what a kill can cost.
_ROWS_IN_CHUNK = 200


class PerturbedTable(Run):
    """Result of `perturb`: perturbations.jsonl, skipped.jsonl and run.json."""

    results = RESULTS

    @property
    def out(self) -> Path:
        """Former name of `folder`."""
        warn_caller("PerturbedTable.out is now called folder", DeprecationWarning)
        return self.folder

    @property
    def reports(self) -> int:
        """Number of reports that were read, without the bad rows."""
        return int(self.content["reports"])

    @property
    def counts(self) -> dict[str, int]:
        """Number of perturbations of each kind."""
        return dict(self.content["perturbations"])

    @property
    def standard_normal(self) -> str | None:
        """The report that replaced normal ones; None if no kind needed it."""
        found: str | None = self.content["standard_normal"]
        return found

    @property
    def tables(self) -> list[TextTable]:
        """Number of perturbations of each kind and of all, as it is printed."""
        counts = {**self.counts, "all": sum(self.counts.values())}
        rows = tuple((kind, str(count)) for kind, count in counts.items())
        return [TextTable(f"{self.reports} reports", ("kind", "changes"), rows)]

    @property
    def bad_rows(self) -> list[BadRow]:
        """Rows without a report that can be used."""
        return [BadRow(int(each.row or 0), each.id or None, each.reason) for each in self._failed()]

    def first_failures(self, count: int | None = None) -> list[Failure]:
        """Return the first rows without a report that can be used; all without a count."""
        return list(islice(self._failed(), count))

    def _failed(self) -> Iterator[Failure]:
        with (self.folder / SKIPPED_FILE).open(encoding="utf-8") as stream:
            for record in map(json.loads, stream):
                if "reason" in record:
                    yield Failure(record["row"], record["study_id"] or "", record["reason"])

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a perturbation; `edits` is how many there are in it. Needs pandas."""
        with (self.folder / PERTURBATIONS_FILE).open(encoding="utf-8") as stream:
            return frame(
                {**record, "edits": len(record["edits"])} for record in map(json.loads, stream)
            )


def _is_of_one_report(source: Any = "", out: Any = None, *more: Any, **keywords: Any) -> bool:
    """Return whether a call names no folder, as one of `perturb_report`."""
    if not isinstance(out, str | os.PathLike):
        return True
    return out in KINDS and isinstance(source, str) and not os.path.isfile(source)


@with_former_calls(_is_of_one_report, perturb_report)
def perturb(
    path: str | Path,
    out: str | Path,
    kinds: Iterable[AnyKind] | AnyKind | None = None,
    seed: int = 0,
    *,
    per_report: int = 1,
    standard_normal: str | None = None,
    id_column: str = "id",
    text_column: str | None = None,
    overwrite: bool = False,
    on_progress: OnProgress | None = None,
) -> PerturbedTable:
    """Perturb every report of a table; constant memory, the same bytes for the same input and seed.

    A call with the same arguments resumes a stopped run; after the end of a run it changes nothing.

    Args:
        path: table of reports; see `open_reports` for the columns.
        out: folder for the results.
        kinds, seed, per_report: see `PerturbationSettings`.
        standard_normal: report that stands for normal ones; default: made from the table itself,
            in a first pass over it.
        id_column, text_column: names of columns; see `open_reports`.
        overwrite: make anew; earlier results stay until the new ones are complete.
        on_progress: called with (rows done, bad rows).

    Raises: InvalidTable where the table cannot be read or holds no report; UnknownName,
        InvalidSetting as `perturb_report`, and where `out` holds another data set; FolderInUse.
    """
    settings = settings_in(PerturbationSettings, locals())
    chosen = kinds_named(settings.kinds)
    table = open_reports(path, id_column=id_column, text_column=text_column)
    key = {
        "vlscore": __version__,
        "table_sha256": table.sha256,
        "columns": [id_column, text_column],
        "lexicons_sha256": lexicons_digest(),
        "kinds": [kind.name for kind in chosen],
        "seed": seed,
        "per_report": per_report,
        "standard_normal": standard_normal,
    }

    def make(folder: ResumableFolder) -> None:
        run = _PerturbationRun(chosen, settings, _standard_normal(folder, table, chosen, key))
        _make(run, folder, table, on_progress or no_progress)

        def write(place: Path) -> dict[str, Any]:
            for name in RESULTS:
                folder.join(name, place / name)
            return run.facts(table)

        folder.finish(write, rows=run.rows)

    return PerturbedTable.make(out, key, make, overwrite=overwrite, notes=table.notes)


def standard_normal_of(reports: Iterable[str]) -> str:
    """Return the standard normal report of a corpus, by `perturbations/standard_normal.toml`."""
    sentences = NormalSentences()
    for report in reports:
        sentences.add(extract(report))
    return sentences.report()


def _standard_normal(
    folder: ResumableFolder, table: ReportTable, kinds: list[Kind], key: dict[str, Any]
) -> str | None:
    """Return the standard normal report: the argument, that of a stopped run, or a new one."""
    if not any(isinstance(kind, NeedsStandardNormal) for kind in kinds):
        return None
    if key["standard_normal"] is not None:
        return str(key["standard_normal"])
    for chunk in folder.chunks():
        return str(chunk.note["standard_normal"])
    return standard_normal_of(row.text for row in table if isinstance(row, Report))


def _make(
    run: "_PerturbationRun", folder: ResumableFolder, table: ReportTable, on_progress: OnProgress
) -> None:
    """Perturb the rows that no chunk holds yet."""
    for chunk in folder.chunks():
        run.count(chunk.rows, chunk.note)
    on_progress(run.rows, run.bad)
    rows = islice(table, folder.rows, None)
    for stretch in _stretches(rows, table.path, has_report=run.reports > 0):
        made, skipped = io.StringIO(), io.StringIO()
        note = run.perturb(stretch, made, skipped, on_progress)
        with folder.append(len(stretch), note) as place:
            (place / PERTURBATIONS_FILE).write_bytes(made.getvalue().encode("utf-8"))
            (place / SKIPPED_FILE).write_bytes(skipped.getvalue().encode("utf-8"))


def _stretches(
    rows: Iterator[Report | BadRow], path: Path, *, has_report: bool
) -> Iterator[list[Report | BadRow]]:
    """Yield the rows of each chunk; the first has a report, for without any there is no data set.

    Raises: InvalidTable where no row is a report.
    """
    waiting: list[Report | BadRow] = []
    while some := list(islice(rows, _ROWS_IN_CHUNK)):
        waiting += some
        has_report = has_report or any(isinstance(row, Report) for row in some)
        if has_report:
            yield waiting
            waiting = []
    for row in waiting:
        if isinstance(row, BadRow):
            raise InvalidTable(f"{path}: holds no report; row {row.row}: {row.reason}")


class _PerturbationRun:
    """Run that perturbs rows, and counts the results."""

    def __init__(
        self, kinds: list[Kind], settings: PerturbationSettings, standard_normal: str | None
    ) -> None:
        self.kinds, self.standard_normal = kinds, standard_normal
        self.seed, self.per_report = settings.seed, settings.per_report
        self.rows = self.reports = self.bad = 0
        self._counts: Counter[str] = Counter()

    def count(self, rows: int, note: dict[str, Any]) -> None:
        """Take in what a chunk of an earlier call came to."""
        self.rows += rows
        self.reports += note["reports"]
        self.bad += rows - note["reports"]
        self._counts.update(note["counts"])

    def perturb(
        self, rows: list[Report | BadRow], made: IO[str], skipped: IO[str], on_progress: OnProgress
    ) -> dict[str, Any]:
        """Perturb some rows; returns what `count` takes in again."""
        reports, counts = self.reports, self._counts.copy()
        for row in rows:
            self.take(row, made, skipped)
            on_progress(self.rows, self.bad)
        return {
            "reports": self.reports - reports,
            "counts": dict(self._counts - counts),
            "standard_normal": self.standard_normal,
        }

    def take(self, row: Report | BadRow, made: IO[str], skipped: IO[str]) -> None:
        self.rows += 1
        if isinstance(row, BadRow):
            self.bad += 1
            _write(skipped, {"row": row.row, "study_id": row.id, "reason": row.reason})
            return
        self.reports += 1
        source = ReadReport.read(row.text, self.standard_normal)
        reasons = {}
        for kind in self.kinds:
            count = 0
            refused: list[str] = []
            for perturbation in perturbations_of(
                source, kind, self.seed, self.per_report, row.id, refused
            ):
                _write(made, perturbation.to_dict())
                count += 1
            self._counts[kind.name] += count
            if not count:
                reasons[kind.name] = why_nothing(source, kind, refused)
        if reasons:
            _write(skipped, {"row": row.row, "study_id": row.id, "reasons": reasons})

    def facts(self, table: ReportTable) -> dict[str, Any]:
        """Return the facts of the data set, without times or paths, so that the bytes repeat."""
        return {
            "vlscore": __version__,
            "table": table.path.name,
            "table_sha256": table.sha256,
            "lexicons_sha256": lexicons_digest(),
            "seed": self.seed,
            "per_report": self.per_report,
            "reports": self.reports,
            "bad_rows": self.bad,
            "perturbations": {kind.name: self._counts[kind.name] for kind in self.kinds},
            "standard_normal": self.standard_normal,
        }


def _write(stream: IO[str], record: dict[str, Any]) -> None:
    stream.write(json.dumps(record, ensure_ascii=False))
    stream.write("\n")


def lexicons_digest() -> str:
    """sha256 over the lexicons and the recipe, which decide what is generated."""
    folder = resource_path("perturbations")
    digest = hashlib.sha256()
    for file in (*sorted((folder / "lexicons").glob("*.toml")), folder / "standard_normal.toml"):
        digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()
