"""`vlscore report`: result folders as one HTML page."""

from pathlib import Path

from cyclopts.types import NonNegativeInt

from vlscore.cli.output import Quiet, echo, print_notes
from vlscore.cli.progress import row_progress
from vlscore.cli.shared import ImageRoot, Several


def report(
    *folders: Several[Path],
    out: Path | None = None,
    no_texts: bool = False,
    images: bool = False,
    sentences: NonNegativeInt = 0,
    weights: Path | None = None,
    studies: Path | None = None,
    image_root: ImageRoot = None,
    quiet: Quiet = False,
) -> None:
    """Make an HTML page that shows which studies are bad, and why.

    The page shows the settings, tables, distributions and failures, and a list of the studies that
    can be sorted, filtered and searched. A click on a study shows candidate and reference side by
    side, with errors and findings that agree marked, and the triangle of the score.

    The page is one file, which any browser opens without a network. It contains reports, which are
    patients' data, unless --no-texts is given.

    Example: vlscore report scored compared --out page.html

    Args:
        folders: Folders that finished commands wrote.
        out: File for the page. Default: report.html in the first folder.
        no_texts: Leave out reports, ids, paths and notes; show only numbers, by row.
        images: Also show the images, reduced in size. They are patients' data.
        sentences: Show what each sentence costs in the N studies with the worst score; with
            --images also maps of the image.
        weights: Checkpoint of the run's encoder, for --sentences.
        studies: Table of the reports, if it was moved or run.json does not name it.
    """
    from vlscore.pages import report as write

    with row_progress(None, "reading", quiet=quiet) as on_progress:
        page = write(
            *folders,
            out=out,
            texts=not no_texts,
            images=images,
            sentences=sentences,
            weights=weights,
            table=studies,
            image_root=image_root,
            on_progress=on_progress,
        )
    print_notes(page.notes)
    if not quiet:
        echo(f"wrote {page.path} ({page.bytes / 1e6:.1f} MB)")
        echo(f"{page.holds.title} {page.holds.text}")
