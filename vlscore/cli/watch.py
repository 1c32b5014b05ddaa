"""`vlscore watch`: monitor a generator in daily use."""

import dataclasses
from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from vlscore.cli.output import RESULTS, OutputOptions, echo, print_encoder_warning, show
from vlscore.cli.progress import row_progress
from vlscore.cli.shared import EncoderOptions, Names, TableOptions, options, worker_count
from vlscore.errors import InvalidSetting
from vlscore.evaluation import WatchSettings

WATCH = Group("Comparison", sort_key=1)
#: Exit status after an alarm.
ALARM = 3


def watch(
    *today: str,
    out: Annotated[Path, Parameter(help="Folder of all days and of the results.", group=RESULTS)],
    metrics: Names = ("judge",),
    evidence: Path | None = None,
    keep: Names = (),
    restart: bool = False,
    settings: Annotated[
        WatchSettings, options(WATCH, without=("reference_reports", "weekends_alike"))
    ] = WatchSettings(),
    table: Annotated[TableOptions, options(without=("limit",))] = TableOptions(),
    encoding: EncoderOptions = EncoderOptions(),
    output: OutputOptions = OutputOptions(),
) -> None:
    """Monitor a generator: compare today's reports with earlier ones.

    Scores the reports of a table, or of a folder of DICOM and text files, with or without
    references. Stores the values, without ids and texts, and tests whether the share of a finding,
    an error or a score has changed since the reference period. The probability of any false alarm
    in a year without a change is at most --rate, however often you look.

    The last line sums up the last day. The exit status is 3 after an alarm, until --restart; else 1
    if rows could not be used, 2 after an error, and 0 otherwise.

    After a kill, give the same command again: no day is lost, and none counts twice. --overwrite
    replaces a stored day.

    Example: vlscore watch 2026-03-01.csv --out watched

    Args:
        today: Table or folder whose name begins with its date, or DAY=PATH, as in
            2026-03-01=today.csv; several, one for each day, to start with earlier days. Without
            one, the present state is shown.
        metrics: Metrics with commas between them, as in judge,clipscore. A report has a value only
            if it has the reference or image that the metric needs. Default: judge.
        evidence: evidence.npz of `vlscore claims --fit`: also monitor the share of claims that the
            image contradicts.
        keep: Columns of the table to store with the values, such as id. By default the store names
            no patient.
        restart: Begin a new reference period with this day, for example after an alarm, or with
            another encoder, option or version.
    """
    from vlscore.evaluation import watch as run

    if not today and (output.overwrite or restart):
        raise InvalidSetting("--overwrite and --restart are for a day: name its table or folder")
    scorer = encoding.scorer(metrics) if today else None
    embedder = None if scorer is None else scorer.embedder
    if evidence is not None and today and embedder is None:
        embedder = encoding.embedder()
    with row_progress(None, quiet=output.is_silent, embedder=embedder, out=out) as on_progress:
        result = run(
            today,
            out,
            scorer,
            settings=settings,
            evidence=evidence,
            embedder=embedder,
            keep=keep,
            columns=table.columns(),
            image_root=table.image_root,
            overwrite=output.overwrite,
            restart=restart,
            workers=worker_count(encoding.workers),
            on_progress=on_progress,
        )
    print_encoder_warning(embedder)
    show(
        result,
        dataclasses.replace(output, keep_going=True),
        "rows lack a value",
        "row lacks a value",
    )
    if not output.as_json:
        echo(result.record["line"])
    if result.record["alarm"]:
        raise SystemExit(ALARM)
    if result.failures and not output.keep_going:
        raise SystemExit(1)
