"""`vlscore score`: one study."""

import json
import warnings
from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.option_groups import (
    EncoderOptions,
    PrintOptions,
    ReadingOptions,
    ResourceOptions,
    SectionOptions,
    grouped,
)
from vlscore.cli.output import echo, say_of_encoder


@grouped("batch_size", "workers", "quiet")
def score(
    *,
    candidate: Annotated[
        str, typer.Option("--candidate", "-g", metavar="TEXT", help="Generated report.")
    ],
    image: Annotated[
        list[Path] | None,
        typer.Option("--image", "-i", metavar="PATH", help="Image; repeat for several views."),
    ] = None,
    reference: Annotated[
        str | None, typer.Option("--reference", "-r", metavar="TEXT", help="Reference report.")
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            "--similarity",
            "-m",
            metavar="NAMES",
            help="Metrics with commas between them; repeatable. "
            "text, image and bleu are groups; `vlscore metrics` lists all.",
            show_default="vlscore",
        ),
    ] = None,
    encoding: EncoderOptions,
    resources: ResourceOptions,
    reading: ReadingOptions,
    sections: SectionOptions,
    printing: PrintOptions,
) -> None:
    """Score one generated report against its image and reference.

    Example: vlscore score -i chest.dcm -g "Small left effusion." -r "Left pleural effusion."
    """
    scorer = encoding.scorer(metrics or "vlscore", resources, reading, sections)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        result = scorer.score(tuple(image) if image else None, candidate, reference)
    say_of_encoder(scorer.embedder)
    for each in said:
        echo(f"warning: {each.message}", err=True)
    echo(json.dumps(result.to_dict(), indent=2) if printing.as_json else str(result))
