"""`vlscore retrieval`: test whether an encoder finds reports of images, and images of reports."""

import contextlib
import tempfile
from pathlib import Path
from typing import Annotated

from vlscore.cli.output import OutputOptions, print_encoder_warning, show
from vlscore.cli.progress import row_progress
from vlscore.cli.shared import (
    EncoderOptions,
    OptionalOut,
    Table,
    TableOptions,
    options,
    worker_count,
)


def retrieval(
    studies: Table,
    /,
    *,
    table: TableOptions = TableOptions(),
    encoding: Annotated[EncoderOptions, options(without=("C", "comparisons"))] = EncoderOptions(),
    out: OptionalOut = None,
    output: OutputOptions = OutputOptions(),
) -> None:
    """Test whether an encoder finds the report of each image.

    Prints R@1, R@5, R@10 and the median rank for images and for reports as queries, with intervals.
    Ties count with the expected value of a random order. Equal reports count as one report, which
    is right for the images of all studies that have it.

    Example: vlscore retrieval studies.jsonl --encoder gloria --weights gloria.ckpt
    """
    from vlscore.evaluation import retrieval as compute_retrieval

    opened = table.opened(studies, "id", "image", "reference", "view")
    embedder = encoding.embedder()
    with contextlib.ExitStack() as stack:
        folder = out or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with row_progress(
            opened.count, "embedding", quiet=output.is_silent, embedder=embedder
        ) as on_progress:
            result = compute_retrieval(
                opened,
                folder,
                embedder,
                text_policy=encoding.section,
                workers=worker_count(encoding.workers),
                overwrite=output.overwrite,
                on_progress=on_progress,
            )
        print_encoder_warning(embedder)
        show(result, output, "rows could not be embedded", folder_is_temporary=out is None)
