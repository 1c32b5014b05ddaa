"""`vlscore sensitivity`: which changes of a report metrics notice."""

from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.options import (
    OUTPUT,
    TABLE_HELP,
    BatchSizeOption,
    CompileOption,
    ConstantOption,
    DeviceOption,
    EncoderOption,
    FormatOption,
    IdColumnOption,
    ImageColumnOption,
    ImagePolicyOption,
    ImageRootOption,
    JsonOption,
    KeepGoingOption,
    NoCacheOption,
    OutOption,
    OverwriteOption,
    PrecisionOption,
    QuietOption,
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
    say_of_run,
    stopping,
    terminal_width,
)

_SHOWN_FAILURES = 10


def sensitivity(
    perturbations: Annotated[
        Path,
        typer.Option(
            "--perturbations",
            "-p",
            metavar="FOLDER",
            help="Folder that `vlscore perturb` wrote, or a .jsonl file like that in it.",
        ),
    ],
    out: OutOption,
    studies: Annotated[
        Path | None,
        typer.Option(
            "--studies",
            metavar="STUDIES",
            help=f"{TABLE_HELP} With the studies' ids and images; without it, metrics that look at "
            "the image are left out.",
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            "-m",
            metavar="NAMES",
            help="Metrics with commas between them; repeatable. "
            "text, image and bleu are groups; `vlscore metrics` lists all. Default: every "
            "free one that can run.",
            show_default=False,
        ),
    ] = None,
    values: Annotated[
        Path | None,
        typer.Option(
            "--values",
            metavar="PATH",
            help="Table of values computed elsewhere: study_id, kind, and NAME.original, "
            "NAME.perturbed of each metric, in the order of the perturbations.",
            show_default=False,
        ),
    ] = None,
    lower_is_better: Annotated[
        str,
        typer.Option(
            "--lower-is-better",
            metavar="NAMES",
            help="Metrics of --values, with commas, of which smaller values are better.",
            show_default=False,
        ),
    ] = "",
    swap_images: Annotated[
        bool,
        typer.Option(
            "--swap-images",
            help="Also measure whether the image counts.",
            show_default=False,
        ),
    ] = False,
    resamples: Annotated[
        int, typer.Option(min=10, metavar="N", help="Resamples of the bootstrap.")
    ] = 2000,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the bootstrap and of the swap.")] = 0,
    image_root: ImageRootOption = None,
    id_column: IdColumnOption = "id",
    image_column: ImageColumnOption = "image",
    view_column: ViewColumnOption = "view",
    encoder: EncoderOption = None,
    weights: WeightsOption = None,
    tokenizer: TokenizerOption = None,
    C: ConstantOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = "fp32",
    compile: CompileOption = False,
    batch_size: BatchSizeOption = None,
    no_cache: NoCacheOption = False,
    workers: WorkersOption = None,
    image_policy: ImagePolicyOption = "auto",
    views: ViewsOption = "first-frontal",
    section: SectionOption = "all",
    figure: Annotated[
        str | None,
        typer.Option(
            "--figure",
            metavar="NAME",
            help="Format of the figures: png, svg or pdf. Default: png, where matplotlib is there.",
            show_default=False,
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    format: FormatOption = "csv",
    overwrite: OverwriteOption = False,
    keep_going: KeepGoingOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Score every original and perturbed report, and show which changes a metric notices.

    Prints the tables of the VLScore paper: removed sentences (Table 2), changed words (Table 3),
    standard normal reports (Figure 2); writes them with every value to --out. With --swap-images,
    how much scores and ranks move when the image is another study's, or black. All metrics are
    compared on the same pairs: those that every metric has values for.

    Example: vlscore sensitivity -p perturbed --studies studies.csv --swap-images -o results
    """
    import json

    from vlscore.cli.output import row_progress
    from vlscore.data import open_studies
    from vlscore.evaluation import run_sensitivity

    table = None
    if studies is not None:
        names = column_names(id=id_column, image=image_column, view=view_column)
        table = open_studies(studies, needs={"image"}, image_root=image_root, columns=names)
    embedder = None
    if studies is not None or encoder is not None:
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
    with (
        stopping(out),
        row_progress(
            None, "studies and pairs", quiet=quiet or as_json, also=cache_hits(embedder)
        ) as on_progress,
    ):
        run = run_sensitivity(
            perturbations,
            out,
            metrics=metrics,
            embedder=embedder,
            studies=table,
            text_policy=section,
            C=C,
            values=values,
            lower_is_better=[name.strip() for name in lower_is_better.split(",") if name.strip()],
            swap_images=swap_images,
            figure=figure,
            format=format,
            resamples=resamples,
            seed=seed,
            workers=worker_count(workers),
            overwrite=overwrite,
            on_progress=on_progress,
        )
    say_of_encoder(embedder)
    say_of_run(run.notes, out, unchanged=run.unchanged, resumed_from=run.resumed_from)
    if as_json:
        echo(json.dumps(run.content, indent=2, ensure_ascii=False))
    elif not quiet:
        for each in run.tables:
            echo(each.text(terminal_width()) + "\n")
        echo("\n".join(run.signatures))
        echo(f"wrote {run.folder}")
    for name, reason in run.content["left_out"].items():
        echo(f"left out {name}: {reason}", err=True)
    if run.content["truncated"]:
        echo(f"{run.content['truncated']} reports are longer than the encoder reads", err=True)
    failures = run.content["failures"]
    if failures:
        echo(f"{len(failures)} studies have pairs without values:", fg="red", err=True)
        for study, reason in list(failures.items())[:_SHOWN_FAILURES]:
            echo(f"  {study}: {reason}", err=True)
        if not keep_going:
            raise typer.Exit(1)
