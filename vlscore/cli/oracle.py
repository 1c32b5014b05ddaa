"""`vlscore oracle`: the best reports of a corpus for each study."""

import contextlib
import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vlscore.cli.option_groups import (
    IndexEncoderOptions,
    PrintOptions,
    RunOptions,
    TableOptions,
    grouped,
)
from vlscore.cli.options import TABLE_HELP, OptionalOutOption, option
from vlscore.cli.output import (
    GROUPED_FAILURES,
    echo,
    exit_if_failed,
    print_encoder_warning,
    print_failures,
    print_json,
    print_run_notes,
    print_tables,
)
from vlscore.cli.progress import cache_hits, row_progress, stopping
from vlscore.retrieval import OracleSettings

if TYPE_CHECKING:
    from vlscore.embedding import StudyEmbedder


@grouped("candidate_column", "reference_section", "candidate_section", after={"effort": "mode"})
def oracle(
    *,
    studies: Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="STUDIES")],
    index: Annotated[Path, option("--index -i", "Folder of the index.", "FOLDER")],
    search: OracleSettings,
    check: Annotated[
        bool,
        option(
            "--check/--no-check",
            "First compare the index with its sha256s, which reads all of it.",
            panel="Search",
        ),
    ] = True,
    table: TableOptions,
    encoding: IndexEncoderOptions,
    out: OptionalOutOption = None,
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Find the reports of a corpus that score best for a study.

    Hits are printed with their foot (the projection onto the line from image, 0, to reference, 1)
    and their rank by the distance from the reference, 1 the nearest. Any report on the line has the
    perfect score 1, however far from the reference: look at foot and rank, or choose a --guard.

    With --out, hits.parquet has one hit a row, also with its area, its height over that line and
    its distance from the reference. After a stop, the same command takes what was found from the
    cache.

    The encoder is that of the index; --section and --precision must be those with which the index
    was built.

    Example: vlscore oracle studies.jsonl --index train-index --k 10 --out oracle
    """
    from vlscore.data import count_rows
    from vlscore.retrieval import load_index
    from vlscore.retrieval import oracle as run

    if encoding.C is not None:
        search = dataclasses.replace(search, metric=search.scored(C=encoding.C))
    opened = load_index(index, check=check)
    embedder: StudyEmbedder | None = None
    if search.uses_embeddings:
        embedder = encoding.of_index(opened).embedder()
    with contextlib.ExitStack() as stack:
        folder = out or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with (
            stopping(out, "what was found is"),
            row_progress(
                count_rows(studies),
                "searching",
                quiet=printing.is_silent,
                also=cache_hits(embedder),
            ) as on_progress,
        ):
            result = run(
                studies,
                folder,
                opened,
                embedder,
                search,
                text_policy=encoding.section,
                columns=table.columns("id", "image", "reference", "view"),
                image_root=table.image_root,
                workers=encoding.decoders(),
                overwrite=running.overwrite,
                device=str(embedder.encoder.device) if embedder is not None else "cpu",
                on_progress=on_progress,
            )
        print_encoder_warning(embedder)
        print_run_notes(result, "searched for")
        if printing.as_json:
            print_json(result.content)
        elif not printing.quiet:
            print_tables(result.tables)
            echo("\n".join(result.signatures.values()))
            if out is not None:
                echo(f"wrote {out}")
        failures = result.failures
    print_failures(failures[:GROUPED_FAILURES], len(failures), "studies failed", "study failed")
    exit_if_failed(failures, running.keep_going)
