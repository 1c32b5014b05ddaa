"""`vlscore baseline`: candidates of a generator so simple that a model must beat it."""

from pathlib import Path
from typing import Annotated

from vlscore.cli.output import OutputOptions, print_encoder_warning, show
from vlscore.cli.progress import row_progress
from vlscore.cli.shared import (
    EncoderOptions,
    Out,
    Table,
    TableOptions,
    options,
    rows_of,
    worker_count,
)
from vlscore.evaluation import BaselineSettings


def baseline(
    name: str,
    studies: Table,
    /,
    *,
    out: Out,
    train: Path | None = None,
    settings: Annotated[
        BaselineSettings, options(without=("first", "by_section", "threshold"))
    ] = BaselineSettings(),
    table: TableOptions = TableOptions(),
    encoding: Annotated[EncoderOptions, options(without=("C", "comparisons"))] = EncoderOptions(),
    output: OutputOptions = OutputOptions(),
) -> None:
    """Write the candidates of a simple generator, for comparison.

    A model should be better than each of these generators (Pino 2022).

    constant: the most frequent training report. normal: the most frequent normal sentences of the
    training reports. random: a training report drawn at random. top-words, top-sentences: frequent
    words or sentences, drawn by their frequency. nearest-image: the report of the training study
    whose image embedding is the nearest. templates: fixed sentences for the labels of a study.

    Writes candidates.jsonl, which `vlscore evaluate` and `vlscore compare` read. Each row has the
    baseline's signature.

    Example: vlscore baseline top-sentences test.csv --train train.csv --out sentences

    Args:
        name: constant, normal, random, top-words, top-sentences, nearest-image or templates.
        train: Table of other studies from which the baseline learns: reports, and for
            nearest-image and probe also images.
    """
    from vlscore.evaluation import baseline as write_baseline
    from vlscore.evaluation import find_baseline

    needs = find_baseline(name, settings).needs
    has_images = bool(needs & {"images", "train images"})
    embedder = encoding.embedder() if has_images else None
    opened = table.opened(studies, "id", "image", "reference", "view")
    others = None
    if train is not None:
        others = table.opened(train, "id", "image", "reference", "view", limited=False)
    total = rows_of(opened, others if "train images" in needs else None)
    with row_progress(total, "writing", quiet=output.is_silent, embedder=embedder) as on_progress:
        result = write_baseline(
            name,
            opened,
            out,
            train=others,
            settings=settings,
            embedder=embedder,
            text_policy=encoding.section,
            workers=worker_count(encoding.workers) if has_images else 0,
            overwrite=output.overwrite,
            on_progress=on_progress,
        )
    print_encoder_warning(embedder)
    show(result, output, "rows could not be given a candidate")
