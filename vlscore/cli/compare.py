"""`vlscore compare`: several systems, every metric, one table."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlscore.cli.options import (
    READING,
    TABLE,
    BatchSizeOption,
    CandidateColumnOption,
    CandidateSectionOption,
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
    NoCacheOption,
    OutOption,
    OverwriteOption,
    PatientColumnOption,
    PrecisionOption,
    QuietOption,
    ReferenceColumnOption,
    ReferenceSectionOption,
    SectionOption,
    TokenizerOption,
    ViewColumnOption,
    ViewsOption,
    WeightsOption,
    WorkersOption,
    column_names,
    make_embedder,
    make_scorer,
    text_policy,
    worker_count,
)
from vlscore.cli.output import (
    SHOWN_FAILURES,
    cache_hits,
    echo,
    say_of_encoder,
    say_of_run,
    stopping,
    terminal_width,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vlscore.evaluation import Source
    from vlscore.metrics import Scorer


def compare(
    systems: Annotated[
        list[str],
        typer.Argument(
            help="Tables of studies with candidates, one a system, or folders of finished "
            "`vlscore evaluate` runs; name=path gives a system another name than its file's.",
            metavar="SYSTEMS...",
        ),
    ],
    out: OutOption,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            "-m",
            metavar="NAMES",
            help="Metrics with commas between them; repeatable. "
            "text, image and bleu are groups; `vlscore metrics` lists all. Default: every "
            "free one that can run; of finished runs alone, those of the first.",
            show_default=False,
        ),
    ] = None,
    text_only: Annotated[
        bool,
        typer.Option(
            "--text-only",
            help="Metrics of texts alone: no encoder, no images.",
            show_default=False,
            rich_help_panel=READING,
        ),
    ] = False,
    baselines: Annotated[
        bool,
        typer.Option(
            "--baselines",
            help="Put a constant report, the standard normal report, random reports and those of "
            "the nearest images beside the systems.",
            show_default=False,
        ),
    ] = False,
    train: Annotated[
        Path | None,
        typer.Option(
            "--train",
            metavar="REPORTS",
            help="Table of training reports: baselines take them, and verbatim copies of them are "
            "counted.",
            show_default=False,
            rich_help_panel=TABLE,
        ),
    ] = None,
    values: Annotated[
        Path | None,
        typer.Option(
            "--values",
            metavar="PATH",
            help="Table of values computed elsewhere: system, id, one column a metric.",
            show_default=False,
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
    resamples: Annotated[
        int, typer.Option(min=10, metavar="N", help="Resamples of the bootstrap.")
    ] = 2000,
    permutations: Annotated[
        int, typer.Option(min=99, metavar="N", help="Permutations of the paired tests.")
    ] = 9999,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Of intervals, tests and random reports.")
    ] = 0,
    ignore_blanks: Annotated[
        bool,
        typer.Option(
            "--ignore-blanks",
            help="Take references that differ in blanks and line breaks alone for the same: those "
            "of the first table are used.",
            show_default=False,
            rich_help_panel=READING,
        ),
    ] = False,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            metavar="SYSTEM",
            help="Test this system against each other one alone. Default: every two.",
            show_default=False,
        ),
    ] = None,
    patient_column: PatientColumnOption = None,
    image_root: ImageRootOption = None,
    id_column: IdColumnOption = "id",
    image_column: ImageColumnOption = "image",
    reference_column: ReferenceColumnOption = "reference",
    candidate_column: CandidateColumnOption = "candidate",
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
    workers: WorkersOption = None,
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
    """Compare systems that wrote reports for the same studies.

    Every metric of every system with its interval; every difference with its interval and a paired
    test, corrected for how many there are; what the candidates are like as texts. Written to --out
    as Markdown, LaTeX, csv and json, with the values of every study.

    Tables are joined by id. Where studies or references differ, or finished runs have other
    signatures, nothing is computed, and the difference is shown. Images are read from the first
    table that has them, once for all systems.

    Example: vlscore compare ours.jsonl theirs.jsonl --text-only --baselines --out compared
    """
    from vlscore.cli.output import phase_progress
    from vlscore.data import open_reports
    from vlscore.evaluation import compare as run
    from vlscore.evaluation import open_sources

    columns = column_names(
        id=id_column,
        image=image_column,
        reference=reference_column,
        candidate=candidate_column,
        view=view_column,
    )
    sources = open_sources(systems, columns)
    reports = open_reports(train) if train is not None else None
    policy = text_policy(section, reference_section, candidate_section)
    scorer: Scorer | None = None
    if metrics is not None or baselines or any(source.run is None for source in sources):
        options: dict[str, Any] = {
            "device": device,
            "precision": precision,
            "compile": compile,
            "batch_size": batch_size,
            "cache": not no_cache,
            "image_policy": image_policy,
            "views": views,
        }
        paths = (encoder, weights, tokenizer)
        if metrics is None:
            scorer = _every_metric(sources, text_only, paths, options, C, policy, quiet)
        else:
            if text_only:
                _refuse_embeddings(metrics)
            scorer = make_scorer(*paths, metrics=metrics, C=C, text_policy=policy, **options)
    with (
        stopping(out),
        phase_progress(
            quiet=quiet or as_json,
            also=cache_hits(scorer.embedder if scorer is not None else None),
        ) as on_phase,
    ):
        result = run(
            sources,
            out,
            scorer,
            image_root=image_root,
            baselines=baselines,
            train=reports,
            values=values,
            lower_is_better=[name.strip() for name in lower_is_better.split(",") if name.strip()],
            resamples=resamples,
            permutations=permutations,
            seed=seed,
            ignore_blanks=ignore_blanks,
            patient_column=patient_column,
            against=against,
            figure=figure,
            workers=worker_count(workers),
            overwrite=overwrite,
            on_phase=on_phase,
        )
    say_of_encoder(scorer.embedder if scorer is not None else None)
    say_of_run(result.notes, out, unchanged=result.unchanged, resumed_from=result.resumed_from)
    if result.taken_up:
        echo(f"{result.taken_up} columns of the earlier comparison were used again", err=True)
    if as_json:
        echo(json.dumps(result.content, indent=2, ensure_ascii=False))
    elif not quiet:
        for table in result.tables:
            echo(table.text(terminal_width()) + "\n")
        echo("\n".join(result.signatures))
        echo(f"wrote {result.folder}")
    if result.failed:
        echo(f"{result.failed} values are lacking:", fg="red", err=True)
        for name, study, reason in result.first_failures(SHOWN_FAILURES):
            echo(f"  {name}, {study}: {reason}", err=True)
        echo(f"all of them: {result.folder / 'failures.csv'}", err=True)
        if not keep_going:
            raise typer.Exit(1)


def _every_metric(
    sources: "Sequence[Source]",
    text_only: bool,
    paths: tuple[str | None, Path | None, Path | None],
    options: dict[str, Any],
    C: float | None,
    policy: Any,
    quiet: bool,
) -> "Scorer":
    """A scorer of every free metric that can run, those of embeddings where there are images."""
    from vlscore.errors import InvalidSetting
    from vlscore.evaluation import has_images
    from vlscore.metrics import EmbeddingTriples, Scorer, left_out_line, usable_metrics

    embedder = example = None
    if not text_only and any(map(has_images, sources)):
        import torch

        embedder = make_embedder(*paths, **options)
        none = torch.empty(0, embedder.dim)
        C_used = embedder.C if C is None else C
        example = EmbeddingTriples(none, none, none, embedder.signature, C_used)
    elif any(paths):
        raise InvalidSetting(
            "an encoder was given, and no table has a column of images, or --text-only was given; "
            "name the metrics of embeddings that need no image with --metrics"
        )
    found, left_out = usable_metrics(example)
    if left_out and not quiet:
        echo(f"note: {left_out_line(left_out)}", err=True)
    constant = C if embedder is not None else None
    return Scorer(embedder, metrics=found, text_policy=policy, C=constant)


def _refuse_embeddings(metrics: list[str]) -> None:
    from vlscore.errors import InvalidSetting
    from vlscore.metrics import Plan

    if unlike := [str(metric) for metric in Plan(metrics).steps if metric.uses_embeddings]:
        raise InvalidSetting(
            f"--text-only was given, and {', '.join(unlike)} looks at embeddings; leave one out"
        )
