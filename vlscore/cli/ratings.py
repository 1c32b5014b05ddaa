"""`vlscore ratings`: sheets and pages for raters, and what they say of systems."""

from pathlib import Path
from typing import Annotated

from cyclopts import App

from vlscore.cli.output import OutputOptions, Quiet, echo, print_notes, show
from vlscore.cli.shared import ImageRoot, Out, Resamples, Seed, Several, named_values, options
from vlscore.core import split_names, with_noun
from vlscore.evaluation import SheetSettings

ratings = App(
    name="ratings",
    group_commands="Commands",
    help="Make blinded sheets for raters, and read their answers.",
)


@ratings.command
def make(
    *systems: Several[Path],
    out: Out,
    settings: Annotated[SheetSettings, options()] = SheetSettings(),
    studies: Path | None = None,
    image_root: ImageRoot = None,
    quiet: Quiet = False,
) -> None:
    """Make blinded sheets on which raters judge the reports of systems.

    Writes a sheet for each rater, in different orders, instructions, and key.csv. Only key.csv says
    which system wrote a report: do not give it to raters. Equal reports of a study are judged once.
    All reports of a study go to the same raters.

    An HTML sheet works in any browser without a network, and saves the answers as a file: put it
    into the folder. Sheets contain patients' data.

    `vlscore ratings read`, `vlscore align` and `vlscore failure-modes` read the folder when the
    sheets are filled in. A folder with sheets is never overwritten.

    Example: vlscore ratings make ours.csv theirs.csv --raters ann,bob --sample 50 --out sheets

    Args:
        systems: Tables of studies with candidates, one for each system; or folders of `vlscore
            oracle --out`, one for each metric. Write NAME=PATH to name a system.
        studies: Table with the images of the studies; for oracles, the table that `vlscore oracle`
            read, if it was moved.
    """
    from vlscore.evaluation import ratings_make

    made = ratings_make(systems, out, settings, studies=studies, image_root=image_root)
    print_notes(made.notes)
    if made.unchanged:
        echo(f"{out} holds these results already; nothing was made", err=True)
    if not quiet:
        compares = settings.ask == ("preferences",)
        what, verb = ("comparison", "made") if compares else ("report", "judged")
        studies_of = with_noun(made.record["studies"], "study")
        echo(f"{with_noun(made.record['items'], what)} of {studies_of} to be {verb}")
        for rater in settings.raters:
            echo(f"wrote {out / f'sheet-{rater}.{settings.format[0]}'}")


@ratings.command
def read(
    sheets: Path,
    /,
    *,
    out: Out,
    group: list[str] | None = None,
    resamples: Resamples = 1000,
    seed: Seed = 0,
    output: OutputOptions = OutputOptions(),
) -> None:
    """Check filled-in sheets, and show how raters agree and which systems they prefer.

    Writes tables for `vlscore align` (counts.csv, ratings.csv, or for preferences ranks.csv), and
    all numbers.

    Systems are ranked by Bradley and Terry's model with ties. If raters were not asked for
    preferences, these are derived from the ratings of each rater.

    Example: vlscore ratings read sheets --group clinicians=ann,bob --group lay=carl --out read

    Args:
        sheets: Folder that `vlscore ratings make` wrote, with filled-in sheets.
        group: NAME=RATERS: raters whose numbers are shown separately, such as clinicians=ann,bob.
            Repeat it for each group.
    """
    from vlscore.evaluation import ratings_read

    groups = named_values(group or (), "NAME=RATERS, as in clinicians=ann,bob")
    run = ratings_read(
        sheets,
        out,
        groups={name: tuple(split_names(members)) for name, members in groups},
        resamples=resamples,
        seed=seed,
        overwrite=output.overwrite,
    )
    many, one = "rows of sheets could not be used", "row of a sheet could not be used"
    hints = [
        f"to compare metrics with these ratings: {line} --out aligned"
        for line in run.record["align_with"]
    ]
    show(run, output, many, one, closing_lines=hints)
