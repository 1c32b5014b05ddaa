"""`vlscore audit`: altered films for a generator, and the analysis of its reports of them."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.types import NonNegativeInt

from vlscore.cli.output import OutputOptions, echo, print_failures, print_notes, show
from vlscore.cli.progress import row_progress
from vlscore.cli.shared import (
    READING,
    Figure,
    Names,
    Out,
    Seed,
    Table,
    TableOptions,
    options,
    renamed,
    worker_count,
)
from vlscore.evaluation import AuditSettings

audit = App(
    name="audit",
    group_commands="Commands",
    help="Test whether a generator uses the film, by altering films.",
)


@audit.command
def make(
    studies: Table,
    /,
    *,
    out: Out,
    settings: Annotated[AuditSettings, options()] = AuditSettings(),
    table: TableOptions = TableOptions(),
    image_policy: Annotated[
        str,
        Parameter(
            help="Grey levels: auto, header, minmax, percentile or full; further settings after "
            "commas.",
            group=READING,
        ),
    ] = "auto",
    workers: Annotated[
        NonNegativeInt | None,
        Parameter(
            help="Processes that read and write films. Default: one per core, at most 16.",
            group=READING,
        ),
    ] = None,
    output: Annotated[OutputOptions, options(without=("report", "as_json"))] = OutputOptions(),
) -> None:
    """Write altered films of studies, for your generator to report on.

    films.csv has a row for each film: id, image, alteration. Let the generator write a report for
    each film, into a table with the columns id and candidate; then run `vlscore audit read`.
    key.jsonl names the study of each film: do not give it away. The films and their names contain
    nothing about a patient.

    Alterations: original; blank (faint noise); the film of another study, with the same findings or
    with others; the region of a finding covered, or an equally large region elsewhere; mirrored;
    and four harmless ones: contrast, noise, rotation, compression. Regions come from the column
    boxes (lists of finding, x, y, width, height); without it, they are rough rectangles by side and
    zone.

    If the command was stopped, the same command continues.

    Example: vlscore audit make studies.csv --image-root files --out audit
    """
    from vlscore.data import ImagePolicy
    from vlscore.evaluation import audit_make, open_audited

    opened = open_audited(table.opened(studies))
    with row_progress(opened.count, "altering", output.is_silent, out=out) as on_progress:
        made = audit_make(
            opened,
            out,
            settings,
            image_policy=ImagePolicy.named(image_policy),
            workers=worker_count(workers),
            overwrite=output.overwrite,
            on_progress=on_progress,
        )
    print_notes(made.notes)
    if made.unchanged:
        echo(f"{out} contains these films already; nothing was made", err=True)
    if not output.quiet:
        echo(f"{made.record['films']} films of {made.record['studies']} studies")
        echo(f"wrote {out / 'films.csv'}: let the generator report on its column image")
        echo(f"then: vlscore audit read {out} --reports NAME=REPORTS --out audited")
    listed = out / "failures.csv"
    print_failures(made.failures, "studies are left out", "study is left out", listed)
    if made.failures and not output.keep_going:
        raise SystemExit(1)


@audit.command
def read(
    films: Path,
    /,
    *,
    reports: Annotated[list[str], Parameter(required=True)],
    out: Out,
    rename: Names = (),
    seed: Seed = 0,
    figure: Figure = None,
    output: OutputOptions = OutputOptions(),
) -> None:
    """Show which findings a generator reads from the film, and which it states without using it.

    Grounding is the share of findings that the generator omits if their region is covered or the
    film is replaced, minus the share that it omits under a harmless alteration. Other numbers:
    findings stated about a blank film, sides that change with a mirrored film, steadiness under
    harmless alterations, and similarity of the reports of different films. docs/audit.md explains
    each number.

    Example: vlscore audit read audit --reports ours=new.jsonl --out audited

    Args:
        films: Folder that `vlscore audit make` wrote.
        reports: Table of reports of these films, with the columns id and candidate; NAME=PATH
            names the generator. Repeat it for each generator.
        rename: Columns that have other names in the reports, as in id=film,candidate=text.
    """
    from vlscore.evaluation import audit_read

    result = audit_read(
        films,
        reports,
        out,
        columns=renamed(rename, "id", "candidate"),
        figure=figure,
        seed=seed,
        overwrite=output.overwrite,
    )
    show(result, output, "films have no report", "film has no report")
