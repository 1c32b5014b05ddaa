"""Evaluation of a table of studies, row by row, into a folder of results."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from vlscore.core import (
    FinishedRun,
    OnProgress,
    Processes,
    ProcessLost,
    ResumableFolder,
    difference,
    finished_run,
    no_progress,
    plain,
    read_frame,
    run_record,
    write_json,
)
from vlscore.data import ColumnNames, StudyTable, headings_note, open_studies
from vlscore.errors import ChecksumMismatch, InvalidSetting
from vlscore.evaluation.drift import PrecisionCheck
from vlscore.evaluation.scoring.executor import (
    Computing,
    Here,
    Job,
    chunk_tables,
    compute_rows,
    require_same_images,
)
from vlscore.evaluation.scoring.own_columns import (
    KEY,
    OwnColumns,
    OwnValues,
    subgroup_tables,
    summary_of,
    write_subgroups,
)
from vlscore.evaluation.scoring.parallel import Shared, fitted
from vlscore.evaluation.scoring.results import (
    DETAILS,
    RESULTS,
    SUBGROUPS,
    SUMMARY,
    ColumnLayout,
    check_format,
    layout_of,
    layout_of_run,
    read_guessed,
    read_rows_of,
    read_scores,
    summary_table,
    with_more_columns,
    with_rows_replaced,
    write_results,
)
from vlscore.evaluation.scoring.summary import ERROR, ID, Summary, read_summary, reasons_of
from vlscore.metrics import DEFAULT_METRIC, Plan, Scorer
from vlscore.stats import FAILURES, Run, TextTable

if TYPE_CHECKING:
    import pandas


Tables = Callable[[], Iterable[pa.Table]]
Compute = Callable[[ResumableFolder, Job], int]


class RunResult(Run):
    """Result of an evaluation: scores.parquet (or .csv), details.parquet, summary.json and more.

    The folder also has failures.csv, run.json, and subgroups.csv where columns make subgroups.
    """

    content_file = SUMMARY

    @cached_property
    def summary(self) -> Summary:
        """Return the numbers."""
        return read_summary(self.summary_file)

    @property
    def scores(self) -> Path:
        """Return path of the table of scores, one row a study."""
        return self.folder / f"scores.{self.facts['key']['format']}"

    @property
    def failures(self) -> Path:
        """Return path of failures.csv."""
        return self.folder / FAILURES

    @property
    def summary_file(self) -> Path:
        """Return path of summary.json."""
        return self.folder / SUMMARY

    @property
    def subgroups(self) -> list[TextTable]:
        """Return the numbers of every subgroup, a table a column and number; empty without any."""
        path = self.folder / SUBGROUPS
        return subgroup_tables(path) if path.is_file() else []

    @property
    def tables(self) -> list[TextTable]:
        """Return the summary and the numbers of every subgroup, as they are printed."""
        return [summary_table(self.summary), *self.subgroups]

    @property
    def signatures(self) -> list[str]:
        """Return what the numbers of each metric depend on."""
        return [str(each.signature) for each in self.summary.metrics.values()]

    @property
    def record(self) -> Path:
        """Return path of run.json."""
        return self.folder / "run.json"

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a study, as the scores file; signatures in `attrs`. Needs pandas."""
        signatures = {name: each.signature for name, each in self.summary.metrics.items()}
        texts = (ID, ERROR, *_own_columns_in(self.folder).names)
        return read_frame(self.scores, texts=texts, signatures=signatures)

    def first_guessed(self, count: int) -> list[str]:
        """Return names of the first studies whose frontal view is a guess: their ids, or rows."""
        return read_guessed(self.folder / DETAILS, self.scores, count)

    def first_scores(self, count: int) -> list[dict[str, Any]]:
        """Return the first rows, column by name."""
        return read_scores(self.scores, count)


def evaluate(
    table: str | Path | StudyTable,
    out: str | Path,
    scorer: Scorer | None = None,
    *,
    image_root: str | Path | None = None,
    columns: ColumnNames | None = None,
    format: str = "parquet",
    workers: int = 0,
    overwrite: bool = False,
    retry_failed: bool = False,
    keep_going: bool = False,
    processes: Processes | None = None,
    elsewhere: Computing | None = None,
    checked: PrecisionCheck | None = None,
    own: OwnColumns | None = None,
    on_progress: OnProgress | None = None,
) -> RunResult:
    """Compute the metrics of a scorer for every study of a table.

    Memory holds some chunks of rows, and of every row its numbers alone (eight bytes each), for the
    intervals of the summary.

    Called again after a stop with the same arguments, a run resumes where it was. Called again when
    it has ended, it changes nothing. With further metrics, only these are computed, and their
    columns join the others; with another format, the scores are written in that.

    Args:
        table: .jsonl, .csv, ... with columns id, image, reference, candidate, as far as the metrics
            look at them; docs/tables.md has the rules. Or what `open_studies` returned.
        out: folder for the results; docs/results.md describes them.
        scorer: what scores; default: VLScore by the default encoder.
        image_root: folder that image paths are relative to; default: the table's.
        columns: other column names.
        format: "parquet" or "csv", of the scores.
        workers: processes that decode images; 0 decodes in this one.
        overwrite: compute anew; earlier results stay until the new ones are complete.
        retry_failed: compute the rows without a value again, in a run that has ended.
        keep_going: continue even if the first hundred rows all fail for one reason.
        processes: those that share the run, of which this is the first; the others call
            `serve_evaluation`. The results are those of one process, byte for byte.
        elsewhere: what computes the rows instead of this process, as `OnRay` does.
        checked: what the precision changes, as `check_drift` found it; it is noted in run.json.
        own: columns of the table that are copied into the results, make subgroups, or name the
            patient of each study; default: those of the finished run in `out`, where there is
            one.
        on_progress: called after every chunk with (rows done, rows failed).

    Raises:
        InvalidTable: the table cannot be read at all.
        InvalidSetting: `out` holds another run's results, or numbers of image files that were
            replaced since; or the first hundred rows fail alike.
        FolderInUse: another run is writing there.
        ProcessLost: another process of the run has ended; finished rows are stored.
        A row that cannot be scored raises nothing: it is listed in failures.csv.
    """
    check_format(format)
    studies = _opened(table, scorer, image_root, columns)
    scorer = fitted(scorer if scorer is not None else Scorer(), studies)
    processes = processes or Processes()
    own = own or (OwnColumns() if overwrite else _own_columns_in(out))
    own.check(studies, scorer.metrics)
    job = _EvaluationJob(studies, scorer, format, processes.count, checked, own)
    here = Here(studies, scorer, workers)
    shared = Shared(here, processes) if processes.count > 1 else None
    computing: Computing = elsewhere or shared or here

    def compute(folder: ResumableFolder, part: Job) -> int:
        stops = not keep_going and part.only is None
        report = on_progress or no_progress
        return compute_rows(folder, computing, part, on_progress=report, stops_if_alike=stops)

    try:
        return job.run(out, compute, overwrite=overwrite, retry=retry_failed)
    except ProcessLost as lost:
        text = f"{lost}; finished rows are stored in {out}. The same command resumes"
        raise ProcessLost(text) from None
    finally:
        if shared is not None:
            shared.end()


def _own_columns_in(out: str | Path) -> OwnColumns:
    """Return the own columns of the finished run in a folder; none where there is no run."""
    try:
        finished = finished_run(out)
    except ChecksumMismatch:
        return OwnColumns()  # The code that opens the folder reports the damage.
    return OwnColumns() if finished is None else OwnColumns.of_key(finished.key)


def _note_of_patients(record: Mapping[str, Any]) -> tuple[str, ...]:
    count, column = record.get("patients"), OwnColumns.of_key(record["key"]).patient
    if count is None:
        return ()
    return (f"intervals resample the {count} patients of the column {column}, not the studies",)


def _opened(
    table: str | Path | StudyTable,
    scorer: Scorer | None,
    image_root: str | Path | None,
    columns: ColumnNames | None,
) -> StudyTable:
    plan = Plan(DEFAULT_METRIC) if scorer is None else scorer.plan
    roles = plan.needs.roles
    if not isinstance(table, StudyTable):
        return open_studies(table, needs=roles, image_root=image_root, columns=columns)
    if image_root is not None or columns is not None:
        raise InvalidSetting("image_root and columns belong to open_studies: the table is open")
    if lacking := roles - table.needs:
        raise InvalidSetting(
            f"the metrics look at {', '.join(sorted(lacking))}, which the table was opened without"
        )
    return table


class _EvaluationJob:
    """Job that writes the evaluation of one table into one folder."""

    def __init__(
        self,
        studies: StudyTable,
        scorer: Scorer,
        format: str,
        processes: int,
        checked: PrecisionCheck | None,
        own: OwnColumns,
    ) -> None:
        self._own = own
        # Refuses names of columns before anything is written.
        self._layout = layout_of(scorer)
        self._studies, self._scorer, self._format = studies, scorer, format
        self._processes, self._checked = processes, checked
        self._began = time.monotonic()
        embedder = scorer.embedder
        self._before = embedder.engine.work.to_dict() if embedder is not None else {}
        self._annotated_before = scorer.plan.annotations.to_dict()

    def key(self) -> dict[str, Any]:
        """Return the settings that must match before a stopped run can be resumed."""
        root, own_folder = self._studies.root, self._studies.path.parent
        return {
            "table_sha256": self._studies.sha256,
            "columns": self._studies.columns.to_dict(),
            "image_root": str(root.resolve()) if root != own_folder else None,
            "format": self._format,
            "metrics": {name: str(s) for name, s in self._scorer.signatures.items()},
            **self._own.to_dict(),
        }

    def run(self, out: str | Path, compute: Compute, *, overwrite: bool, retry: bool) -> RunResult:
        """Enter the folder, compute what it lacks with `compute`, and write the results."""
        with ResumableFolder(
            out,
            self.key(),
            results=RESULTS,
            overwrite=overwrite,
            extends={"metrics", "format", KEY},
            retry=retry,
        ) as folder:
            if folder.record is not None:
                if folder.unchanged and self._scorer.plan.needs.images:
                    require_same_images(FinishedRun(folder.out, folder.record))
                return self.ended(folder, folder.record, unchanged=folder.unchanged)
            if folder.previous is not None:
                take_up = self.retry if retry else self.extend
                return take_up(folder, folder.previous, compute)
            done = compute(folder, Job())
            return self.finish(folder, lambda: chunk_tables(folder), self._layout, done)

    def extend(self, folder: ResumableFolder, earlier: FinishedRun, compute: Compute) -> RunResult:
        """Add the metrics that a finished run lacks, or write its scores in another format."""
        before = self._earlier_layout(earlier)
        missing = [m for m in self._scorer.metrics if str(m) not in before.names]
        if missing:
            job = Job(metrics=tuple(map(str, missing)))
            added = job.scorer(self._scorer)
            if added.plan.needs.images:
                had_images = any(metric.uses_image for metric, _ in before.metrics)
                require_same_images(earlier, must_know=had_images)
            joined = before.joined(layout_of(added))
            done = compute(folder, job)
            return self.finish(
                folder,
                lambda: with_more_columns(
                    read_rows_of(earlier, before), chunk_tables(folder), joined
                ),
                joined,
                done,
            )
        if earlier.key["format"] == self._format and OwnColumns.of_key(earlier.key) == self._own:
            return self.ended(folder, earlier.record, unchanged=True)
        return self.finish(folder, lambda: read_rows_of(earlier, before), before, 0)

    def retry(self, folder: ResumableFolder, earlier: FinishedRun, compute: Compute) -> RunResult:
        """Compute the rows of a finished run that lack a value, and no others."""
        before = self._earlier_layout(earlier)
        if lacking := set(before.names) ^ {str(m) for m in self._scorer.metrics}:
            raise InvalidSetting(
                f"{folder.out}: name the metrics of the run whose rows are retried, "
                f"{', '.join(before.names)}; {', '.join(sorted(lacking))} differ"
            )
        failed = {row for table in read_rows_of(earlier, before) for row, _, _ in reasons_of(table)}
        if not failed:
            return self.extend(folder, earlier, compute)
        done = compute(folder, Job(only=frozenset(failed)))
        return self.finish(
            folder,
            lambda: with_rows_replaced(read_rows_of(earlier, before), chunk_tables(folder)),
            before,
            done,
        )

    def finish(
        self, folder: ResumableFolder, tables: Tables, layout: ColumnLayout, rows: int
    ) -> RunResult:
        """Write the results from the rows of `tables`, and forget the chunks, `rows` rows."""

        def write(place: Path) -> dict[str, Any]:
            own = OwnValues.read(self._own, self._studies) if self._own.names else None
            widened = tables if own is None else (lambda: own.added_to(tables()))
            write_results(place, widened, layout, self._format, self._own.names)
            summary = summary_of(tables, layout.metrics, own)
            write_json(place / SUMMARY, summary.to_dict())
            if own is not None and self._own.by:
                write_subgroups(place / SUBGROUPS, tables, layout.metrics, own)
            patients = own.count_patients() if own is not None else None
            return {**self._record(folder, layout), "patients": patients}

        key = {**folder.key, "metrics": {str(m): str(s) for m, s in layout.metrics}}
        return self.ended(folder, folder.finish(write, rows=rows, key=key))

    def ended(
        self, folder: ResumableFolder, record: dict[str, Any], *, unchanged: bool = False
    ) -> RunResult:
        """Return the result of a run that has ended."""
        result = RunResult.of(folder, record=record, unchanged=unchanged)
        summary = result.summary
        notes = (
            *self._studies.notes,
            *headings_note(summary.references_with_headings, summary.rows),
            *self._scorer.notes,
        )
        if (embedder := self._scorer.embedder) is not None:
            # Imports torch, which metrics of texts do without.
            from vlscore.embedding import training_notes

            notes = (*notes, *training_notes(embedder, self._studies.sha256))
        call_notes = (*notes, *_note_of_patients(record))
        return replace(result, call_notes=call_notes)

    def _record(self, folder: ResumableFolder, layout: ColumnLayout) -> dict[str, Any]:
        embedder = self._scorer.embedder
        return run_record(
            geometry=list(layout.geometry),
            table=str(self._studies.path.resolve()),
            image_root=str(self._studies.root.resolve()),
            signatures={str(m): s.to_dict() for m, s in layout.metrics},
            encoder=embedder.encoder.card.to_dict() if embedder is not None else None,
            processes=self._processes,
            precision_check=plain(self._checked.to_dict()) if self._checked is not None else None,
            device=str(embedder.encoder.device) if embedder is not None else None,
            batch_size=embedder.engine.batch_size if embedder is not None else None,
            work=self._work(),
            seconds=round(time.monotonic() - self._began, 3),
            resumed_from=folder.resumed_from,
        )

    def _work(self) -> dict[str, int] | None:
        """Return counts of what was computed and what was cached; None without a network."""
        embedder = self._scorer.embedder
        found = embedder.engine.work.since(self._before) if embedder is not None else {}
        now = self._scorer.plan.annotations.to_dict()
        since = {name: count - self._annotated_before[name] for name, count in now.items()}
        return {**found, **(since if any(since.values()) else {})} or None

    def _earlier_layout(self, run: FinishedRun) -> ColumnLayout:
        """Return the columns of a finished run; raise InvalidSetting if a metric changed."""
        layout = layout_of_run(run, {str(metric): metric for metric in self._scorer.metrics})
        for metric, signature in layout.metrics:
            now = self._scorer.signatures.get(str(metric))
            if now is not None and now != signature:
                raise InvalidSetting(
                    f"{run.folder} holds {metric} computed in another way: "
                    f"{difference(signature, now)}. Choose another output folder, or give "
                    "--overwrite to compute it anew"
                )
        return layout
