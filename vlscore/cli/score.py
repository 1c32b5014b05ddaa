"""`vlscore score`: one study."""

import json
from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.options import (
    ConstantOption,
    DeviceOption,
    EncoderOption,
    ImagePolicyOption,
    PrecisionOption,
    SectionOption,
    SimilarityOption,
    TokenizerOption,
    ViewsOption,
    WeightsOption,
    make_scorer,
)


def score(
    image: Annotated[list[Path], typer.Option("--image", "-i", help="Image; repeat for views.")],
    candidate: Annotated[str, typer.Option("--candidate", "-g", help="Generated report.")],
    reference: Annotated[str, typer.Option("--reference", "-r", help="Reference report.")],
    encoder: EncoderOption = None,
    weights: WeightsOption = None,
    tokenizer: TokenizerOption = None,
    similarity: SimilarityOption = "vlscore",
    C: ConstantOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = "fp32",
    window: ImagePolicyOption = "auto",
    section: SectionOption = "all",
    views: ViewsOption = "first-frontal",
    as_json: Annotated[bool, typer.Option("--json", help="Print as json.")] = False,
) -> None:
    """Score one generated report against its image and reference.

    Example: vlscore score -i chest.dcm -g "Small left effusion." -r "Left pleural effusion."
    """
    scorer = make_scorer(
        encoder=encoder,
        weights=weights,
        tokenizer=tokenizer,
        similarity=similarity,
        C=C,
        device=device,
        precision=precision,
        image_policy=window,
        text_policy=section,
        views=views,
    )
    result = scorer.score(tuple(image), candidate, reference)
    typer.echo(json.dumps(result.to_dict(), indent=2) if as_json else str(result))
