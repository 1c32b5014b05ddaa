"""Rows of a run on disk, with values or the reasons why there is none; and their summary."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from vlscore.core import Signature, from_plain, plain_dict, reading_result
from vlscore.metrics import FLAGS, Metric, ScoreTable, corpus_of_sums, support_of_sums
from vlscore.stats import (
    Interval,
    bootstrap_mean,
    bootstrap_median,
    percentiles,
    resampled_sums,
    share_undefined,
)

FILE = "rows.parquet"

# Facts about a row's texts and images that the summary counts.
COUNTED = (
    "empty_candidate",
    "candidate_says_missing",
    "reference_says_missing",
    "view_guessed",
    "reference_has_headings",
)
ROW, ID, ERROR, REASONS = "row", "id", "error", "reasons"
STATISTICS = "statistics."
# Size, time of the last change and digest of the image files of a row, as json; null where the
# metrics look at none.
IMAGES = "images"


def columns_schema(metrics: Iterable[Metric], geometry: Iterable[str]) -> pa.Schema:
    """Return the schema of the scores: row, id, every metric's numbers, geometry, error."""
    return pa.schema(
        [
            pa.field(ROW, pa.int64()),
            pa.field(ID, pa.string()),
            *(pa.field(name, pa.float64()) for metric in metrics for name in metric.columns),
            *(pa.field(name, pa.bool_() if name in FLAGS else pa.float64()) for name in geometry),
            pa.field(ERROR, pa.string()),
        ]
    )


def chunk_schema(metrics: Sequence[Metric], geometry: Iterable[str]) -> pa.Schema:
    """Return columns of a chunk: those of the scores, and what the end of the run needs."""
    schema = columns_schema(metrics, geometry)
    for metric in metrics:
        if metric.statistics:
            kind = pa.list_(pa.float64(), metric.statistics)
            schema = schema.append(pa.field(f"{STATISTICS}{metric}", kind))
    for name in COUNTED:
        schema = schema.append(pa.field(name, pa.bool_()))
    schema = schema.append(pa.field(IMAGES, pa.string()))
    return schema.append(pa.field(REASONS, pa.string()))


def chunk_table(
    schema: pa.Schema,
    numbers: Sequence[int],
    ids: Sequence[str | None],
    scores: ScoreTable | None,
    places: Sequence[int | None],
    bad: Mapping[int, str],
    counted: Mapping[str, Sequence[bool]],
    images: Sequence[str | None] | None = None,
) -> pa.Table:
    """Return a chunk of n rows.

    Args:
        numbers, ids: of each row.
        scores: of the rows that could be read; None where none could.
        places: row of `scores` for each row; None for a bad one.
        bad: position -> why the row could not be read.
        counted: what the summary counts, n of each.
        images: of each row, what `stamped` says of its image files; None where none are read.
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
        IMAGES: images,
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
    """Return the chunk that `write_chunk` wrote."""
    # `pq.read_table` imports what it needs for folders of many files.
    with pq.ParquetFile(folder / FILE) as file:
        return file.read()


def reasons_of(table: pa.Table) -> Iterable[tuple[int, str | None, dict[str, str]]]:
    """Yield (row, id, {metric or "row": reason}) of every row that lacks a value."""
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
    """Return every reason once, in one text; None without any."""
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


# Beyond these, a candidate is near the line through image and reference, but not near the latter.
_FOOT_NEAR = (-0.5, 1.5)
# As many as of means, and as `vlscore compare` draws: one value has one interval.
_RESAMPLES = 2000


@dataclass(frozen=True)
class ValueSummary:
    """One number of a metric over the studies that have it; intervals are 95 % bootstrap intervals.

    Attributes:
        scored: how many studies have it.
        mean, median: None where none has.
        higher_is_better: direction.
    """

    scored: int
    mean: Interval | None
    median: Interval | None
    higher_is_better: bool


@dataclass(frozen=True)
class MetricSummary:
    """One metric over a table.

    Attributes:
        signature: what the numbers depend on.
        scored, failed: studies with and without a value.
        values: column -> summary; the metric's own number first.
        corpus: name -> value of the whole corpus, where that is no mean over studies; nan where it
            is not defined, as the F1 of an observation that no report mentions.
        support: name of a corpus value -> how many times the references state what it is made of;
            of F1 values alone.
        left_out: name of a corpus value -> share of the resamples in which it is not defined, and
            which its interval leaves out; where that is not 0.
    """

    signature: Signature
    scored: int
    failed: int
    values: dict[str, ValueSummary]
    corpus: dict[str, Interval]
    support: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Summary:
    """Numbers of one run.

    Attributes:
        rows: rows of the table.
        scored: rows that every metric has a value for; the others are `failed`.
        metrics: name -> summary, in the order asked for.
        common: metric -> mean over the `scored` rows (None where there are none), where some metric
            has values for more rows than another; else None.
        candidates_truncated, references_truncated: studies in which the encoder did not see the
            text's tail; None where nothing was embedded.
        foot_far_outside: studies whose candidate projects below -0.5 or above 1.5 on the line from
            image (0) to reference (1): near the line, perhaps, but not near the reference. Many of
            them are a reason to distrust VLScore. None where no metric looks at the triangle.
        empty_candidates: candidates without a word; these are scored like any other candidate.
        candidates_say_missing, references_say_missing: texts such as "nan" or "None", which a
            faulty export leaves; they are scored as they are.
        views_guessed: studies of several images whose frontal view is a guess.
        references_with_headings: references with headings such as "INDICATION:" that are scored as
            a whole.
    """

    rows: int
    scored: int
    failed: int
    metrics: dict[str, MetricSummary]
    common: dict[str, float | None] | None
    candidates_truncated: int | None
    references_truncated: int | None
    foot_far_outside: int | None
    empty_candidates: int
    candidates_say_missing: int
    references_say_missing: int
    views_guessed: int
    references_with_headings: int = 0

    @property
    def first(self) -> MetricSummary:
        """Return the first metric."""
        return next(iter(self.metrics.values()))

    @property
    def signature(self) -> Signature:
        """Return what the numbers of the first metric depend on."""
        return self.first.signature

    @property
    def mean(self) -> Interval | None:
        """Return that of the first metric's own number; None if no study has a value."""
        return next(iter(self.first.values.values())).mean

    @property
    def median(self) -> Interval | None:
        """Return that of the first metric's own number; None if no study has a value."""
        return next(iter(self.first.values.values())).median

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for json; signature, mean and median are the first metric's."""
        names = ("signature", "mean", "median", *self.__dataclass_fields__)
        content = {name: getattr(self, name) for name in names}
        content["signature"] = str(self.signature)
        content["metrics"] = {
            name: {**asdict(each), "signature": str(each.signature)}
            for name, each in self.metrics.items()
        }
        return plain_dict(content)


def summarise(
    tables: Iterable[pa.Table], metrics: Sequence[tuple[Metric, Signature]], *, seed: int = 0
) -> Summary:
    """Summarise the rows of a run; holds eight bytes a study and number in memory."""
    names = [name for metric, _ in metrics for name in metric.columns]
    numbers: dict[str, list[NDArray[np.float64]]] = {name: [] for name in names}
    statistics: dict[str, list[NDArray[np.float64]]] = {
        str(metric): [] for metric, _ in metrics if metric.corpus
    }
    counts = dict.fromkeys((*COUNTED, "candidate_truncated", "reference_truncated", "foot"), 0)
    there: set[str] = set()
    rows = failed = 0
    for table in tables:
        there |= set(table.column_names)
        rows += len(table)
        failed += len(table) - table[REASONS].null_count
        for name in names:
            numbers[name].append(table[name].to_numpy())
        for name, parts in statistics.items():
            flat = table[f"{STATISTICS}{name}"].combine_chunks()
            parts.append(np.asarray(flat.flatten()).reshape(len(table), -1))
        for name in (*COUNTED, "candidate_truncated", "reference_truncated"):
            if name in table.column_names:
                counts[name] += pc.sum(table[name]).as_py() or 0
        if "foot" in table.column_names:
            position = table["foot"].to_numpy()
            counts["foot"] += int(((position < _FOOT_NEAR[0]) | (position > _FOOT_NEAR[1])).sum())
    joined = {
        name: np.concatenate(parts).astype(np.float64) if parts else np.empty(0)
        for name, parts in numbers.items()
    }
    looks_at_triangle = any(m.uses_image and m.uses_reference for m, _ in metrics)
    return Summary(
        rows=rows,
        scored=rows - failed,
        failed=failed,
        metrics={
            str(metric): _of_metric(metric, signature, joined, statistics, seed)
            for metric, signature in metrics
        },
        common=_common([str(metric) for metric, _ in metrics], joined),
        candidates_truncated=_count_of(counts, "candidate_truncated", there),
        references_truncated=_count_of(counts, "reference_truncated", there),
        foot_far_outside=_count_of(counts, "foot", there) if looks_at_triangle else None,
        empty_candidates=counts["empty_candidate"],
        candidates_say_missing=counts["candidate_says_missing"],
        references_say_missing=counts["reference_says_missing"],
        views_guessed=counts["view_guessed"],
        references_with_headings=counts["reference_has_headings"],
    )


def read_summary(path: Path) -> Summary:
    """Return the summary that `to_dict` became in a file.

    Raises: ChecksumMismatch for a file that holds something else.
    """
    with reading_result(path):
        content = json.loads(path.read_text(encoding="utf-8"))
        # Earlier versions wrote null for a corpus value that is not defined, and counted no
        # headings.
        for each in content["metrics"].values():
            each["corpus"] = {name: v for name, v in each["corpus"].items() if v is not None}
        content.setdefault("references_with_headings", 0)
        found: Summary = from_plain(Summary, content)
        for metric in found.metrics.values():
            if not metric.values or not {*metric.support, *metric.left_out} <= metric.corpus.keys():
                raise ValueError("a metric without its numbers")
        if not found.metrics:
            raise ValueError("no metric")
        return found


def _of_metric(
    metric: Metric,
    signature: Signature,
    joined: dict[str, NDArray[np.float64]],
    statistics: dict[str, list[NDArray[np.float64]]],
    seed: int,
) -> MetricSummary:
    values = {}
    for name, output in zip(metric.columns, metric.outputs, strict=True):
        valid = joined[name][np.isfinite(joined[name])]
        some = len(valid) > 0
        values[name] = ValueSummary(
            scored=len(valid),
            mean=bootstrap_mean(valid, seed=seed) if some else None,
            median=bootstrap_median(valid, seed=seed) if some else None,
            higher_is_better=output.higher_is_better,
        )
    has_value = np.isfinite(joined[str(metric)])
    scored = int(has_value.sum())
    found = MetricSummary(signature, scored, len(has_value) - scored, values, {})
    if metric.corpus and scored:
        _add_corpus(found, metric, np.concatenate(statistics[str(metric)])[has_value], seed)
    return found


def _add_corpus(
    found: MetricSummary, metric: Metric, statistics: NDArray[np.float64], seed: int
) -> None:
    """Add the corpus values of (n, s) statistics, with intervals as `compare` prints."""
    total = statistics.sum(0)
    drawn = resampled_sums(statistics, _RESAMPLES, np.random.default_rng(seed))
    with np.errstate(invalid="ignore", divide="ignore"):
        values = corpus_of_sums(metric, total[None])
        resampled = corpus_of_sums(metric, drawn)
    for name, value in values.items():
        found.corpus[name] = percentiles(float(value[0]), resampled[name], 0.95, len(statistics))
        if share := share_undefined(resampled[name]):
            found.left_out[name] = share
    found.support.update(support_of_sums(metric, total))


def _common(
    names: Sequence[str], joined: dict[str, NDArray[np.float64]]
) -> dict[str, float | None] | None:
    present = np.array([np.isfinite(joined[name]) for name in names])
    if (present == present[:1]).all():
        return None
    rows = present.all(0)
    return {name: float(joined[name][rows].mean()) if rows.any() else None for name in names}


def _count_of(counts: dict[str, int], name: str, there: set[str]) -> int | None:
    return counts[name] if name in there else None
