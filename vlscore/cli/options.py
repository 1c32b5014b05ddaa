"""Options that several commands share, so that they read the same everywhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from vlscore.scorer import Scorer

EncoderOption = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        "-e",
        envvar="VLSCORE_ENCODER",
        show_envvar=True,
        help="Encoder; `vlscore encoders` lists them. Default: the bundled demonstration encoder.",
        show_default=False,
    ),
]
WeightsOption = Annotated[
    Path | None,
    typer.Option(help="Checkpoint file or folder of the encoder.", show_default=False),
]
TokenizerOption = Annotated[
    Path | None,
    typer.Option(help="Folder or vocabulary file of the encoder's tokenizer.", show_default=False),
]
SimilarityOption = Annotated[
    str,
    typer.Option(
        help="vlscore, cosine, image_centred_cosine, bounding_sphere, clipscore, refclipscore."
    ),
]
ConstantOption = Annotated[
    float | None,
    typer.Option("--C", help="Area that scores 0. Default: the encoder's.", show_default=False),
]
DeviceOption = Annotated[
    str | None,
    typer.Option(help="cpu, cuda, cuda:1. Default: a GPU if there is one.", show_default=False),
]
PrecisionOption = Annotated[str, typer.Option(help="fp32 or bf16.")]
BatchSizeOption = Annotated[int, typer.Option(min=1, help="Images in one forward pass.")]
ImagePolicyOption = Annotated[
    str,
    typer.Option(
        "--window",
        help="How stored values become grey levels: auto, header, minmax, percentile, full; "
        "or authors, to read files as the encoder's authors do.",
    ),
]
SectionOption = Annotated[
    str,
    typer.Option(
        "--section",
        help="What of a report is scored: all, findings, impression, findings+impression, auto.",
    ),
]
ViewsOption = Annotated[
    str,
    typer.Option(help="Images of one study: first-frontal, mean, frontal+lateral."),
]


def make_scorer(**options: Any) -> "Scorer":
    """A Scorer from parsed options; warnings go to stderr as one line."""
    import warnings

    from vlscore.errors import DemonstrationEncoderWarning
    from vlscore.scorer import Scorer

    for name in ("weights", "tokenizer"):
        if options.get(name) is not None:
            options[name] = str(options[name])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DemonstrationEncoderWarning)
        scorer = Scorer(**options)
    for warning in caught:
        if issubclass(warning.category, DemonstrationEncoderWarning):
            typer.secho(f"warning: {warning.message}", fg="yellow", err=True)
        else:
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    return scorer
