"""Summary of scored rows: means, medians and corpus values with intervals, also of subgroups."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vlscore.metrics import Metric, corpus_name, corpus_of_sums, support_of_sums
from vlscore.stats import (
    TextTable,
    bootstrap_mean,
    bootstrap_median,
    bootstrap_sums,
    bounds,
    clustered_median,
    mean_of_sums,
    mean_statistics,
    number,
    percentiles,
    resampled_sums,
    share_undefined,
    sums_by_group,
)

if TYPE_CHECKING:
    import pandas

    from vlscore.stats import Interval

# As many as of means, and as `vlscore compare` draws: one value has one interval.
_RESAMPLES = 2000
_DIGITS = 4
_NO_VALUE = "(none)"
_SUPPORT = (
    "support: how many times the references state what the F1 is made of, for macro its rarest "
    "observation. An observation that neither candidates nor references mention has no F1 (-)."
)

Record = dict[str, Any]


def summary_of(
    scores: "pandas.DataFrame",
    sums: Mapping[str, NDArray[np.float64]],
    metrics: Sequence[Metric],
    patients: Sequence[str] | None = None,
) -> list[Record]:
    """Return one record a number: means and medians of n rows, and values of the whole corpus.

    Args:
        scores: n rows, with the columns of the metrics.
        sums: metric -> (n, s), for metrics with values of the whole corpus.
        patients: whose each row is; intervals then resample patients. None: rows.

    Returns: records with metric (name of the number), of (name of the metric), primary,
        of_corpus, higher_is_better, n, mean and median (None where no row has a value), support
        (positive mentions in the references) and left_out (share of resamples without a value).
    """
    groups = None if patients is None else np.array(patients, dtype=object)
    return [record for metric in metrics for record in _of_metric(metric, scores, sums, groups)]


def _of_metric(
    metric: Metric,
    scores: "pandas.DataFrame",
    sums: Mapping[str, NDArray[np.float64]],
    groups: NDArray[np.object_] | None,
) -> Iterator[Record]:
    for k, (name, output) in enumerate(zip(metric.columns, metric.outputs, strict=True)):
        values = scores[name].to_numpy(dtype=np.float64)
        there = np.isfinite(values)
        whose = None if groups is None else groups[there].tolist()
        mean, median = _mean_and_median(values[there], whose)
        yield {
            "metric": name,
            "of": str(metric),
            "primary": k == 0,
            "of_corpus": False,
            "higher_is_better": output.higher_is_better,
            "n": int(there.sum()),
            "mean": mean,
            "median": median,
        }
    there = np.isfinite(scores[str(metric)].to_numpy(dtype=np.float64))
    if not metric.corpus or not there.any():
        return
    statistics = sums[str(metric)][there]
    support = support_of_sums(metric, statistics.sum(0))
    if groups is not None:
        statistics = sums_by_group(statistics, groups[there].tolist())
    drawn = resampled_sums(statistics, _RESAMPLES, np.random.default_rng(0))
    with np.errstate(invalid="ignore", divide="ignore"):
        values = corpus_of_sums(metric, statistics.sum(0)[None])
        resampled = corpus_of_sums(metric, drawn)
    for output in metric.corpus:
        each = resampled[output.name]
        yield {
            "metric": corpus_name(metric, output.name),
            "of": str(metric),
            "primary": output.name == metric.primary,
            "of_corpus": True,
            "higher_is_better": output.higher_is_better,
            "n": int(there.sum()),
            "mean": percentiles(
                float(values[output.name][0]), each, 0.95, len(statistics)
            ).supported(support.get(output.name)),
            "support": support.get(output.name),
            "left_out": share_undefined(each) or None,
        }


def _mean_and_median(
    values: NDArray[np.float64], whose: Sequence[str] | None
) -> tuple["Interval | None", "Interval | None"]:
    if not len(values):
        return None, None
    if whose is None:
        return bootstrap_mean(values), bootstrap_median(values)
    sums = sums_by_group(mean_statistics(values), whose)
    return bootstrap_sums(sums, mean_of_sums), clustered_median(values, whose)


def subgroups_of(
    scores: "pandas.DataFrame",
    sums: Mapping[str, NDArray[np.float64]],
    metrics: Sequence[Metric],
    by: Sequence[str],
    patients: Sequence[str] | None = None,
) -> list[Record]:
    """Return the summary of the rows with each value of each column `by`, one record a number."""
    found = []
    for column in by:
        labels = scores[column].fillna(_NO_VALUE)
        for label in sorted(set(labels)):
            rows = np.flatnonzero((labels == label).to_numpy()).tolist()
            part = {name: each[rows] for name, each in sums.items()}
            whose = None if patients is None else [patients[row] for row in rows]
            for each in summary_of(scores.iloc[rows], part, metrics, whose):
                found.append({"column": column, "value": label, **each})
    return found


def common_means(scores: "pandas.DataFrame", metrics: Sequence[Metric]) -> dict[str, float]:
    """Return the means over the rows that every metric has; empty if all have the same rows."""
    values = scores[[str(metric) for metric in metrics]].to_numpy(dtype=np.float64)
    present = np.isfinite(values)
    rows = present.all(1)
    if (present == present[:, :1]).all() or not rows.any():
        return {}
    means = values[rows].mean(0).tolist()
    return {str(metric): mean for metric, mean in zip(metrics, means, strict=True)}


def summary_tables(
    summary: Sequence[Record],
    counts: Sequence[Record],
    common: Sequence[Record],
    subgroups: Sequence[Record],
) -> list[TextTable]:
    """Return the tables that are printed: the first numbers of each metric, then the others.

    Args: summary, counts, common, subgroups: records of the frames of these names.
    """
    first = [each for each in summary if each["primary"]]
    others = [each for each in summary if not each["primary"]]
    tables = [_table("Means", first)]
    if others:
        tables.append(_table("Further numbers", others))
    shown = [(each["what"], str(int(each["n"]))) for each in counts]
    tables.append(TextTable("Rows", ("", "n"), tuple(shown)))
    if common:
        means = [(each["metric"], number(each["mean"], _DIGITS)) for each in common]
        title = "Means over the rows that every metric has"
        tables.append(TextTable(title, ("metric", "mean"), tuple(means)))
    parts: dict[tuple[str, str], list[Record]] = {}
    for each in subgroups:
        parts.setdefault((each["column"], each["metric"]), []).append(each)
    for (column, metric), records in parts.items():
        rows = [(r["value"], *_cells(r["mean"]), str(r["n"])) for r in records]
        heads = (column, "mean", "95 % interval", "n")
        tables.append(TextTable(f"{metric} by {column}", heads, tuple(rows)))
    return tables


def _table(title: str, records: Sequence[Record]) -> TextTable:
    more = ["support"] if any(each.get("support") is not None for each in records) else []
    rows = []
    for each in records:
        better = "" if each["higher_is_better"] else " (lower is better)"
        median = each.get("median")
        shown = "" if each["of_corpus"] else _cells(median)[0]
        support = each.get("support")
        further = ["" if support is None else str(support) for _ in more]
        rows.append(
            (each["metric"] + better, *_cells(each["mean"]), shown, str(each["n"]), *further)
        )
    heads = ("metric", "mean", "95 % interval", "median", "n", *more)
    return TextTable(title, heads, tuple(rows), _SUPPORT if more else "")


def _cells(value: "Interval | None") -> tuple[str, str]:
    if value is None:
        return "-", ""
    return number(value.estimate, _DIGITS), bounds(value.low, value.high, _DIGITS)
