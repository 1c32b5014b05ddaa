"""`vlscore retrieval`: does an encoder find each image's report, and each report's image?"""

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vlscore.cli.option_groups import PrintOptions, RunOptions, ScorerOptions, TableOptions, grouped
from vlscore.cli.options import TABLE_HELP, OptionalOutOption
from vlscore.cli.output import (
    echo,
    exit_if_failed,
    print_bad_rows,
    print_encoder_warning,
    print_json,
    print_run_notes,
    terminal_width,
)
from vlscore.cli.progress import cache_hits, stopping

if TYPE_CHECKING:
    from vlscore.evaluation import RetrievalRun


@grouped("candidate_column", "C", "reference_section", "candidate_section")
def retrieval(
    *,
    studies: Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="STUDIES")],
    table: TableOptions,
    encoding: ScorerOptions,
    out: OptionalOutOption = None,
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Test whether an encoder finds the report of each image.

    Prints R@1, R@5, R@10 and the median rank, both ways, with intervals. Ties count with the
    expected value of a random order. Equal reports count as one, right for the images of all its
    studies.

    With --out, the numbers are written as retrieval.json and retrieval.md. Stop with Ctrl-C and
    start the same command again to resume.

    Example: vlscore retrieval studies.jsonl --encoder gloria --weights gloria.ckpt
    """
    from vlscore.cli.progress import row_progress
    from vlscore.data import count_rows
    from vlscore.evaluation import retrieval as compute_retrieval

    total = count_rows(studies)
    embedder = encoding.embedder()
    quiet, also = printing.is_silent, cache_hits(embedder)
    with contextlib.ExitStack() as stack:
        folder = out or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with (
            stopping(out, "embedded rows are"),
            row_progress(total, "embedding", quiet=quiet, also=also) as on_progress,
        ):
            run = compute_retrieval(
                studies,
                folder,
                embedder,
                text_policy=encoding.section,
                columns=table.columns("id", "image", "reference", "view"),
                image_root=table.image_root,
                workers=encoding.decoders(),
                overwrite=running.overwrite,
                on_progress=on_progress,
            )
    print_encoder_warning(embedder)
    _print(run, out, printing)
    exit_if_failed(run.result.failed, running.keep_going)


def _print(run: "RetrievalRun", out: Path | None, printing: PrintOptions) -> None:
    """Print the numbers, and the rows that could not be embedded."""
    print_run_notes(run, "embedded")
    result = run.result
    if printing.as_json:
        print_json(result.to_dict())
    elif not printing.quiet:
        echo(f"{result.table().text(terminal_width())}\n\n{result.signature}")
        if out is not None:
            for name in run.files:
                echo(f"wrote {name}")
    print_bad_rows(result.failed, "embedded")
