"""View of a watch: the evidence for a change, and each value by day; no single report."""

from datetime import date
from math import log10
from typing import Any

from vlscore.core import with_noun
from vlscore.pages.page_parts import Curves, RunView
from vlscore.pages.view_parts import PageOptions
from vlscore.stats import Result

# Days over which a value is averaged in its chart.
_WEEK = 7


def watch_view(run: Result, options: PageOptions, view: RunView) -> None:
    """Fill the view of a watch."""
    days, streams = run.frame("days"), run.frame("streams")
    view.lead = (
        f"{run.record['line']}. {with_noun(len(days), 'day')}, "
        f"{with_noun(run.record['reports'], 'report')}."
    )
    view.answer = run.tables[0]
    x = [date.fromisoformat(day).toordinal() for day in days["day"]]
    alarms = [day for day, alarm in zip(x, days["alarm"], strict=True) if alarm]
    alarm = min(alarms) if alarms else None
    compared = ~days["in_reference"].to_numpy(bool)
    evidence: Any = [
        log10(max(each, 1)) if own else None
        for each, own in zip(days["evidence"], compared, strict=True)
    ]
    limit: Any = [log10(run.record["threshold"])] * len(x)
    series: list[tuple[str, Any, Any]] = [("evidence", x, evidence), ("alarm", x, limit)]
    view.curves.append(
        Curves("Evidence for a change: powers of 10", "", series, alarm, "alarm", True)
    )
    for row in streams.sort_values("evidence", ascending=False, kind="stable").to_dict("records"):
        values = days[row["stream"]].astype(float)
        if not values.fillna(0).any():
            continue
        means = values.rolling(_WEEK, min_periods=1).mean()
        reference = [row["reference"]] * len(x)
        series = [(f"mean of {_WEEK} days", x, means.tolist()), ("reference", x, reference)]
        own_alarm = alarm if row["state"].startswith("ALARM") else None
        view.curves.append(Curves(row["stream"], "", series, own_alarm, "alarm", True))
