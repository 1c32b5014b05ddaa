"""`vlscore index`: corpora of reports for the oracle."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlscore.cli.options import (
    OUTPUT,
    TABLE,
    TABLE_HELP,
    BatchSizeOption,
    CompileOption,
    DeviceOption,
    EncoderOption,
    IdColumnOption,
    ImageColumnOption,
    ImagePolicyOption,
    ImageRootOption,
    IndexEncoderOption,
    KeepGoingOption,
    NoCacheOption,
    OutOption,
    OverwriteOption,
    PrecisionOption,
    QuietOption,
    SectionOption,
    TokenizerOption,
    WeightsOption,
    WorkersOption,
    make_embedder,
    worker_count,
)
from vlscore.cli.output import (
    GroupedCommand,
    cache_hits,
    echo,
    say_of_encoder,
    say_of_failures,
    stopping,
)

if TYPE_CHECKING:
    from vlscore.embedding import StudyEmbedder
    from vlscore.retrieval import BuildResult


index = typer.Typer(
    help="Build, extend and check indexes: corpora of reports, embedded once, that `vlscore "
    "oracle` searches.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

IndexArgument = Annotated[Path, typer.Argument(help="Folder of the index.", metavar="INDEX")]
IndexOption = Annotated[
    Path,
    typer.Option(
        "--index", "-i", metavar="FOLDER", help="Folder of the index.", rich_help_panel=OUTPUT
    ),
]
TableArgument = Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="REPORTS")]
TextColumnOption = Annotated[
    str | None,
    typer.Option(
        "--text-column",
        metavar="NAME",
        help="Column with the report. Default: report, text or reference; else the columns "
        "findings and impression, or that of the two which --section names.",
        show_default=False,
        rich_help_panel=TABLE,
    ),
]


@index.command(cls=GroupedCommand)
def build(
    corpus: TableArgument,
    out: OutOption,
    images: Annotated[
        bool,
        typer.Option(
            "--images",
            help="Index the table's radiographs (the first of each study), not its reports; for "
            "`vlscore oracle --metric text-to-image`.",
            show_default=False,
        ),
    ] = False,
    approximate: Annotated[
        str | None,
        typer.Option(
            metavar="FACTORY",
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
    id_column: IdColumnOption = "id",
    text_column: TextColumnOption = None,
    image_column: ImageColumnOption = "image",
    image_root: ImageRootOption = None,
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
    section: SectionOption = "all",
    overwrite: OverwriteOption = False,
    keep_going: KeepGoingOption = False,
    quiet: QuietOption = False,
) -> None:
    """Embed a corpus into an index; equal texts are embedded once and keep all their ids.

    Stopped or killed, the same command goes on where it was. Rows that cannot be used are listed
    in the index and on stderr, and the exit status is then 1 unless --keep-going is given.

    Example: vlscore index build train.jsonl --encoder gloria --weights gloria.ckpt --out
    train-index
    """
    from vlscore.retrieval import SourceSettings, build_index

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
    )
    settings = SourceSettings(
        kind="image" if images else "report",
        text_policy=section,
        id_column=id_column,
        text_column=text_column,
        image_column=image_column,
        image_root=image_root,
    )
    with _stoppable(out, corpus, embedder, quiet) as on_progress:
        result = build_index(
            corpus,
            out,
            embedder,
            settings,
            approximate=approximate,
            flat=faiss,
            overwrite=overwrite,
            workers=worker_count(workers),
            on_progress=on_progress,
        )
    _print_result(result, corpus, embedder, keep_going=keep_going, quiet=quiet)


@index.command(cls=GroupedCommand)
def add(
    corpus: TableArgument,
    path: IndexOption,
    id_column: IdColumnOption = "id",
    text_column: TextColumnOption = None,
    image_column: ImageColumnOption = "image",
    image_root: ImageRootOption = None,
    encoder: IndexEncoderOption = None,
    weights: WeightsOption = None,
    tokenizer: TokenizerOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = "fp32",
    compile: CompileOption = False,
    batch_size: BatchSizeOption = None,
    no_cache: NoCacheOption = False,
    workers: WorkersOption = None,
    image_policy: ImagePolicyOption = "auto",
    section: SectionOption = "all",
    keep_going: KeepGoingOption = False,
    quiet: QuietOption = False,
) -> None:
    """Add another table to an index, with the encoder and policies it was built with.

    A text that is there already gets the new ids; only new texts are embedded. Searches that run
    meanwhile see the old index. Stopped or killed, the same command goes on where it was.

    Example: vlscore index add more.jsonl --index train-index
    """
    from vlscore.retrieval import SourceSettings, add_to_index, encoder_name_of, read_manifest

    embedder = make_embedder(
        encoder or encoder_name_of(path, read_manifest(path)),
        weights,
        tokenizer,
        device=device,
        precision=precision,
        compile=compile,
        batch_size=batch_size,
        cache=not no_cache,
        image_policy=image_policy,
    )
    settings = SourceSettings(
        text_policy=section,
        id_column=id_column,
        text_column=text_column,
        image_column=image_column,
        image_root=image_root,
    )
    with _stoppable(path, corpus, embedder, quiet) as on_progress:
        result = add_to_index(
            corpus,
            path,
            embedder,
            settings,
            workers=worker_count(workers),
            on_progress=on_progress,
        )
    _print_result(result, corpus, embedder, keep_going=keep_going, quiet=quiet)


@index.command(cls=GroupedCommand)
def info(path: IndexArgument) -> None:
    """Print what an index holds and what it was made with, without reading all of it.

    Example: vlscore index info train-index
    """
    from vlscore.retrieval import load_index

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
        echo(f"{name:<12}{value}")
    for role, record in manifest.files.items():
        echo(f"{role:<12}{record.name}, {record.size:,} bytes")
    if manifest.demonstration:
        echo("made with the demonstration encoder, trained on synthetic phantoms", err=True)


@index.command(cls=GroupedCommand)
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
    from vlscore.retrieval import measure_recall, verify_index

    opened = verify_index(path)
    manifest = opened.manifest
    faiss = next((role for role in ("flat", "approximate") if role in manifest.files), None)
    agreeing = f"; the {faiss} FAISS file agrees with the vectors" if faiss else ""
    echo(f"{path}: whole; {len(opened)} rows of {manifest.dim}{agreeing}")
    if recall:
        if manifest.approximate is None:
            raise InvalidSetting(
                f"{path} has no approximate index to measure: build one with --approximate"
            )
        for k, share in measure_recall(opened, sample, seed, effort).items():
            echo(f"recall@{k} {share:.4f} of {sample} queries made of the corpus's own rows")


@contextlib.contextmanager
def _stoppable(path: Path, corpus: Path, embedder: "StudyEmbedder", quiet: bool) -> Iterator[Any]:
    from vlscore.cli.output import row_progress
    from vlscore.data import count_rows

    with (
        stopping(path, "finished rows are"),
        row_progress(
            count_rows(corpus), "embedding", quiet=quiet, also=cache_hits(embedder)
        ) as on_progress,
    ):
        yield on_progress


def _source_names(sources: list[dict[str, str]]) -> list[str]:
    """Tables by name, and with their folder where two have the same name."""
    names = [source["name"] for source in sources]
    return [
        f"{source['name'] if names.count(source['name']) == 1 else source.get('path', '?')}"
        f"@{source['sha256'][:12]}"
        for source in sources
    ]


def _print_result(
    result: "BuildResult",
    corpus: Path,
    embedder: "StudyEmbedder",
    *,
    keep_going: bool,
    quiet: bool,
) -> None:
    manifest = result.index.manifest
    say_of_encoder(embedder)
    if result.unchanged:
        echo(
            f"{result.index.path} holds this corpus already; nothing was done. `vlscore index "
            "build --overwrite` builds it anew",
            err=True,
        )
    elif result.resumed_from:
        echo(f"went on after row {result.resumed_from}", err=True)
    if not quiet:
        echo(
            f"{result.added_rows} distinct {manifest.kind}s added, {result.repeated} repeated; "
            f"the index holds {manifest.rows}"
        )
        echo(manifest.facts)
        echo(f"wrote {result.index.path}")
    if result.bad_rows:
        count = len(result.bad_rows)
        rows = "rows" if count > 1 else "row"
        shown = [(bad.row, str(bad.id), bad.reason) for bad in result.bad_rows]
        say_of_failures(shown, count, f"{rows} of {corpus} could not be used")
        echo(f"all of them: {result.index.file('bad_rows')}", err=True)
        if not keep_going:
            raise typer.Exit(1)
