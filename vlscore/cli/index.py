"""`vlscore index`: corpora of reports for the oracle."""

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlscore.cli.help_layout import GroupedCommand, GroupedCommands
from vlscore.cli.option_groups import (
    IndexEncoderOptions,
    PrintOptions,
    RunOptions,
    ScorerOptions,
    grouped,
)
from vlscore.cli.options import OUTPUT, TABLE_HELP, OutOption, option
from vlscore.cli.output import echo, print_bad_rows, print_encoder_warning
from vlscore.cli.progress import cache_hits, stopping
from vlscore.retrieval import SourceSettings

if TYPE_CHECKING:
    from vlscore.embedding import StudyEmbedder
    from vlscore.retrieval import BuildResult


index = typer.Typer(
    name="index",
    cls=GroupedCommands,
    help="Build, extend and check a searchable corpus of reports.\n\n"
    "Its reports are embedded once; `vlscore oracle` searches them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

IndexArgument = Annotated[Path, typer.Argument(help="Folder of the index.", metavar="INDEX")]
IndexOption = Annotated[Path, option("--index -i", "Folder of the index.", "FOLDER", OUTPUT)]
TableArgument = Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="REPORTS")]
ImagesOption = Annotated[
    bool,
    option(
        "--images",
        "Index the table's radiographs (the first of each study), not its reports; for "
        "`vlscore oracle --metric text-to-image`.",
    ),
]
ApproximateOption = Annotated[
    str | None,
    option(
        "--approximate",
        'FAISS index for approximate search, such as "IVF1024,Flat", "IVF1024,PQ384x4fs" '
        'or "HNSW32"; worth it beyond a million reports.',
        "FACTORY",
    ),
]
FaissOption = Annotated[
    bool,
    option(
        "--faiss/--no-faiss",
        "Also write the vectors as a flat FAISS file, for other programs; `vlscore "
        "oracle` does not need it.",
    ),
]


@index.command(cls=GroupedCommand)
@grouped("C", "views", "reference_section", "candidate_section", "as_json", "report")
def build(
    *,
    corpus: TableArgument,
    out: OutOption,
    images: ImagesOption = False,
    approximate: ApproximateOption = None,
    faiss: FaissOption = True,
    source: SourceSettings,
    encoding: ScorerOptions,
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Embed a corpus into an index; equal texts are embedded once, with all their ids.

    After a stop or a kill, the same command resumes. Rows that cannot be used are listed
    in the index and on stderr, and the exit status is then 1 unless --keep-going is given.

    Example: vlscore index build train.jsonl --encoder gloria --weights gloria.ckpt --out
    train-index
    """
    from vlscore.retrieval import index_build

    embedder = encoding.embedder()
    kind = "image" if images else "report"
    settings = dataclasses.replace(source, kind=kind, text_policy=encoding.section)
    with _stoppable(out, corpus, embedder, printing.quiet) as on_progress:
        result = index_build(
            corpus,
            out,
            embedder,
            settings,
            approximate=approximate,
            flat=faiss,
            overwrite=running.overwrite,
            workers=encoding.decoders(),
            on_progress=on_progress,
        )
    _print_result(result, corpus, embedder, running, printing)


@index.command(cls=GroupedCommand)
@grouped("C", "views", "reference_section", "candidate_section", "as_json", "overwrite", "report")
def add(
    *,
    corpus: TableArgument,
    path: IndexOption,
    source: SourceSettings,
    encoding: IndexEncoderOptions,
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Add another table to an index, with the encoder and policies it was built with.

    A text that is there already gets the new ids; only new texts are embedded. Searches that run
    meanwhile use the old index. After a stop or a kill, the same command resumes.

    Example: vlscore index add more.jsonl --index train-index
    """
    from vlscore.retrieval import index_add, read_manifest

    embedder = encoding.of_index(path, read_manifest(path)).embedder()
    settings = dataclasses.replace(source, text_policy=encoding.section)
    with _stoppable(path, corpus, embedder, printing.quiet) as on_progress:
        result = index_add(
            corpus, path, embedder, settings, workers=encoding.decoders(), on_progress=on_progress
        )
    _print_result(result, corpus, embedder, running, printing)


@index.command(cls=GroupedCommand)
def info(path: IndexArgument) -> None:
    """Print what is in an index and what it was made with, without reading all of it.

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
        option(
            "--recall",
            "Also measure approximate search against exact search; the index must have been "
            "built with --approximate.",
        ),
    ] = False,
    sample: Annotated[int, option("--sample", "Queries for --recall.", min=1)] = 200,
    seed: Annotated[int, option("--seed", "Seed of the choice of these queries.")] = 0,
    effort: Annotated[
        int | None,
        option("--effort", "Effort of the approximate search, as in `vlscore oracle`.", min=1),
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
    from vlscore.cli.progress import row_progress
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
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    manifest = result.index.manifest
    print_encoder_warning(embedder)
    if result.unchanged:
        echo(
            f"{result.index.path} holds this corpus already; nothing was done. `vlscore index "
            "build --overwrite` builds it anew",
            err=True,
        )
    elif result.resumed_from:
        echo(f"resumed after row {result.resumed_from}", err=True)
    if not printing.quiet:
        echo(
            f"{result.added_rows} distinct {manifest.kind}s added, {result.repeated} repeated; "
            f"the index holds {manifest.rows}"
        )
        echo(manifest.facts)
        echo(f"wrote {result.index.path}")
    if result.bad_rows:
        print_bad_rows(result.bad_rows, of=corpus, listed_in=result.index.file("bad_rows"))
        if not running.keep_going:
            raise typer.Exit(1)
