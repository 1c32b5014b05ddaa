"""`vlscore claims`: check what the reports claim against the images."""

from pathlib import Path
from typing import Annotated

from cyclopts import Group

from vlscore.cli.output import OutputOptions, print_encoder_warning, show
from vlscore.cli.progress import row_progress
from vlscore.cli.shared import (
    EncoderOptions,
    Names,
    Out,
    Table,
    TableOptions,
    options,
    rows_of,
    worker_count,
)
from vlscore.evaluation import EvidenceSettings

FITTING = Group("Evidence", sort_key=2)


def claims(
    studies: Table,
    /,
    *,
    out: Out,
    fit: Path | None = None,
    calibrate: Path | None = None,
    labels: Names = (),
    evidence: Path | None = None,
    rate: float = 0.1,
    settings: Annotated[EvidenceSettings, options(FITTING)] = EvidenceSettings(),
    table: TableOptions = TableOptions(),
    encoding: Annotated[
        EncoderOptions, options(without=("C", "comparisons", "section"))
    ] = EncoderOptions(),
    output: Annotated[OutputOptions, options(without=("report",))] = OutputOptions(),
) -> None:
    """Check every claim of the reports against the images.

    Each finding that a candidate or a reference states or denies gets a verdict (supported,
    contradicted, or cannot tell) and a probability. In each printed total of supported or of
    contradicted claims, the expected share of wrong verdicts is at most --rate; it is printed next
    to the total. Writes claims.csv, and evidence.npz for other tables, for `vlscore judge
    --evidence` and for the metric judge-image.

    Example: vlscore claims studies.csv --encoder biovil-t --fit train.csv --out claims

    Args:
        fit: Table of studies of other patients, with images and references, to fit on. The paths of
            its images, and of those of --calibrate, also start from --image-root.
        calibrate: Table to calibrate on, of the same hospital as STUDIES. Default: a share of the
            patients of --fit.
        labels: Tables of labels of the studies in --fit and --calibrate, in the form of CheXpert,
            MIMIC or NIH. A study that is in none of them is labelled by its report.
        evidence: evidence.npz of an earlier call, instead of --fit.
        rate: False discovery rate: largest expected share of wrong verdicts in a printed total.
    """
    from vlscore.evaluation import claims as judge_claims

    opened = table.opened(studies)
    further = [
        None if path is None else table.opened(path, limited=False) for path in (fit, calibrate)
    ]
    total = rows_of(opened, *(() if evidence else further))
    embedder = encoding.embedder()
    with row_progress(total, "embedding", quiet=output.is_silent, embedder=embedder) as on_progress:
        result = judge_claims(
            opened,
            out,
            embedder,
            fit=further[0],
            calibrate=further[1],
            labels=labels,
            evidence=evidence,
            rate=rate,
            settings=settings,
            workers=worker_count(encoding.workers),
            overwrite=output.overwrite,
            on_progress=on_progress,
        )
    print_encoder_warning(embedder)
    show(result, output, "rows could not be used")
