"""Writing the per-study scores and the list of failures."""

import csv
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from vlscore._files import atomic_write
from vlscore.errors import InvalidSetting
from vlscore.evaluation.parts import SCORE_SCHEMA

Writer = Callable[[Path, Iterable[pa.Table], str], None]


def write_scores(path: Path, parts: Iterable[pa.Table], signature: str) -> None:
    """Write the scored rows of all parts, in order; the format follows the file's suffix."""
    try:
        write = _WRITERS[path.suffix]
    except KeyError:
        known = ", ".join(_WRITERS)
        raise InvalidSetting(
            f"{path}: scores are written as one of {known}, not {path.suffix}"
        ) from None
    write(path, (_scored(part) for part in parts), signature)


def write_failures(path: Path, parts: Iterable[pa.Table]) -> None:
    """Write row number, id and reason of every row that has no score, as csv."""
    with atomic_write(path) as stream:
        writer = csv.writer(stream)
        writer.writerow(["row", "id", "error"])
        for row, study_id, error in failures(parts):
            writer.writerow([row, study_id, error])


def failures(parts: Iterable[pa.Table]) -> Iterator[tuple[int, str | None, str]]:
    """(row, id, reason) of every row that has no score."""
    for part in parts:
        failed = part.filter(pc.is_valid(part["error"]))
        for row in failed.select(["row", "id", "error"]).to_pylist():
            yield row["row"], row["id"], row["error"]


def read_failures(path: Path, count: int) -> list[tuple[int, str, str]]:
    """(row, id, reason) of the first `count` rows that `write_failures` wrote."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = islice(csv.DictReader(stream), count)
        return [(int(row["row"]), row["id"], row["error"]) for row in rows]


def read_scores(path: Path, count: int) -> list[dict[str, Any]]:
    """The first `count` rows that `write_scores` wrote, column by name."""
    if path.suffix == ".csv":
        table = pyarrow.csv.read_csv(
            path, convert_options=pyarrow.csv.ConvertOptions(column_types=SCORE_SCHEMA)
        )
        return table.slice(0, count).to_pylist()
    rows = (row for batch in pq.ParquetFile(path).iter_batches(1024) for row in batch.to_pylist())
    return list(islice(rows, count))


def _scored(part: pa.Table) -> pa.Table:
    return part.filter(pc.is_null(part["error"])).select(SCORE_SCHEMA.names)


def _write_parquet(path: Path, tables: Iterable[pa.Table], signature: str) -> None:
    schema = SCORE_SCHEMA.with_metadata({"vlscore.signature": signature})
    with atomic_write(path, "wb") as stream, pq.ParquetWriter(stream, schema) as writer:
        for table in tables:
            writer.write_table(table.replace_schema_metadata(schema.metadata))


def _write_csv(path: Path, tables: Iterable[pa.Table], signature: str) -> None:
    with (
        atomic_write(path, "wb") as stream,
        pyarrow.csv.CSVWriter(stream, SCORE_SCHEMA) as writer,
    ):
        for table in tables:
            writer.write_table(table)


_WRITERS: dict[str, Writer] = {".parquet": _write_parquet, ".csv": _write_csv}
