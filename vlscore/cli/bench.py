"""`vlscore bench`: where the time goes on this machine."""

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.options import (
    BatchSizeOption,
    CandidateColumnOption,
    CompileOption,
    DeviceOption,
    EncoderOption,
    IdColumnOption,
    ImageColumnOption,
    ImagePolicyOption,
    ImageRootOption,
    JsonOption,
    PrecisionOption,
    ReferenceColumnOption,
    SectionOption,
    TokenizerOption,
    ViewColumnOption,
    ViewsOption,
    WeightsOption,
    column_names,
    make_scorer,
    text_policy,
)
from vlscore.cli.output import echo, say_of_encoder, terminal_width


def bench(
    studies: Annotated[
        Path | None,
        typer.Argument(
            help="Table: .jsonl, .json, .csv, .tsv or .parquet. Default: the demonstration's.",
            metavar="[STUDIES]",
            show_default=False,
        ),
    ] = None,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, metavar="N", help="Studies to measure.")
    ] = 64,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            "-m",
            metavar="NAMES",
            help="Metrics with commas between them; repeatable. "
            "text, image and bleu are groups; `vlscore metrics` lists all.",
            show_default="vlscore",
        ),
    ] = None,
    image_root: ImageRootOption = None,
    id_column: IdColumnOption = "id",
    image_column: ImageColumnOption = "image",
    reference_column: ReferenceColumnOption = "reference",
    candidate_column: CandidateColumnOption = "candidate",
    view_column: ViewColumnOption = "view",
    encoder: EncoderOption = None,
    weights: WeightsOption = None,
    tokenizer: TokenizerOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = "fp32",
    compile: CompileOption = False,
    batch_size: BatchSizeOption = None,
    image_policy: ImagePolicyOption = "auto",
    views: ViewsOption = "first-frontal",
    section: SectionOption = "all",
    as_json: JsonOption = False,
) -> None:
    """Print where the time of an evaluation goes on this machine, and what would help.

    Does for some studies what `vlscore evaluate` does, one stage after the other on one process,
    and times each: start, reading, decoding by format, encoding, scoring, writing. Nothing is taken
    from the cache, and nothing is kept.

    Example: vlscore bench studies.csv --image-root /data/files --encoder biovil
    """
    began = time.perf_counter()
    # Before whatever else imports it, so that it is timed apart.
    import torch  # noqa: F401

    imported = time.perf_counter()
    from vlscore.core import resource_path
    from vlscore.data import open_studies
    from vlscore.evaluation import Stage, measure_stages
    from vlscore.metrics import Plan

    wanted = metrics or ["vlscore"]
    table = open_studies(
        studies or resource_path("weights", "phantom", "demo") / "studies.jsonl",
        needs=Plan(wanted).needs.roles,
        image_root=image_root,
        columns=column_names(
            id=id_column,
            image=image_column,
            reference=reference_column,
            candidate=candidate_column,
            view=view_column,
        ),
    )
    scorer = make_scorer(
        encoder,
        weights,
        tokenizer,
        metrics=wanted,
        device=device,
        precision=precision,
        compile=compile,
        batch_size=batch_size,
        image_policy=image_policy,
        text_policy=text_policy(section),
        views=views,
    )
    startup = (
        Stage("importing torch", imported - began),
        Stage("the table and the encoder", time.perf_counter() - imported),
    )
    convertible = weights is not None and not _is_converted(weights)
    measured = measure_stages(table, scorer, count, startup, convertible=convertible)
    say_of_encoder(scorer.embedder)
    if as_json:
        echo(json.dumps(measured.to_dict(), indent=2, ensure_ascii=False))
        return
    echo(measured.table().text(terminal_width()))
    echo()
    for sentence in measured.advice or ("Nothing stands out",):
        echo(f"- {sentence}.")


def _is_converted(weights: Path) -> bool:
    return weights.suffix == ".safetensors" or any(weights.glob("*.safetensors"))
