"""`vlscore explain`: why one study has its score."""

import json
import warnings
from pathlib import Path
from typing import Annotated

from vlscore.cli.option_groups import PrintOptions, ScorerOptions, grouped
from vlscore.cli.options import OUTPUT, option
from vlscore.cli.output import echo, print_encoder_warning


@grouped("batch_size", "workers", "quiet")
def explain(
    *,
    candidate: Annotated[str, option("--candidate -g", "Generated report.", "TEXT")],
    reference: Annotated[str, option("--reference -r", "Reference report.", "TEXT")],
    image: Annotated[
        list[Path] | None, option("--image -i", "Image; repeat for several views.", "PATH")
    ] = None,
    metric: Annotated[
        str, option("--metric -m", "Metric; `vlscore metrics` lists all.", "NAME")
    ] = "vlscore",
    page: Annotated[
        Path | None,
        option("--page", "Also write an HTML page, which holds both reports.", "FILE", OUTPUT),
    ] = None,
    films: Annotated[
        bool, option("--films", "Show the films on the page, too, shrunk.", panel=OUTPUT)
    ] = False,
    maps: Annotated[
        bool,
        option(
            "--maps",
            "Compute for each sentence a map of the image: where the two agree. Needs an encoder "
            "with local vectors, such as phantom; each map has a check by deletion. --page shows "
            "maps with --films.",
        ),
    ] = False,
    encoding: ScorerOptions,
    printing: PrintOptions,
) -> None:
    """Explain the score of one report: its errors and sentences.

    Errors are those of the judge by rules, each with its severity from 1 to 5. A sentence
    costs as much as the score is better without it; below 0, it helps.

    Example: vlscore explain -i chest.dcm -g "Left effusion." -r "Clear lungs."
    """
    from vlscore.pages import explain_study

    scorer = encoding.scorer(metric)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        found = explain_study(scorer, tuple(image or ()), candidate, reference, maps=maps)
    print_encoder_warning(scorer.embedder)
    for each in caught:
        echo(f"warning: {each.message}", err=True)
    if maps and found.maps is None:
        echo("note: no map: the encoder has no local vectors, or no image was given", err=True)
    echo(json.dumps(found.to_dict(), indent=2) if printing.as_json else str(found))
    if page is not None:
        echo(f"wrote {found.write(page, films=films).path}", err=True)
