"""A table of studies through a scorer, row by row, into a folder of results."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from vlscore._files import write_json
from vlscore._record import run_record
from vlscore._resumable import FinishedRun, ResumableFolder
from vlscore._signature import Signature, difference
from vlscore.embedding import ImageDecoder, StudyViews
from vlscore.errors import InvalidSetting, UnknownName
from vlscore.evaluation.results import (
    FAILURES,
    RESULTS,
    SUMMARY,
    Layout,
    check_format,
    read_failures,
    read_rows_of,
    read_scores,
    with_more_columns,
    with_rows_replaced,
    write_results,
)
from vlscore.evaluation.rows import (
    REASONS,
    chunk_table,
    read_chunk,
    reasons_of,
    write_chunk,
)
from vlscore.evaluation.summary import Summary, read_summary, summarise
from vlscore.metrics import Metric, find_metric
from vlscore.scorer import Item, Scorer
from vlscore.scorer.geometry import FLAGS, NUMBERS
from vlscore.studies import BadRow, ColumnNames, Study, StudyTable, open_studies

# Batches in one chunk: enough for equal reports to meet and for lengths to be bucketed.
_BATCHES_IN_CHUNK = 8
# Rows of a chunk where nothing is embedded.
_TEXTS_IN_CHUNK = 1000
# So many rows that all fail for one reason are no accident of the data.
_ALL_ALIKE = 100

Row = Study | BadRow


@dataclass(frozen=True)
class RunResult:
    """Where a run's files lie, and its summary.

    Attributes:
        folder: with scores.parquet (or .csv), details.parquet, failures.csv, summary.json and
            run.json.
        scores, failures, summary_file, record: paths of what was written.
        summary: the numbers.
        resumed_from: rows that an earlier, stopped run had finished.
        unchanged: everything asked for was there already; nothing was computed.
        notes: what a user should know besides, one sentence each.
    """

    folder: Path
    scores: Path
    summary: Summary
    resumed_from: int = 0
    unchanged: bool = False
    notes: tuple[str, ...] = ()

    @property
    def failures(self) -> Path:
        """Path of failures.csv."""
        return self.folder / FAILURES

    @property
    def summary_file(self) -> Path:
        """Path of summary.json."""
        return self.folder / SUMMARY

    @property
    def record(self) -> Path:
        """Path of run.json."""
        return self.folder / "run.json"

    def first_failures(self, count: int) -> list[tuple[int, str, str]]:
        """(row, id, reason) of the first failed rows."""
        return read_failures(self.failures, count)

    def first_scores(self, count: int) -> list[dict[str, Any]]:
        """The first rows, column by name."""
        return read_scores(self.scores, count)


def evaluate(
    table: str | Path,
    out: str | Path,
    scorer: Scorer | None = None,
    *,
    image_root: str | Path | None = None,
    columns: ColumnNames | None = None,
    format: str = "parquet",
    workers: int = 0,
    overwrite: bool = False,
    retry_failed: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> RunResult:
    """Compute the metrics of a scorer for every study of a table, in constant memory.

    Called again after a stop with the same arguments, a run goes on where it was. Called again when
    it has ended, it changes nothing. With further metrics, only these are computed, and their
    columns join the others.

    Args:
        table: .jsonl, .csv, ... with columns id, image, reference, candidate, as far as the metrics
            look at them; docs/tables.md has the rules.
        out: folder for the results.
        scorer: what scores; default: VLScore by the default encoder.
        image_root: folder that image paths are relative to; default: the table's.
        columns: other column names.
        format: "parquet" or "csv", of the scores.
        workers: processes that decode images; 0 decodes in this one.
        overwrite: compute anew; earlier results stay until the new ones are complete.
        retry_failed: compute the rows without a value again, in a run that has ended.
        on_progress: called after every chunk with (rows done, rows failed).

    Raises:
        InvalidTable: the table cannot be read at all.
        InvalidSetting: `out` holds another run's results, or the first hundred rows fail alike.
        FolderInUse: another run is writing there.
        A row that cannot be scored raises nothing: it is listed in failures.csv.
    """
    check_format(format)
    scorer = scorer if scorer is not None else Scorer()
    needs = scorer.plan.needs
    roles = {"candidate", *(["image"] if needs.images else [])}
    roles |= {"reference"} if needs.references else set()
    names = columns or ColumnNames()
    studies = open_studies(Path(table), needs=roles, image_root=image_root, columns=names)
    if scorer.plan.needs_fit:
        # A pass over the references alone; the run itself then reads the table again.
        scorer = scorer.fit(
            Item("", s.reference, parts=s.parts) for s in studies if isinstance(s, Study)
        )
    run = _Run(studies, scorer, format, names, image_root)
    with ResumableFolder(
        out,
        run.key(),
        results=RESULTS,
        overwrite=overwrite,
        extends={"metrics", "format"},
        retry=retry_failed,
    ) as folder:
        return run.into(folder, workers, on_progress or (lambda done, failed: None), retry_failed)


class _Run:
    """One table on its way into one folder."""

    def __init__(
        self,
        studies: StudyTable,
        scorer: Scorer,
        format: str,
        columns: ColumnNames,
        image_root: str | Path | None,
    ) -> None:
        self._studies, self._scorer, self._format = studies, scorer, format
        self._columns, self._image_root = columns, image_root
        self._began = time.monotonic()

    def key(self) -> dict[str, Any]:
        """What must be equal for a stopped run to go on."""
        root = str(Path(self._image_root).resolve()) if self._image_root is not None else None
        return {
            "table_sha256": self._studies.sha256,
            "columns": self._columns.to_dict(),
            "image_root": root,
            "format": self._format,
            "metrics": {name: str(s) for name, s in self._scorer.signatures.items()},
        }

    def into(
        self,
        folder: ResumableFolder,
        workers: int,
        on_progress: Callable[[int, int], None],
        retry_failed: bool,
    ) -> RunResult:
        """Compute what the folder lacks, and write the results."""
        wanted = _layout(self._scorer)
        if folder.record is not None:
            return self._ended(folder, folder.record, unchanged=folder.unchanged)
        earlier = folder.previous
        if earlier is None:
            done = self._compute(folder, self._scorer, self._studies, workers, on_progress)
            return self._finish(folder, lambda: _tables(folder), wanted, done)
        before = self._earlier_layout(earlier)
        if retry_failed:
            return self._retry(folder, earlier, before, workers, on_progress)
        missing = [m for m in self._scorer.metrics if str(m) not in before.names]
        if not missing:
            earlier.check()
            return self._ended(folder, earlier.record, unchanged=True)
        more = self._scorer.with_metrics(missing)
        done = self._compute(folder, more, self._studies, workers, on_progress)
        rows = read_rows_of(earlier, before)
        joined = before.joined(_layout(more))
        return self._finish(
            folder, lambda: with_more_columns(rows, _tables(folder), joined), joined, done
        )

    def _retry(
        self,
        folder: ResumableFolder,
        earlier: FinishedRun,
        before: Layout,
        workers: int,
        on_progress: Callable[[int, int], None],
    ) -> RunResult:
        if lacking := set(before.names) ^ {str(m) for m in self._scorer.metrics}:
            raise InvalidSetting(
                f"{folder.out}: name the metrics of the run whose rows are retried, "
                f"{', '.join(before.names)}; {', '.join(sorted(lacking))} differ"
            )
        rows = read_rows_of(earlier, before)
        failed = {row for row, _, _ in reasons_of(rows)}
        if not failed:
            return self._ended(folder, earlier.record, unchanged=True)
        again = (row for row in self._studies if row.row in failed)
        done = self._compute(folder, self._scorer, again, workers, on_progress, alike=False)
        return self._finish(
            folder, lambda: [with_rows_replaced(rows, _tables(folder))], before, done
        )

    def _compute(
        self,
        folder: ResumableFolder,
        scorer: Scorer,
        studies: Iterable[Row],
        workers: int,
        on_progress: Callable[[int, int], None],
        *,
        alike: bool = True,
    ) -> int:
        """Compute the rows that no chunk holds yet; returns how many rows there are."""
        schema = _layout(scorer).schema()
        done = folder.rows
        failed = sum(len(t) - t[REASONS].null_count for t in _tables(folder))
        on_progress(done, failed)
        embedder = scorer.embedder if scorer.plan.needs.images else None
        size = _TEXTS_IN_CHUNK
        if scorer.plan.needs.embeddings and scorer.embedder is not None:
            size = _BATCHES_IN_CHUNK * scorer.embedder.engine.batch_size
        rest = islice(studies, folder.rows, None)
        check = _AllAlike() if alike and not folder.rows else None
        with embedder.decoder(workers) if embedder is not None else nullcontext() as decoder:
            for chunk in _decoding_ahead(_chunks(rest, size), scorer, decoder):
                rows = _rows(chunk, scorer, schema)
                if check is not None:
                    check.see(rows)
                inputs = [p for row, _ in chunk if isinstance(row, Study) for p in row.images]
                with folder.append(len(rows), inputs=inputs) as place:
                    write_chunk(place, rows)
                done += len(rows)
                failed += len(rows) - rows[REASONS].null_count
                on_progress(done, failed)
        return done

    def _finish(
        self,
        folder: ResumableFolder,
        tables: Callable[[], Iterable[pa.Table]],
        layout: Layout,
        rows: int,
    ) -> RunResult:
        def write(place: Path) -> dict[str, Any]:
            write_results(place, tables, layout, self._format)
            summary = summarise(tables(), layout.metrics)
            write_json(place / SUMMARY, summary.to_dict())
            return self._record(folder, layout)

        key = {**folder.key, "metrics": {str(m): str(s) for m, s in layout.metrics}}
        record = folder.finish(write, rows=rows, key=key)
        return self._ended(folder, record)

    def _record(self, folder: ResumableFolder, layout: Layout) -> dict[str, Any]:
        embedder = self._scorer.embedder
        return run_record(
            geometry=list(layout.geometry),
            table=str(self._studies.path.resolve()),
            image_root=folder.key["image_root"],
            signatures={str(m): s.to_dict() for m, s in layout.metrics},
            encoder=embedder.encoder.card.to_dict() if embedder is not None else None,
            device=str(embedder.encoder.device) if embedder is not None else None,
            batch_size=embedder.engine.batch_size if embedder is not None else None,
            seconds=round(time.monotonic() - self._began, 3),
            resumed_from=folder.resumed_from,
        )

    def _ended(
        self, folder: ResumableFolder, record: dict[str, Any], *, unchanged: bool = False
    ) -> RunResult:
        format = record["key"]["format"]
        return RunResult(
            folder=folder.out,
            scores=folder.out / f"scores.{format}",
            summary=read_summary(folder.out / SUMMARY),
            resumed_from=folder.resumed_from,
            unchanged=unchanged,
            notes=self._studies.notes,
        )

    def _earlier_layout(self, run: FinishedRun) -> Layout:
        """The columns of a finished run; raises InvalidSetting where a metric has changed since."""
        own = {str(metric): metric for metric in self._scorer.metrics}
        metrics: list[tuple[Metric, Signature]] = []
        for name, printed in run.key["metrics"].items():
            signature = Signature.parse(printed)
            now = self._scorer.signatures.get(name)
            if now is not None and now != signature:
                raise InvalidSetting(
                    f"{run.folder} holds {name} computed in another way: "
                    f"{difference(signature, now)}. Choose another output folder, or give "
                    "--overwrite to compute it anew"
                )
            try:
                metrics.append((own.get(name) or find_metric(name), signature))
            except UnknownName:
                raise InvalidSetting(
                    f"{run.folder} holds a metric {name} that is not known here; name it as "
                    '"package.module:METRIC", or choose another output folder'
                ) from None
        return Layout(tuple(metrics), tuple(run.record["geometry"]))


class _AllAlike:
    """Stops a run whose first rows all fail for one reason: a setting is wrong, not the rows."""

    def __init__(self) -> None:
        self._reasons: set[str] | None = set()
        self._rows = 0
        self._example = ""

    def see(self, rows: pa.Table) -> None:
        """Raises InvalidSetting at the first hundred rows without a value."""
        if self._reasons is None:
            return
        found = list(reasons_of(rows))
        if len(found) < len(rows):
            self._reasons = None
            return
        for row, study_id, reasons in found:
            for reason in reasons.values():
                self._reasons.add(_kind_of(reason))
                self._example = self._example or f"row {row} ({study_id}): {reason}"
        self._rows += len(rows)
        if self._rows >= _ALL_ALIKE and len(self._reasons) <= 1:
            raise InvalidSetting(
                f"the first {self._rows} rows all fail for one reason, so nothing was written; "
                f"{self._example}. Look at the settings, above all the image folder and the columns"
            )


def _kind_of(reason: str) -> str:
    """What of a reason does not name the row: the words behind the path that most begin with."""
    _, separator, words = reason.partition(": ")
    return words if separator else reason


def _layout(scorer: Scorer) -> Layout:
    needs = scorer.plan.needs
    geometry: tuple[str, ...] = ()
    if needs.embeddings:
        numbers = {
            (True, True): NUMBERS,
            (False, True): ("candidate_reference",),
            (True, False): ("image_candidate",),
            (False, False): (),
        }[needs.images, needs.references]
        geometry = (*numbers, *(FLAGS if needs.references else FLAGS[:1]))
    return Layout(tuple((m, scorer.signatures[str(m)]) for m in scorer.metrics), geometry)


def _tables(folder: ResumableFolder) -> Iterator[pa.Table]:
    return (read_chunk(chunk.path) for chunk in folder.chunks())


_PreparedRow = tuple[Row, Item | None]


def _chunks(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    while chunk := list(islice(rows, size)):
        yield chunk


def _decoding_ahead(
    chunks: Iterator[list[Row]], scorer: Scorer, decoder: ImageDecoder | None
) -> Iterator[list[_PreparedRow]]:
    """Begin decoding one chunk while the one before it is being scored."""
    ahead: deque[list[_PreparedRow]] = deque()
    for chunk in chunks:
        ahead.append([(row, _prepare(row, scorer, decoder)) for row in chunk])
        if len(ahead) > 1:
            yield ahead.popleft()
    yield from ahead


def _prepare(row: Row, scorer: Scorer, decoder: ImageDecoder | None) -> Item | None:
    if isinstance(row, BadRow):
        return None
    shown = StudyViews(row.images, row.views) if decoder is not None else None
    item = Item(row.candidate or "", row.reference, shown, row.parts)
    return scorer.begin_decoding(item, decoder) if decoder is not None else item


def _rows(chunk: Sequence[_PreparedRow], scorer: Scorer, schema: pa.Schema) -> pa.Table:
    items = [item for _, item in chunk if item is not None]
    scores = scorer.score_items(items) if items else None
    number = count()
    places = [None if item is None else next(number) for _, item in chunk]
    studies = [row if isinstance(row, Study) else None for row, _ in chunk]
    said = [study.suspicious if study is not None else () for study in studies]
    return chunk_table(
        schema,
        [row.row for row, _ in chunk],
        [row.id for row, _ in chunk],
        scores,
        places,
        {k: row.reason for k, (row, _) in enumerate(chunk) if isinstance(row, BadRow)},
        {
            "empty_candidate": [s is not None and not (s.candidate or "").strip() for s in studies],
            "candidate_says_missing": ["candidate" in each for each in said],
            "reference_says_missing": ["reference" in each for each in said],
            "view_guessed": [
                item is not None and item.shown is not None and item.shown.guessed
                for _, item in chunk
            ],
        },
    )
