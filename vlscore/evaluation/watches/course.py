"""Course of what is watched over the days of one reference period: evidence, alarm, means."""

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.evaluation.watches.day_store import FINDINGS, StoredDay, Stream
from vlscore.evaluation.watches.watch_settings import WatchSettings
from vlscore.stats import (
    Interval,
    evidence_of_change,
    mean_of_sums,
    most_likely_begin,
    number,
    paired_sums,
    sequential_p_values,
)

_SATURDAY = 5
# Streams that a line names.
_NAMED = 3


class Course:
    """Days in the order in which they were added.

    Attributes:
        days, settings: of the reference period and all later days.
        streams: what is watched.
        reference: number of days in the reference period; None while it lasts.
        evidence: (days, streams), times the weight of the stream; 0 in the reference period.
        better: the same for changes to the better, of which no alarm is given.
        alarm: first day, from 0, on which one evidence reaches the threshold; None without one.
    """

    def __init__(self, days: Sequence[StoredDay]) -> None:
        self.days = list(days)
        self.settings = WatchSettings(**days[0].key["settings"])
        self.streams = [Stream(*each) for each in days[0].key["streams"]]
        sums = [[day.streams[stream.name] for stream in self.streams] for day in days]
        self._counts, self._sums = np.moveaxis(np.array(sums, float), 2, 0)
        reports = np.array([day.reports for day in days])
        ended = (np.cumsum(reports > 0) >= self.settings.reference_days) & (
            np.cumsum(reports) >= self.settings.reference_reports
        )
        self.reference = int(np.argmax(ended)) + 1 if ended.any() else None
        self._start = len(days) if self.reference is None else self.reference
        is_weekend = [date.fromisoformat(day.day).weekday() >= _SATURDAY for day in days]
        kinds = [str(each and not self.settings.weekends_alike) for each in is_weekend]
        self._p = sequential_p_values(self._counts, self._sums, kinds, self.settings.seed)
        directions = np.array([stream.direction for stream in self.streams])
        self._weights = self._weights_of_streams()
        self.evidence, self.better = (np.zeros(self._p.shape) for _ in range(2))
        for found, sign in ((self.evidence, 1), (self.better, -1)):
            own = evidence_of_change(self._p[self._start :], (sign * directions).tolist())
            found[self._start :] = own * self._weights
        self.better[:, directions == 0] = 0
        reached = np.flatnonzero(self.evidence.max(axis=1) >= self.settings.threshold)
        self.alarm = int(reached[0]) if len(reached) else None

    def _weights_of_streams(self) -> NDArray[np.float64]:
        """Return equal weights of groups, and of the streams of a group, with the sum 1.

        A stream without values in the reference period has the weight 0.
        """
        has = self._counts[: self._start].sum(axis=0) > 0
        groups = [
            stream.group if own else "" for stream, own in zip(self.streams, has, strict=True)
        ]
        names = set(groups) - {""}
        return np.array([1 / (len(names) * groups.count(g)) if g else 0.0 for g in groups])

    def changes(self, day: int, *, to_better: bool = False) -> dict[int, int]:
        """Return the streams whose evidence reaches the threshold on a day, the largest first.

        Returns: number of a stream -> the day on which its change most likely began.
        """
        evidence = (self.better if to_better else self.evidence)[day]
        found = {}
        for k in np.argsort(-evidence, kind="stable").tolist():
            if evidence[k] < self.settings.threshold:
                break
            direction = self.streams[k].direction * (-1 if to_better else 1)
            known = self._p[self._start : day + 1, k]
            found[k] = self._start + most_likely_begin(known, direction)
        return found

    def _sentence(self, k: int, began: int, day: int) -> str:
        """Return how the mean of a stream has changed, since a day, up to another."""
        name, group, _ = self.streams[k]
        if group == FINDINGS:
            name = f"share of reports that state {name}"
        before, since = (self._mean(r, k) for r in (slice(began), slice(began, day + 1)))
        went = "rose" if since > before else "fell"
        means = f"{number(before)} to {number(since)}"
        return f"{name} {went} from {means}, since about {self.days[began].day}"

    def line(self) -> str:
        """Return the state after the last day, in one line for a log."""
        day, settings = self.days[-1].day, self.settings
        if self.alarm is not None:
            on, found = self.days[self.alarm].day, list(self.changes(self.alarm).items())
            more = [f"and {len(found) - _NAMED} more"] if len(found) > _NAMED else []
            since = "" if on == day else f" since {on}"
            named = [self._sentence(*each, self.alarm) for each in found[:_NAMED]]
            return f"{day}: ALARM{since}: " + "; ".join([*named, *more])
        if self.reference is None:
            return (
                f"{day}: reference period, {sum(each.reports > 0 for each in self.days)} of "
                f"{settings.reference_days} days, {sum(each.reports for each in self.days)} of at "
                f"least {settings.reference_reports} reports"
            )
        return (
            f"{day}: no alarm; evidence {self.evidence[-1].max():,.1f}, an alarm is given at "
            f"{settings.threshold:,.0f}"
        )

    def _mean(self, rows: Any, stream: int) -> float:
        count = self._counts[rows, stream].sum()
        return float(self._sums[rows, stream].sum() / count) if count else np.nan

    def interval(self, rows: Any, stream: int) -> Interval:
        """Return a stream's mean over some days, with its 95 % interval over days."""
        own = np.stack([self._sums[rows, stream], self._counts[rows, stream]], axis=1)
        own = own[own[:, 1] > 0]
        if not len(own):
            return Interval(np.nan, np.nan, np.nan)
        return paired_sums(own[None], permutations=1).value(0, mean_of_sums)

    def stream_rows(self) -> list[dict[str, Any]]:
        """Return a record for each stream: means of the reference period and lately, evidence."""
        last = len(self.days) - 1
        lately = slice(max(self._start, len(self.days) - self.settings.reference_days), None)
        began = [("better", self.changes(last, to_better=True))]
        if self.alarm is not None:
            began += [("ALARM", self.changes(day)) for day in (last, self.alarm)]
        states = {k: f"{what}, {self.days[d].day}" for what, of in began for k, d in of.items()}
        return [
            {
                "stream": stream.name,
                "group": stream.group,
                "alarm_if": {1: "rises", -1: "falls", 0: "changes"}[stream.direction],
                "reference": self.interval(slice(self._start), k),
                "lately": self.interval(lately, k),
                "weight": self._weights[k],
                "evidence": self.evidence[-1, k],
                "state": states.get(k, "" if self._weights[k] else "not watched"),
            }
            for k, stream in enumerate(self.streams)
        ]

    def month_rows(self) -> list[dict[str, Any]]:
        """Return a record for each month and stream."""
        months = np.array([day.day[:7] for day in self.days])
        return [
            {"month": str(month), "stream": stream.name, "mean": self.interval(months == month, k)}
            for month in np.unique(months)
            for k, stream in enumerate(self.streams)
        ]

    def day_rows(self) -> list[dict[str, Any]]:
        """Return a record for each day, with the mean of each stream."""
        return [
            {
                "day": day.day,
                "period": day.period,
                "reports": day.reports,
                "references": day.references,
                "failed": len(day.failures),
                "in_reference": place < self._start,
                "evidence": self.evidence[place].max(),
                "alarm": self.alarm is not None and place >= self.alarm,
                **{
                    s.name: self._mean(slice(place, place + 1), k)
                    for k, s in enumerate(self.streams)
                },
            }
            for place, day in enumerate(self.days)
        ]
