"""`vlscore evaluate`: a table of studies."""

from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.options import (
    BatchSizeOption,
    ConstantOption,
    DeviceOption,
    EncoderOption,
    ImagePolicyOption,
    PrecisionOption,
    SectionOption,
    SimilarityOption,
    TokenizerOption,
    ViewsOption,
    WeightsOption,
    make_scorer,
)

_SHOWN_FAILURES = 10
_INTERRUPTED = 130


def evaluate(
    studies: Annotated[Path, typer.Argument(help="Table: .jsonl, .csv or .parquet.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")],
    image_root: Annotated[
        Path | None,
        typer.Option(help="Folder that image paths start from. Default: the table's folder."),
    ] = None,
    id_column: Annotated[str, typer.Option(help="Column with the study's id.")] = "id",
    image_column: Annotated[str, typer.Option(help="Column with the image path(s).")] = "image",
    reference_column: Annotated[
        str, typer.Option(help="Column with the reference report.")
    ] = "reference",
    candidate_column: Annotated[
        str, typer.Option(help="Column with the generated report.")
    ] = "candidate",
    encoder: EncoderOption = None,
    weights: WeightsOption = None,
    tokenizer: TokenizerOption = None,
    similarity: SimilarityOption = "vlscore",
    C: ConstantOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = "fp32",
    batch_size: BatchSizeOption = 16,
    workers: Annotated[
        int | None,
        typer.Option(min=0, help="Processes that decode images. Default: one a core, at most 16."),
    ] = None,
    window: ImagePolicyOption = "auto",
    section: SectionOption = "all",
    views: ViewsOption = "first-frontal",
    format: Annotated[str, typer.Option(help="parquet or csv, for the scores.")] = "parquet",
    overwrite: Annotated[bool, typer.Option(help="Replace earlier results in --out.")] = False,
    show: Annotated[int, typer.Option(min=0, help="Print the scores of the first N rows.")] = 0,
    keep_going: Annotated[
        bool, typer.Option(help="Exit with status 0 even if some rows could not be scored.")
    ] = False,
) -> None:
    """Score every study of a table.

    The table has one study a row: id, image (one path, or several), reference, candidate. A row
    that cannot be scored is listed in failures.csv with its number and the reason, and the exit
    status is 1 unless --keep-going is given. Stop with Ctrl-C and start the same command again to
    go on where it was.

    Example: vlscore evaluate studies.csv --image-root /data/files --out results
    """
    import os

    from rich.console import Console

    from vlscore.cli.progress import row_progress
    from vlscore.display import run_table, scores_table
    from vlscore.display.printing import print_table
    from vlscore.evaluation import evaluate as run
    from vlscore.studies import ColumnNames, count_rows

    scorer = make_scorer(
        encoder=encoder,
        weights=weights,
        tokenizer=tokenizer,
        similarity=similarity,
        C=C,
        device=device,
        precision=precision,
        batch_size=batch_size,
        image_policy=window,
        text_policy=section,
        views=views,
    )
    columns = ColumnNames.of_options(
        id=id_column,
        image=image_column,
        reference=reference_column,
        candidate=candidate_column,
    )
    try:
        with row_progress(count_rows(studies)) as on_progress:
            result = run(
                studies,
                out,
                scorer,
                image_root=image_root,
                columns=columns,
                format=format,
                workers=min(os.cpu_count() or 1, 16) if workers is None else workers,
                overwrite=overwrite,
                on_progress=on_progress,
            )
    except KeyboardInterrupt:
        typer.echo(
            f"\nstopped; what was done is kept in {out}. The same command goes on from there.",
            err=True,
        )
        raise typer.Exit(_INTERRUPTED) from None
    if result.resumed_from:
        typer.echo(f"went on after row {result.resumed_from}", err=True)
    console = Console()
    if show:
        print_table(scores_table(result.first_scores(show)), console)
    console.print(run_table(result.summary))
    console.print(f"signature {result.summary.signature}", soft_wrap=True, highlight=False)
    console.print(f"scores    {result.scores}", soft_wrap=True)
    console.print(f"summary   {result.summary_file}", soft_wrap=True)
    console.print(f"record    {result.record}", soft_wrap=True)
    if result.summary.failed:
        _print_failures(result.first_failures(_SHOWN_FAILURES), result.summary.failed)
        typer.echo(f"failures  {result.failures}", err=True)
        if not keep_going:
            raise typer.Exit(1)


def _print_failures(shown: list[tuple[int, str, str]], count: int) -> None:
    typer.secho(f"{count} rows could not be scored:", fg="red", err=True)
    for row, study_id, error in shown:
        typer.echo(f"  row {row} ({study_id}): {error}", err=True)
    if count > len(shown):
        typer.echo(f"  ... and {count - len(shown)} more", err=True)
