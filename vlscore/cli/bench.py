"""`vlscore bench`: where the time goes on this machine."""

import time
from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.option_groups import PrintOptions, ScorerOptions, TableOptions, grouped
from vlscore.cli.options import METRICS_HELP, option
from vlscore.cli.output import echo, print_encoder_warning, print_json, terminal_width

MetricsOption = Annotated[
    list[str] | None, option("--metrics -m", METRICS_HELP, "NAMES", show_default="vlscore")
]


@grouped("C", "no_cache", "workers", "reference_section", "candidate_section", "quiet")
def bench(
    *,
    studies: Annotated[
        Path | None,
        typer.Argument(
            help="Table: .jsonl, .json, .csv, .tsv or .parquet. Default: the demonstration's.",
            metavar="[STUDIES]",
            show_default=False,
        ),
    ] = None,
    count: Annotated[int, option("--count -n", "Studies to measure.", "N", min=1)] = 64,
    metrics: MetricsOption = None,
    columns: TableOptions,
    encoding: ScorerOptions,
    printing: PrintOptions,
) -> None:
    """Show where the time of an evaluation goes on this machine.

    Does for some studies what `vlscore evaluate` does, one stage after the other on one process,
    and times each: start, reading, decoding by format, encoding, scoring, writing. Nothing is taken
    from the cache, and nothing is stored.

    Example: vlscore bench studies.csv --image-root /data/files --encoder biovil
    """
    began = time.perf_counter()
    # Before whatever else imports it, so that it is timed apart.
    import torch  # noqa: F401

    imported = time.perf_counter()
    from vlscore.core import resource_path
    from vlscore.evaluation import Stage, measure_stages
    from vlscore.metrics import Plan

    wanted = metrics or ["vlscore"]
    demonstration = resource_path("weights", "phantom", "demo") / "studies.jsonl"
    table = columns.studies(studies or demonstration, Plan(wanted).needs.roles)
    scorer = encoding.scorer(wanted)
    startup = (
        Stage("importing torch", imported - began),
        Stage("the table and the encoder", time.perf_counter() - imported),
    )
    convertible = encoding.weights is not None and not _is_converted(encoding.weights)
    measured = measure_stages(table, scorer, count, startup, convertible=convertible)
    print_encoder_warning(scorer.embedder)
    if printing.as_json:
        print_json(measured.to_dict())
        return
    echo(measured.table().text(terminal_width()))
    echo()
    for sentence in measured.advice or ("Nothing stands out",):
        echo(f"- {sentence}.")


def _is_converted(weights: Path) -> bool:
    return weights.suffix == ".safetensors" or any(weights.glob("*.safetensors"))
