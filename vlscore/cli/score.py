"""`vlscore score`: one study."""

import json
import warnings
from pathlib import Path
from typing import Annotated

from vlscore.cli.option_groups import PrintOptions, ScorerOptions, grouped
from vlscore.cli.options import METRICS_HELP, option
from vlscore.cli.output import echo, print_encoder_warning


@grouped("batch_size", "workers", "quiet")
def score(
    *,
    candidate: Annotated[str, option("--candidate -g", "Generated report.", "TEXT")],
    image: Annotated[
        list[Path] | None, option("--image -i", "Image; repeat for several views.", "PATH")
    ] = None,
    reference: Annotated[str | None, option("--reference -r", "Reference report.", "TEXT")] = None,
    metrics: Annotated[
        list[str] | None,
        option("--metrics -m", METRICS_HELP, "NAMES", show_default="vlscore"),
    ] = None,
    encoding: ScorerOptions,
    printing: PrintOptions,
) -> None:
    """Score one generated report against its image and reference.

    Example: vlscore score -i chest.dcm -g "Small left effusion." -r "Left pleural effusion."
    """
    scorer = encoding.scorer(metrics or "vlscore")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result = scorer.score(tuple(image) if image else None, candidate, reference)
    print_encoder_warning(scorer.embedder)
    for each in caught:
        echo(f"warning: {each.message}", err=True)
    echo(json.dumps(result.to_dict(), indent=2) if printing.as_json else str(result))
