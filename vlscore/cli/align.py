"""`vlscore align`: which metrics agree with radiologists."""

from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli import options as rating_options
from vlscore.cli.options import (
    RATINGS_HELP,
    TABLE,
    BatchSizeOption,
    CandidateColumnOption,
    CandidateIdColumnOption,
    CandidateSectionOption,
    CategoryColumnOption,
    CompileOption,
    ConstantOption,
    DeviceOption,
    EncoderOption,
    FigureOption,
    IdColumnOption,
    ImageColumnOption,
    ImagePolicyOption,
    ImageRootOption,
    JsonOption,
    KeepGoingOption,
    LayoutOption,
    NoCacheOption,
    OutOption,
    OverwriteOption,
    PrecisionOption,
    QuietOption,
    RaterColumnOption,
    RaterColumnsOption,
    RatingColumnsOption,
    ReferenceColumnOption,
    ReferenceSectionOption,
    ResamplesOption,
    SectionOption,
    SeedOption,
    SignificantColumnOption,
    StudyColumnOption,
    TokenizerOption,
    ViewColumnOption,
    ViewsOption,
    WeightsOption,
    column_names,
    make_scorer,
    text_policy,
)
from vlscore.cli.output import (
    SHOWN_FAILURES,
    cache_hits,
    echo,
    say_of_encoder,
    say_of_failures,
    say_of_run,
    stopping,
    terminal_width,
)


def align(
    ratings: Annotated[
        Path,
        typer.Argument(help=RATINGS_HELP, metavar="RATINGS"),
    ],
    out: OutOption,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            "-m",
            metavar="NAMES",
            help="Metrics to compute, with commas between them; repeatable. "
            "text, image and bleu are groups; `vlscore metrics` lists all. "
            "name.value is another of a metric's numbers, as findings-f1.recall. Default: "
            "vlscore, or none with --values.",
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
    fit: Annotated[
        str | None,
        typer.Option(
            "--fit",
            metavar="RATING",
            help='Also fit a composite of the computed metrics to a rating, as in "total errors"; '
            "--metrics composite:FOLDER/composite.json then is a metric.",
            show_default=False,
        ),
    ] = None,
    layout: LayoutOption = None,
    candidates: Annotated[
        str,
        typer.Option(
            "--candidates",
            metavar="NAMES",
            help="Candidates that are looked at, with commas, as one generator. Default: all.",
            show_default=False,
        ),
    ] = "",
    resamples: ResamplesOption = 1000,
    seed: SeedOption = 0,
    study_column: StudyColumnOption = "study_id",
    candidate_id_column: CandidateIdColumnOption = "candidate_id",
    rater_column: RaterColumnOption = "rater",
    rating_columns: RatingColumnsOption = "rating",
    rater_columns: RaterColumnsOption = "",
    category_column: CategoryColumnOption = "category",
    significant_column: SignificantColumnOption = "significant",
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
    reports: Annotated[
        list[str] | None,
        typer.Option(
            "--reports",
            metavar="NAME=TABLE",
            help="Table, or ReXrank's manifest, with the reports of the candidate NAME and their "
            "references, where RATINGS has no reports. Once a candidate.",
            show_default=False,
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
    compile: CompileOption = False,
    batch_size: BatchSizeOption = None,
    no_cache: NoCacheOption = False,
    image_policy: ImagePolicyOption = "auto",
    views: ViewsOption = "first-frontal",
    section: SectionOption = "all",
    reference_section: ReferenceSectionOption = None,
    candidate_section: CandidateSectionOption = None,
    figure: FigureOption = None,
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

    from vlscore.cli.output import row_progress
    from vlscore.core import split_names
    from vlscore.data import open_studies
    from vlscore.evaluation import read_ratings, run_alignment, split_values, with_reports

    columns = rating_options.rating_columns(
        rating_columns,
        rater_columns,
        study=study_column,
        candidate_id=candidate_id_column,
        rater=rater_column,
        category=category_column,
        significant=significant_column,
        # With tables of reports these are columns of theirs.
        reference="reference" if reports else reference_column,
        candidate="candidate" if reports else candidate_column,
        image="image" if studies is not None else image_column,
    )
    pairs = read_ratings(ratings, layout, columns=columns, meaning=meaning, image_root=image_root)
    if only := rating_options.names_of(candidates):
        pairs = pairs.only(only)
    if reports:
        texts = column_names(id=id_column, reference=reference_column, candidate=candidate_column)
        pairs = with_reports(
            pairs,
            {
                name: open_studies(path, needs={"reference", "candidate"}, columns=texts)
                for name, path in map(rating_options.named_path, reports)
            },
        )
    table = None
    if studies is not None:
        names = column_names(id=id_column, image=image_column, view=view_column)
        table = open_studies(studies, needs={"image"}, image_root=image_root, columns=names)
    scorer = None
    wanted: list[str] = []
    if metrics is not None:
        computed, wanted = split_values(split_names(",".join(metrics)))
        metrics = list(computed)
    if metrics is not None or values is None:
        scorer = make_scorer(
            encoder,
            weights,
            tokenizer,
            metrics=metrics,
            C=C,
            device=device,
            precision=precision,
            compile=compile,
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
            columns=wanted,
            values=values,
            lower_is_better=rating_options.names_of(lower_is_better),
            studies=table,
            fit=fit,
            resamples=resamples,
            seed=seed,
            figure=figure,
            overwrite=overwrite,
            on_progress=on_progress,
        )
    say_of_encoder(scorer.embedder if scorer is not None else None)
    say_of_run(run.notes, out, unchanged=run.unchanged, resumed_from=run.resumed_from)
    if as_json:
        echo(json.dumps(run.content, indent=2, ensure_ascii=False))
    elif not quiet:
        for each in run.tables:
            echo(each.text(terminal_width()) + "\n")
        echo("\n".join(run.signatures))
        echo(f"wrote {run.folder}")
    failures = run.content["failures"]
    if failures:
        what = "rows or values are missing" if len(failures) > 1 else "row or value is missing"
        say_of_failures(run.first_failures(SHOWN_FAILURES), len(failures), what)
        echo(f"all of them: {run.folder / 'failures.csv'}", err=True)
        if not keep_going:
            raise typer.Exit(1)
