"""`vlscore score`: one study."""

import json
import warnings
from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.options import (
    CandidateSectionOption,
    CompileOption,
    ConstantOption,
    DeviceOption,
    EncoderOption,
    ImagePolicyOption,
    JsonOption,
    NoCacheOption,
    PrecisionOption,
    ReferenceSectionOption,
    SectionOption,
    TokenizerOption,
    ViewsOption,
    WeightsOption,
    make_scorer,
    text_policy,
)
from vlscore.cli.output import echo, say_of_encoder


def score(
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
    encoder: EncoderOption = None,
    weights: WeightsOption = None,
    tokenizer: TokenizerOption = None,
    C: ConstantOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = "fp32",
    compile: CompileOption = False,
    no_cache: NoCacheOption = False,
    image_policy: ImagePolicyOption = "auto",
    views: ViewsOption = "first-frontal",
    section: SectionOption = "all",
    reference_section: ReferenceSectionOption = None,
    candidate_section: CandidateSectionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score one generated report against its image and reference.

    Example: vlscore score -i chest.dcm -g "Small left effusion." -r "Left pleural effusion."
    """
    scorer = make_scorer(
        encoder,
        weights,
        tokenizer,
        metrics=metrics or "vlscore",
        C=C,
        device=device,
        precision=precision,
        compile=compile,
        cache=not no_cache,
        image_policy=image_policy,
        text_policy=text_policy(section, reference_section, candidate_section),
        views=views,
    )
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        result = scorer.score(tuple(image) if image else None, candidate, reference)
    say_of_encoder(scorer.embedder)
    for each in said:
        echo(f"warning: {each.message}", err=True)
    echo(json.dumps(result.to_dict(), indent=2) if as_json else str(result))
