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

    The judge by rules names the errors, each with its severity from 1 to 5. The cost of a sentence
    is how much better the score is without it; a negative cost means that the sentence helps.

    Example: vlscore explain -i chest.dcm -g "Left effusion." -r "Clear lungs."

    Args:
        candidate: Generated report: its text; "$(cat FILE)" is the text of a file.
        reference: Reference report.
        image: Image; repeat for several views.
        metric: Metric; `vlscore metrics` lists all.
        page: Also write an HTML page to this file; it contains both reports.
        images: Also show the images on the page, reduced in size.
        maps: Compute a map of the image for each sentence, which shows where the two agree, and
            test it by deletion. Needs an encoder with local embeddings, such as phantom. With the
            metric judge-image: occlusion maps of the evidence of each claim, with any encoder. Use
            --page and --images to see maps.
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
            "note: no map: it needs an image, and an encoder with local embeddings, as phantom has",
            err=True,
        )
    echo(json.dumps(found.to_dict(), indent=2) if as_json else str(found))
    if page is not None:
        echo(f"wrote {found.write(page, images=images).path}", err=True)
