"""`vlscore draw`: the figures of a finished folder."""

from pathlib import Path

from vlscore.cli.output import echo
from vlscore.cli.shared import Names, Several


def draw(*folders: Several[Path], figure: str = "pdf", columns: Names = ()) -> None:
    """Draw the figures of finished runs.

    The figures are drawn from the numbers in the folders; nothing is computed again.

    Needs 'vlscore[plots]'. The figures have the width of a paper's column or page, and colours
    that colour-blind readers can distinguish.

    Example: vlscore draw compared --figure pdf

    Args:
        folders: Folders of finished evaluate, compare, align, sensitivity, audit read or train
            runs.
        figure: Format of the figures: pdf, svg or png.
        columns: For a comparison: numbers to draw, with commas, as in bleu-4,rouge-l. Default: the
            primary number of every metric.
    """
    from vlscore.evaluation import draw as run

    for folder in folders:
        for path in run(folder, figure, columns=columns):
            echo(f"wrote {path}")
