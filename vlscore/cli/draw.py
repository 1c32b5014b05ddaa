"""`vlscore draw`: the figures of a finished folder."""

from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.options import OUTPUT, option
from vlscore.cli.output import echo


def draw(
    folders: Annotated[
        list[Path],
        typer.Argument(
            help="Folders of finished evaluate, compare, align, sensitivity or train runs.",
            metavar="FOLDERS",
        ),
    ],
    figure: Annotated[
        str, option("--figure", "Format of the figures: pdf, svg or png.", "NAME", OUTPUT)
    ] = "pdf",
    columns: Annotated[
        str,
        option(
            "--columns",
            "For a comparison: numbers to draw, with commas, as in bleu-4,rouge-l. Default: "
            "the headline of every metric.",
            "NAMES",
            OUTPUT,
        ),
    ] = "",
) -> None:
    """Draw the figures of finished folders.

    They are drawn from the numbers in the folders; nothing is computed again.

    Needs 'vlscore[plots]'. The figures have the width of a paper's column or page, and colours
    that colour-blind readers tell apart.

    Example: vlscore draw compared --figure pdf
    """
    from vlscore.core import split_names
    from vlscore.evaluation import draw as run

    for folder in folders:
        for path in run(folder, figure, columns=split_names(columns)):
            echo(f"wrote {path}")
