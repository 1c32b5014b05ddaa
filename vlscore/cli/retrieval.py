"""`vlscore retrieval`: does an encoder find each image's report, and back?"""

import contextlib
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.option_groups import PrintOptions, RunOptions, ScorerOptions, TableOptions, grouped
from vlscore.cli.options import TABLE_HELP, OptionalOutOption
from vlscore.cli.output import exit_if_failed, print_encoder_warning, print_result
from vlscore.cli.progress import cache_hits, stopping


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
            stopping(out, stored=None),
            row_progress(total, "embedding", quiet=quiet, also=also) as on_progress,
        ):
            result = compute_retrieval(
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
        print_result(result, printing, "rows could not be embedded", "row could not be embedded")
        exit_if_failed(result.failures, running.keep_going)
