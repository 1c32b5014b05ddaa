"""`vlscore align`: which metrics agree with radiologists."""

from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.options import (
    SHOWN_FAILURES,
    TABLE,
    BatchSizeOption,
    CandidateColumnOption,
    CandidateSectionOption,
    ConstantOption,
    DeviceOption,
    EncoderOption,
    IdColumnOption,
    ImageColumnOption,
    ImagePolicyOption,
    ImageRootOption,
    JsonOption,
    KeepGoingOption,
    NoCacheOption,
    OutOption,
    OverwriteOption,
    PrecisionOption,
    QuietOption,
    ReferenceColumnOption,
    ReferenceSectionOption,
    SectionOption,
    TokenizerOption,
    ViewColumnOption,
    ViewsOption,
    WeightsOption,
    cache_hits,
    column_names,
    make_scorer,
    say_of_encoder,
    say_of_failures,
    say_of_run,
    stopping,
    terminal_width,
    text_policy,
)


def _column(name: str, help: str) -> object:
    return typer.Option(name, metavar="NAME", help=help, rich_help_panel=TABLE)


def align(
    ratings: Annotated[
        Path,
        typer.Argument(
            help="Table of ratings, or the folder of a published set: ReXVal, RadEvalX, RadPref.",
            metavar="RATINGS",
        ),
    ],
    out: OutOption,
    metrics: Annotated[
        str | None,
        typer.Option(
            "--metrics",
            "-m",
            metavar="NAMES",
            help="Metrics to compute, with commas between them; `vlscore metrics` lists them. "
            "Default: vlscore, or none with --values.",
            show_default=False,
        ),
    ] = None,
    values: Annotated[
        Path | None,
        typer.Option(
            "--values",
            metavar="PATH",
            help="Table of values computed elsewhere: study_id, candidate_id, one column a metric.",
        ),
    ] = None,
    lower_is_better: Annotated[
        str,
        typer.Option(
            "--lower-is-better",
            metavar="NAMES",
            help="Columns of --values, with commas, of which smaller values are better.",
            show_default=False,
        ),
    ] = "",
    meaning: Annotated[
        str,
        typer.Option(
            "--ratings-are",
            metavar="NAME",
            help="What a table's ratings say: errors (more is worse), quality (more is better), "
            "ranks (1 is the best candidate of its study).",
        ),
    ] = "errors",
    layout: Annotated[
        str | None,
        typer.Option(
            "--layout",
            metavar="NAME",
            help="rexval, radevalx, radpref, refisco-v0, refisco-v1 or table. Default: found out.",
            show_default=False,
        ),
    ] = None,
    resamples: Annotated[
        int, typer.Option(min=10, metavar="N", help="Resamples of the bootstrap.")
    ] = 1000,
    seed: Annotated[int, typer.Option(metavar="N", help="Of the bootstrap.")] = 0,
    study_column: Annotated[str, _column("--study-column", "Column with the study.")] = "study_id",
    candidate_id_column: Annotated[
        str, _column("--candidate-id-column", "Column that tells candidates of a study apart.")
    ] = "candidate_id",
    rater_column: Annotated[str, _column("--rater-column", "Column with the rater.")] = "rater",
    rating_columns: Annotated[
        str,
        typer.Option(
            "--rating-columns",
            metavar="NAMES",
            help="Columns of ratings, with commas: one, or one a dimension.",
            rich_help_panel=TABLE,
        ),
    ] = "rating",
    rater_columns: Annotated[
        str,
        typer.Option(
            "--rater-columns",
            metavar="NAMES",
            help="Instead, one column of ratings a rater, in a table with one row a candidate.",
            show_default=False,
            rich_help_panel=TABLE,
        ),
    ] = "",
    category_column: Annotated[
        str, _column("--category-column", "Column with the kind of error that a row counts.")
    ] = "category",
    significant_column: Annotated[
        str, _column("--significant-column", "Column that says whether these errors matter.")
    ] = "significant",
    reference_column: ReferenceColumnOption = "reference",
    candidate_column: CandidateColumnOption = "candidate",
    image_column: ImageColumnOption = "image",
    image_root: ImageRootOption = None,
    studies: Annotated[
        Path | None,
        typer.Option(
            "--studies",
            metavar="STUDIES",
            help="Table with the studies' ids and images, where RATINGS names no images.",
            rich_help_panel=TABLE,
        ),
    ] = None,
    id_column: IdColumnOption = "id",
    view_column: ViewColumnOption = "view",
    encoder: EncoderOption = None,
    weights: WeightsOption = None,
    tokenizer: TokenizerOption = None,
    C: ConstantOption = None,
    device: DeviceOption = None,
    precision: PrecisionOption = "fp32",
    batch_size: BatchSizeOption = None,
    no_cache: NoCacheOption = False,
    image_policy: ImagePolicyOption = "auto",
    views: ViewsOption = "first-frontal",
    section: SectionOption = "all",
    reference_section: ReferenceSectionOption = None,
    candidate_section: CandidateSectionOption = None,
    overwrite: OverwriteOption = False,
    keep_going: KeepGoingOption = False,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compare metrics with what radiologists said of candidate reports.

    Computes the metrics for every rated pair of a candidate and its reference, and prints tau_b,
    tau_c, Spearman's and Pearson's correlation with the raters' mean, tests between metrics,
    agreement with single raters, the raters' own agreement, and who ranks candidates of one study
    alike. Intervals are by study, and by pair beside them.

    Stop with Ctrl-C and start the same command again to go on where it was.

    Example: vlscore align ratings.csv --metrics bleu-4,rouge-l --out aligned
    """
    import json

    from vlscore.alignment import RatingColumns, read_ratings, run_alignment
    from vlscore.cli.progress import row_progress
    from vlscore.studies import open_studies

    columns = RatingColumns(
        study=study_column,
        candidate_id=candidate_id_column,
        rater=rater_column,
        ratings=_names(rating_columns),
        by_rater=_names(rater_columns),
        category=category_column,
        significant=significant_column,
        reference=reference_column,
        candidate=candidate_column,
        image="image" if studies is not None else image_column,
    )
    pairs = read_ratings(ratings, layout, columns=columns, meaning=meaning, image_root=image_root)
    table = None
    if studies is not None:
        names = column_names(id=id_column, image=image_column, view=view_column)
        table = open_studies(studies, needs={"image"}, image_root=image_root, columns=names)
    scorer = None
    if metrics is not None or values is None:
        scorer = make_scorer(
            encoder,
            weights,
            tokenizer,
            metrics=metrics,
            C=C,
            device=device,
            precision=precision,
            batch_size=batch_size,
            cache=not no_cache,
            image_policy=image_policy,
            text_policy=text_policy(section, reference_section, candidate_section),
            views=views,
        )
    with (
        stopping(out),
        row_progress(
            len(pairs),
            "pairs",
            quiet=quiet or as_json,
            also=cache_hits(scorer.embedder if scorer is not None else None),
        ) as on_progress,
    ):
        run = run_alignment(
            pairs,
            out,
            scorer=scorer,
            values=values,
            lower_is_better=_names(lower_is_better),
            studies=table,
            resamples=resamples,
            seed=seed,
            overwrite=overwrite,
            on_progress=on_progress,
        )
    say_of_encoder(scorer.embedder if scorer is not None else None)
    say_of_run(run.notes, out, unchanged=run.unchanged)
    if as_json:
        typer.echo(json.dumps(run.content, indent=2, ensure_ascii=False))
    elif not quiet:
        for each in run.tables:
            typer.echo(each.text(terminal_width()) + "\n")
        typer.echo("\n".join(run.signatures))
        typer.echo(f"wrote {run.folder}")
    failures = run.content["failures"]
    if failures:
        what = "rows or values are missing" if len(failures) > 1 else "row or value is missing"
        say_of_failures(run.first_failures(SHOWN_FAILURES), len(failures), what)
        typer.echo(f"all of them: {run.folder / 'failures.csv'}", err=True)
        if not keep_going:
            raise typer.Exit(1)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
