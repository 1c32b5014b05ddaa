"""`vlscore align`: which metrics agree with radiologists."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts.types import PositiveInt

from vlscore.cli.output import OutputOptions, print_encoder_warning, show
from vlscore.cli.progress import phase_progress
from vlscore.cli.shared import (
    TABLE,
    EncoderOptions,
    Figure,
    ImageRoot,
    Names,
    Out,
    Ratings,
    named_values,
    options,
)
from vlscore.evaluation import AlignmentSettings

if TYPE_CHECKING:
    from vlscore.data import StudyTable
    from vlscore.evaluation import RatedPairs


@options(TABLE)
@dataclasses.dataclass(frozen=True, kw_only=True)
class RatingOptions:
    """Columns of a table of ratings.

    Attributes:
        rename: Columns that have other names in RATINGS, as in study_id=ID,rater=reader: study_id,
            candidate_id, rater, rating (repeat it for each dimension), category, significant,
            reference, candidate, image; in the other tables also id and view. Write category=
            without a name to ignore a column.
        rater_columns: Columns with the ratings of one rater each, of a table with one row for each
            candidate.
        limit: Read only the first N rated candidates.
    """

    rename: Names = ()
    rater_columns: Names = ()
    limit: PositiveInt | None = None

    def read(self, path: Path, **how: Any) -> "RatedPairs":
        """Return the rated candidates of a table or folder; `how` as of `read_ratings`."""
        from vlscore.evaluation import read_ratings

        return read_ratings(path, **self.columns(), **how).first(self.limit)

    def columns(self) -> dict[str, Any]:
        """Return the columns as `read_ratings` takes them."""
        pairs = [tuple(map(str.strip, each.partition("=")[::2])) for each in self.rename]
        ratings = tuple(column for role, column in pairs if role == "rating")
        others = {role: column for role, column in pairs if role not in ("rating", "id", "view")}
        found = {"by_rater": self.rater_columns, "rename": others}
        return found | ({"ratings": ratings} if ratings else {})


@options(TABLE)
@dataclasses.dataclass(frozen=True, kw_only=True)
class RatedTextOptions(RatingOptions):
    """Tables with reports and images of rated candidates.

    Attributes:
        studies: Table with ids and images of the studies, if RATINGS has no images.
        reports: NAME=TABLE: table, or ReXrank's manifest, with the reports of the candidate NAME
            and their references, if RATINGS has no reports. Repeat it for each candidate.
    """

    image_root: ImageRoot = None
    studies: Path | None = None
    reports: list[str] | None = None

    def with_reports(self, pairs: "RatedPairs") -> "RatedPairs":
        """Return the pairs with the reports of --reports, where it was used."""
        from vlscore.evaluation import with_reports

        if not self.reports:
            return pairs
        named = named_values(self.reports, "NAME=TABLE, as in ours=ours.jsonl")
        needs = {"reference", "candidate"}
        return with_reports(pairs, {name: self._read(path, needs) for name, path in named})

    def table(self) -> "StudyTable | None":
        """Return the table of --studies; None without it."""
        return None if self.studies is None else self._read(self.studies, {"image"})

    def _read(self, path: str | Path, needs: set[str]) -> "StudyTable":
        """Return a table whose columns are renamed like those of RATINGS."""
        from vlscore.data import open_studies

        pairs = (each.partition("=") for each in self.rename)
        names = {role: name for role, _, name in pairs if role in {"id", "view", *needs}}
        return open_studies(path, needs=needs, image_root=self.image_root, columns=names)


def align(
    ratings: Ratings,
    /,
    *,
    out: Out,
    metrics: Names | None = None,
    # --metrics also names the columns.
    settings: Annotated[AlignmentSettings, options(without=("columns",))] = AlignmentSettings(),
    ratings_are: Literal["errors", "quality", "ranks"] = "errors",
    candidates: Names = (),
    texts: RatedTextOptions = RatedTextOptions(),
    encoding: Annotated[EncoderOptions, options(without=("workers",))] = EncoderOptions(),
    figure: Figure = None,
    output: OutputOptions = OutputOptions(),
) -> None:
    """Measure how well metrics agree with radiologists' ratings.

    Computes each metric for every rated candidate, and prints its correlations with the raters'
    mean. The folder also has tests between metrics, the agreement with single raters, the raters'
    agreement with each other, and how often metric and rater rank two candidates alike.

    Stop with Ctrl-C; the same command computes again, what is slow from the cache.

    Example: vlscore align ratings.csv --metrics bleu-4,rouge-l --out aligned

    Args:
        metrics: Metrics to compute, with commas between them; `vlscore metrics` lists all; text,
            image and bleu are groups. name.value is another of a metric's numbers, as
            findings-f1.recall. Default: vlscore, or none with --values.
        ratings_are: What a table's ratings say: errors (more is worse), quality (more is better),
            ranks (1 is the best candidate of its study).
        candidates: Candidates to use, with commas between them, such as one generator. Default:
            all.
    """
    from vlscore.evaluation import align as compute_alignment
    from vlscore.evaluation import split_values

    pairs = texts.read(ratings, meaning=ratings_are, image_root=texts.image_root)
    if candidates:
        pairs = pairs.only(candidates)
    pairs = texts.with_reports(pairs)
    scorer = None
    if metrics is not None:
        computed, columns = split_values(metrics)
        scorer = encoding.scorer(computed)
        settings = dataclasses.replace(settings, columns=tuple(columns))
    elif settings.values is None:
        scorer = encoding.scorer(None)
    embedder = scorer.embedder if scorer is not None else None
    with phase_progress(quiet=output.is_silent, embedder=embedder) as on_phase:
        run = compute_alignment(
            pairs,
            out,
            scorer,
            settings,
            studies=texts.table(),
            overwrite=output.overwrite,
            on_phase=on_phase,
        )
    print_encoder_warning(embedder)
    many, one = "rows or values are missing", "row or value is missing"
    show(run, output, many, one, figure=figure)
