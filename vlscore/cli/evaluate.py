"""`vlscore evaluate`: a table of studies."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vlscore.cli.option_groups import PrintOptions, RunOptions, ScorerOptions, TableOptions, grouped
from vlscore.cli.options import (
    ENCODER,
    OUTPUT,
    ByOption,
    FigureOption,
    FormatOption,
    KeepOption,
    OutOption,
    PatientColumnOption,
    names_in,
    option,
)
from vlscore.cli.output import (
    check_figure,
    draw_figures,
    echo,
    exit_if_failed,
    print_encoder_warning,
    print_result,
    terminal_width,
)
from vlscore.cli.progress import cache_hits, stopping
from vlscore.errors import InvalidSetting

if TYPE_CHECKING:
    from vlscore.stats import Result, TextTable


ENGINES = ("local", "ray")


MetricsOption = Annotated[
    list[str] | None,
    option(
        "--metrics -m",
        "Metrics with commas between them, as in vlscore,cosine,bleu-4; repeatable. text, "
        "image and bleu are groups; `vlscore metrics` lists all.",
        "NAMES",
        show_default="vlscore",
    ),
]
EngineOption = Annotated[
    str,
    option(
        "--engine",
        "Where to compute: local, on this machine; or ray, on the Ray cluster that RAY_ADDRESS "
        "names, else one on this machine (pip install 'vlscore[ray]').",
        "NAME",
        ENCODER,
    ),
]
PartOption = Annotated[
    str | None,
    option(
        "--part",
        "Compute only the K-th of N parts of the rows, as a job of a batch system; --join makes "
        "the results of all parts.",
        "K/N",
    ),
]
JoinOption = Annotated[
    bool, option("--join", "Join the folders of all parts, named in place of the table.")
]
ShowOption = Annotated[
    int, option("--show", "Print the values of the first N rows.", "N", OUTPUT, min=0)
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ComputedOptions:
    """What is computed, and for which of the table's own columns."""

    metrics: MetricsOption = None
    keep: KeepOption = None
    by: ByOption = None
    patient_column: PatientColumnOption = None


@grouped()
def evaluate(
    *,
    studies: Annotated[
        list[Path],
        typer.Argument(
            help="Table: .jsonl, .json, .csv, .tsv or .parquet; with --join, the folders of all "
            "parts.",
            metavar="STUDIES",
        ),
    ],
    out: OutOption,
    computed: ComputedOptions,
    part: PartOption = None,
    join: JoinOption = False,
    columns: TableOptions,
    encoding: ScorerOptions,
    engine: EngineOption = "local",
    format: FormatOption = "parquet",
    figure: FigureOption = None,
    running: RunOptions,
    show: ShowOption = 0,
    printing: PrintOptions,
) -> None:
    """Compute metrics for every study of a table.

    The table has one study a row: id, image (one path, or several), reference, candidate; metrics
    of texts need no image. If references and candidates are in two files, join them with `vlscore
    pair`. A row without a value is listed in failures.csv with the reason, and the exit status is 1
    unless --keep-going is used. If the first hundred rows fail for one reason, the run ends.

    Stop with Ctrl-C; the same command computes again, what is slow from the cache.

    Example: vlscore evaluate studies.csv -m bleu-4,rouge-l --out scored
    """
    from vlscore.cli.progress import row_progress
    from vlscore.evaluation import OnRay, join_parts
    from vlscore.evaluation import evaluate as run
    from vlscore.metrics import Plan

    if engine not in ENGINES:
        raise InvalidSetting(f"engine is {' or '.join(ENGINES)}, not {engine!r}")
    check_figure(figure)
    embedder = None
    if join:
        result = join_parts(studies, out, format=format, overwrite=running.overwrite)
    elif len(studies) != 1:
        raise InvalidSetting("name one table; several folders are for --join")
    else:
        metrics = computed.metrics or ["vlscore"]
        # The table first: a slip in it is found before seconds go into loading an encoder.
        table = columns.studies(studies[0], Plan(metrics).needs.roles)
        scorer = encoding.scorer(metrics)
        embedder = scorer.embedder
        recipe = partial(encoding.absolute().scorer, metrics, quiet=True)
        with (
            stopping(out, stored=None),
            row_progress(
                table.count(), quiet=printing.is_silent, also=cache_hits(embedder)
            ) as on_progress,
        ):
            result = run(
                table,
                out,
                scorer,
                format=format,
                keep=names_in(computed.keep),
                by=names_in(computed.by),
                patient=computed.patient_column,
                part=part,
                engine=OnRay(recipe, workers=encoding.workers) if engine == "ray" else None,
                workers=encoding.decoders(),
                overwrite=running.overwrite,
                keep_going=running.keep_going,
                on_progress=on_progress,
            )
    draw_figures(result.folder, figure)
    print_encoder_warning(embedder)
    if show and not printing.is_silent:
        echo(_first_rows(result, show).text(terminal_width()) + "\n")
    print_result(result, printing, "rows lack a value", "row lacks a value")
    exit_if_failed(result.failures, running.keep_going)


def _first_rows(result: "Result", count: int) -> "TextTable":
    """Return the values of the first rows, as far as they are numbers of metrics."""
    from vlscore.stats import text_table

    name = next(name for name in result.record["results"] if name.startswith("scores."))
    rows = result.rows(name).head(count).dropna(axis="columns", how="all")
    flags = [column for column in rows if rows[column].dtype == bool]
    return text_table("", rows.drop(columns=flags), digits=4)
