"""Watch over a report generator in daily use: today's reports, and the course of all days."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date, timedelta
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from vlscore.core import (
    OnProgress,
    checked_arguments,
    frame,
    key_difference,
    no_progress,
    sole_writer,
    with_noun,
)
from vlscore.data import ColumnNames
from vlscore.errors import Failure, InvalidSetting
from vlscore.evaluation.comparison.sources import split_name
from vlscore.evaluation.watches.course import Course
from vlscore.evaluation.watches.day_scoring import Watcher, digest_of
from vlscore.evaluation.watches.day_store import DAYS, StoredDay, day_of, read_days, write_day
from vlscore.evaluation.watches.watch_settings import WatchSettings
from vlscore.metrics import Scorer
from vlscore.stats import Content, Presentation, Result, TextTable, crossed, number, text_table

if TYPE_CHECKING:
    from vlscore.embedding import StudyEmbedder

_WORK = ".scoring-"
# Months of a printed table; missing days of a note; evidence beyond which no number is printed.
_MONTHS, _MISSING, _LARGE = 6, 5, 1_000_000
_CAPTION = (
    "Means over reports; lately: over the last days after the reference period, as many as it has. "
    "An alarm is given where an error rises, a score gets worse, or the share of the generated "
    "reports that state a finding changes, and the evidence reaches {threshold:,.0f}. The "
    "probability of any false alarm in a quiet year of daily looks is at most {rate:g}. "
    "Values that were always 0 are left out. result.json has intervals over days."
)


@checked_arguments
def watch(
    days: Sequence[str | Path],
    out: str | Path,
    scorer: Scorer | None = None,
    *,
    settings: WatchSettings | None = None,
    evidence: str | Path | None = None,
    embedder: "StudyEmbedder | None" = None,
    keep: Sequence[str] = (),
    columns: ColumnNames | Mapping[str, str] | None = None,
    image_root: str | Path | None = None,
    overwrite: bool = False,
    restart: bool = False,
    workers: int = 0,
    on_progress: OnProgress = no_progress,
) -> Result:
    """Score the reports of a day, add them to a store, and compare them with the days before.

    A day is added at once, or not at all; one that the store holds with the same content is not
    scored again. So a call that was killed is repeated as it was.

    Args:
        days: tables of studies, or folders of DICOM and text files, one a day. The name begins with
            the day, as in 2026-03-01.csv; or write "2026-03-01=today.csv". A table without rows, or
            an empty folder, is a day without reports. With none, the stored days are compared.
        out: folder of all days, the store, and of the results.
        scorer: metrics and encoder; default: the judge by rules. A metric that needs a reference or
            an image has a value only where there is one.
        settings: reference period, rate of false alarms.
        evidence: evidence.npz of `claims`: the share of claims that the image contradicts is
            watched, too.
        embedder: encoder of the evidence; default: that of the scorer.
        keep: columns of the tables to store with the values, such as their ids. By default nothing
            in the store names a patient.
        columns, image_root: of the tables, as of `evaluate`.
        overwrite: replace a day that is in the store.
        restart: begin a new reference period with the first of `days`; earlier days stay.
        workers: processes that decode images.
        on_progress: called with (rows of a day done, rows failed).

    Returns: the result in `out`, with the frames "days", "streams" (means of the reference
        period and lately, evidence, state) and "months". Its record has "alarm" and "line".
        `watched_rows` returns the values of all reports.
    Raises: InvalidSetting where a day is in the store with other content, or the scorer, the
        encoder or the settings are not those of the days before; InvalidTable where a table cannot
        be read; FolderInUse. A row that cannot be used is in `failures`.
    """
    place, inputs = Path(out), _inputs(days)
    is_store = (place / DAYS).is_dir() or not place.is_dir()
    if foreign := [] if is_store else [p.name for p in place.iterdir() if p.name[0] != "."]:
        raise InvalidSetting(
            f"{out} is no store of a watch, for it holds {min(foreign)}; name another folder"
        )
    notes: list[str] = []
    known: dict[str, StoredDay] = {}
    if inputs:
        watcher = Watcher(
            scorer if scorer is not None else Scorer(metrics="judge"),
            settings or WatchSettings(),
            None if evidence is None else Path(evidence),
            embedder,
            ColumnNames.named(columns),
            None if image_root is None else Path(image_root),
            tuple(keep),
            workers,
            on_progress,
        )
        with sole_writer(place / DAYS):
            for leftover in place.glob(f"{_WORK}*"):
                shutil.rmtree(leftover, ignore_errors=True)
            known = {day.day: day for day in read_days(place)}
            for count, (day, path) in enumerate(inputs.items()):
                with TemporaryDirectory(prefix=_WORK, dir=place) as work:
                    notes += _add(
                        day, path, Path(work), watcher, known,
                        overwrite=overwrite, restart=restart and count == 0,
                    )  # fmt: skip
    else:
        known = {day.day: day for day in read_days(place)}
    if not known:
        raise InvalidSetting(f"{out} holds no day yet: name today's table or folder")
    found = sorted(known.values(), key=lambda day: day.number)
    key = {"command": "watch", "days": [[day.day, day.digest, day.period] for day in found]}
    return Result.make(place, key, lambda _: _content(found, inputs), overwrite=True, notes=notes)


def _inputs(days: Sequence[str | Path]) -> dict[str, Path]:
    """Return day -> table or folder, the earliest first."""
    found = sorted((day_of(path, day), path) for day, path in map(split_name, days))
    if len(dict(found)) < len(found):
        raise InvalidSetting("two tables are of one day: join them, or name the right days")
    return dict(found)


def _add(
    day: str,
    path: Path,
    work: Path,
    watcher: Watcher,
    known: dict[str, StoredDay],
    *,
    overwrite: bool,
    restart: bool,
) -> list[str]:
    """Score a day and add it to the store, unless it is there; return notes for the user.

    Args: work: empty folder in the store; known: the days of the store, to which it is added.
    """
    table = watcher.open(path, work)
    digest, old = digest_of(table), known.get(day)
    if (
        old is not None
        and restart
        and any(each.period == old.period and each.number < old.number for each in known.values())
    ):
        raise InvalidSetting(
            f"{day} is in the store, and a new reference period begins with a new day: give "
            "--restart with the next one"
        )
    if old is not None and not overwrite:
        if old.digest == digest:
            return [_stored_note(old, watcher.key, known)]
        if old.reports:
            raise InvalidSetting(
                f"{day} is in the store with other content ({old.reports} reports). If this is a "
                "correction, give --overwrite, and the course is computed again; if it is another "
                "day, write DAY=TABLE"
            )
    last = max(known.values(), key=lambda each: each.number, default=None)
    place = old.number if old else last.number + 1 if last else 1
    period = old.period if old else last.period + restart if last else 1
    key = watcher.key
    for other in [each for each in known.values() if each.day != day]:
        if table is not None and other.digest == digest:
            raise InvalidSetting(
                f"{day} has the same reports as {other.day}, which is in the store: give the right "
                "table, or name the right day"
            )
        if other.period == period and other.key != key:
            raise InvalidSetting(
                f"{day} would be scored otherwise than {other.day}, and such days are not "
                f"compared: {key_difference(other.key, key)}. Give the options, weights and "
                "version of vlscore that scored the days before; or --restart, which begins a new "
                "reference period with this day"
            )
    rows, references, failures = watcher.score(table, work)
    sums = {
        name: [float(rows[name].count()), float(rows[name].sum())] if name in rows else [0.0, 0.0]
        for name, *_ in key["streams"]
    }
    known[day] = StoredDay(day, place, period, key, digest, len(rows), references, sums, failures)
    write_day(work.parent, known[day], rows)
    notes = [f"{day} has no reports"] if table is None else []
    if old is not None:
        notes.append(f"{day} was replaced; the course was computed again")
    elif last is not None and last.day > day:
        notes.append(f"{day} was added after {last.day}, and is compared as the latest day")
    return notes


def _stored_note(old: StoredDay, key: Mapping[str, Any], known: Mapping[str, StoredDay]) -> str:
    """Return a note on a day that is there; in this reference period also on other settings."""
    note = f"{old.day} is in the store with the same content; nothing was scored"
    if old.key == key or old.period < max(day.period for day in known.values()):
        return note
    return f"{note}, although this call would score otherwise: {key_difference(old.key, key)}"


def _content(days: Sequence[StoredDay], inputs: Mapping[str, Path]) -> Content:
    """Return the course of all days; alarm, streams and months are of the last period."""
    courses = [Course(list(own)) for _, own in groupby(days, key=lambda day: day.period)]
    last = courses[-1]
    rows = sorted((row for each in courses for row in each.day_rows()), key=lambda row: row["day"])
    frames = {"days": rows, "streams": last.stream_rows(), "months": last.month_rows()}
    return Content(
        {name: frame(each) for name, each in frames.items()},
        failures=[
            Failure(day.day, row, reason)
            for day in days
            if day.day in inputs
            for row, reason in day.failures
        ],
        signatures=last.days[0].key["metrics"],
        notes=_missing({day.day for day in last.days}),
        facts={
            "line": last.line(),
            "alarm": last.alarm is not None,
            "settings": asdict(last.settings),
            "threshold": last.settings.threshold,
            "reports": sum(day.reports for day in days),
        },
    )


def _tables(run: Result) -> list[TextTable]:
    """Return the streams, those with the largest evidence first, and the means by month."""
    streams, months = run.frame("streams"), run.frame("months")
    shown = streams[(streams["reference"] != 0) | (streams["lately"] > 0)]
    shown = shown.sort_values("evidence", ascending=False, kind="stable")
    large = [f"{each:,.1f}" if each < _LARGE else f"> {_LARGE:,}" for each in shown["evidence"]]
    rows = shown[["stream", "reference", "lately", "state"]].assign(evidence=large)
    caption = _CAPTION.format(
        threshold=run.record["threshold"], rate=run.record["settings"]["rate"]
    )
    heads = ("stream", "reference", "lately", "evidence", "state")
    months = months.assign(cell=[number(mean) for mean in months["mean"]])
    wide = crossed(months, "stream", "month", "cell")
    names = ["stream", *sorted(months["month"].unique())[-_MONTHS:]]
    return [
        text_table("Reference period and lately", rows, caption, columns=heads),
        text_table("By month", wide, columns=names),
    ]


def _missing(known: set[str]) -> list[str]:
    """Return a note on days between the first and the last one that are not in the store."""
    first, last = (date.fromisoformat(pick(known)) for pick in (min, max))
    between = [(first + timedelta(k)).isoformat() for k in range((last - first).days)]
    missing = [day for day in between if day not in known]
    if not missing:
        return []
    lately = ", ".join(missing[-_MISSING:])
    return [f"{with_noun(len(missing), 'day')} since {first} not in the store, lately {lately}"]


PRESENTATION = Presentation(_tables, page="vlscore.pages.watch_view:watch_view")
