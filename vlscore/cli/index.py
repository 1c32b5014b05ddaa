"""`vlscore index`: corpora of reports for the oracle."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlscore.cli.options import (
    BatchSizeOption,
    DeviceOption,
    EncoderOption,
    PrecisionOption,
    SectionOption,
    TokenizerOption,
    WeightsOption,
    make_scorer,
)

if TYPE_CHECKING:
    from vlscore.oracle import BuildResult

index = typer.Typer(help="Build and check indexes of reports.", no_args_is_help=True)

IndexArgument = Annotated[Path, typer.Argument(help="Folder of the index.")]
TableArgument = Annotated[Path, typer.Argument(help="Table: .jsonl, .csv or .parquet.")]
IdOption = Annotated[str, typer.Option(help="Column with the id.")]
TextOption = Annotated[
    str | None,
    typer.Option(
        help="Column with the report. Default: report, text or reference; else findings and "
        "impression.",
        show_default=False,
    ),
]
KeepGoingOption = Annotated[
    bool, typer.Option(help="Exit with status 0 even if some rows could not be used.")
]
_SHOWN_FAILURES = 10


@index.command()
def build(
    corpus: TableArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the index.")],
    encoder: EncoderOption = None,
    weights: WeightsOption = None,
    tokenizer: TokenizerOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = "fp32",
    batch_size: BatchSizeOption = 16,
    section: SectionOption = "all",
    id_column: IdOption = "id",
    text_column: TextOption = None,
    images: Annotated[
        bool, typer.Option("--images", help="Index the table's radiographs, not its reports.")
    ] = False,
    approximate: Annotated[
        str | None,
        typer.Option(
            help='FAISS index for approximate search, such as "IVF1024,Flat", "IVF1024,PQ96x8" '
            'or "HNSW32".',
            show_default=False,
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace the index in --out.")] = False,
    keep_going: KeepGoingOption = False,
) -> None:
    """Embed a corpus into an index; equal texts are embedded once.

    Stopped or killed, the same command goes on where it was.

    Example: vlscore index build train.jsonl --out train-index
    """
    from vlscore.cli.progress import row_progress
    from vlscore.oracle import build_index
    from vlscore.studies import count_rows

    engine = _engine(encoder, weights, tokenizer, device, precision, batch_size)
    with _resumable(out), row_progress(count_rows(corpus)) as on_progress:
        result = build_index(
            corpus,
            out,
            engine,
            kind="image" if images else "report",
            text_policy=section,
            id_column=id_column,
            text_column=text_column,
            approximate=approximate,
            overwrite=overwrite,
            on_progress=on_progress,
        )
    _print_result(result, keep_going)


@index.command()
def add(
    corpus: TableArgument,
    path: Annotated[Path, typer.Option("--index", "-i", help="Folder of the index.")],
    encoder: EncoderOption = None,
    weights: WeightsOption = None,
    tokenizer: TokenizerOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = "fp32",
    batch_size: BatchSizeOption = 16,
    section: SectionOption = "all",
    id_column: IdOption = "id",
    text_column: TextOption = None,
    keep_going: KeepGoingOption = False,
) -> None:
    """Add another table to an index, with the encoder and policies it was built with."""
    from vlscore.cli.progress import row_progress
    from vlscore.oracle import add_to_index
    from vlscore.oracle.store import read_manifest
    from vlscore.studies import count_rows

    encoder = encoder or read_manifest(path).encoder
    engine = _engine(encoder, weights, tokenizer, device, precision, batch_size)
    with _resumable(path), row_progress(count_rows(corpus)) as on_progress:
        result = add_to_index(
            corpus,
            path,
            engine,
            text_policy=section,
            id_column=id_column,
            text_column=text_column,
            on_progress=on_progress,
        )
    _print_result(result, keep_going)


@index.command()
def info(path: IndexArgument) -> None:
    """Print what an index holds and what it was made with."""
    from vlscore.oracle import load_index

    manifest = load_index(path, check=False).manifest
    lines: dict[str, Any] = {
        "signature": manifest.signature,
        "checksum": manifest.checksum,
        "holds": f"{manifest.items} {manifest.kind}s, {manifest.rows} distinct",
        "bad rows": manifest.bad_rows,
        "dimension": manifest.dim,
        "approximate": manifest.approximate or "none (exact search only)",
        "sources": ", ".join(f"{s['name']}@{s['sha256'][:12]}" for s in manifest.sources),
        "bytes": sum(record.size for record in manifest.files.values()),
        "vlscore": manifest.version,
    }
    for name, value in lines.items():
        typer.echo(f"{name:<12}{value}")
    if manifest.demonstration:
        typer.echo("made with the demonstration encoder, trained on synthetic phantoms", err=True)


@index.command()
def verify(
    path: IndexArgument,
    recall: Annotated[
        bool, typer.Option("--recall", help="Measure approximate search against exact search.")
    ] = False,
    sample: Annotated[int, typer.Option(min=1, help="Queries for --recall.")] = 200,
    seed: Annotated[int, typer.Option(help="Chooses those queries.")] = 0,
) -> None:
    """Read an index in full and compare it with its recorded sha256s."""
    from vlscore.oracle import load_index
    from vlscore.oracle.check import check_vectors, measure_recall

    opened = load_index(path)
    check_vectors(opened)
    typer.echo(f"{path}: whole; {len(opened)} rows of {opened.manifest.dim}")
    if recall:
        for k, share in measure_recall(opened, sample, seed).items():
            typer.echo(f"recall@{k} {share:.4f} of {sample} queries made of the corpus's own rows")


def _engine(
    encoder: str | None,
    weights: Path | None,
    tokenizer: Path | None,
    device: str | None,
    precision: str,
    batch_size: int,
) -> Any:
    return make_scorer(
        encoder=encoder,
        weights=weights,
        tokenizer=tokenizer,
        device=device,
        precision=precision,
        batch_size=batch_size,
        similarity="cosine",
    ).engine


@contextlib.contextmanager
def _resumable(path: Path) -> Any:
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(
            f"\nstopped; what was done is kept in {path}. The same command goes on from there.",
            err=True,
        )
        raise typer.Exit(130) from None


def _print_result(result: "BuildResult", keep_going: bool) -> None:
    if result.resumed_from:
        typer.echo(f"went on after row {result.resumed_from}", err=True)
    manifest = result.index.manifest
    typer.echo(
        f"{result.added_rows} distinct {manifest.kind}s added, {result.repeated} repeated; "
        f"the index holds {manifest.rows}"
    )
    typer.echo(f"index     {result.index.path}")
    typer.echo(f"signature {manifest.signature}")
    if result.bad_rows:
        typer.secho(f"{len(result.bad_rows)} rows could not be used:", fg="red", err=True)
        for bad in result.bad_rows[:_SHOWN_FAILURES]:
            typer.echo(f"  row {bad.row} ({bad.id}): {bad.reason}", err=True)
        typer.echo(f"all       {result.index.file('bad_rows')}", err=True)
        if not keep_going:
            raise typer.Exit(1)
