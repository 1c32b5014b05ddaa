"""`vlscore baseline`: candidates of a generator so simple that a model must beat it."""

from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.option_groups import PrintOptions, RunOptions, ScorerOptions, TableOptions, grouped
from vlscore.cli.options import TABLE, TABLE_HELP, OutOption, option
from vlscore.cli.output import exit_if_failed, print_encoder_warning, print_result
from vlscore.cli.progress import stopping
from vlscore.evaluation import BaselineSettings

TrainOption = Annotated[
    Path | None,
    option(
        "--train",
        "Table of other studies that the baseline learns from: reports, and images where it "
        "needs them.",
        "REPORTS",
        TABLE,
    ),
]


@grouped("candidate_column", "C", "reference_section", "candidate_section", "as_json")
def baseline(
    *,
    name: Annotated[
        str,
        typer.Argument(
            help="constant, normal, random, top-words, top-sentences, nearest-image or templates.",
            metavar="NAME",
        ),
    ],
    studies: Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="STUDIES")],
    out: OutOption,
    train: TrainOption = None,
    settings: BaselineSettings,
    table: TableOptions,
    encoding: ScorerOptions,
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Write candidates of a generator that every model should beat.

    Pino 2022 compared models with such generators.

    constant: the most frequent training report. normal: the training set's usual sentences for a
    normal study. random: a training report drawn at random. top-words, top-sentences: frequent
    words or sentences, drawn by their frequency. nearest-image: the report of the training study
    whose image the encoder puts nearest. templates: fixed sentences for the labels of a study.

    Writes candidates.jsonl, which `vlscore evaluate` and `vlscore compare` read. Each row has the
    baseline's signature.

    Example: vlscore baseline top-sentences test.csv --train train.csv --out sentences
    """
    from vlscore.cli.progress import cache_hits, row_progress
    from vlscore.data import count_rows
    from vlscore.evaluation import baseline as write_baseline
    from vlscore.evaluation import find_baseline

    needs = find_baseline(name, settings).needs
    has_images = bool(needs & {"images", "train images"})
    embedder = encoding.embedder() if has_images else None
    total = count_rows(studies)
    if "train images" in needs and train is not None and total is not None:
        others = count_rows(train)
        total = None if others is None else total + others
    with (
        stopping(out, stored=None),
        row_progress(total, "writing", quiet=printing.quiet, also=cache_hits(embedder)) as progress,
    ):
        result = write_baseline(
            name,
            studies,
            out,
            train=train,
            settings=settings,
            embedder=embedder,
            text_policy=encoding.section,
            columns=table.columns("id", "image", "reference", "view"),
            image_root=table.image_root,
            workers=encoding.decoders() if has_images else 0,
            overwrite=running.overwrite,
            on_progress=progress,
        )
    print_encoder_warning(embedder)
    many, one = "rows could not be given a candidate", "row could not be given a candidate"
    print_result(result, printing, many, one)
    exit_if_failed(result.failures, running.keep_going)
