"""The result files of a run, joined from its chunks and from a run that it takes up."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from vlscore._resumable import FinishedRun
from vlscore._signature import Signature
from vlscore.errors import InvalidSetting
from vlscore.evaluation.rows import (
    COUNTED,
    ERROR,
    ID,
    REASONS,
    ROW,
    chunk_schema,
    columns_schema,
    joined_reasons,
    reasons_of,
)
from vlscore.metrics import Metric
from vlscore.scorer.geometry import FLAGS, NUMBERS

FORMATS = ("parquet", "csv")
DETAILS, FAILURES, SUMMARY = "details.parquet", "failures.csv", "summary.json"
# Every file that an evaluation can ever write, so that none of an earlier one stays beside it.
RESULTS = (*(f"scores.{format}" for format in FORMATS), DETAILS, FAILURES, SUMMARY)


@dataclass(frozen=True)
class Layout:
    """What the columns of a run's rows are.

    Attributes:
        metrics: in the order of the columns, each with what its numbers depend on.
        geometry: names of the columns that describe the embedded triangles.
    """

    metrics: tuple[tuple[Metric, Signature], ...]
    geometry: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """Names of the metrics."""
        return [str(metric) for metric, _ in self.metrics]

    def schema(self) -> pa.Schema:
        """Of a table of rows with everything that results are made of."""
        return chunk_schema([metric for metric, _ in self.metrics], self.geometry)

    def scores_schema(self) -> pa.Schema:
        """Of the scores; each metric's signature is in the metadata."""
        metadata = {f"vlscore.signature.{metric}": str(s) for metric, s in self.metrics}
        schema = columns_schema([metric for metric, _ in self.metrics], self.geometry)
        return schema.with_metadata(metadata)

    def joined(self, more: "Layout") -> "Layout":
        """These columns, then those of `more` that are not among them."""
        names = self.names
        metrics = (*self.metrics, *((m, s) for m, s in more.metrics if str(m) not in names))
        geometry = dict.fromkeys((*self.geometry, *more.geometry))
        return Layout(metrics, tuple(n for n in (*NUMBERS, *FLAGS) if n in geometry))


def check_format(format: str) -> str:
    """The format itself; raises InvalidSetting for an unknown one."""
    if format not in FORMATS:
        raise InvalidSetting(f"format is {' or '.join(FORMATS)}, not {format!r}")
    return format


def read_rows_of(run: FinishedRun, layout: Layout) -> pa.Table:
    """All rows of a finished run, as they stood in its chunks."""
    scores = _read_scores(run)
    details = pq.read_table(run.file(DETAILS))
    arrays = [
        (details if field.name in details.column_names else scores)[field.name].cast(field.type)
        for field in layout.schema()
    ]
    return pa.Table.from_arrays(arrays, schema=layout.schema())


def with_more_columns(
    earlier: pa.Table, chunks: Iterable[pa.Table], layout: Layout
) -> Iterator[pa.Table]:
    """The earlier rows with the numbers of further metrics beside them."""
    start = 0
    for chunk in chunks:
        before = earlier.slice(start, len(chunk))
        start += len(chunk)
        yield pa.Table.from_arrays(
            [_joined_column(field.name, before, chunk) for field in layout.schema()],
            schema=layout.schema(),
        )


def with_rows_replaced(earlier: pa.Table, chunks: Iterable[pa.Table]) -> pa.Table:
    """The earlier rows, those that were computed again replaced."""
    new = pa.concat_tables([earlier.schema.empty_table(), *chunks])
    place = {row: k for k, row in enumerate(new[ROW].to_pylist())}
    order = [
        len(earlier) + place[row] if row in place else k
        for k, row in enumerate(earlier[ROW].to_pylist())
    ]
    return pa.concat_tables([earlier, new]).take(pa.array(order, pa.int64()))


def write_results(
    folder: Path, tables: Callable[[], Iterable[pa.Table]], layout: Layout, format: str
) -> None:
    """Write scores, details and failures, row by row.

    Args: tables: called once a file, so that nothing need be kept in memory.
    """
    _WRITERS[format](folder / f"scores.{format}", tables(), layout.scores_schema())
    kept = {*layout.scores_schema().names} - {ROW}
    details = pa.schema([field for field in layout.schema() if field.name not in kept])
    _write_parquet(folder / DETAILS, tables(), details)
    with (folder / FAILURES).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["row", "id", "metric", "error"])
        for table in tables():
            for row, study_id, reasons in reasons_of(table):
                for metric, reason in reasons.items():
                    writer.writerow([row, study_id, metric, reason])


def read_failures(path: Path, count: int) -> list[tuple[int, str, str]]:
    """(row, id, reason) of the first `count` rows that lack a value, each reason once."""
    with path.open(encoding="utf-8", newline="") as stream:
        lines = ((int(r["row"]), r["id"], r["error"]) for r in csv.DictReader(stream))
        return list(islice(dict.fromkeys(lines), count))


def read_scores(path: Path, count: int) -> list[dict[str, Any]]:
    """The first `count` rows of the scores, column by name."""
    if path.suffix == ".csv":
        return _read_csv(path).slice(0, count).to_pylist()
    rows = (row for batch in pq.ParquetFile(path).iter_batches(1024) for row in batch.to_pylist())
    return list(islice(rows, count))


def _read_scores(run: FinishedRun) -> pa.Table:
    for format in FORMATS:
        if (name := f"scores.{format}") in run.digests:
            path = run.file(name)
            return _read_csv(path) if format == "csv" else pq.read_table(path)
    raise InvalidSetting(f"{run.folder} holds no scores; give --overwrite to compute them anew")


def _read_csv(path: Path) -> pa.Table:
    texts = dict.fromkeys((ID, ERROR), pa.string())
    options = pyarrow.csv.ConvertOptions(
        column_types=texts, strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    return pyarrow.csv.read_csv(path, parse_options=parse, convert_options=options)


def _joined_column(name: str, before: pa.Table, chunk: pa.Table) -> Any:
    if name in (REASONS, ERROR):
        both = zip(before[REASONS].to_pylist(), chunk[REASONS].to_pylist(), strict=True)
        reasons = [{**json.loads(a or "{}"), **json.loads(b or "{}")} for a, b in both]
        if name == REASONS:
            return pa.array([json.dumps(each) if each else None for each in reasons], pa.string())
        return pa.array([joined_reasons(each) for each in reasons], pa.string())
    if name in COUNTED:
        either = np.asarray(before[name]) | np.asarray(chunk[name])
        return pa.array(either, pa.bool_())
    return (before if name in before.column_names else chunk)[name]


def _write_parquet(path: Path, tables: Iterable[pa.Table], schema: pa.Schema) -> None:
    with pq.ParquetWriter(path, schema) as writer:
        for table in tables:
            writer.write_table(_cut(table, schema))


def _write_csv(path: Path, tables: Iterable[pa.Table], schema: pa.Schema) -> None:
    with pyarrow.csv.CSVWriter(path, schema) as writer:
        for table in tables:
            writer.write_table(_cut(table, schema))


def _cut(table: pa.Table, schema: pa.Schema) -> pa.Table:
    return table.select(schema.names).replace_schema_metadata(schema.metadata)


_WRITERS: dict[str, Callable[[Path, Iterable[pa.Table], pa.Schema], None]] = {
    "parquet": _write_parquet,
    "csv": _write_csv,
}
