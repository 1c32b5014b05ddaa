"""`vlscore rating-sheets`: blinded sheets for raters, of the reports that metrics chose."""

from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.options import OutOption, QuietOption, option
from vlscore.cli.output import echo


def rating_sheets(
    oracles: Annotated[
        list[Path],
        typer.Argument(
            help="Folders of `vlscore oracle --out`, one a metric, of one table and one index; "
            "NAME=FOLDER names one. Default name: its metric.",
            metavar="ORACLES",
        ),
    ],
    out: OutOption,
    raters: Annotated[
        str,
        option("--raters", "Names of the raters, with commas.", "NAMES"),
    ] = "rater-1",
    sample: Annotated[
        int | None,
        option("--sample", "Draw so many studies. Default: all.", "N", min=1),
    ] = None,
    studies: Annotated[
        Path | None,
        option("--studies", "The table that was searched for, where it has moved.", "STUDIES"),
    ] = None,
    seed: Annotated[int, option("--seed", "Of the draw and of every order.", "N")] = 0,
    quiet: QuietOption = False,
) -> None:
    """Make blinded sheets on which raters count errors.

    The reports are those that metrics chose by `vlscore oracle`.

    Writes a sheet a rater, each in an order of its own, instructions, and key.csv, which alone
    says which metric chose a report: keep it from the raters. A report that several metrics chose
    is judged once. `vlscore failure-modes` and `vlscore align` read the folder when the sheets are
    filled in. A folder that holds sheets is never written over.

    Example: vlscore rating-sheets oracle-bleu oracle-vlscore --raters ann,bob --out sheets
    """
    from vlscore.cli.options import names_of
    from vlscore.cli.output import say_of_run
    from vlscore.evaluation import make_sheets

    made = make_sheets(
        oracles, out, raters=names_of(raters), sample=sample, studies=studies, seed=seed
    )
    say_of_run(made.notes, out, unchanged=made.unchanged, done="made")
    if not quiet:
        echo(f"{made.items} reports of {made.studies} studies to be judged")
        for sheet in made.sheets.values():
            echo(f"wrote {sheet}")
