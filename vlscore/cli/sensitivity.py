"""`vlscore sensitivity`: which changes of a report metrics notice."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from vlscore.cli.option_groups import PrintOptions, RunOptions, ScorerOptions, TableOptions, grouped
from vlscore.cli.options import METRICS_HELP, OUTPUT, TABLE_HELP, FormatOption, OutOption, option
from vlscore.cli.output import (
    echo,
    exit_if_failed,
    print_encoder_warning,
    print_left_out,
    print_result,
    without_intervals,
)
from vlscore.cli.progress import cache_hits, stopping
from vlscore.evaluation import SensitivitySettings

if TYPE_CHECKING:
    from collections.abc import Iterable

    from vlscore.stats import TextTable


PerturbationsOption = Annotated[
    Path,
    option(
        "--perturbations -p",
        "Folder that `vlscore perturb` wrote, or a .jsonl file like that in it.",
        "FOLDER",
    ),
]
StudiesOption = Annotated[
    Path | None,
    option(
        "--studies",
        f"{TABLE_HELP} With the studies' ids and images; without it, metrics that look at "
        "the image are left out.",
        "STUDIES",
    ),
]
FigureOption = Annotated[
    str | None,
    option(
        "--figure",
        "Format of the figures: png, svg or pdf. Default: png, if matplotlib is installed.",
        "NAME",
        OUTPUT,
    ),
]


MetricsOption = Annotated[
    list[str] | None,
    option("--metrics -m", f"{METRICS_HELP} Default: every one that needs no model file.", "NAMES"),
]


@grouped("reference_column", "candidate_column", "reference_section", "candidate_section")
def sensitivity(
    *,
    perturbations: PerturbationsOption,
    out: OutOption,
    studies: StudiesOption = None,
    metrics: MetricsOption = None,
    settings: SensitivitySettings,
    columns: TableOptions,
    encoding: ScorerOptions,
    figure: FigureOption = None,
    format: FormatOption = "csv",
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Show which changes of a report each metric notices.

    Prints how much each kind of change lowers each metric. The folder also has the tables of the
    VLScore paper: removed sentences (Table 2), changed words (Table 3), standard normal reports
    (Figure 2); and every value. --swap-images shows how much scores and ranks move when the image
    is another study's, or black. Metrics are compared on the changes for which all have values.

    Example: vlscore sensitivity -p perturbed --metrics bleu-4,judge -o noticed
    """
    from vlscore.cli.progress import phase_progress
    from vlscore.evaluation import sensitivity as compute_sensitivity

    table = embedder = None
    if studies is not None:
        table = columns.studies(studies, {"image"}, "id", "image", "view")
    if studies is not None or encoding.encoder is not None:
        embedder = encoding.embedder()
    with (
        stopping(out),
        phase_progress(quiet=printing.is_silent, also=cache_hits(embedder)) as on_phase,
    ):
        run = compute_sensitivity(
            perturbations,
            out,
            metrics=metrics,
            **vars(settings),
            embedder=embedder,
            studies=table,
            text_policy=encoding.section,
            C=encoding.C,
            figure=figure,
            format=format,
            workers=encoding.decoders(),
            overwrite=running.overwrite,
            on_phase=on_phase,
        )
    print_encoder_warning(embedder)
    print_result(run, printing, "changes have no value", tables=_shown(run.tables))
    print_left_out(run.record["left_out"])
    if run.record["truncated"]:
        echo(f"{run.record['truncated']} reports are longer than the encoder reads", err=True)
    exit_if_failed(run.failures, running.keep_going)


def _shown(tables: "Iterable[TextTable]") -> "list[TextTable]":
    """Return the drops of every kind first, and whether the image counts, as far as computed."""
    named = list(tables)
    caption = "Means over studies. tables.md has their 95 % bootstrap intervals."
    first = [
        dataclasses.replace(without_intervals(table), caption=caption)
        for table in named
        if table.columns[0] == "kind"
    ]
    first += [table for table in named if "image" in table.columns]
    others = [table for table in named if table.columns[0] != "kind" and table not in first]
    return [*first, *others]
