"""`vlscore oracle`: the best reports of a corpus for each study."""

import contextlib
import dataclasses
import tempfile
from itertools import islice
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
from vlscore.cli.options import OUTPUT, TABLE_HELP, FormatOption, OptionalOutOption, option
from vlscore.cli.output import (
    GROUPED_FAILURES,
    echo,
    exit_if_failed,
    print_encoder_warning,
    print_failures,
    print_json,
    print_run_notes,
)
from vlscore.cli.progress import cache_hits, stopping
from vlscore.retrieval import SearchSettings

if TYPE_CHECKING:
    from vlscore.embedding import StudyEmbedder
    from vlscore.retrieval import OracleResult, OracleSettings


SEARCH = "Search"

_SHOWN_STUDIES = 10


ShowOption = Annotated[
    int | None,
    option(
        "--show",
        f"Print the hits of the first N studies. Default: {_SHOWN_STUDIES}, or none with --out.",
        "N",
        OUTPUT,
        min=0,
    ),
]


CheckOption = Annotated[
    bool,
    option(
        "--check/--no-check",
        "First compare the index with its sha256s, which reads all of it.",
        panel=SEARCH,
    ),
]


@grouped("candidate_column", "reference_section", "candidate_section", after={"effort": "mode"})
def oracle(
    *,
    studies: Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="STUDIES")],
    index: Annotated[Path, option("--index -i", "Folder of the index.", "FOLDER")],
    search: SearchSettings,
    top_k: Annotated[int | None, typer.Option("--top-k", hidden=True)] = None,
    check: CheckOption = True,
    table: TableOptions,
    encoding: IndexEncoderOptions,
    out: OptionalOutOption = None,
    format: FormatOption = "parquet",
    running: RunOptions,
    show: ShowOption = None,
    printing: PrintOptions,
) -> None:
    """Find the reports of a corpus that score best for a study.

    A hit is printed with its score, the area, foot (its projection onto the line from image, 0, to
    reference, 1), h/|r-i| (its height over that line), |g-r| (distance to the reference) and its
    rank by that distance, 1 the nearest. Any report on the line has the perfect score 1, however
    far from the reference: look at foot and rank, or choose a --guard.

    With --out, hits.jsonl has one study a line, hits.parquet (or .csv) one hit a row. Stop with
    Ctrl-C and start the same command again to resume.

    The encoder is that of the index; --section and --precision must be those with which the index
    was built. Under torchrun, each process searches its part of the corpus; for the same embeddings
    the result is the same, bit for bit.

    Example: vlscore oracle studies.jsonl --index train-index --k 10 --out oracle
    """
    from vlscore.cli.progress import row_progress
    from vlscore.data import count_rows
    from vlscore.retrieval import Shards, load_index, serve_oracles
    from vlscore.retrieval import oracle as run

    settings = _settings(search, top_k, encoding.C)
    opened = load_index(index, check=check)
    total = count_rows(studies)
    shards = Shards.from_torchrun(encoding.device)
    if shards.rank > 0:
        serve_oracles(opened, settings, shards, device=shards.device)
        shards.close()
        return
    embedder: StudyEmbedder | None = None
    if settings.uses_embeddings:
        device = shards.device if shards.count > 1 else encoding.device
        chosen = dataclasses.replace(encoding.of_index(index, opened.manifest), device=device)
        embedder = chosen.embedder()
    with contextlib.ExitStack() as stack:
        folder = out or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        with (
            stopping(out, "finished studies are"),
            row_progress(
                total, "searching", quiet=printing.is_silent, also=cache_hits(embedder)
            ) as on_progress,
        ):
            result = run(
                studies,
                folder,
                opened,
                embedder,
                settings,
                text_policy=encoding.section,
                columns=table.columns("id", "image", "reference", "view"),
                image_root=table.image_root,
                format=format,
                workers=encoding.decoders(),
                overwrite=running.overwrite,
                shards=shards,
                device=str(embedder.encoder.device) if embedder is not None else "cpu",
                on_progress=on_progress,
            )
        shards.close()
        print_encoder_warning(embedder)
        _print(result, show, out, printing)
    exit_if_failed(result.summary.failed, running.keep_going)


def _settings(search: SearchSettings, k: int | None, C: float | None) -> "OracleSettings":
    """Return the settings of the search, with --top-k and --C."""
    from vlscore.retrieval import OracleSettings, oracle_metric

    chosen = {**vars(search), **({} if k is None else {"k": k})}
    if C is not None:
        chosen["metric"] = oracle_metric(search.metric).metric(C=C)
    return OracleSettings(**chosen)


def _print(
    result: "OracleResult", show: int | None, out: Path | None, printing: PrintOptions
) -> None:
    """Print the hits of the first studies, the summary, and the studies that failed."""
    print_run_notes(result, "searched for")
    if printing.as_json:
        print_json(result.summary.to_dict())
    elif not printing.quiet:
        _print_hits(result, (_SHOWN_STUDIES if out is None else 0) if show is None else show, out)
    if failed := result.summary.failed:
        shown = result.first_failures(GROUPED_FAILURES)
        print_failures(shown, failed, "studies failed", "study failed")


def _print_hits(result: "OracleResult", show: int, out: Path | None) -> None:
    from vlscore.retrieval import answer_text, oracle_text

    searched = (answer for answer in result.answers() if answer.error is None)
    for answer in islice(searched, show):
        echo(answer_text(answer))
    rest = result.summary.searched - show
    if out is None and show and rest > 0:
        echo(f"\n... and {rest} more; --show N prints more, --out FOLDER writes all")
    echo(f"\n{oracle_text(result.summary)}")
    if out is not None:
        for name in (result.answers_file, result.hits_file, result.summary_file, result.record):
            echo(f"wrote {name}")
