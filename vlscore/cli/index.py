"""`vlscore index`: corpora of reports for the oracle."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.help_layout import GroupedCommand, GroupedCommands
from vlscore.cli.option_groups import PrintOptions, RunOptions, ScorerOptions, grouped
from vlscore.cli.options import TABLE_HELP, OutOption, option
from vlscore.cli.output import (
    GROUPED_FAILURES,
    echo,
    exit_if_failed,
    print_encoder_warning,
    print_failures,
)
from vlscore.cli.progress import cache_hits, row_progress, stopping
from vlscore.retrieval import SourceSettings

index = typer.Typer(
    name="index",
    cls=GroupedCommands,
    help="Build a searchable corpus of reports.\n\n"
    "Its reports are embedded once; `vlscore oracle` searches them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@index.command(cls=GroupedCommand)
@grouped("C", "views", "reference_section", "candidate_section", "as_json", "report")
def build(
    *,
    corpus: Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="REPORTS")],
    out: OutOption,
    images: Annotated[
        bool,
        option(
            "--images",
            "Index the table's radiographs (the first of each study), not its reports; for "
            "`vlscore oracle --metric text-to-image`.",
        ),
    ] = False,
    approximate: Annotated[
        str | None,
        option(
            "--approximate",
            'FAISS index for approximate search, such as "IVF1024,Flat", "IVF1024,PQ384x4fs" '
            'or "HNSW32"; worth it beyond a million reports.',
            "FACTORY",
        ),
    ] = None,
    source: SourceSettings,
    encoding: ScorerOptions,
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Embed a corpus into an index; equal texts are embedded once, with all their ids.

    After a stop or a kill, the same command takes what was embedded from the cache. Rows that
    cannot be used are listed in failures.csv and on stderr, and the exit status is then 1 unless
    --keep-going is given.

    Example: vlscore index build train.jsonl --encoder gloria --weights gloria.ckpt --out
    train-index
    """
    from vlscore.data import count_rows
    from vlscore.retrieval import index_build

    embedder = encoding.embedder()
    kind = "image" if images else "report"
    settings = dataclasses.replace(source, kind=kind, text_policy=encoding.section)
    with (
        stopping(out, "what was embedded is"),
        row_progress(
            count_rows(corpus), "embedding", quiet=printing.quiet, also=cache_hits(embedder)
        ) as on_progress,
    ):
        result = index_build(
            corpus,
            out,
            embedder,
            settings,
            approximate=approximate,
            overwrite=running.overwrite,
            workers=encoding.decoders(),
            on_progress=on_progress,
        )
    print_encoder_warning(embedder)
    if result.unchanged:
        echo(f"{out} holds this corpus already; nothing was done", err=True)
    if not printing.quiet:
        facts = result.facts
        echo(f"{facts.items} {facts.kind}s, {facts.rows} distinct")
        echo(result.signature)
        echo(f"wrote {out}")
    failures = result.failures
    rest = f"of {corpus} could not be used"
    print_failures(
        failures[:GROUPED_FAILURES],
        len(failures),
        f"rows {rest}",
        f"row {rest}",
        listed_in=out / "failures.csv",
    )
    exit_if_failed(failures, running.keep_going)


@index.command(cls=GroupedCommand)
def info(
    path: Annotated[Path, typer.Argument(help="Folder of the index.", metavar="INDEX")],
) -> None:
    """Print what is in an index and what it was made with; its files must be unchanged.

    Example: vlscore index info train-index
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
