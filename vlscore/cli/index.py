"""`vlscore index`: corpora of reports for the oracle."""

from pathlib import Path
from typing import Annotated

from cyclopts import App

from vlscore.cli.output import (
    OutputOptions,
    echo,
    print_encoder_warning,
    print_failures,
    print_notes,
)
from vlscore.cli.progress import row_progress
from vlscore.cli.shared import (
    EncoderOptions,
    Out,
    Table,
    TableOptions,
    options,
    worker_count,
)

index = App(
    name="index",
    group_commands="Commands",
    help="Build a searchable corpus of reports.\n\n"
    "Its reports are embedded once; `vlscore oracle` searches them.",
)


@index.command
def build(
    corpus: Table,
    /,
    *,
    out: Out,
    images: bool = False,
    approximate: str | None = None,
    source: TableOptions = TableOptions(),
    encoding: Annotated[
        EncoderOptions, options(without=("C", "comparisons", "views"))
    ] = EncoderOptions(),
    output: Annotated[OutputOptions, options(without=("report", "as_json"))] = OutputOptions(),
) -> None:
    """Embed a corpus into an index; equal texts are embedded once, with all their ids.

    After a stop or a kill, give the same command again; earlier embeddings come from the cache.
    Rows that cannot be used are listed in failures.csv and on stderr, and the exit status is then 1
    (0 with --keep-going).

    Example: vlscore index build train.jsonl --encoder gloria --weights gloria.ckpt --out
    train-index

    Args:
        images: Index the images of the table (the first of each study) instead of its reports, for
            `vlscore oracle --metric text-to-image`.
        approximate: FAISS index for approximate search, such as "IVF1024,Flat",
            "IVF1024,PQ384x4fs" or "HNSW32"; useful for more than a million reports.
    """
    from vlscore.retrieval import index_build

    opened = source.opened(corpus, "id", "image") if images else source.reports(corpus)
    embedder = encoding.embedder()
    with row_progress(
        opened.count, "embedding", quiet=output.quiet, embedder=embedder
    ) as on_progress:
        result = index_build(
            opened,
            out,
            embedder,
            text_policy=encoding.section,
            approximate=approximate,
            overwrite=output.overwrite,
            workers=worker_count(encoding.workers),
            on_progress=on_progress,
        )
    print_encoder_warning(embedder)
    print_notes(result.notes)
    if result.unchanged:
        echo(f"{out} holds this corpus already; nothing was done", err=True)
    if not output.quiet:
        facts = result.facts
        echo(f"{facts.items} {facts.kind}s, {facts.rows} distinct")
        echo(result.signature)
        echo(f"wrote {out}")
    failures = result.failures
    many = f"rows of {corpus} could not be used"
    print_failures(failures, many, listed_in=out / "failures.csv")
    if failures and not output.keep_going:
        raise SystemExit(1)


@index.command
def info(path: Path, /) -> None:
    """Print the contents and settings of an index; its files must be unchanged.

    Example: vlscore index info train-index

    Args:
        path: Folder of the index.
    """
    from vlscore.retrieval import load_index

    opened = load_index(path)
    facts = opened.facts
    lines = {
        "signature": facts.signature,
        "checksum": facts.checksum,
        "holds": f"{facts.items} {facts.kind}s, {facts.rows} distinct",
        "failed rows": len(opened.failures),
        "dimension": facts.dim,
        "approximate": facts.approximate or "none (exact search only)",
        "table": opened.record["table"],
        "vlscore": opened.record["vlscore"],
    }
    for name, value in lines.items():
        echo(f"{name:<12}{value}")
    if facts.demonstration:
        echo("made with the demonstration encoder, trained on synthetic phantoms", err=True)
