"""Tables and figures of an alignment."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.stats import (
    Interval,
    TextTable,
    dot_plots,
    interval,
    interval_in,
    note_with_mark,
    number,
    p_value,
    scatter,
    text_table,
)

if TYPE_CHECKING:
    from pandas import DataFrame

Frames = Mapping[str, "DataFrame"]
_AGREEMENT = (
    "Larger is more agreement with the mean of the raters. 95 % bootstrap intervals over studies. "
    "Those of tau_b over pairs, as papers publish it, are too narrow where a study has several "
    "candidates. n: pairs with a value and a rating."
)
_DIFFERENCES = (
    "tau_b of the first metric less that of the other, on the n pairs that both have; 95 % "
    "bootstrap interval over studies. p: two-sided, adjusted over all pairs of metrics "
    "(Benjamini-Hochberg). result.json has every pair of metrics."
)
_RATERS = (
    "tau_b with each rater alone, 95 % bootstrap interval over studies, n pairs behind it. "
    "Compare it with the raters' tau_b with each other."
)
_CEILINGS = (
    "tau_b of raters. between two: mean over all pairs of raters. one against the others: mean "
    "over raters of one against the mean of the others. ties: the largest tau_b with the raters' "
    "mean that values without ties can have. n: pairs that two raters rated."
)
_RANKINGS = (
    "One comparison is one rater's order of two candidates of one study. same: better, worse or "
    "equal for both. right: of the n decided comparisons, where the rater prefers one; a tie of "
    "the metric counts one half. 95 % bootstrap intervals over studies."
)


def alignment_tables(frames: Frames, main: Sequence[str]) -> list[TextTable]:
    """Return every table that has rows.

    Args:
        frames: of `compare_with_raters`.
        main: ratings that have tables of their own.
    """
    tables = [
        *(agreement_table(frames, rating) for rating in main),
        further_table(frames["agreements"], main),
        *(difference_table(frames, rating) for rating in main),
        *(_rater_table(frames["raters"], rating) for rating in main),
        ceiling_table(frames["ceilings"]),
        *(_ranking_table(frames["rankings"], rating) for rating in main),
    ]
    return [table for table in tables if table.rows]


def _of(rows: "DataFrame", rating: str) -> "DataFrame":
    return rows[rows["rating"] == rating] if len(rows) else rows


def _sorted(frames: Frames, rating: str) -> "DataFrame":
    """Return the metrics that agree best first; those without a tau_b last."""
    rows = _of(frames["agreements"], rating)
    return rows.sort_values("tau_b", ascending=False, kind="stable") if len(rows) else rows


def agreement_table(frames: Frames, rating: str) -> TextTable:
    """Return all correlations of every metric with the raters' mean of one rating."""
    columns = {"metric": "metric", "n": "n", "studies": "studies", "tau_b": "tau_b"}
    columns |= {"tau_c": "tau_c", "spearman": "Spearman", "pearson": "Pearson"}
    return text_table(
        f"Agreement with raters: {rating}",
        _sorted(frames, rating),
        _AGREEMENT,
        columns=columns | {"tau_b by pair": "tau_b by pair"},
    )


def further_table(agreements: "DataFrame", main: Sequence[str]) -> TextTable:
    """Return tau_b of every metric with the further ratings, as single categories of errors."""
    rows: dict[str, dict[str, str]] = {}
    for row in agreements.to_dict("records"):
        if row["rating"] not in main:
            cell = f"{_interval(row, 'tau_b')} ({row['n']})"
            rows.setdefault(row["metric"], {"metric": row["metric"]})[row["rating"]] = cell
    caption = "95 % bootstrap intervals over studies; n in parentheses."
    return TextTable.of("tau_b with the raters' mean of further ratings", rows.values(), caption)


def difference_table(frames: Frames, rating: str) -> TextTable:
    """Return the differences between the metric that agrees best and each other one."""
    order = list(_sorted(frames, rating)["metric"]) if len(frames["agreements"]) else []
    rows = []
    for row in _of(frames["differences"], rating).to_dict("records"):
        if order[0] not in (row["metric"], row["other"]):
            continue
        other, found = row["other"], interval_in(row, "difference")
        if other == order[0]:
            other, found = row["metric"], Interval(-found.estimate, -found.high, -found.low)
        rows.append((order[0], other, str(row["n"]), interval(found), _p(row["adjusted_p"])))
    rows.sort(key=lambda row: order.index(row[1]))
    columns = ("metric", "other", "n", "difference of tau_b", "p")
    return TextTable(f"Differences between metrics: {rating}", columns, tuple(rows), _DIFFERENCES)


def _rater_table(raters: "DataFrame", rating: str) -> TextTable:
    """Return tau_b of every metric with every rater, and the mean of these."""
    rows = []
    own = _of(raters, rating)
    for metric, each in own.groupby("metric", sort=False) if len(own) else ():
        cells = {
            f"rater {row['rater']} (n)": f"{_interval(row, 'tau_b')} ({row['n']})"
            for row in each.to_dict("records")
        }
        mean = each["tau_b"].mean()
        rows.append({"metric": str(metric), "mean of raters": number(mean), **cells})
    return TextTable.of(f"Agreement with single raters: {rating}", rows, _RATERS)


def ceiling_table(ceilings: "DataFrame") -> TextTable:
    """Return the agreement of the raters with each other."""
    columns = {"rating": "rating", "raters": "raters", "n": "n", "between": "between two"}
    columns |= {"against_others": "one against the others", "ties": "ties"}
    return text_table("The raters' own agreement", ceilings, _CEILINGS, columns=columns)


def _ranking_table(rankings: "DataFrame", rating: str) -> TextTable:
    """Return how often metrics order two candidates of a study as the raters do."""
    columns = {"metric": "metric", "comparisons": "n", "studies": "studies", "same": "same"}
    columns |= {"right": "right", "decided": "n decided", "rater_ties": "rater ties"}
    return text_table(
        f"Ranking two candidates of a study: {rating}",
        _of(rankings, rating),
        _RANKINGS,
        columns=columns | {"metric_ties": "metric ties"},
    )


def _p(value: float | None) -> str:
    return p_value(math.nan if value is None else value)


def _interval(row: Mapping[Any, Any], name: str) -> str:
    return interval(interval_in(row, name))


#: Names of the figures, without suffix.
FIGURES = ("agreement", "pairs")


def draw_alignment(
    frames: Frames, values: "DataFrame", signatures: Mapping[str, Any], folder: Path, format: str
) -> list[Path]:
    """Draw tau_b of every metric, and the best metric against the raters; return the paths.

    A panel a rating; dashed lines are what raters reach themselves, and what values without ties
    can reach. Nothing is drawn of ranks.

    Args: values: content of values.csv.
    Raises: MissingDependency where matplotlib is not installed.
    """
    agreements = frames["agreements"]
    if agreements.empty:
        return []
    ceilings = frames["ceilings"].set_index("rating").to_dict("index")
    agreement, pairs = (folder / f"{name}.{format}" for name in FIGURES)
    panels: dict[str, dict[str, Interval]] = {}
    lines: dict[str, dict[str, float]] = {}
    for rating, rows in agreements.groupby("rating", sort=False):
        title = f"{rating} (n = {rows['n'].max()})"
        ordered = rows.sort_values("tau_b", ascending=False, kind="stable").to_dict("records")
        panels[title] = {row["metric"]: interval_in(row, "tau_b") for row in ordered}
        own = ceilings[rating]
        lines[title] = {
            "one rater against the others": interval_in(own, "against_others").estimate,
            "ceiling by ties": math.nan if own["ties"] is None else own["ties"],
        }
    note = "tau_b with the raters' mean; bars: 95 % bootstrap intervals over studies."
    note = note_with_mark(note, signatures.values())
    dot_plots(panels, agreement, title="Agreement with raters", lines=lines, note=note)
    first = next(iter(agreements["rating"]))
    metric, tau = next(iter(next(iter(panels.values())).items()))
    note = f"One dot a pair of candidate and reference; tau_b {interval(tau)}."
    note = note_with_mark(note, signatures.values())
    labels = (metric, f"raters' mean: {first}")
    x, y = (values[name].astype(float).tolist() for name in (metric, f"mean {first}"))
    scatter(x, y, pairs, title="Metric and raters", labels=labels, note=note)
    return [agreement, pairs]
