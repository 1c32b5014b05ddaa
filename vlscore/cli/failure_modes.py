"""`vlscore failure-modes`: which errors the reports have that a metric scores best."""

from vlscore.cli.align import RatingOptions
from vlscore.cli.output import OutputOptions, show
from vlscore.cli.shared import Out, Ratings, Resamples, Seed


def failure_modes(
    ratings: Ratings,
    /,
    *,
    out: Out,
    rate: float = 0.01,
    resamples: Resamples = 1000,
    seed: Seed = 0,
    rating: RatingOptions = RatingOptions(),
    output: OutputOptions = OutputOptions(),
) -> None:
    """Show the errors of the reports that each metric prefers.

    RATINGS has the numbers of errors, by category, in reports that metrics chose; the id of the
    candidate is the metric. ReXVal is such a set. `vlscore oracle` finds a metric's choices among
    your reports.

    Prints the mean numbers of errors by category, and which metric's choices have more errors than
    another's, by one-sided paired tests at a false discovery rate of 1 % (Yu et al. 2023).

    Example: vlscore failure-modes counted.csv --out failure-modes

    Args:
        rate: False discovery rate of the tests.
    """
    from vlscore.evaluation import failure_modes as compute_failure_modes

    run = compute_failure_modes(
        rating.read(ratings),
        out,
        rate=rate,
        resamples=resamples,
        seed=seed,
        overwrite=output.overwrite,
    )
    show(run, output)
