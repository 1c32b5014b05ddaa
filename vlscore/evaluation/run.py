"""A table of studies through the scorer, row by row, into a folder of results."""

import shutil
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from vlscore._files import file_digest, write_json
from vlscore.embedding import ImageDecoder
from vlscore.errors import InvalidSetting
from vlscore.evaluation.parts import Parts
from vlscore.evaluation.record import run_record
from vlscore.evaluation.summary import Summary, summarise
from vlscore.evaluation.tables import (
    failures,
    read_failures,
    read_scores,
    write_failures,
    write_scores,
)
from vlscore.scorer import COLUMNS, Item, Scorer
from vlscore.studies import BadRow, ColumnNames, Study, read_studies

# Batches in one chunk: enough for equal reports to meet and for lengths to be bucketed.
_BATCHES_IN_CHUNK = 8


class Progress(Protocol):
    """Called with the rows done so far and how many of them failed."""

    def __call__(self, done: int, failed: int) -> None: ...


@dataclass(frozen=True)
class RunResult:
    """Where a run's files lie, and its summary.

    Attributes:
        scores, failures, summary_file, record: paths of what was written.
        summary: the numbers.
        resumed_from: rows that an earlier, stopped run had finished.
    """

    scores: Path
    failures: Path
    summary_file: Path
    record: Path
    summary: Summary
    resumed_from: int

    def first_failures(self, count: int) -> list[tuple[int, str, str]]:
        """(row, id, reason) of the first failed rows."""
        return read_failures(self.failures, count)

    def first_scores(self, count: int) -> list[dict[str, Any]]:
        """The first scored rows, column by name."""
        return read_scores(self.scores, count)


def evaluate(
    table: str | Path,
    out: str | Path,
    scorer: Scorer,
    *,
    image_root: str | Path | None = None,
    columns: ColumnNames | None = None,
    format: str = "parquet",
    workers: int = 0,
    overwrite: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> RunResult:
    """Score every study of a table; memory does not grow with the number of rows.

    A run that was stopped goes on where it was when called again with the same arguments.

    Args:
        table: .jsonl, .csv or .parquet with columns id, image, reference, candidate.
        out: folder for scores.parquet (or .csv), failures.csv, summary.json, run.json.
        scorer: what scores.
        image_root: folder that image paths are relative to; default: the table's.
        columns: other column names.
        format: "parquet" or "csv".
        workers: processes that decode images; 0 decodes in this one.
        overwrite: replace the results of an earlier run in `out`.
        on_progress: called after every chunk with (rows done, rows failed).

    Raises:
        InvalidTable: the table cannot be read at all.
        InvalidSetting: `out` holds other results.
        A row that cannot be scored raises nothing: it is listed in failures.csv.
    """
    table, out = Path(table), Path(out)
    columns = columns or ColumnNames()
    files = _output_files(out, format)
    studies = read_studies(table, image_root=image_root, columns=columns)
    _make_room(out, files, overwrite)
    digest = file_digest(table)
    signature = str(scorer.signature)
    key = {
        "signature": signature,
        "table_sha256": digest,
        "columns": str(columns),
        "image_root": str(image_root) if image_root is not None else None,
    }
    parts = Parts(out, key)
    began = time.monotonic()
    resumed_from = parts.rows_done()
    failed = sum(1 for _ in failures(parts.tables()))
    done = resumed_from
    with ImageDecoder(
        scorer.encoder.image_pipeline, scorer.encoder.image_policy, workers
    ) as decoder:
        chunk_size = _BATCHES_IN_CHUNK * scorer.engine.batch_size
        rest = islice(studies, resumed_from, None)
        for chunk in _decoding_ahead(_chunks(rest, chunk_size), scorer, decoder):
            rows = _score_chunk(chunk, scorer)
            parts.append(rows)
            done += len(rows)
            failed += sum(row["error"] is not None for row in rows)
            if on_progress is not None:
                on_progress(done, failed)
    write_scores(files["scores"], parts.tables(), signature)
    write_failures(files["failures"], parts.tables())
    summary = summarise(parts.tables(), signature)
    write_json(files["summary"], summary.to_dict())
    write_json(
        files["record"],
        run_record(
            signature=scorer.signature.to_dict(),
            encoder=scorer.encoder.card.to_dict(),
            table=str(table),
            table_sha256=digest,
            image_root=key["image_root"],
            columns=key["columns"],
            device=str(scorer.encoder.device),
            batch_size=scorer.engine.batch_size,
            workers=workers,
            seconds=round(time.monotonic() - began, 3),
            resumed_from=resumed_from,
        ),
    )
    parts.remove()
    return RunResult(
        files["scores"], files["failures"], files["summary"], files["record"], summary, resumed_from
    )


def _output_files(out: Path, format: str) -> dict[str, Path]:
    if format not in ("parquet", "csv"):
        raise InvalidSetting(f'format is "parquet" or "csv", not {format!r}')
    return {
        "scores": out / f"scores.{format}",
        "failures": out / "failures.csv",
        "summary": out / "summary.json",
        "record": out / "run.json",
    }


def _make_room(out: Path, files: dict[str, Path], overwrite: bool) -> None:
    present = [path for path in files.values() if path.exists()]
    if overwrite:
        for path in present:
            path.unlink()
        if (out / ".parts").exists():
            shutil.rmtree(out / ".parts")
    elif present:
        raise InvalidSetting(
            f"{present[0]} exists: give another output folder, or --overwrite to replace it"
        )


Row = Study | BadRow
_PreparedRow = tuple[Row, Item | None]


def _chunks(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    while chunk := list(islice(rows, size)):
        yield chunk


def _decoding_ahead(
    chunks: Iterator[list[Row]], scorer: Scorer, decoder: ImageDecoder
) -> Iterator[list[_PreparedRow]]:
    """Begin decoding one chunk while the one before it is being scored."""
    ahead: deque[list[_PreparedRow]] = deque()
    for chunk in chunks:
        ahead.append([(row, _prepare(row, scorer, decoder)) for row in chunk])
        if len(ahead) > 1:
            yield ahead.popleft()
    yield from ahead


def _prepare(row: Row, scorer: Scorer, decoder: ImageDecoder) -> Item | None:
    if isinstance(row, BadRow):
        return None
    item = Item(row.images, row.candidate or "", row.reference or "", row.views)
    return scorer.begin_decoding(item, decoder)


def _score_chunk(chunk: list[_PreparedRow], scorer: Scorer) -> list[dict[str, Any]]:
    table = scorer.score_items([item for _, item in chunk if item is not None])
    values = {name: column.tolist() for name, column in table.columns.items()}
    position = 0
    rows = []
    for row, _ in chunk:
        if isinstance(row, BadRow):
            rows.append({"row": row.row, "id": row.id, "error": row.reason})
            continue
        if position in table.failures:
            error = str(table.failures[position])
            rows.append({"row": row.row, "id": row.id, "error": error})
        else:
            scores = {name: values[name][position] for name in COLUMNS}
            rows.append({"row": row.row, "id": row.id, **scores, "error": None})
        position += 1
    return rows
