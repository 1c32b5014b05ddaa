"""`vlscore align`: which metrics agree with radiologists."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vlscore.cli.option_groups import (
    PrintOptions,
    RatingOptions,
    RunOptions,
    ScorerOptions,
    grouped,
)
from vlscore.cli.options import (
    RATINGS_HELP,
    TABLE,
    CandidateColumnOption,
    FigureOption,
    IdColumnOption,
    ImageColumnOption,
    ImageRootOption,
    LayoutOption,
    OutOption,
    ReferenceColumnOption,
    ViewColumnOption,
    column_names,
    named_path,
    names_of,
    option,
)
from vlscore.cli.output import (
    exit_if_failed,
    print_encoder_warning,
    print_result,
    without_intervals,
)
from vlscore.cli.progress import cache_hits, stopping
from vlscore.evaluation import AlignmentSettings

if TYPE_CHECKING:
    from vlscore.data import StudyTable
    from vlscore.evaluation import RatedPairs
    from vlscore.stats import TextTable


MeaningOption = Annotated[
    str,
    option(
        "--ratings-are",
        "What a table's ratings say: errors (more is worse), quality (more is better), "
        "ranks (1 is the best candidate of its study).",
        "NAME",
    ),
]
CandidatesOption = Annotated[
    str,
    option(
        "--candidates",
        "Candidates to use, with commas between them, such as one generator. Default: all.",
        "NAMES",
    ),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class AlignedOptions:
    """Metrics that are computed."""

    metrics: Annotated[
        list[str] | None,
        option(
            "--metrics -m",
            "Metrics to compute, with commas between them; repeatable. "
            "text, image and bleu are groups; `vlscore metrics` lists all. "
            "name.value is another of a metric's numbers, as findings-f1.recall. Default: "
            "vlscore, or none with --values.",
            "NAMES",
        ),
    ] = None

    def wanted(self) -> tuple[list[str] | None, list[str]]:
        """Return the metrics to compute, None for the default, and their columns."""
        from vlscore.core import split_names
        from vlscore.evaluation import split_values

        if self.metrics is None:
            return None, []
        computed, columns = split_values(split_names(",".join(self.metrics)))
        return list(computed), columns


@dataclasses.dataclass(frozen=True, kw_only=True)
class RatedTextOptions:
    """Tables with reports and images of rated candidates, and their columns."""

    reference_column: ReferenceColumnOption = "reference"
    candidate_column: CandidateColumnOption = "candidate"
    image_column: ImageColumnOption = "image"
    image_root: ImageRootOption = None
    studies: Annotated[
        Path | None,
        option(
            "--studies",
            "Table with the studies' ids and images, where RATINGS names no images.",
            "STUDIES",
            TABLE,
        ),
    ] = None
    reports: Annotated[
        list[str] | None,
        option(
            "--reports",
            "Table, or ReXrank's manifest, with the reports of the candidate NAME and their "
            "references, where RATINGS has no reports. Repeat it for each candidate.",
            "NAME=TABLE",
            TABLE,
        ),
    ] = None
    id_column: IdColumnOption = "id"
    view_column: ViewColumnOption = "view"

    def with_reports(self, pairs: "RatedPairs") -> "RatedPairs":
        """Return the pairs with the reports of --reports, where it was used."""
        from vlscore.data import open_studies
        from vlscore.evaluation import with_reports

        if not self.reports:
            return pairs
        texts = column_names(
            id=self.id_column, reference=self.reference_column, candidate=self.candidate_column
        )
        tables = {
            name: open_studies(path, needs={"reference", "candidate"}, columns=texts)
            for name, path in map(named_path, self.reports)
        }
        return with_reports(pairs, tables)

    def table(self) -> "StudyTable | None":
        """Return the table of --studies; None without it."""
        from vlscore.data import open_studies

        if self.studies is None:
            return None
        names = column_names(id=self.id_column, image=self.image_column, view=self.view_column)
        return open_studies(
            self.studies, needs={"image"}, image_root=self.image_root, columns=names
        )


@grouped("workers", after={"meaning": "lower_is_better", "layout": "fit", "candidates": "layout"})
def align(
    *,
    ratings: Annotated[Path, typer.Argument(help=RATINGS_HELP, metavar="RATINGS")],
    out: OutOption,
    aligned: AlignedOptions,
    settings: AlignmentSettings,
    meaning: MeaningOption = "errors",
    layout: LayoutOption = None,
    candidates: CandidatesOption = "",
    rating: RatingOptions,
    texts: RatedTextOptions,
    encoding: ScorerOptions,
    figure: FigureOption = None,
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Measure how well metrics agree with radiologists' ratings.

    Computes each metric for every rated candidate, and prints its correlations with the raters'
    mean. The folder also has tests between metrics, the agreement with single raters, the raters'
    agreement with each other, and how often metric and rater rank two candidates alike.

    Stop with Ctrl-C; the same command resumes.

    Example: vlscore align ratings.csv --metrics bleu-4,rouge-l --out aligned
    """
    from vlscore.cli.progress import phase_progress
    from vlscore.evaluation import align as compute_alignment
    from vlscore.evaluation import read_ratings

    pairs = read_ratings(
        ratings, layout, **rating.named(), meaning=meaning, image_root=texts.image_root
    )
    if only := names_of(candidates):
        pairs = pairs.only(only)
    pairs = texts.with_reports(pairs)
    table = texts.table()
    metrics, wanted = aligned.wanted()
    scorer = None
    if metrics is not None or settings.values is None:
        scorer = encoding.scorer(metrics)
    embedder = scorer.embedder if scorer is not None else None
    with (
        stopping(out),
        phase_progress(quiet=printing.is_silent, also=cache_hits(embedder)) as on_phase,
    ):
        run = compute_alignment(
            pairs,
            out,
            scorer=scorer,
            columns=wanted,
            **vars(settings),
            studies=table,
            figure=figure,
            overwrite=running.overwrite,
            on_phase=on_phase,
        )
    print_encoder_warning(embedder)
    many, one = "rows or values are missing", "row or value is missing"
    print_result(run, printing, many, one, tables=map(_shorter, run.tables))
    exit_if_failed(run.failures, running.keep_going)


def _shorter(table: "TextTable") -> "TextTable":
    """Return a table of correlations with the interval of tau_b alone; others unchanged.

    The values over pairs are left out, too: they differ from those over studies in their intervals.
    """
    if "Pearson" not in table.columns:
        return table
    end = table.columns.index("Pearson") + 1
    rows = tuple(row[:end] for row in without_intervals(table, "tau_b").rows)
    return dataclasses.replace(table, columns=table.columns[:end], rows=rows)
