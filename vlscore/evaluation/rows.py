"""The rows of a run on disk: one for every row of the table, with values or why it has none."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from vlscore.metrics import Metric
from vlscore.scorer import ScoreTable
from vlscore.scorer.geometry import FLAGS

FILE = "rows.parquet"

# Facts about a row's texts and images that the summary counts.
COUNTED = (
    "empty_candidate",
    "candidate_says_missing",
    "reference_says_missing",
    "view_guessed",
)
ROW, ID, ERROR, REASONS = "row", "id", "error", "reasons"
STATISTICS = "statistics."


def columns_schema(metrics: Iterable[Metric], geometry: Iterable[str]) -> pa.Schema:
    """Columns of the scores: row, id, the numbers of every metric, the geometry, the error."""
    return pa.schema(
        [
            pa.field(ROW, pa.int64()),
            pa.field(ID, pa.string()),
            *(pa.field(name, pa.float64()) for metric in metrics for name in metric.columns),
            *(pa.field(name, _geometry_type(name)) for name in geometry),
            pa.field(ERROR, pa.string()),
        ]
    )


def chunk_schema(metrics: Sequence[Metric], geometry: Iterable[str]) -> pa.Schema:
    """Columns of a chunk: those of the scores, and what the end of the run needs besides."""
    schema = columns_schema(metrics, geometry)
    for metric in metrics:
        if metric.statistics:
            kind = pa.list_(pa.float64(), metric.statistics)
            schema = schema.append(pa.field(f"{STATISTICS}{metric}", kind))
    for name in COUNTED:
        schema = schema.append(pa.field(name, pa.bool_()))
    return schema.append(pa.field(REASONS, pa.string()))


def chunk_table(
    schema: pa.Schema,
    numbers: Sequence[int],
    ids: Sequence[str | None],
    scores: ScoreTable | None,
    places: Sequence[int | None],
    bad: Mapping[int, str],
    counted: Mapping[str, Sequence[bool]],
) -> pa.Table:
    """A chunk of n rows.

    Args:
        numbers, ids: of each row.
        scores: of the rows that could be read; None where none could.
        places: row of `scores` for each row; None for a bad one.
        bad: position -> why the row could not be read.
        counted: what the summary counts, n of each.
    """
    reasons = [_reasons(scores, place, bad.get(k)) for k, place in enumerate(places)]
    have = [k for k, place in enumerate(places) if place is not None]
    take = [place for place in places if place is not None]
    content: dict[str, Any] = {
        ROW: list(numbers),
        ID: list(ids),
        ERROR: [joined_reasons(each) for each in reasons],
        REASONS: [json.dumps(each) if each else None for each in reasons],
        **counted,
    }
    columns = scores.columns if scores is not None else {}
    for name, column in columns.items():
        if name in FLAGS:
            flags = np.zeros(len(places), dtype=bool)
            flags[have] = column[take]
            content[name] = flags
        else:
            values = np.full(len(places), np.nan)
            values[have] = column[take]
            content[name] = pa.array(values, mask=~np.isfinite(values))
    for metric in scores.metrics if scores is not None else ():
        if metric.statistics and scores is not None:
            content[f"{STATISTICS}{metric}"] = _statistics(scores, metric, len(places), have, take)
    arrays = [_typed(content.get(field.name), field.type, len(places)) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def write_chunk(folder: Path, table: pa.Table) -> None:
    """Write a chunk into its folder."""
    pq.write_table(table, folder / FILE)


def read_chunk(folder: Path) -> pa.Table:
    """The chunk that `write_chunk` wrote."""
    return pq.read_table(folder / FILE)


def reasons_of(table: pa.Table) -> Iterable[tuple[int, str | None, dict[str, str]]]:
    """(row, id, {metric or "row": reason}) of every row that lacks a value."""
    failed = table.filter(pc.is_valid(table[REASONS]))
    for row in failed.select([ROW, ID, REASONS]).to_pylist():
        yield row[ROW], row[ID], json.loads(row[REASONS])


def _reasons(scores: ScoreTable | None, place: int | None, bad: str | None) -> dict[str, str]:
    if place is None or scores is None:
        return {"row": bad or "the row could not be read"}
    return {
        str(metric): str(each.failures[place])
        for metric, each in scores.values.items()
        if place in each.failures
    }


def joined_reasons(reasons: Mapping[str, str]) -> str | None:
    """Every reason once, in one text; None without any."""
    return "; ".join(dict.fromkeys(reasons.values())) or None


def _statistics(
    scores: ScoreTable, metric: Metric, count: int, have: list[int], take: list[int]
) -> pa.Array:
    found = scores.values[metric].statistics
    assert found is not None
    full = np.zeros((count, metric.statistics))
    full[have] = found[take]
    return pa.FixedSizeListArray.from_arrays(pa.array(full.ravel()), metric.statistics)


def _typed(values: Any, kind: pa.DataType, count: int) -> pa.Array:
    if values is None:
        if pa.types.is_boolean(kind):
            return pa.array([False] * count, kind)
        if pa.types.is_fixed_size_list(kind):
            zeros = pa.array(np.zeros(count * kind.list_size))
            return pa.FixedSizeListArray.from_arrays(zeros, kind.list_size)
        return pa.nulls(count, kind)
    return values if isinstance(values, pa.Array) else pa.array(values, kind)


def _geometry_type(name: str) -> pa.DataType:
    return pa.bool_() if name in FLAGS else pa.float64()
