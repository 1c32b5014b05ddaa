"""`vlscore failure-modes`: which errors the reports have that a metric takes for the best."""

from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.option_groups import (
    BootstrapOptions,
    PrintOptions,
    RatingOptions,
    RunOptions,
    grouped,
)
from vlscore.cli.options import RATINGS_HELP, LayoutOption, OutOption, option
from vlscore.cli.output import exit_if_failed, print_result


@grouped()
def failure_modes(
    *,
    ratings: Annotated[Path, typer.Argument(help=RATINGS_HELP, metavar="RATINGS")],
    out: OutOption,
    rate: Annotated[float, option("--rate", "False discovery rate of the tests.", "NUMBER")] = 0.01,
    layout: LayoutOption = None,
    bootstrap: BootstrapOptions,
    rating: RatingOptions,
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Show the errors of the reports that each metric prefers.

    RATINGS counts errors, by category, of reports that metrics chose: the candidate's id is the
    metric. ReXVal is such a set. `vlscore oracle` finds a metric's choices among your reports.

    Prints mean errors by category, and which metric's choices have more errors than another's, by
    one-sided paired tests at a false discovery rate of 1 % (Yu et al. 2023).

    Example: vlscore failure-modes counted.csv --out failure-modes
    """

    from vlscore.evaluation import failure_modes as compute_failure_modes
    from vlscore.evaluation import read_ratings

    pairs = read_ratings(ratings, layout, **rating.named())
    run = compute_failure_modes(
        pairs,
        out,
        rate=rate,
        resamples=bootstrap.resamples,
        seed=bootstrap.seed,
        overwrite=running.overwrite,
    )
    print_result(run, printing, "rows could not be used", "row could not be used")
    exit_if_failed(run.failures, running.keep_going)
