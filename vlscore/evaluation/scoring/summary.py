"""Summary of scored rows: means, medians and corpus values with intervals, also of subgroups."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vlscore.evaluation.comparison.statistics import numbers_and_tests, numbers_of
from vlscore.evaluation.scored import Scored
from vlscore.metrics import OTHERS, percentile_column
from vlscore.stats import TextTable, bootstrap_median, bounds, clustered_median, number

if TYPE_CHECKING:
    from vlscore.stats import Interval

_FACTS = ("metric", "of", "primary", "of_corpus", "higher_is_better")
_DIGITS = 4
_NO_VALUE = "(none)"
_PERCENTILE = (
    f"percentile: share of the candidates of other studies ({OTHERS} drawn from the table, less "
    "those with the same words) that score worse for this study's image and reference; .5 is no "
    "better than another study's report."
)
_SUPPORT = (
    "support: how many times the references state what the F1 is made of, for macro its rarest "
    "observation. An observation that neither candidates nor references mention has no F1 (-)."
)

Record = dict[str, Any]


def summary_of(scored: Scored, patients: Sequence[str] | None = None) -> list[Record]:
    """Return one record a number: means and medians of n rows, and values of the whole corpus.

    Args: patients: whose each row is; intervals then resample patients. None: rows.

    Returns: records with metric (name of the number), of (name of the metric), primary,
        of_corpus, higher_is_better, n, mean and median (None where no row has a value), support
        (positive mentions in the references) and left_out (share of resamples without a value).
    """
    numbers, records = numbers_of(scored), []
    # The numbers of a comparison of one system, which has nothing to test.
    found, _ = numbers_and_tests([""], numbers, permutations=1, patients=patients)
    for quantity, each in zip(numbers, found, strict=True):
        record = {name: each[name] for name in (*_FACTS, "n")}
        record["mean"] = each["value"] if each["n"] else None
        if quantity.corpus is None:
            # The first number is among the first table's, whatever papers print.
            record["primary"] = each["metric"] == each["of"]
            record["median"] = _median(scored.rows[each["metric"]].to_numpy(float), patients)
            records.append(record)
        elif each["n"]:
            records.append(record | {name: each[name] for name in ("support", "left_out")})
    return records


def _median(values: NDArray[np.float64], patients: Sequence[str] | None) -> "Interval | None":
    there = np.isfinite(values)
    if not there.any():
        return None
    if patients is None:
        return bootstrap_median(values[there])
    return clustered_median(values[there], [patients[int(k)] for k in np.flatnonzero(there)])


def subgroups_of(
    scored: Scored, by: Sequence[str], patients: Sequence[str] | None = None
) -> list[Record]:
    """Return the summary of the rows with each value of each column `by`, one record a number."""
    found = []
    for column in by:
        labels = scored.rows[column].fillna(_NO_VALUE)
        for label in sorted(set(labels)):
            rows = np.flatnonzero((labels == label).to_numpy()).tolist()
            whose = None if patients is None else [patients[row] for row in rows]
            for each in summary_of(scored.at(rows), whose):
                found.append({"column": column, "value": label, **each})
    return found


def common_means(scored: Scored) -> dict[str, float]:
    """Return the means over the rows that every metric has; empty if all have the same rows."""
    metrics = [str(metric) for metric in scored.signatures]
    values = scored.rows[metrics].to_numpy(dtype=np.float64)
    present = np.isfinite(values)
    rows = present.all(1)
    if (present == present[:, :1]).all() or not rows.any():
        return {}
    return dict(zip(metrics, values[rows].mean(0).tolist(), strict=True))


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
    ranked = any(str(each["metric"]).endswith(percentile_column("")) for each in records)
    caption = " ".join([*([_PERCENTILE] if ranked else []), *([_SUPPORT] if more else [])])
    return TextTable(title, heads, tuple(rows), caption)


def _cells(value: "Interval | None") -> tuple[str, str]:
    if value is None:
        return "-", ""
    return number(value.estimate, _DIGITS), bounds(value.low, value.high, _DIGITS)
