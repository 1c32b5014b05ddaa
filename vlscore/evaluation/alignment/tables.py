"""Tables and figures of an alignment."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vlscore.core import with_noun
from vlscore.evaluation.methods_text import cite, data, joined, on_intervals, on_metrics
from vlscore.metrics import named_as_in_papers
from vlscore.stats import (
    CORRELATIONS,
    Interval,
    Presentation,
    TextTable,
    crossed,
    dot_plots,
    interval,
    interval_cells,
    interval_in,
    scatter,
    text_table,
    with_demonstration,
)

if TYPE_CHECKING:
    from pandas import DataFrame

    from vlscore.stats import Result

Frames = Mapping[str, "DataFrame"]
_AGREEMENT = (
    "Larger is more agreement with the mean of the raters. 95 % bootstrap intervals over studies. "
    "Those of tau_b over pairs, as papers publish it, are too narrow where a study has several "
    "candidates. n: pairs with a value and a rating. result.json has every interval."
)
_DIFFERENCES = (
    "tau_b of the first metric less that of the other, on the n pairs that both have; 95 % "
    "bootstrap interval over studies. One of the two is the metric that agrees best. p: two-sided, "
    "adjusted over all pairs of metrics (Benjamini-Hochberg). result.json has every pair."
)
_FURTHER = "95 % bootstrap intervals over studies; n in parentheses."
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


# Printed columns of a frame -> their headings.
_AGREEMENT_COLUMNS = {"metric": "metric", "n": "n", "studies": "studies", "tau_b": "tau_b",
    "tau_c": "tau_c", "spearman": "Spearman", "pearson": "Pearson",
    "tau_b by pair": "tau_b by pair"}  # fmt: skip
_DIFFERENCE_COLUMNS = {"metric": "metric", "other": "other", "n": "n",
    "difference": "difference of tau_b", "adjusted_p": "p"}  # fmt: skip
_CEILING_COLUMNS = {"rating": "rating", "raters": "raters", "n": "n", "between": "between two",
    "against_others": "one against the others", "ties": "ties"}  # fmt: skip
_RANKING_COLUMNS = {"metric": "metric", "comparisons": "n", "studies": "studies", "same": "same",
    "right": "right", "decided": "n decided", "rater_ties": "rater ties",
    "metric_ties": "metric ties"}  # fmt: skip


def _tables(run: "Result") -> list[TextTable]:
    tables = alignment_tables(run.frames, run.record["ratings"])
    if "composite" in run.frames:
        # The answer to the command comes first.
        tables.insert(0, _composite_table(run.frames["composite"], run.key["fit"]))
    return [named_as_in_papers(table) for table in tables]


def _composite_table(fitted: "DataFrame", rating: str) -> TextTable:
    """Return the inputs of a composite, and its agreement with the raters."""
    caption = (
        f"tau_b with the raters' mean on the {fitted['n'][0]} pairs of {fitted['studies'][0]} "
        "studies that have all values, 95 % bootstrap intervals over studies. Cross-validated: for "
        "studies left out, by composites that were fitted to the others."
    )
    columns = ("metric", "weight", "tau_b", "n")
    return text_table(f"A composite fitted to {rating}", fitted, caption, columns=columns)


def alignment_tables(frames: Frames, main: Sequence[str]) -> list[TextTable]:
    """Return every table that has rows.

    Args:
        frames: of `compare_with_raters`.
        main: ratings that have tables of their own.
    """
    agreements = frames["agreements"]
    further = agreements[~agreements["rating"].isin(main)] if len(agreements) else agreements
    title = "tau_b with the raters' mean of further ratings"
    tables = [
        *(_agreement_table(frames, rating) for rating in main),
        text_table(title, _taus(further, "rating"), _FURTHER),
        *(difference_table(frames, rating) for rating in main),
        *(_rater_table(frames, rating) for rating in main),
        ceiling_table(frames["ceilings"]),
        *(_ranking_table(frames, rating) for rating in main),
    ]
    return [table for table in tables if table.rows]


def _of(frames: Frames, name: str, rating: str) -> "DataFrame":
    """Return the rows of a rating; of agreements, the best metric first, those without one last."""
    rows = frames[name]
    rows = rows[rows["rating"] == rating] if len(rows) else rows
    if name == "agreements" and len(rows):
        rows = rows.sort_values("tau_b", ascending=False, kind="stable")
    return rows


def _taus(rows: "DataFrame", column: str) -> "DataFrame":
    """Return a row a metric: tau_b with its interval and n under each value of a column."""
    if not len(rows):
        return rows
    n = rows["n"].astype(str)
    cells = [f"{tau} ({n})" for tau, n in zip(interval_cells(rows, "tau_b"), n, strict=True)]
    return crossed(rows.assign(cell=cells), "metric", column, "cell")


def _agreement_table(frames: Frames, rating: str) -> TextTable:
    """Return all correlations of every metric with the raters' mean of one rating."""
    rows = _of(frames, "agreements", rating)
    unprinted = {f"{c}.{end}" for c in CORRELATIONS if c != "tau_b" for end in ("low", "high")}
    rows = rows.drop(columns=list(unprinted & {*rows}))
    title = f"Agreement with raters: {rating}"
    return text_table(title, rows, _AGREEMENT, columns=_AGREEMENT_COLUMNS)


def difference_table(frames: Frames, rating: str) -> TextTable:
    """Return the differences between the metric that agrees best and each other one."""
    rows = _of(frames, "differences", rating)
    if len(rows):
        best = _of(frames, "agreements", rating)["metric"].iloc[0]
        rows = rows[(rows["metric"] == best) | (rows["other"] == best)]
    title = f"Differences between metrics: {rating}"
    return text_table(title, rows, _DIFFERENCES, columns=_DIFFERENCE_COLUMNS)


def _rater_table(frames: Frames, rating: str) -> TextTable:
    """Return tau_b of every metric with every rater, and the mean of these."""
    own = _of(frames, "raters", rating)
    rows = _taus(own, "rater")
    if len(own):
        rows.columns = ["metric", *(f"rater {rater} (n)" for rater in rows.columns[1:])]
        means = own.groupby("metric")["tau_b"].mean()
        rows.insert(1, "mean of raters", rows["metric"].map(means))
    return text_table(f"Agreement with single raters: {rating}", rows, _RATERS)


def _ranking_table(frames: Frames, rating: str) -> TextTable:
    """Return how often metric and rater rank two candidates alike."""
    title = f"Ranking two candidates of a study: {rating}"
    rows = _of(frames, "rankings", rating)
    return text_table(title, rows, _RANKINGS, columns=_RANKING_COLUMNS)


def ceiling_table(ceilings: "DataFrame") -> TextTable:
    """Return the agreement of the raters with each other."""
    title = "The raters' own agreement"
    return text_table(title, ceilings, _CEILINGS, columns=_CEILING_COLUMNS)


VALUES = "values.csv"
#: Names of the figures, without suffix.
FIGURES = ("agreement", "pairs")


def draw_alignment(run: "Result", format: str, columns: Sequence[str] = ()) -> list[Path]:
    """Draw tau_b of every metric, and the best metric against the raters; return the paths.

    A panel a rating; dashed lines are what raters reach themselves, and what values without ties
    can reach. Nothing is drawn of ranks.

    Raises: MissingDependency where matplotlib is not installed.
    """
    frames, values, signatures = run.frames, run.rows(VALUES), run.signatures
    agreements = frames["agreements"]
    if agreements.empty:
        return []
    ceilings = frames["ceilings"].set_index("rating").to_dict("index")
    agreement, pairs = (run.folder / f"{name}.{format}" for name in FIGURES)
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
    note = with_demonstration(note, signatures.values())
    dot_plots(panels, agreement, title="Agreement with raters", lines=lines, note=note)
    first = next(iter(agreements["rating"]))
    metric, tau = next(iter(next(iter(panels.values())).items()))
    note = f"One dot a pair of candidate and reference; tau_b {interval(tau)}."
    note = with_demonstration(note, signatures.values())
    labels = (metric, f"raters' mean: {first}")
    x, y = (values[name].astype(float).tolist() for name in (metric, f"mean {first}"))
    scatter(x, y, pairs, title="Metric and raters", labels=labels, note=note)
    return [agreement, pairs]


def paragraph(result: "Result") -> str:
    """Return the paragraph of a methods section on an alignment."""
    record = result.record
    parts = [
        f"We compared metrics with {with_noun(len(record['raters']), 'rater')} on "
        f"{with_noun(record['pairs'], 'pair')} of candidate and reference from "
        f"{with_noun(record['studies'], 'study')} with vlscore "
        f"{data(record['vlscore'])}.",
        *on_metrics(result),
        "Agreement is Kendall's tau_b with the raters' mean.",
        on_intervals(result.key["resamples"], None),
        "p values of differences between metrics were adjusted "
        f"{cite('false-discovery-rate')} over all pairs of metrics.",
        f"The seed was {data(result.key['seed'])}.",
    ]
    return joined(parts)


PRESENTATION = Presentation(
    _tables, draw_alignment, paragraph, "vlscore.pages.command_views:align_view"
)
