"""`vlscore sensitivity`: which changes of a report metrics notice."""

import csv
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlscore.cli.options import (
    BatchSizeOption,
    ConstantOption,
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

if TYPE_CHECKING:
    from rich.table import Table

    from vlscore.meta import Pair, PairValues
    from vlscore.studies import StudyImages

_SHOWN_FAILURES = 10


def sensitivity(
    perturbations: Annotated[
        Path, typer.Option("--perturbations", "-p", help="Folder that `vlscore perturb` wrote.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")],
    studies: Annotated[
        Path | None,
        typer.Option(help="Table with the studies' ids and images; without it, texts alone count."),
    ] = None,
    image_root: Annotated[
        Path | None,
        typer.Option(help="Folder that image paths start from. Default: the table's folder."),
    ] = None,
    id_column: Annotated[str, typer.Option(help="Column with the study's id.")] = "id",
    image_column: Annotated[str, typer.Option(help="Column with the image path(s).")] = "image",
    metrics: Annotated[
        str | None,
        typer.Option(help='Such as "vlscore,bleu-4(smoothing=exp)". Default: all that can run.'),
    ] = None,
    swap_images: Annotated[
        bool, typer.Option("--swap-images", help="Also measure whether the image counts.")
    ] = False,
    encoder: EncoderOption = None,
    weights: WeightsOption = None,
    tokenizer: TokenizerOption = None,
    C: ConstantOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = "fp32",
    batch_size: BatchSizeOption = 16,
    workers: Annotated[int, typer.Option(min=0, help="Processes that decode images.")] = 0,
    window: ImagePolicyOption = "auto",
    section: SectionOption = "all",
    views: ViewsOption = "first-frontal",
    resamples: Annotated[int, typer.Option(min=10, help="Of the bootstrap.")] = 2000,
    seed: Annotated[int, typer.Option(help="Of the bootstrap and of the swap.")] = 0,
) -> None:
    """Score every original and perturbed report, and show which changes a metric notices.

    Prints the tables of the VLScore paper: removed sentences (Table 2), changed words (Table 3),
    standard normal reports (Figure 2); writes them with every value to --out. With --swap-images,
    how much scores and ranks move when the image is another study's, or black.

    Example: vlscore sensitivity -p perturbed --studies studies.csv --swap-images -o results
    """
    from vlscore.errors import InvalidSetting
    from vlscore.meta import embed_pairs, image_swap, read_pairs
    from vlscore.meta import sensitivity as run

    names = _names(metrics)
    pairs = read_pairs(perturbations)
    if swap_images and studies is None:
        raise InvalidSetting("--swap-images needs images: give --studies")
    embedded = None
    if studies is not None or encoder is not None:
        scorer = make_scorer(
            encoder=encoder,
            weights=weights,
            tokenizer=tokenizer,
            # Every similarity is computed from the same embeddings; this one asks for no C.
            similarity="cosine",
            device=device,
            precision=precision,
            batch_size=batch_size,
            image_policy=window,
            text_policy=section,
            views=views,
        )
        images = None
        if studies is not None:
            images = _images(studies, image_root, id_column, image_column)
        embedded = embed_pairs(pairs, scorer, images, C=C, workers=workers)
    result = run(pairs, names, embedded, resamples=resamples, seed=seed)
    swaps = []
    if swap_images and embedded is not None:
        swaps = image_swap(pairs, embedded, names, resamples=resamples, seed=seed)
    tables = _tables(result, swaps)
    _print(result, tables)
    _write(out, pairs, result, swaps, tables)
    if result.failures:
        raise typer.Exit(1)


def _names(metrics: str | None) -> list[str] | None:
    """Names separated by commas; those inside parentheses separate parameters."""
    if metrics is None:
        return None
    return [name.strip() for name in re.split(r",(?![^(]*\))", metrics) if name.strip()]


def _images(
    studies: Path, image_root: Path | None, id_column: str, image_column: str
) -> "dict[str, StudyImages]":
    from vlscore.studies import BadRow, ColumnNames, read_study_images

    columns = ColumnNames.of_options(id=id_column, image=image_column)
    found = {}
    for row in read_study_images(studies, image_root=image_root, columns=columns):
        if isinstance(row, BadRow):
            typer.echo(f"{studies}, row {row.row}: {row.reason}", err=True)
        else:
            found[row.id] = row
    return found


def _tables(result: Any, swaps: list[Any]) -> "list[Table]":
    from vlscore.display.sensitivity import (
        kinds_table,
        normal_table,
        removal_table,
        swap_table,
        word_table,
    )

    tables = [make(result) for make in (removal_table, word_table, normal_table, kinds_table)]
    if swaps:
        tables.append(swap_table(swaps))
    return [table for table in tables if table.row_count]


def _print(result: Any, tables: "list[Table]") -> None:
    from rich.console import Console

    from vlscore.display.printing import print_table

    console = Console()
    for table in tables:
        print_table(table, console)
    for metric in result.metrics:
        console.print(metric.signature, soft_wrap=True, highlight=False, markup=False)
    for name, reason in result.left_out.items():
        typer.echo(f"left out {name}: {reason}", err=True)
    if result.truncated:
        typer.echo(f"{result.truncated} reports are longer than the encoder reads", err=True)
    if result.failures:
        typer.secho(f"{len(result.failures)} studies could not be embedded:", fg="red", err=True)
        for study, reason in list(result.failures.items())[:_SHOWN_FAILURES]:
            typer.echo(f"  {study}: {reason}", err=True)


def _write(
    out: Path, pairs: "list[Pair]", result: Any, swaps: list[Any], tables: "list[Table]"
) -> None:
    from vlscore._files import atomic_write, write_json
    from vlscore.display.figures import draw_normal_distribution
    from vlscore.display.printing import markdown
    from vlscore.errors import MissingDependency

    content = {**result.to_dict(), "swaps": [swap.to_dict() for swap in swaps]}
    write_json(out / "sensitivity.json", content)
    with atomic_write(out / "values.csv") as stream:
        _write_values(csv.writer(stream), pairs, result.values)
    with atomic_write(out / "tables.md") as stream:
        stream.write(markdown(tables))
    written = ["sensitivity.json", "values.csv", "tables.md"]
    if any(metric.normal for metric in result.metrics):
        try:
            draw_normal_distribution(result, out / "normal_reports.png")
            written.append("normal_reports.png")
        except MissingDependency as error:
            typer.echo(f"no figure: {error}", err=True)
    typer.echo(f"wrote {', '.join(str(out / name) for name in written)}")


def _write_values(writer: Any, pairs: "list[Pair]", values: "list[PairValues]") -> None:
    columns = [(f"{v.metric} original", v.originals) for v in values]
    columns += [(f"{v.metric} perturbed", v.perturbed) for v in values]
    writer.writerow(["study_id", "kind", "significant", "category", *(name for name, _ in columns)])
    for row, pair in enumerate(pairs):
        numbers = [repr(float(numbers[row])) for _, numbers in columns]
        facts = [pair.study_id, pair.kind, pair.is_significant, pair.category or ""]
        writer.writerow([*facts, *numbers])
