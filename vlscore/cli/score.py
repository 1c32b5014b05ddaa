"""`vlscore score`: one study."""

import json
import warnings
from pathlib import Path
from typing import Annotated

from vlscore.cli.output import AsJson, echo, print_encoder_warning
from vlscore.cli.shared import EncoderOptions, Metrics, Text, options


def score(
    *,
    candidate: Text,
    image: tuple[Path, ...] = (),
    reference: Text | None = None,
    metrics: Metrics = None,
    encoding: Annotated[
        EncoderOptions, options(without=("batch_size", "workers"))
    ] = EncoderOptions(),
    as_json: AsJson = False,
) -> None:
    """Score one generated report against its image and reference.

    Example: vlscore score -i chest.dcm -g "Small left effusion." -r "Left pleural effusion."

    Args:
        candidate: Generated report: its text; "$(cat FILE)" is the text of a file.
        image: Image; repeat for several views.
        reference: Reference report.
    """
    scorer = encoding.scorer(metrics or "vlscore")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        result = scorer.score(image or None, candidate, reference)
    print_encoder_warning(scorer.embedder)
    for each in caught:
        echo(f"warning: {each.message}", err=True)
    echo(json.dumps(result.to_dict(), indent=2) if as_json else str(result))
