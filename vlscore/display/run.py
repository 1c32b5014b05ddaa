"""The summary of a run as a table to read and to paste."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from vlscore.evaluation import Summary
from vlscore.stats import Interval


def run_table(summary: Summary) -> Table:
    """One row a number."""
    table = Table(show_header=False)
    table.add_column("quantity", no_wrap=True)
    table.add_column("value", justify="right")
    table.add_row("studies scored", f"{summary.scored} of {summary.rows}")
    table.add_row("mean score", _interval(summary.mean))
    table.add_row("median score", _interval(summary.median))
    table.add_row("failed", str(summary.failed))
    table.add_row("candidates truncated", str(summary.candidates_truncated))
    table.add_row("references truncated", str(summary.references_truncated))
    table.add_row("foot far from the reference", str(summary.foot_far_outside))
    return table


def _interval(value: Interval | None) -> str:
    if value is None:
        return "-"
    return f"{value.estimate:.4f}  [{value.low:.4f}, {value.high:.4f}]"


def scores_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The scores of single studies: id, score, area, foot, and whether a text was cut."""
    table = Table(show_edge=False)
    table.add_column("study", no_wrap=True)
    for name in ("score", "area", "foot"):
        table.add_column(name, justify="right")
    table.add_column("truncated")
    for row in rows:
        cut = [name for name in ("candidate", "reference") if row[f"{name}_truncated"]]
        table.add_row(
            row["id"],
            f"{row['score']:.4f}",
            f"{row['area']:.4g}",
            f"{row['foot']:.3f}",
            ", ".join(cut),
        )
    return table
