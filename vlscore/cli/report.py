"""`vlscore report`: result folders as one HTML page."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.option_groups import grouped
from vlscore.cli.options import OUTPUT, ImageRootOption, QuietOption, option
from vlscore.cli.output import echo, print_notes


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReportPageOptions:
    """What the page shows, and where it is read."""

    no_texts: Annotated[
        bool,
        option(
            "--no-texts",
            "Leave out reports, ids, paths and notes: numbers alone, by row.",
            panel=OUTPUT,
        ),
    ] = False
    films: Annotated[
        bool,
        option("--films", "Show the films too, shrunk. They are patients' data.", panel=OUTPUT),
    ] = False
    sentences: Annotated[
        int,
        option(
            "--sentences",
            "Show what each sentence costs in the N studies with the worst score; with --films "
            "also maps of the film.",
            "N",
            OUTPUT,
            min=0,
        ),
    ] = 0
    weights: Annotated[
        Path | None,
        option("--weights", "Checkpoint of the run's encoder, for --sentences.", "PATH"),
    ] = None
    table: Annotated[
        Path | None,
        option(
            "--table",
            "Table of the reports, where it was moved or run.json does not name it.",
            "PATH",
        ),
    ] = None
    image_root: ImageRootOption = None


@grouped()
def report(
    *,
    folders: Annotated[
        list[Path], typer.Argument(help="Folders that finished commands wrote.", metavar="FOLDER")
    ],
    out: Annotated[
        Path | None,
        option(
            "--out -o",
            "File for the page. Default: report.html in the first folder.",
            "FILE",
            OUTPUT,
            show_default=False,
        ),
    ] = None,
    contents: ReportPageOptions,
    quiet: QuietOption = False,
) -> None:
    """Make an HTML page that shows which studies are bad, and why.

    The page shows what was done with what, the tables, distributions and failures, and a list of
    the studies to sort, filter and search. A study opens with its candidate next to its reference,
    where errors and findings that agree are marked, and the triangle of its score.

    The page is one file, which any browser opens without a network. It holds reports, which are
    patients' data, unless --no-texts is given.

    Example: vlscore report scored compared --out page.html
    """
    from vlscore.cli.progress import row_progress
    from vlscore.pages import report as write

    with row_progress(None, "reading", quiet=quiet) as on_progress:
        page = write(
            *folders,
            out=out,
            texts=not contents.no_texts,
            films=contents.films,
            sentences=contents.sentences,
            weights=contents.weights,
            table=contents.table,
            image_root=contents.image_root,
            on_progress=on_progress,
        )
    print_notes(page.notes)
    if not quiet:
        echo(f"wrote {page.path} ({page.bytes / 1e6:.1f} MB)")
        echo(f"{page.holds.title} {page.holds.text}")
