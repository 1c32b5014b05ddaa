"""Summary of scored rows: means, medians and corpus values with intervals, also of subgroups."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import with_noun
from vlscore.errors import VLScoreError
from vlscore.evaluation.comparison.paper_table import heading_of
from vlscore.evaluation.comparison.statistics import (
    numbers_and_tests,
    numbers_of,
    with_directions,
)
from vlscore.evaluation.scored import Scored
from vlscore.evaluation.scoring.row_facts import EMPTY
from vlscore.metrics import OTHERS, metric_from_file, percentile_column
from vlscore.stats import (
    UNDEFINED,
    Interval,
    Presentation,
    TextTable,
    bootstrap_median,
    bounds,
    grouped_median,
    histograms,
    interval_in,
    number,
    text_table,
    with_demonstration,
)

if TYPE_CHECKING:
    import pandas

    from vlscore.stats import Result

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

# Columns of a mean -> their headings.
_MEAN = {"mean": "mean", "bounds": "95 % interval"}

Record = dict[str, Any]


def summary_of(scored: Scored, patients: Sequence[str] | None = None) -> list[Record]:
    """Return one record a number: means and medians of n rows, and values of the whole corpus.

    Args: patients: whose each row is; intervals then resample patients. None: rows.

    Returns: records with metric (name of the number), of (name of the metric), primary,
        of_corpus, higher_is_better, n, mean and median (nan where no row has a value), support
        (positive mentions in the references) and left_out (share of resamples without a value).
    """
    numbers, records = numbers_of(scored), []
    # The numbers of a comparison of one system, which has nothing to test.
    found, _ = numbers_and_tests([""], numbers, permutations=1, patients=patients)
    for quantity, each in zip(numbers, found, strict=True):
        record = {name: each[name] for name in (*_FACTS, "n")}
        record["mean"] = each["value"]
        if quantity.corpus is None:
            # The first number is among the first table's, whatever papers print.
            record["primary"] = each["metric"] == each["of"]
            record["median"] = _median(scored.rows[each["metric"]].to_numpy(float), patients)
            records.append(record)
        elif each["n"]:
            records.append(record | {name: each[name] for name in ("support", "left_out")})
    return records


def _median(values: NDArray[np.float64], patients: Sequence[str] | None) -> Interval:
    there = np.isfinite(values)
    if not there.any():
        return UNDEFINED
    if patients is None:
        return bootstrap_median(values[there])
    return grouped_median(values[there], [patients[int(k)] for k in np.flatnonzero(there)])


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


def evaluation_tables(run: "Result") -> list[TextTable]:
    """Return the tables that are printed: the first numbers of each metric, then the others."""
    frames = run.frames
    summary = frames["summary"]
    tables = [_table("Means", summary[summary["primary"]])]
    # Asked for, so they come first: a terminal has no room for all tables.
    tables += _subgroup_tables(frames)
    if not summary["primary"].all():
        tables.append(_table("Further numbers", summary[~summary["primary"]]))
    tables.append(text_table("Rows", frames["counts"], columns={"what": "", "n": "n"}))
    if "common" in frames:
        title = "Means over the rows that every metric has"
        tables.append(text_table(title, frames["common"], digits=_DIGITS))
    return tables


def _subgroup_tables(frames: "Mapping[str, pandas.DataFrame]") -> Iterator[TextTable]:
    groups = ["column", "metric"]
    for (column, metric), rows in (
        frames["subgroups"].groupby(groups, sort=False) if "subgroups" in frames else ()
    ):
        columns = {"value": column, **_MEAN, "n": "n"}
        yield text_table(f"{metric} by {column}", _cells(rows), columns=columns)


def _table(title: str, summary: "pandas.DataFrame") -> TextTable:
    columns = {"metric": "metric", **_MEAN, "median": "median", "n": "n"}
    rows, caption = _cells(summary), []
    rows["metric"] = with_directions(summary)
    if summary["metric"].str.endswith(percentile_column("")).any():
        caption.append(_PERCENTILE)
    if "support" in summary and summary["support"].notna().any():
        columns["support"] = "support"
        caption.append(_SUPPORT)
    return text_table(title, rows, " ".join(caption), columns=columns)


def _cells(summary: "pandas.DataFrame") -> "pandas.DataFrame":
    """Return rows of the frames "summary" or "subgroups" as text; no interval without a row."""
    numbers = ["mean", "mean.low", "mean.high", "median"]
    means, lows, highs, medians = (summary[name].astype(float) for name in numbers)
    rows = summary.drop(columns=["mean.low", "mean.high", "median.low", "median.high"])
    rows["bounds"] = [
        bounds(low, high, _DIGITS) if n else ""
        for n, low, high in zip(rows["n"], lows, highs, strict=True)
    ]
    rows["mean"] = [number(value, _DIGITS) for value in means]
    rows["median"] = [number(value, _DIGITS) for value in medians]
    rows.loc[rows["of_corpus"], "median"] = ""
    if "support" in rows:
        supports = rows["support"].astype(float)
        rows["support"] = ["" if math.isnan(n) else str(int(n)) for n in supports]
    return rows


def draw_scores(result: "Result", format: str, columns: Sequence[str] = ()) -> list[Path]:
    """Draw how the first number of every metric is distributed over the studies."""
    scores = result.rows(f"scores.{result.key['format']}")
    values, means = {}, {}
    for each in result.frame("summary").to_dict("records"):
        if each["metric"] != each["of"]:
            continue
        title = heading_of({**each, "title": _printed(each["of"], result.folder)})
        values[title] = scores[each["of"]].tolist()
        if each["n"]:
            means[title] = interval_in(each, "mean")
    note = "Values of single studies; line and band: mean and its 95 % bootstrap interval."
    note = with_demonstration(note, result.signatures.values())
    path = result.folder / f"distributions.{format}"
    histograms(values, path, title="Scores", means=means, note=note)
    return [path]


def _printed(name: str, source: Path) -> str:
    """Return the name of a metric's first number as papers print it."""
    try:
        return metric_from_file(name, source).printed()
    except VLScoreError:
        # A user's own metric that is not registered here.
        return name


def paragraph(run: "Result") -> str:
    """Return the paragraph of a methods section on an evaluation."""
    from vlscore.evaluation.methods_text import data, joined, on_intervals, on_metrics, on_missing

    counts = dict(run.frame("counts").itertuples(index=False))
    own, rows = run.key.get("own_columns") or {}, int(counts["rows"])
    by = ", ".join(map(data, own.get("by", ())))
    empty = int(counts.get(EMPTY, 0))
    return joined(
        [
            f"We scored {with_noun(rows, 'study')} with vlscore {data(run.record['vlscore'])}.",
            *([f"Empty candidates were scored as empty reports: {empty}."] if empty else []),
            *on_missing(run.frame("summary")["n"].tolist(), rows, "the metric has"),
            *on_metrics(run),
            on_intervals(2000, own.get("patient")),
            *([f"Numbers are also given for the studies of each value of {by}."] if by else []),
        ]
    )


PRESENTATION = Presentation(
    evaluation_tables, draw_scores, paragraph, "vlscore.pages.command_views:evaluate_view"
)
