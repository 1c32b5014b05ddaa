"""`vlscore retrieval`: does an encoder find each image's report, and each report's image?"""

import contextlib
import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.options import (
    OUTPUT,
    TABLE_HELP,
    BatchSizeOption,
    CompileOption,
    DeviceOption,
    EncoderOption,
    IdColumnOption,
    ImageColumnOption,
    ImagePolicyOption,
    ImageRootOption,
    JsonOption,
    KeepGoingOption,
    NoCacheOption,
    OverwriteOption,
    PrecisionOption,
    QuietOption,
    ReferenceColumnOption,
    SectionOption,
    TokenizerOption,
    ViewColumnOption,
    ViewsOption,
    WeightsOption,
    WorkersOption,
    column_names,
    make_embedder,
    worker_count,
)
from vlscore.cli.output import (
    cache_hits,
    echo,
    say_of_encoder,
    say_of_failures,
    say_of_run,
    stopping,
    terminal_width,
)


def retrieval(
    studies: Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="STUDIES")],
    image_root: ImageRootOption = None,
    id_column: IdColumnOption = "id",
    image_column: ImageColumnOption = "image",
    reference_column: ReferenceColumnOption = "reference",
    view_column: ViewColumnOption = "view",
    encoder: EncoderOption = None,
    weights: WeightsOption = None,
    tokenizer: TokenizerOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = "fp32",
    compile: CompileOption = False,
    batch_size: BatchSizeOption = None,
    no_cache: NoCacheOption = False,
    workers: WorkersOption = None,
    image_policy: ImagePolicyOption = "auto",
    views: ViewsOption = "first-frontal",
    section: SectionOption = "all",
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Folder for the results. Default: they are only printed.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    overwrite: OverwriteOption = False,
    keep_going: KeepGoingOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Evaluate an encoder: does it find each image's report among all, and each report's image?

    Prints R@1, R@5, R@10 and the median rank, both ways, with intervals. Ties count as chance
    would break them; equal reports are one, and any study's copy of it is a right answer.

    With --out, the numbers are written as retrieval.json and retrieval.md. Stop with Ctrl-C and
    start the same command again to go on where it was.

    Example: vlscore retrieval studies.jsonl --encoder gloria --weights gloria.ckpt
    """
    from vlscore.cli.output import row_progress
    from vlscore.data import count_rows
    from vlscore.evaluation import retrieve

    total = count_rows(studies)
    embedder = make_embedder(
        encoder,
        weights,
        tokenizer,
        device=device,
        precision=precision,
        compile=compile,
        batch_size=batch_size,
        cache=not no_cache,
        image_policy=image_policy,
        views=views,
    )
    with contextlib.ExitStack() as stack:
        folder = out or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with (
            stopping(out, "embedded rows are"),
            row_progress(
                total, "embedding", quiet=quiet or as_json, also=cache_hits(embedder)
            ) as on_progress,
        ):
            run = retrieve(
                studies,
                folder,
                embedder,
                text_policy=section,
                columns=column_names(
                    id=id_column,
                    image=image_column,
                    reference=reference_column,
                    view=view_column,
                ),
                image_root=image_root,
                workers=worker_count(workers),
                overwrite=overwrite,
                on_progress=on_progress,
            )
    say_of_encoder(embedder)
    say_of_run(
        run.notes, out, unchanged=run.unchanged, resumed_from=run.resumed_from, done="embedded"
    )
    result = run.result
    if as_json:
        echo(json.dumps(result.to_dict(), indent=2, ensure_ascii=False))
    elif not quiet:
        echo(f"{result.table().text(terminal_width())}\n\n{result.signature}")
        if out is not None:
            for name in run.files:
                echo(f"wrote {name}")
    if result.failed:
        count = len(result.failed)
        what = "rows could not be embedded" if count > 1 else "row could not be embedded"
        say_of_failures([(r.row, str(r.id), r.reason) for r in result.failed], count, what)
        if not keep_going:
            raise typer.Exit(1)
