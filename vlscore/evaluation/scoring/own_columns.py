"""Columns of a user's own table in the results: patient, view, sex, label.

`keep` columns are copied into the scores. `by` columns make a table of each of their values. The
`patient` column names the patient of each study, so that intervals resample patients.
"""

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from vlscore.core import Signature, atomic_write, cells, from_cell
from vlscore.data import StudyTable, read_rows
from vlscore.errors import InvalidSetting, InvalidTable
from vlscore.evaluation.scoring.summary import (
    COUNTED,
    ERROR,
    ID,
    REASONS,
    ROW,
    STATISTICS,
    MetricSummary,
    Summary,
    ValueSummary,
    summarise,
)
from vlscore.metrics import FLAGS, NUMBERS, Metric, corpus_name, corpus_of_sums
from vlscore.stats import (
    Interval,
    TextTable,
    bootstrap_sums,
    clustered_median,
    mean_of_sums,
    mean_statistics,
    number,
    sums_by_group,
)

Metrics = Sequence[tuple[Metric, Signature]]
Tables = Callable[[], Iterable[pa.Table]]
Numbers = NDArray[np.float64]

KEY = "own_columns"
_COLUMNS = ("column", "value", "metric", "n", "mean", "low", "high")
_NO_VALUE = "(none)"


@dataclass(frozen=True)
class OwnColumns:
    """Names of a user's own columns.

    Attributes:
        keep: columns that are copied into the scores.
        by: columns of which every value has a table of its own.
        patient: column with the patient of a study; None: every study counts for itself.
    """

    keep: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    patient: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Return all columns, each once."""
        patient = () if self.patient is None else (self.patient,)
        return tuple(dict.fromkeys((*self.keep, *self.by, *patient)))

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; empty where no column is named."""
        if not self.names:
            return {}
        return {KEY: {"keep": list(self.keep), "by": list(self.by), "patient": self.patient}}

    @classmethod
    def of_key(cls, key: Mapping[str, Any]) -> "OwnColumns":
        """Return the columns that a finished run had."""
        found = key.get(KEY) or {}
        return cls(tuple(found.get("keep", ())), tuple(found.get("by", ())), found.get("patient"))

    def check(self, table: StudyTable, metrics: Iterable[Metric]) -> None:
        """Refuse a column that the table lacks, or whose name the results have already.

        Raises: InvalidTable, InvalidSetting.
        """
        if lacking := [name for name in self.names if name not in table.found]:
            raise InvalidTable(
                f"{table.path}: no column {', '.join(lacking)}; found: {', '.join(table.found)}"
            )
        taken = {ROW, ID, ERROR, REASONS, *NUMBERS, *FLAGS, *COUNTED}
        taken |= {name for metric in metrics for name in metric.columns}
        if twice := [name for name in self.names if name in taken]:
            raise InvalidSetting(
                f"{table.path}: the results have a column {twice[0]} already; give yours another "
                "name"
            )


@dataclass(frozen=True, eq=False)
class OwnValues:
    """Values of the user's own columns.

    Attributes:
        columns: their names, and what they are for.
        values: name -> (n,) texts, None where a cell is empty.
        places: number of a row -> its place among the n.
    """

    columns: OwnColumns
    values: Mapping[str, Sequence[str | None]]
    places: Mapping[int, int]

    @classmethod
    def read(cls, columns: OwnColumns, table: StudyTable) -> "OwnValues":
        """Read the columns of a table, of all rows."""
        values: dict[str, list[str | None]] = {name: [] for name in columns.names}
        places: dict[int, int] = {}
        for place, (row, record) in enumerate(read_rows(table.path, columns.names)):
            places[row] = place
            for name, column in values.items():
                column.append(None if isinstance(record, str) else _text(record.get(name)))
        return cls(columns, values, places)

    def added_to(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield the rows with these columns added."""
        for table in tables:
            rows = self._places_of(table)
            for name, column in self.values.items():
                table = table.append_column(name, pa.array([column[k] for k in rows], pa.string()))
            yield table

    def groups_of(self, tables: Iterable[pa.Table]) -> list[str]:
        """Return the patient of each row; a row without one is a patient of its own."""
        assert self.columns.patient is not None
        column = self.values[self.columns.patient]
        rows = [k for table in tables for k in self._places_of(table)]
        return [f"\0{k}" if column[k] is None else str(column[k]) for k in rows]

    def count_patients(self) -> int | None:
        """Return how many patients there are; None without a column of patients."""
        if self.columns.patient is None:
            return None
        column = self.values[self.columns.patient]
        return len({value for value in column if value is not None}) + sum(
            value is None for value in column
        )

    def split(self, name: str, tables: Tables) -> dict[str, Tables]:
        """Return for each value of a column what yields its rows, by the value."""
        labels = sorted({_NO_VALUE if v is None else v for v in self.values[name]})
        return {label: _SubgroupRows(self, name, label, tables) for label in labels}

    def _places_of(self, table: pa.Table) -> list[int]:
        return [self.places[row] for row in table[ROW].to_pylist()]


@dataclass(frozen=True, eq=False)
class _SubgroupRows:
    """The rows whose column holds one value."""

    own: OwnValues
    name: str
    label: str
    tables: Tables

    def __call__(self) -> Iterator[pa.Table]:
        column = self.own.values[self.name]
        for table in self.tables():
            values = [column[k] for k in self.own._places_of(table)]
            mask = [(_NO_VALUE if v is None else v) == self.label for v in values]
            yield table.filter(pa.array(mask, pa.bool_()))


def summary_of(tables: Tables, metrics: Metrics, own: OwnValues | None) -> Summary:
    """Summarise the rows of a run; intervals resample patients where a column names them."""
    summary = summarise(tables(), metrics)
    if own is None or own.columns.patient is None:
        return summary
    groups = np.array(own.groups_of(tables()))
    return replace(
        summary,
        metrics={
            str(metric): _by_patient(summary.metrics[str(metric)], metric, tables, groups)
            for metric, _ in metrics
        },
    )


def write_subgroups(path: Path, tables: Tables, metrics: Metrics, own: OwnValues) -> None:
    """Write the numbers of every value of the `by` columns."""
    with atomic_write(path) as stream:
        writer = csv.writer(stream)
        writer.writerow(_COLUMNS)
        for name in own.columns.by:
            for label, part in own.split(name, tables).items():
                for row in _numbers_of(summary_of(part, metrics, own)):
                    writer.writerow(cells([name, label, *row]))


def subgroup_tables(path: Path) -> list[TextTable]:
    """Return what `write_subgroups` wrote, a table a column and number."""
    found: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            low, high = (number(_float(row[each]), 4) for each in ("low", "high"))
            shown = f"[{low}, {high}]" if row["low"] else ""
            label, column, metric = (from_cell(row[each]) for each in ("value", "column", "metric"))
            shown_row = (label, number(_float(row["mean"]), 4), shown, row["n"])
            found.setdefault((column, metric), []).append(shown_row)
    return [
        TextTable(f"{metric} by {column}", (column, "mean", "95 % interval", "n"), tuple(rows), "")
        for (column, metric), rows in found.items()
    ]


def _by_patient(
    found: MetricSummary, metric: Metric, tables: Tables, groups: NDArray[np.str_]
) -> MetricSummary:
    """Return a metric's summary with intervals over patients instead of studies."""
    values: dict[str, ValueSummary] = {}
    for name in metric.columns:
        column = _column(name, tables)
        has_value = np.isfinite(column)
        values[name] = found.values[name]
        if has_value.any():
            whose = groups[has_value].tolist()
            sums = sums_by_group(mean_statistics(column[has_value]), whose)
            values[name] = replace(
                values[name],
                mean=bootstrap_sums(sums, mean_of_sums),
                median=clustered_median(column[has_value], whose),
            )
    corpus: dict[str, Interval] = dict(found.corpus)
    if corpus:
        has_value = np.isfinite(_column(str(metric), tables))
        sums = sums_by_group(_sums(metric, tables)[has_value], groups[has_value].tolist())
        with np.errstate(invalid="ignore", divide="ignore"):
            for name in corpus:
                corpus[name] = bootstrap_sums(sums, partial(_corpus_value, metric, name))
    return replace(found, values=values, corpus=corpus)


def _corpus_value(metric: Metric, name: str, sums: Numbers) -> Numbers:
    return corpus_of_sums(metric, sums)[name]


def _column(name: str, tables: Tables) -> Numbers:
    parts = [table[name].to_numpy().astype(np.float64) for table in tables()]
    return np.concatenate(parts) if parts else np.empty(0)


def _sums(metric: Metric, tables: Tables) -> Numbers:
    parts = []
    for table in tables():
        flat = np.asarray(table[f"{STATISTICS}{metric}"].combine_chunks().flatten())
        parts.append(flat.reshape(len(table), -1).astype(np.float64))
    return np.concatenate(parts)


def _numbers_of(summary: Summary) -> Iterator[tuple[Any, ...]]:
    for name, metric in summary.metrics.items():
        for column, value in metric.values.items():
            yield (column, value.scored, *_exact(value.mean))
        for which, interval in metric.corpus.items():
            yield (corpus_name(name, which), metric.scored, *_exact(interval))


def _exact(interval: Interval | None) -> tuple[str, str, str]:
    if interval is None:
        return "", "", ""
    numbers = (interval.estimate, interval.low, interval.high)
    mean, low, high = ("" if np.isnan(each) else repr(float(each)) for each in numbers)
    return mean, low, high


def _float(text: str) -> float | None:
    return float(text) if text else None


def _text(value: Any) -> str | None:
    """Return a cell as text; None for an empty one."""
    if value is None or value == "" or value != value:
        return None
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
