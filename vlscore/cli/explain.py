"""`vlscore explain`: why one study has its score."""

import json
import warnings
from pathlib import Path
from typing import Annotated

from vlscore.cli.output import AsJson, echo, print_encoder_warning
from vlscore.cli.shared import EncoderOptions, Text, options


def explain(
    *,
    candidate: Text,
    reference: Text,
    image: tuple[Path, ...] = (),
    metric: str = "vlscore",
    page: Path | None = None,
    images: bool = False,
    maps: bool = False,
    encoding: Annotated[
        EncoderOptions, options(without=("batch_size", "workers"))
    ] = EncoderOptions(),
    as_json: AsJson = False,
) -> None:
    """Explain the score of one report: its errors and sentences.

    Errors are those of the judge by rules, each with its severity from 1 to 5. A sentence
    costs as much as the score is better without it; below 0, it helps.

    Example: vlscore explain -i chest.dcm -g "Left effusion." -r "Clear lungs."

    Args:
        candidate: Generated report: its words, not a file ("$(cat FILE)" for those of a file).
        reference: Reference report.
        image: Image; repeat for several views.
        metric: Metric; `vlscore metrics` lists all.
        page: Also write an HTML page to this file; it holds both reports.
        images: Show the images on the page, too, shrunk.
        maps: Compute for each sentence a map of the image: where the two agree. Needs an encoder
            with local vectors, such as phantom; each map has a check by deletion. With the metric
            judge-image: where the evidence of each claim lies, by occlusion, with any encoder.
            --page shows maps with --images.
    """
    from vlscore.pages import explain_study

    scorer = encoding.scorer(metric)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        found = explain_study(scorer, image, candidate, reference, maps=maps)
    print_encoder_warning(scorer.embedder)
    for each in caught:
        echo(f"warning: {each.message}", err=True)
    if maps and found.maps is None:
        echo(
            "note: no map: it needs an image, and an encoder with local vectors (phantom has)",
            err=True,
        )
    echo(json.dumps(found.to_dict(), indent=2) if as_json else str(found))
    if page is not None:
        echo(f"wrote {found.write(page, images=images).path}", err=True)
