"""The summary of a run as text to read and to paste, within 80 columns."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from vlscore.evaluation import Summary
from vlscore.evaluation.rows import ERROR, ID, ROW
from vlscore.scorer.geometry import FLAGS, NUMBERS
from vlscore.stats import Interval

_SHOWN_NUMBERS = ("area", "foot")


def run_text(summary: Summary) -> str:
    """Every number with its interval and its n, then what else to know, then the signatures."""
    rows = [("metric", "mean", "95 % interval", "median", "n")]
    for name, metric in summary.metrics.items():
        for column, value in metric.values.items():
            better = "" if value.higher_is_better else " (lower is better)"
            rows.append(
                (
                    column + better,
                    _number(value.mean),
                    _interval(value.mean),
                    _number(value.median),
                    str(value.scored),
                )
            )
        for which, interval in metric.corpus.items():
            shown = f"{name} {which}" if which == "corpus" else f"{name} {which} (corpus)"
            rows.append((shown, _number(interval), _interval(interval), "", str(metric.scored)))
    lines = _aligned(rows)
    lines.append("")
    lines += [f"{name}: {value}" for name, value in _facts(summary).items()]
    lines.append("")
    lines += [str(metric.signature) for metric in summary.metrics.values()]
    return "\n".join(lines)


def scores_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The values of single studies: id, every metric, area and foot, and whether a text was cut."""
    table = Table(show_edge=False)
    table.add_column("study", no_wrap=True)
    first = rows[0] if rows else {}
    metrics = [n for n in first if n not in (ROW, ID, ERROR, *NUMBERS, *FLAGS)]
    numbers = [*metrics, *(name for name in _SHOWN_NUMBERS if name in first)]
    for name in numbers:
        table.add_column(name, justify="right")
    table.add_column("")
    for row in rows:
        cut = [name.partition("_")[0] for name in FLAGS if row.get(name)]
        remark = row[ERROR] or (f"truncated: {', '.join(cut)}" if cut else "")
        values = ["-" if row[name] is None else f"{row[name]:.4f}" for name in numbers]
        table.add_row(row["id"], *values, remark)
    return table


def _facts(summary: Summary) -> dict[str, str]:
    facts = {"rows": f"{summary.scored} of {summary.rows} have every value"}
    counted = {
        "candidates truncated": summary.candidates_truncated,
        "references truncated": summary.references_truncated,
        "foot far from the reference": summary.foot_far_outside,
    }
    facts |= {name: str(count) for name, count in counted.items() if count is not None}
    said = {
        "empty candidates, scored as they are": summary.empty_candidates,
        'candidates that say "nan", "None" or the like': summary.candidates_say_missing,
        'references that say "nan", "None" or the like': summary.references_say_missing,
        "studies whose frontal view is a guess": summary.views_guessed,
    }
    facts |= {name: str(count) for name, count in said.items() if count}
    if summary.common is not None:
        means = ", ".join(f"{name} {mean:.4f}" for name, mean in summary.common.items())
        facts[f"means over the {summary.scored} rows that every metric has"] = means
    return facts


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  ".join(
            f"{cell:<{w}}" if k == 0 else f"{cell:>{w}}"
            for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _number(value: Interval | None) -> str:
    return "-" if value is None else f"{value.estimate:.4f}"


def _interval(value: Interval | None) -> str:
    return "" if value is None else f"[{value.low:.4f}, {value.high:.4f}]"
