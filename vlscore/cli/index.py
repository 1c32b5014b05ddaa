"""`vlscore index`: corpora of reports for the oracle."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlscore.cli.options import (
    BatchSizeOption,
    DeviceOption,
    EncoderOption,
    ImagePolicyOption,
    PrecisionOption,
    SectionOption,
    TokenizerOption,
    WeightsOption,
    make_scorer,
)

if TYPE_CHECKING:
    from vlscore.embedding import EmbeddingEngine
    from vlscore.index import BuildResult

index = typer.Typer(
    help="Build, extend and check indexes: corpora of reports, embedded once, that `vlscore "
    "oracle` searches.",
    no_args_is_help=True,
)

IndexArgument = Annotated[Path, typer.Argument(help="Folder of the index.")]
TableArgument = Annotated[
    Path, typer.Argument(help="Table of reports, one a row: .jsonl, .csv or .parquet.")
]
IdOption = Annotated[str, typer.Option(help="Column with the report's id.")]
TextOption = Annotated[
    str | None,
    typer.Option(
        help="Column with the report. Default: report, text or reference; else the columns "
        "findings and impression, or that of the two which --section names.",
        show_default=False,
    ),
]
ImageColumnOption = Annotated[
    str, typer.Option(help="Column with the image path(s), for an index of radiographs.")
]
ImageRootOption = Annotated[
    Path | None,
    typer.Option(help="Folder that image paths start from. Default: the table's folder."),
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
    window: ImagePolicyOption = "auto",
    id_column: IdOption = "id",
    text_column: TextOption = None,
    images: Annotated[
        bool,
        typer.Option(
            "--images",
            help="Index the table's radiographs (the first of each study), not its reports; for "
            "`vlscore oracle --metric text-to-image`.",
        ),
    ] = False,
    image_column: ImageColumnOption = "image",
    image_root: ImageRootOption = None,
    approximate: Annotated[
        str | None,
        typer.Option(
            help='FAISS index for approximate search, such as "IVF1024,Flat", "IVF1024,PQ384x4fs" '
            'or "HNSW32"; worth it beyond a million reports.',
            show_default=False,
        ),
    ] = None,
    faiss: Annotated[
        bool,
        typer.Option(
            "--faiss/--no-faiss",
            help="Also write the vectors as a flat FAISS file, for other programs; `vlscore "
            "oracle` does not need it.",
        ),
    ] = True,
    overwrite: Annotated[
        bool,
        typer.Option(help="Replace the index in --out, and forget an unfinished build there."),
    ] = False,
    keep_going: KeepGoingOption = False,
) -> None:
    """Embed a corpus into an index; equal texts are embedded once and keep all their ids.

    Stopped or killed, the same command goes on where it was. Rows that cannot be used are listed
    in the index and on stderr, and the exit status is then 1 unless --keep-going is given.

    Example: vlscore index build train.jsonl --encoder gloria --weights gloria.ckpt --out
    train-index
    """
    from vlscore.index import SourceSettings, build_index

    engine = _engine(
        encoder=encoder,
        weights=weights,
        tokenizer=tokenizer,
        device=device,
        precision=precision,
        batch_size=batch_size,
        image_policy=window,
    )
    settings = SourceSettings(
        kind="image" if images else "report",
        text_policy=section,
        id_column=id_column,
        text_column=text_column,
        image_column=image_column,
        image_root=image_root,
    )
    with _resumable(out, corpus) as on_progress:
        result = build_index(
            corpus,
            out,
            engine,
            settings,
            approximate=approximate,
            flat=faiss,
            overwrite=overwrite,
            on_progress=on_progress,
        )
    _print_result(result, corpus, keep_going)


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
    window: ImagePolicyOption = "auto",
    id_column: IdOption = "id",
    text_column: TextOption = None,
    image_column: ImageColumnOption = "image",
    image_root: ImageRootOption = None,
    keep_going: KeepGoingOption = False,
) -> None:
    """Add another table to an index, with the encoder and policies it was built with.

    A text that is there already gets the new ids; only new texts are embedded. Searches that run
    meanwhile see the old index. Stopped or killed, the same command goes on where it was.

    Example: vlscore index add more.jsonl --index train-index
    """
    from vlscore.index import SourceSettings, add_to_index
    from vlscore.index.manifest import read_manifest

    engine = _engine(
        encoder=encoder or read_manifest(path).encoder,
        weights=weights,
        tokenizer=tokenizer,
        device=device,
        precision=precision,
        batch_size=batch_size,
        image_policy=window,
    )
    settings = SourceSettings(
        text_policy=section,
        id_column=id_column,
        text_column=text_column,
        image_column=image_column,
        image_root=image_root,
    )
    with _resumable(path, corpus) as on_progress:
        result = add_to_index(corpus, path, engine, settings, on_progress=on_progress)
    _print_result(result, corpus, keep_going)


@index.command()
def info(path: IndexArgument) -> None:
    """Print what an index holds and what it was made with, without reading all of it.

    Example: vlscore index info train-index
    """
    from vlscore.index import load_index

    manifest = load_index(path, check=False).manifest
    lines: dict[str, Any] = {
        "signature": manifest.signature,
        "checksum": manifest.checksum,
        "holds": f"{manifest.items} {manifest.kind}s, {manifest.rows} distinct",
        "bad rows": manifest.bad_rows,
        "dimension": manifest.dim,
        "approximate": manifest.approximate or "none (exact search only)",
        "sources": ", ".join(_source_names(manifest.sources)),
        "vlscore": manifest.version,
    }
    for name, value in lines.items():
        typer.echo(f"{name:<12}{value}")
    for role, record in manifest.files.items():
        typer.echo(f"{role:<12}{record.name}, {record.size:,} bytes")
    if manifest.demonstration:
        typer.echo("made with the demonstration encoder, trained on synthetic phantoms", err=True)


@index.command()
def verify(
    path: IndexArgument,
    recall: Annotated[
        bool,
        typer.Option(
            "--recall",
            help="Also measure approximate search against exact search; the index must have been "
            "built with --approximate.",
        ),
    ] = False,
    sample: Annotated[int, typer.Option(min=1, help="Queries for --recall.")] = 200,
    seed: Annotated[int, typer.Option(help="Chooses those queries.")] = 0,
    effort: Annotated[
        int | None,
        typer.Option(min=1, help="As of `vlscore oracle`, for --recall.", show_default=False),
    ] = None,
) -> None:
    """Read an index in full: sha256s, vectors, texts, ids, and the FAISS file's rows.

    Example: vlscore index verify train-index
    """
    from vlscore.errors import InvalidSetting
    from vlscore.index import verify_index
    from vlscore.index.verify import measure_recall

    opened = verify_index(path)
    manifest = opened.manifest
    faiss = next((role for role in ("flat", "approximate") if role in manifest.files), None)
    agreeing = f"; the {faiss} FAISS file agrees with the vectors" if faiss else ""
    typer.echo(f"{path}: whole; {len(opened)} rows of {manifest.dim}{agreeing}")
    if recall:
        if manifest.approximate is None:
            raise InvalidSetting(
                f"{path} has no approximate index to measure: build one with --approximate"
            )
        for k, share in measure_recall(opened, sample, seed, effort).items():
            typer.echo(f"recall@{k} {share:.4f} of {sample} queries made of the corpus's own rows")


def _engine(**options: Any) -> "EmbeddingEngine":
    return make_scorer(similarity="cosine", **options).engine


@contextlib.contextmanager
def _resumable(path: Path, corpus: Path) -> Iterator[Any]:
    from vlscore.cli.progress import row_progress
    from vlscore.studies import count_rows

    try:
        with row_progress(count_rows(corpus), "embedding") as on_progress:
            yield on_progress
    except KeyboardInterrupt:
        typer.echo(
            f"\nstopped; what was done is kept in {path}. The same command goes on from there.",
            err=True,
        )
        raise typer.Exit(130) from None


def _source_names(sources: list[dict[str, str]]) -> list[str]:
    """Tables by name, and with their folder where two have the same name."""
    names = [source["name"] for source in sources]
    return [
        f"{source['name'] if names.count(source['name']) == 1 else source.get('path', '?')}"
        f"@{source['sha256'][:12]}"
        for source in sources
    ]


def _print_result(result: "BuildResult", corpus: Path, keep_going: bool) -> None:
    manifest = result.index.manifest
    if result.unchanged:
        typer.echo(
            f"{result.index.path} holds this corpus already, nothing was done; `vlscore index "
            "build --overwrite` builds it anew"
        )
    elif result.resumed_from:
        typer.echo(f"went on after row {result.resumed_from}", err=True)
    typer.echo(
        f"{result.added_rows} distinct {manifest.kind}s added, {result.repeated} repeated; "
        f"the index holds {manifest.rows}"
    )
    typer.echo(f"index     {result.index.path}")
    typer.echo(f"signature {manifest.signature}")
    if result.bad_rows:
        count = len(result.bad_rows)
        typer.secho(f"{count} rows of {corpus} could not be used:", fg="red", err=True)
        for bad in result.bad_rows[:_SHOWN_FAILURES]:
            typer.echo(f"  row {bad.row} ({bad.id}): {bad.reason}", err=True)
        if count > _SHOWN_FAILURES:
            typer.echo(f"  ... and {count - _SHOWN_FAILURES} more", err=True)
        typer.echo(f"all       {result.index.file('bad_rows')}", err=True)
        if not keep_going:
            raise typer.Exit(1)
