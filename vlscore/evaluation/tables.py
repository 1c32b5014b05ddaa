"""The summary of a run as tables to read and to paste."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from vlscore.display import TextTable, number
from vlscore.evaluation.rows import ERROR, ID, ROW
from vlscore.evaluation.summary import Summary
from vlscore.scorer.geometry import FLAGS, NUMBERS
from vlscore.scorer.running import corpus_name
from vlscore.stats import Interval

_SHOWN_NUMBERS = ("area", "foot")


def summary_table(summary: Summary) -> TextTable:
    """Every number with its interval and its n."""
    rows = []
    for name, metric in summary.metrics.items():
        for column, value in metric.values.items():
            better = "" if value.higher_is_better else " (lower is better)"
            median = value.median.estimate if value.median is not None else None
            shown = (*_cells(value.mean), number(median, 4), str(value.scored))
            rows.append((column + better, *shown))
        for which, interval in metric.corpus.items():
            rows.append((corpus_name(name, which), *_cells(interval), "", str(metric.scored)))
    return TextTable("", ("metric", "mean", "95 % interval", "median", "n"), tuple(rows))


def summary_text(summary: Summary, width: int = 80) -> str:
    """The table, what else to know of the run, and the signatures."""
    facts = [f"{name}: {value}" for name, value in _facts(summary).items()]
    signatures = [str(metric.signature) for metric in summary.metrics.values()]
    return "\n".join([summary_table(summary).text(width), "", *facts, "", *signatures])


def scores_table(rows: Sequence[Mapping[str, Any]]) -> TextTable:
    """The values of single studies: id, every metric, area and foot, and whether a text was cut."""
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
    said = {
        "empty candidates, scored as they are": summary.empty_candidates,
        'candidates that say "nan", "None" or the like': summary.candidates_say_missing,
        'references that say "nan", "None" or the like': summary.references_say_missing,
        "studies whose frontal view is a guess": summary.views_guessed,
    }
    facts |= {name: str(count) for name, count in said.items() if count}
    if summary.common is not None:
        means = ", ".join(f"{name} {number(mean, 4)}" for name, mean in summary.common.items())
        facts[f"means over the {summary.scored} rows that every metric has"] = means
    return facts


def _cells(value: Interval | None) -> tuple[str, str]:
    if value is None:
        return "-", ""
    has_interval = math.isfinite(value.low)
    shown = f"[{value.low:.4f}, {value.high:.4f}]" if has_interval else ""
    return number(value.estimate, 4), shown
