"""`vlscore retrieval`: does an encoder find each image's report, and each report's image?"""

from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.options import (
    BatchSizeOption,
    DeviceOption,
    EncoderOption,
    ImagePolicyOption,
    PrecisionOption,
    SectionOption,
    TokenizerOption,
    ViewsOption,
    WeightsOption,
    make_scorer,
)
from vlscore.cli.oracle import (
    IdOption,
    ImageOption,
    ImageRootOption,
    KeepGoingOption,
    StudiesArgument,
)

ReportOption = Annotated[str, typer.Option(help="Column with the report.")]


def retrieval(
    studies: StudiesArgument,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File for the numbers (json).")
    ] = None,
    image_root: ImageRootOption = None,
    id_column: IdOption = "id",
    image_column: ImageOption = "image",
    reference_column: ReportOption = "reference",
    encoder: EncoderOption = None,
    weights: WeightsOption = None,
    tokenizer: TokenizerOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = "fp32",
    batch_size: BatchSizeOption = 16,
    window: ImagePolicyOption = "auto",
    section: SectionOption = "all",
    views: ViewsOption = "first-frontal",
    keep_going: KeepGoingOption = False,
) -> None:
    """Evaluate an encoder: does it find each image's report among all, and each report's image?

    Prints R@1, R@5, R@10 and the median rank, both ways. Ties count as chance would break them;
    equal reports are one, and any study's copy of it is a right answer.

    Example: vlscore retrieval studies.jsonl --encoder gloria --weights gloria.ckpt
    """
    from vlscore._files import write_json
    from vlscore.cli.progress import row_progress
    from vlscore.meta.retrieval import retrieve
    from vlscore.oracle.queries import QueryTable
    from vlscore.studies import ColumnNames, count_rows

    total = count_rows(studies)
    scorer = make_scorer(
        encoder=encoder,
        weights=weights,
        tokenizer=tokenizer,
        similarity="cosine",
        device=device,
        precision=precision,
        batch_size=batch_size,
        image_policy=window,
        text_policy=section,
        views=views,
    )
    columns = ColumnNames.of_options(id=id_column, image=image_column, reference=reference_column)
    with row_progress(total, "embedding") as on_progress:
        result = retrieve(QueryTable(studies, columns, image_root), scorer, on_progress)
    for name, direction in result.directions.items():
        recalls = "  ".join(f"R@{k} {share:.3f}" for k, share in direction.recall.items())
        typer.echo(
            f"{name}  {recalls}  median rank {direction.median_rank:g}  "
            f"({direction.queries} queries, {direction.gallery} to search)"
        )
    typer.echo(f"signature {scorer.signature}")
    if out is not None:
        write_json(out, result.to_dict(str(scorer.signature)))
        typer.echo(f"numbers   {out}")
    for row in result.failed:
        typer.secho(f"row {row.row} ({row.id}): {row.reason}", fg="red", err=True)
    if result.failed and not keep_going:
        raise typer.Exit(1)
