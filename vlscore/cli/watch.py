"""`vlscore watch`: today's reports of a generator in daily use, and the course of all days."""

import dataclasses
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from vlscore.cli.output import echo, print_encoder_warning, show
from vlscore.cli.progress import cache_hits, row_progress
from vlscore.cli.shared import (
    RESULTS,
    EncoderOptions,
    Names,
    OutputOptions,
    TableOptions,
    options,
)
from vlscore.errors import InvalidSetting
from vlscore.evaluation import WatchSettings

WATCH = Group("Comparison", sort_key=1)
ALARM = 3


def watch(
    *today: Path,
    store: Annotated[Path, Parameter(group=RESULTS)],
    day: str | None = None,
    metrics: Names = ("judge",),
    evidence: Path | None = None,
    keep: Names = (),
    replace: bool = False,
    restart: bool = False,
    settings: Annotated[WatchSettings, options(WATCH)] = WatchSettings(),
    table: Annotated[TableOptions, options(without=("limit",))] = TableOptions(),
    encoding: EncoderOptions = EncoderOptions(),
    output: Annotated[OutputOptions, options(without=("overwrite",))] = OutputOptions(),
) -> None:
    """Compare today's reports of a generator with those of the past.

    Scores the reports of a table, or of a folder of DICOM and text files, with references or
    without. Stores the values, without ids and texts, and tests whether the share of a finding, an
    error or a score has changed since the reference period. The probability of a false alarm in a
    quiet year is at most --false-alarms, however often you look and however many values are
    watched.

    Prints one line on the last day. The exit status is 3 after an alarm, until --restart; else 1
    where rows could not be used, 2 for a mistake, 0.

    A command that was killed is given again as it was: no day is lost, and none counts twice.

    Example: vlscore watch 2026-03-01.csv --store watched

    Args:
        today: Table, or folder; several, one a day, to begin with the past. Without one, the course
            of the store is shown.
        store: Folder of all days and of the results.
        day: Day of the reports, as in 2026-03-01. Default: the date at the beginning of the name of
            the table or folder.
        metrics: Metrics with commas between them, as in judge,clipscore, or my.py:METRIC. One that
            needs a reference or an image has a value only where there is one. Default: judge.
        evidence: evidence.npz of `vlscore claims --fit`: the share of claims that the image
            contradicts is watched, too.
        keep: Columns of the table to store with the values, such as id. By default the store names
            no patient.
        replace: Replace a day that is in the store with other content.
        restart: Begin a new reference period with this day: after an alarm that has been looked
            into, another encoder, other options, another version.
    """
    from vlscore.evaluation import watch as run

    if day is not None and len(today) != 1:
        raise InvalidSetting("--day names the day of one table or folder")
    if not today and (replace or restart):
        raise InvalidSetting("--replace and --restart are for a day: name its table or folder")
    scorer = encoding.scorer(metrics) if today else None
    embedder = None if scorer is None else scorer.embedder
    if evidence is not None and today and embedder is None:
        embedder = encoding.embedder()
    with row_progress(None, quiet=output.is_silent, also=cache_hits(embedder)) as on_progress:
        result = run(
            today if day is None else {day: today[0]},
            store,
            scorer,
            settings=settings,
            evidence=evidence,
            embedder=embedder,
            keep=keep,
            columns=table.columns(),
            image_root=table.image_root,
            replace=replace,
            restart=restart,
            workers=encoding.decoders(),
            on_progress=on_progress,
        )
    print_encoder_warning(embedder)
    show(result, dataclasses.replace(output, keep_going=True), "rows lack a value")
    if not output.as_json:
        echo(result.record["line"])
    if result.record["alarm"]:
        raise SystemExit(ALARM)
    if result.failures and not output.keep_going:
        raise SystemExit(1)
