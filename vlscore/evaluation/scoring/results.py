"""Results of an evaluation: the summary as tables, and the files.

The files are joined from the chunks of the run, and from the finished run that it extends.
"""

import csv
import json
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from vlscore.core import FinishedRun, Signature, cells, from_table_cells, table_cells
from vlscore.errors import ChecksumMismatch, InvalidSetting
from vlscore.evaluation.scoring.own_columns import OwnColumns
from vlscore.evaluation.scoring.summary import (
    COUNTED,
    ERROR,
    ID,
    IMAGES,
    REASONS,
    ROW,
    MetricSummary,
    Summary,
    chunk_schema,
    columns_schema,
    joined_reasons,
    reasons_of,
)
from vlscore.metrics import FLAGS, NUMBERS, Metric, Scorer, corpus_name, metric_from_file
from vlscore.stats import FAILURES, FIGURE_FORMATS, Interval, TextTable, number

_SHOWN_NUMBERS = ("area", "foot")
_SUPPORT = (
    "Values of the whole corpus. support: how many times the references state what the F1 is made "
    "of. An observation that neither candidates nor references mention has no F1 (-)."
)


def summary_table(summary: Summary) -> TextTable:
    """Return every number with its interval and its n, without those of `support_table`."""
    rows = []
    for name, metric in summary.metrics.items():
        for column, value in metric.values.items():
            better = "" if value.higher_is_better else " (lower is better)"
            median = value.median.estimate if value.median is not None else None
            shown = (*_cells(value.mean), number(median, 4), str(value.scored))
            rows.append((column + better, *shown))
        for which, interval in metric.corpus.items():
            if which not in metric.support:
                label = corpus_name(name, which)
                rows.append((label, *_cells(interval), "", str(metric.scored)))
    return TextTable("", ("metric", "mean", "95 % interval", "median", "n"), tuple(rows))


def support_table(summary: Summary) -> TextTable:
    """Return F1 values of the whole corpus with their support; no rows without any."""
    rows = [
        (corpus_name(name, which), *_cells(interval), str(metric.scored), str(support))
        for name, metric in summary.metrics.items()
        for which, interval in metric.corpus.items()
        if (support := metric.support.get(which)) is not None
    ]
    columns = ("metric", "value", "95 % interval", "n", "support")
    return TextTable("", columns, tuple(rows), _SUPPORT)


def summary_text(summary: Summary, width: int = 80, *, every: bool = True) -> str:
    """Return the table, further facts of the run, and the signatures.

    Args: every: False: of each metric only the mean of its first number, and its first value of
        the whole corpus.
    """
    if not every:
        summary = replace(summary, metrics={n: _first(m) for n, m in summary.metrics.items()})
    facts = [f"{name}: {value}" for name, value in _facts(summary).items()]
    signatures = [str(metric.signature) for metric in summary.metrics.values()]
    tables = [summary_table(summary)]
    tables += [table for table in (support_table(summary),) if table.rows]
    shown = [line for table in tables for line in (table.text(width), "")]
    return "\n".join([*shown, *facts, "", *signatures])


def _first(metric: MetricSummary) -> MetricSummary:
    """Return a metric with its first number and its first corpus value alone."""
    values, corpus = dict([*metric.values.items()][:1]), dict([*metric.corpus.items()][:1])
    left_out = {name: share for name, share in metric.left_out.items() if name in corpus}
    return replace(metric, values=values, corpus=corpus, left_out=left_out)


def scores_table(rows: Sequence[Mapping[str, Any]]) -> TextTable:
    """Return the values of single studies: id, metrics, area, foot, and truncation."""
    first = rows[0] if rows else {}
    metrics = [n for n in first if n not in (ROW, ID, ERROR, *NUMBERS, *FLAGS)]
    names = [*metrics, *(name for name in _SHOWN_NUMBERS if name in first)]
    shown = []
    for row in rows:
        cut = [name.partition("_")[0] for name in FLAGS if row.get(name)]
        remark = row[ERROR] or (f"truncated: {', '.join(cut)}" if cut else "")
        shown.append(
            (row[ID] or f"row {row[ROW]}", *(number(row[name], 4) for name in names), remark)
        )
    return TextTable("", ("study", *names, ""), tuple(shown))


def _facts(summary: Summary) -> dict[str, str]:
    facts = {"rows": f"{summary.scored} of {summary.rows} have every value"}
    counted = {
        "candidates truncated": summary.candidates_truncated,
        "references truncated": summary.references_truncated,
        "foot far from the reference": summary.foot_far_outside,
    }
    facts |= {name: str(count) for name, count in counted.items() if count is not None}
    noticed = {
        "empty candidates, scored as they are": summary.empty_candidates,
        'candidates that say "nan", "None" or the like': summary.candidates_say_missing,
        'references that say "nan", "None" or the like': summary.references_say_missing,
        "studies whose frontal view is a guess": summary.views_guessed,
    }
    facts |= {name: str(count) for name, count in noticed.items() if count}
    if left_out := _left_out(summary):
        facts["resamples without a value, left out of the interval"] = ", ".join(left_out)
    if summary.common is not None:
        means = ", ".join(f"{name} {number(mean, 4)}" for name, mean in summary.common.items())
        facts[f"means over the {summary.scored} rows that every metric has"] = means
    return facts


def _left_out(summary: Summary) -> list[str]:
    """Return values with an interval that some resamples are left out of, each with their share."""
    return [
        f"{corpus_name(name, which)} {100 * share:.0f} %"
        for name, metric in summary.metrics.items()
        for which, share in metric.left_out.items()
        if not math.isnan(metric.corpus[which].low)
    ]


def _cells(value: Interval | None) -> tuple[str, str]:
    if value is None:
        return "-", ""
    has_interval = math.isfinite(value.low)
    shown = f"[{value.low:.4f}, {value.high:.4f}]" if has_interval else ""
    return number(value.estimate, 4), shown


# Rows that are written and read at once.
_ROWS_IN_GROUP = 10_000

FORMATS = ("parquet", "csv")
_GUESSED = "view_guessed"
DETAILS, SUMMARY = "details.parquet", "summary.json"
# Every file that an evaluation can ever write, so that none of an earlier one is left.
SUBGROUPS = "subgroups.csv"
RESULTS = (
    *(f"scores.{format}" for format in FORMATS),
    *(DETAILS, FAILURES, SUMMARY, SUBGROUPS),
    *(f"distributions.{suffix}" for suffix in FIGURE_FORMATS),
)


@dataclass(frozen=True)
class ColumnLayout:
    """Columns of a run's rows.

    Attributes:
        metrics: in the order of the columns, each with what its numbers depend on.
        geometry: names of the columns that describe the embedded triangles.

    Raises: InvalidSetting for a metric whose column has the name of one of ours.
    """

    metrics: tuple[tuple[Metric, Signature], ...]
    geometry: tuple[str, ...]

    def __post_init__(self) -> None:
        taken = {ROW, ID, ERROR, REASONS, IMAGES, *NUMBERS, *FLAGS, *COUNTED}
        for metric, _ in self.metrics:
            if unlucky := taken & set(metric.columns):
                raise InvalidSetting(
                    f"the metric {metric} has the column {min(unlucky)}, which every table of "
                    "scores has already; give the metric another name"
                )

    @property
    def names(self) -> list[str]:
        """Return names of the metrics."""
        return [str(metric) for metric, _ in self.metrics]

    def schema(self) -> pa.Schema:
        """Return the schema of the rows from which all results are made."""
        return chunk_schema([metric for metric, _ in self.metrics], self.geometry)

    def scores_schema(self, own: Sequence[str] = ()) -> pa.Schema:
        """Return the schema of the scores; each metric's signature is in the metadata.

        Args: own: names of a user's own columns, which follow the id.
        """
        metadata = {f"vlscore.signature.{metric}": str(s) for metric, s in self.metrics}
        schema = columns_schema([metric for metric, _ in self.metrics], self.geometry)
        for place, name in enumerate(own, schema.get_field_index(ID) + 1):
            schema = schema.insert(place, pa.field(name, pa.string()))
        return schema.with_metadata(metadata)

    def joined(self, more: "ColumnLayout") -> "ColumnLayout":
        """Return these columns, then those of `more` that are not among them."""
        names = self.names
        metrics = (*self.metrics, *((m, s) for m, s in more.metrics if str(m) not in names))
        return ColumnLayout(metrics, _in_order({*self.geometry, *more.geometry}))


def _in_order(geometry: Collection[str]) -> tuple[str, ...]:
    return tuple(name for name in (*NUMBERS, *FLAGS) if name in geometry)


def check_format(format: str) -> str:
    """Return the format itself; raise InvalidSetting for an unknown one."""
    if format not in FORMATS:
        raise InvalidSetting(f"format is {' or '.join(FORMATS)}, not {format!r}")
    return format


def layout_of(scorer: Scorer) -> ColumnLayout:
    """Return the columns that a scorer's rows have.

    Of the triangle's numbers, each metric adds those that it uses: columns are the same whether
    metrics are computed at once or one after the other.
    """
    described: set[str] = set()
    for metric in scorer.plan.steps:
        if metric.uses_embeddings:
            described |= {
                (True, True): {*NUMBERS, *FLAGS},
                (False, True): {"candidate_reference", *FLAGS},
                (True, False): {"image_candidate", FLAGS[0]},
                (False, False): {FLAGS[0]},
            }[metric.uses_image, metric.uses_reference]
    metrics = tuple((metric, scorer.signatures[str(metric)]) for metric in scorer.metrics)
    return ColumnLayout(metrics, _in_order(described))


def layout_of_run(run: FinishedRun, own: Mapping[str, Metric] | None = None) -> ColumnLayout:
    """Return the columns of a finished run.

    Args: own: metrics that are known by their names although no registry has them.
    Raises: ChecksumMismatch where the run is no evaluation; InvalidSetting for a metric that is
        not known here.
    """
    own = own or {}
    try:
        printed = {str(n): Signature.parse(s) for n, s in run.key["metrics"].items()}
        geometry = tuple(map(str, run.record["geometry"]))
    except (AttributeError, KeyError, TypeError):
        raise ChecksumMismatch(
            f"{run.folder}: run.json is not that of an evaluation; choose another output "
            "folder, or give --overwrite to replace what is there"
        ) from None
    metrics: list[tuple[Metric, Signature]] = []
    for name, signature in printed.items():
        known = own[name] if name in own else metric_from_file(name, f"{run.folder}/run.json")
        metrics.append((known, signature))
    return ColumnLayout(tuple(metrics), geometry)


def read_rows_of(run: FinishedRun, layout: ColumnLayout) -> Iterator[pa.Table]:
    """Yield the rows of a finished run, with the columns that its chunks had."""
    scores = _Rows(_score_batches(run, layout))
    for details in _Rows(_parquet_batches(run.file(DETAILS))).groups():
        part = scores.take(len(details))
        details = _with_newer_columns(details)
        arrays = [
            (details if field.name in details.column_names else part)[field.name].cast(field.type)
            for field in layout.schema()
        ]
        yield pa.Table.from_arrays(arrays, schema=layout.schema())


def _with_newer_columns(details: pa.Table) -> pa.Table:
    """Return the details with columns that an earlier version did not write: False or null."""
    for name in COUNTED:
        if name not in details.column_names:
            details = details.append_column(name, pa.array([False] * len(details)))
    if IMAGES not in details.column_names:
        details = details.append_column(IMAGES, pa.nulls(len(details), pa.string()))
    return details


def with_more_columns(
    earlier: Iterable[pa.Table], chunks: Iterable[pa.Table], layout: ColumnLayout
) -> Iterator[pa.Table]:
    """Yield the earlier rows with the numbers of further metrics added."""
    new = _Rows(chunks)
    for before in earlier:
        after = new.take(len(before))
        yield pa.Table.from_arrays(
            [_joined_column(field.name, before, after) for field in layout.schema()],
            schema=layout.schema(),
        )


def with_rows_replaced(
    earlier: Iterable[pa.Table], chunks: Iterable[pa.Table]
) -> Iterator[pa.Table]:
    """Yield the earlier rows; rows of `chunks` replace those that lacked a value, in order."""
    again = _Rows(chunks)
    for before in earlier:
        failed = before[REASONS].is_valid().to_numpy()
        after = again.take(int(failed.sum()))
        order = np.arange(len(before))
        order[failed] = len(before) + np.arange(len(after))
        yield pa.concat_tables([before, after]).take(pa.array(order))


def write_results(
    folder: Path,
    tables: Callable[[], Iterable[pa.Table]],
    layout: ColumnLayout,
    format: str,
    own: Sequence[str] = (),
) -> None:
    """Write scores, details and failures.

    Args:
        tables: the rows; called once a file, so that nothing need be held in memory.
        own: names of a user's own columns among them.
    """
    _WRITERS[format](folder / f"scores.{format}", tables(), layout.scores_schema(own))
    of_scores = {*layout.scores_schema().names} - {ROW}
    details = pa.schema([field for field in layout.schema() if field.name not in of_scores])
    _write_parquet(folder / DETAILS, tables(), details)
    with (folder / FAILURES).open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["row", "id", "metric", "error"])
        for table in tables():
            for row, study_id, reasons in reasons_of(table):
                for metric, reason in reasons.items():
                    writer.writerow(cells([row, study_id, metric, reason]))


def read_scores(path: Path, count: int) -> list[dict[str, Any]]:
    """Return the first `count` rows of the scores, column by name."""
    batches = _csv_batches(path) if path.suffix == ".csv" else _parquet_batches(path)
    found: list[dict[str, Any]] = _Rows(batches).take(count).to_pylist()
    return found


def read_guessed(details: Path, scores: Path, count: int) -> list[str]:
    """Return ids, or rows without one, of the first studies whose frontal view is a guess."""
    batches = _csv_batches if scores.suffix == ".csv" else _parquet_batches
    named, found = _Rows(batches(scores)), list[str]()
    for table in _Rows(_parquet_batches(details)).groups():
        ids = named.take(len(table)).column(ID).to_pylist()
        for row, study, guessed in zip(
            table[ROW].to_pylist(), ids, table[_GUESSED].to_pylist(), strict=True
        ):
            if guessed:
                found.append(study or f"row {row}")
            if len(found) == count:
                return found
    return found


class _Rows:
    """Buffer that splits the rows of tables into groups of another length."""

    def __init__(self, tables: Iterable[pa.Table]) -> None:
        self._tables = iter(tables)
        self._left: pa.Table | None = None

    def take(self, count: int) -> pa.Table:
        """Return the next rows, fewer at the end."""
        parts = [] if self._left is None else [self._left]
        while sum(map(len, parts)) < count or not parts:
            following = next(self._tables, None)
            if following is None:
                break
            parts.append(following)
        if not parts:
            return pa.table({})
        joined = pa.concat_tables(parts)
        self._left = joined.slice(count)
        return joined.slice(0, count).combine_chunks()

    def groups(self) -> Iterator[pa.Table]:
        """Yield all rows, in the lengths in which results are written and read."""
        while len(group := self.take(_ROWS_IN_GROUP)):
            yield group


def _score_batches(run: FinishedRun, layout: ColumnLayout) -> Iterator[pa.Table]:
    if "scores.csv" in run.digests:
        schema = layout.scores_schema(OwnColumns.of_key(run.key).names)
        return _csv_batches(run.file("scores.csv"), schema)
    return _parquet_batches(run.file("scores.parquet"))


def _parquet_batches(path: Path) -> Iterator[pa.Table]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(_ROWS_IN_GROUP):
            yield pa.Table.from_batches([batch])


def _csv_batches(path: Path, schema: pa.Schema | None = None) -> Iterator[pa.Table]:
    """Yield the rows of a csv file; types are guessed without a schema, except ids and errors."""
    types = {ID: pa.string(), ERROR: pa.string()}
    if schema is not None:
        types = {field.name: field.type for field in schema}
    options = pyarrow.csv.ConvertOptions(
        column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    with pyarrow.csv.open_csv(path, parse_options=parse, convert_options=options) as reader:
        for batch in reader:
            yield from_table_cells(pa.Table.from_batches([batch]))


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
    if name == IMAGES:
        return pc.coalesce(before[name], chunk[name])
    return (before if name in before.column_names else chunk)[name]


def _write_parquet(path: Path, tables: Iterable[pa.Table], schema: pa.Schema) -> None:
    with pq.ParquetWriter(path, schema) as writer:
        # Groups of one length: how rows were computed in chunks does not show in the bytes.
        for group in _Rows(tables).groups():
            writer.write_table(_cut(group, schema))


def _write_csv(path: Path, tables: Iterable[pa.Table], schema: pa.Schema) -> None:
    with pyarrow.csv.CSVWriter(path, schema) as writer:
        for table in tables:
            writer.write_table(table_cells(_cut(table, schema)))


def _cut(table: pa.Table, schema: pa.Schema) -> pa.Table:
    return table.select(schema.names).replace_schema_metadata(schema.metadata)


_WRITERS: dict[str, Callable[[Path, Iterable[pa.Table], pa.Schema], None]] = {
    "parquet": _write_parquet,
    "csv": _write_csv,
}
