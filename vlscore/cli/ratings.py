"""`vlscore ratings`: sheets and pages for raters, and what they say of systems."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.help_layout import GroupedCommand, GroupedCommands
from vlscore.cli.option_groups import BootstrapOptions, PrintOptions, RunOptions, grouped
from vlscore.cli.options import TABLE, ImageRootOption, OutOption, QuietOption, option
from vlscore.cli.output import (
    echo,
    exit_if_failed,
    print_notes,
    print_result,
)

ratings = typer.Typer(
    name="ratings",
    cls=GroupedCommands,
    help="Make blinded sheets for raters, and read their answers.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

RatersOption = Annotated[str, option("--raters", "Names of the raters, with commas.", "NAMES")]
SampleOption = Annotated[
    int | None, option("--sample", "Draw so many studies. Default: all.", "N", min=1)
]
StudiesOption = Annotated[
    Path | None,
    option(
        "--studies",
        "Table with the images of the studies; for oracles, the table that `vlscore oracle` read, "
        "if it was moved.",
        "STUDIES",
        TABLE,
    ),
]
SeedOption = Annotated[int, option("--seed", "Seed of the draw and of every order.", "N", min=0)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AskedOptions:
    """What raters are asked, and in which form."""

    ask: Annotated[
        str,
        option(
            "--ask",
            "errors (numbers by category), dimensions (ratings 1 to 5), both with a comma; or "
            "preferences (which of two reports is better).",
            "NAMES",
        ),
    ] = "errors"
    format: Annotated[
        str, option("--format", "Formats of the sheets: html, csv, with commas.", "NAMES")
    ] = "html"
    raters_per_study: Annotated[
        int | None,
        option("--raters-per-study", "Number of raters for each study. Default: all.", "N"),
    ] = None
    images: Annotated[bool, option("--images", "Embed the images, shrunk, in the HTML pages.")] = (
        False
    )
    dimensions: Annotated[
        Path | None,
        option("--dimensions", "File of your own dimensions. Default: the bundled one.", "PATH"),
    ] = None


@ratings.command("make", cls=GroupedCommand)
@grouped()
def make(
    *,
    sources: Annotated[
        list[Path],
        typer.Argument(
            help="Tables of studies with candidates, one a system; or folders of `vlscore oracle "
            "--out`, one a metric. NAME=PATH names one.",
            metavar="SYSTEMS",
        ),
    ],
    out: OutOption,
    raters: RatersOption = "rater-1",
    asked: AskedOptions,
    sample: SampleOption = None,
    studies: StudiesOption = None,
    image_root: ImageRootOption = None,
    seed: SeedOption = 0,
    quiet: QuietOption = False,
) -> None:
    """Make blinded sheets on which raters judge the reports of systems.

    Writes a sheet for each rater, each in another order, instructions, and key.csv, the only file
    that names the system of each report: do not give it to raters. Equal reports of a study are
    judged once. A study's reports go to the same raters.

    An HTML page works in any browser without a network, stores the answers until they are saved,
    and saves them as a file: put it into the folder. Pages and sheets hold patients' data.

    `vlscore ratings read`, `vlscore align` and `vlscore failure-modes` read the folder when the
    sheets are filled in. A folder that has sheets is never overwritten.

    Example: vlscore ratings make ours.csv theirs.csv --raters ann,bob --sample 50 --out sheets
    """
    from vlscore.cli.options import names_of

    options = dataclasses.asdict(asked)
    options |= {"ask": names_of(asked.ask), "formats": names_of(options.pop("format"))}
    options |= {"raters": names_of(raters), "sample": sample, "studies": studies, "seed": seed}
    _make(sources, out, quiet, image_root=image_root, **options)


def _make(sources: list[Path], out: Path, quiet: bool, **options: object) -> None:
    """Make sheets, and print where they are."""
    from typing import Any, cast

    from vlscore.evaluation import ratings_make

    made = ratings_make(sources, out, **cast(Any, options))
    print_notes(made.notes)
    if made.unchanged:
        echo(f"{out} holds these results already; nothing was made", err=True)
    if not quiet:
        compares = options.get("ask") == ("preferences",)
        what = "comparisons" if compares else "reports"
        verb = "made" if compares else "judged"
        echo(f"{made.items} {what} of {made.studies} studies to be {verb}")
        for sheet in made.sheets.values():
            echo(f"wrote {sheet}")


@ratings.command("read", cls=GroupedCommand)
@grouped()
def read(
    *,
    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder of `vlscore ratings make`, sheets filled in.", metavar="SHEETS"
        ),
    ],
    out: OutOption,
    groups: Annotated[
        list[str] | None,
        option(
            "--group",
            "Raters whose numbers are shown separately, such as clinicians=ann,bob. Repeat it for "
            "each group.",
            "NAME=RATERS",
        ),
    ] = None,
    bootstrap: BootstrapOptions,
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Check filled-in sheets, and show how raters agree and which systems they prefer.

    Writes the tables that `vlscore align` reads (counts.csv, ratings.csv, or of preferences
    ranks.csv), and all numbers.

    Systems are ranked by Bradley and Terry's model with ties; preferences that were not asked for
    are derived from the ratings of the same rater.

    Example: vlscore ratings read sheets --group clinicians=ann,bob --group lay=carl --out read
    """
    from vlscore.cli.options import names_of
    from vlscore.errors import InvalidSetting
    from vlscore.evaluation import ratings_read

    chosen: dict[str, tuple[str, ...]] = {}
    for each in groups or ():
        name, equals, members = each.partition("=")
        if not (equals and name.strip() and members.strip()):
            raise InvalidSetting(f"write NAME=RATERS, as in clinicians=ann,bob, not {each!r}")
        chosen[name.strip()] = names_of(members)
    run = ratings_read(
        folder,
        out,
        groups=chosen,
        resamples=bootstrap.resamples,
        seed=bootstrap.seed,
        overwrite=running.overwrite,
    )
    print_result(
        run, printing, "rows of sheets could not be used", "row of a sheet could not be used"
    )
    if not printing.is_silent:
        for line in run.record["align_with"]:
            echo(f"to compare metrics with these ratings: {line} --out aligned")
    exit_if_failed(run.failures, running.keep_going)
