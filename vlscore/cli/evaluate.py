"""`vlscore evaluate`: a table of studies."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vlscore.cli.options import (
    ENCODER,
    OUTPUT,
    TABLE_HELP,
    BatchSizeOption,
    ByOption,
    CandidateColumnOption,
    CandidateSectionOption,
    CompileOption,
    ConstantOption,
    DeviceOption,
    EncoderOption,
    FormatOption,
    IdColumnOption,
    ImageColumnOption,
    ImagePolicyOption,
    ImageRootOption,
    JsonOption,
    KeepGoingOption,
    KeepOption,
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
    make_scorer,
    names_in,
    text_policy,
    worker_count,
)
from vlscore.cli.output import (
    SHOWN_FAILURES,
    cache_hits,
    echo,
    ending_together,
    say_of_encoder,
    say_of_failures,
    say_of_run,
    stopping,
    terminal_width,
)
from vlscore.errors import InvalidSetting

if TYPE_CHECKING:
    from vlscore.data import StudyTable
    from vlscore.evaluation import OnRay
    from vlscore.metrics import Scorer


ENGINES = ("local", "ray")


def evaluate(
    studies: Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="STUDIES")],
    out: OutOption,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            "--similarity",
            "-m",
            metavar="NAMES",
            help="Metrics with commas between them, as in vlscore,cosine,bleu-4; repeatable. text, "
            "image and bleu are groups; `vlscore metrics` lists all.",
            show_default="vlscore",
        ),
    ] = None,
    keep: KeepOption = None,
    by: ByOption = None,
    patient_column: PatientColumnOption = None,
    retry_failed: Annotated[
        bool,
        typer.Option(
            "--retry-failed",
            help="Compute again the rows of a finished run that have no value.",
            show_default=False,
        ),
    ] = False,
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
    check_precision: Annotated[
        bool,
        typer.Option(
            "--check-precision",
            help="First embed some studies in fp32, too, and print what --precision changes in T, "
            "in the scores and in the order of the studies.",
            show_default=False,
            rich_help_panel=ENCODER,
        ),
    ] = False,
    check_studies: Annotated[
        int,
        typer.Option(min=2, metavar="N", help="Studies of that check.", rich_help_panel=ENCODER),
    ] = 100,
    batch_size: BatchSizeOption = None,
    no_cache: NoCacheOption = False,
    workers: WorkersOption = None,
    image_policy: ImagePolicyOption = "auto",
    views: ViewsOption = "first-frontal",
    section: SectionOption = "all",
    reference_section: ReferenceSectionOption = None,
    candidate_section: CandidateSectionOption = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What computes: local, this machine; or ray, the Ray cluster that RAY_ADDRESS "
            "names, else one on this machine (pip install 'vlscore[ray]').",
            rich_help_panel=ENCODER,
        ),
    ] = "local",
    format: FormatOption = "parquet",
    overwrite: OverwriteOption = False,
    keep_going: KeepGoingOption = False,
    show: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Print the values of the first N rows.",
            rich_help_panel=OUTPUT,
        ),
    ] = 0,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
) -> None:
    """Compute metrics for every study of a table.

    The table has one study a row: id, image (one path, or several), reference, candidate, as far as
    the metrics look at them. A row that lacks a value is listed in failures.csv with its number and
    the reason, and the exit status is 1 unless --keep-going is given. Where the first hundred rows
    all fail for one reason, the run ends at once; with --keep-going it goes on.

    Stop with Ctrl-C and start the same command again to go on where it was. Start it again with
    further metrics to add their columns to a finished run. Started by torchrun, several processes
    share the work, each with a GPU of its own where there are GPUs, and write the same results.

    Example: vlscore evaluate studies.csv --image-root /data/files --out results
    Example: torchrun --nproc-per-node 4 -m vlscore evaluate studies.csv --out results
    """
    from vlscore.cli.output import row_progress
    from vlscore.core import Processes
    from vlscore.data import open_studies
    from vlscore.evaluation import (
        OwnColumns,
        check_drift,
        facts_of,
        scores_table,
        serve_evaluation,
        summary_text,
        when_all_are_ready,
    )
    from vlscore.evaluation import evaluate as run
    from vlscore.metrics import Plan

    if engine not in ENGINES:
        raise InvalidSetting(f"engine is {' or '.join(ENGINES)}, not {engine!r}")
    processes = Processes.from_torchrun(device)
    wanted = metrics or ["vlscore"]
    options: dict[str, Any] = {
        "metrics": wanted,
        "C": C,
        "device": processes.device,
        "precision": precision,
        "compile": compile,
        "batch_size": batch_size,
        "cache": not no_cache,
        "image_policy": image_policy,
        "text_policy": text_policy(section, reference_section, candidate_section),
        "views": views,
    }

    def prepare() -> "tuple[StudyTable, Scorer]":
        # The table first: a slip in it is found before seconds go into loading an encoder.
        table = open_studies(
            studies,
            needs=Plan(wanted).needs.roles,
            image_root=image_root,
            columns=column_names(
                id=id_column,
                image=image_column,
                reference=reference_column,
                candidate=candidate_column,
                view=view_column,
            ),
        )
        return table, make_scorer(encoder, weights, tokenizer, quiet=not processes.leads, **options)

    decoding = worker_count(workers, processes.on_this_machine)
    with ending_together(processes):
        prepared = when_all_are_ready(processes, prepare, lambda both: facts_of(*both))
        if prepared is not None and not processes.leads:
            serve_evaluation(*prepared, processes, workers=decoding)
        if prepared is not None and processes.leads:
            table, scorer = prepared
            checked = check_drift(table, scorer, check_studies) if check_precision else None
            if checked is not None and not (quiet or as_json):
                echo(checked.table().text(terminal_width()) + "\n")
            with (
                stopping(out, "finished rows are"),
                row_progress(
                    table.count(), quiet=quiet or as_json, also=cache_hits(scorer.embedder)
                ) as on_progress,
            ):
                result = run(
                    table,
                    out,
                    scorer,
                    format=format,
                    workers=decoding,
                    overwrite=overwrite,
                    retry_failed=retry_failed,
                    keep_going=keep_going,
                    processes=processes,
                    elsewhere=on_ray(table, scorer, encoder, weights, tokenizer, options)
                    if engine == "ray"
                    else None,
                    checked=checked,
                    own=OwnColumns(names_in(keep), names_in(by), patient_column)
                    if keep or by or patient_column
                    else None,
                    on_progress=on_progress,
                )
    if not processes.leads:
        return
    say_of_encoder(scorer.embedder)
    say_of_run(result.notes, out, unchanged=result.unchanged, resumed_from=result.resumed_from)
    summary = result.summary
    if as_json:
        echo(json.dumps(summary.to_dict(), indent=2, ensure_ascii=False))
    elif not quiet:
        if show:
            echo(scores_table(result.first_scores(show)).text(terminal_width()) + "\n")
        echo(summary_text(summary, terminal_width()))
        for table_of_groups in result.subgroups:
            echo("\n" + table_of_groups.text(terminal_width()))
        for name in (result.scores, result.summary_file, result.record):
            echo(f"wrote {name}")
    if summary.failed:
        what = "rows lack a value" if summary.failed > 1 else "row lacks a value"
        say_of_failures(result.first_failures(SHOWN_FAILURES), summary.failed, what)
        echo(f"all of them: {result.failures}; --retry-failed computes them again", err=True)
        if not keep_going:
            raise typer.Exit(1)


def on_ray(
    table: "StudyTable",
    scorer: "Scorer",
    encoder: str | None,
    weights: Path | None,
    tokenizer: Path | None,
    options: dict[str, Any],
) -> "OnRay":
    """What computes on a Ray cluster, where each actor makes the scorer of these options."""
    from functools import partial

    from vlscore.evaluation import OnRay

    recipe = partial(
        make_scorer,
        encoder,
        None if weights is None else weights.absolute(),
        None if tokenizer is None else tokenizer.absolute(),
        quiet=True,
        **options,
    )
    return OnRay(table, scorer, recipe)
