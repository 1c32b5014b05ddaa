"""`vlscore methods`: the paragraph of a methods section."""

from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.options import OUTPUT, option
from vlscore.cli.output import echo
from vlscore.errors import InvalidSetting

_FORMATS = ("md", "tex", "bib")


def methods(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder of a finished evaluate, compare or align run.", metavar="FOLDER"
        ),
    ],
    format: Annotated[
        str,
        option(
            "--format",
            "md: Markdown with citations for pandoc; tex: LaTeX; bib: the BibTeX entries alone.",
            "NAME",
            OUTPUT,
        ),
    ] = "md",
) -> None:
    """Print a paragraph for a methods section, with its BibTeX entries.

    It names metrics, encoder, intervals, tests and versions. Read it before you paste it.

    Example: vlscore methods compared --format tex
    """
    from vlscore.evaluation import methods as run

    if format not in _FORMATS:
        raise InvalidSetting(f"--format is one of {', '.join(_FORMATS)}, not {format!r}")
    found = run(folder)
    if format != "bib":
        echo(found.latex if format == "tex" else found.markdown)
    echo(found.bibtex, nl=False)
