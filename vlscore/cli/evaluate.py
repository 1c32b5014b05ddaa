"""`vlscore evaluate`: a table of studies."""

import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vlscore.cli.option_groups import PrintOptions, RunOptions, ScorerOptions, TableOptions, grouped
from vlscore.cli.options import (
    ENCODER,
    OUTPUT,
    TABLE_HELP,
    ByOption,
    FigureOption,
    FormatOption,
    KeepOption,
    OutOption,
    PatientColumnOption,
    names_in,
    option,
)
from vlscore.cli.output import (
    GROUPED_FAILURES,
    SCREEN,
    check_figure,
    draw_figures,
    echo,
    print_encoder_warning,
    print_failures,
    print_json,
    print_run_notes,
    terminal_width,
)
from vlscore.cli.progress import cache_hits, ending_together, stopping
from vlscore.errors import InvalidSetting

# Studies that a note names.
_NAMED = 5

if TYPE_CHECKING:
    from vlscore.data import StudyTable
    from vlscore.evaluation import OnRay, OwnColumns, PrecisionCheck, RunResult
    from vlscore.metrics import Scorer


ENGINES = ("local", "ray")


MetricsOption = Annotated[
    list[str] | None,
    option(
        "--metrics --similarity -m",
        "Metrics with commas between them, as in vlscore,cosine,bleu-4; repeatable. text, "
        "image and bleu are groups; `vlscore metrics` lists all.",
        "NAMES",
        show_default="vlscore",
    ),
]
RetryFailedOption = Annotated[
    bool, option("--retry-failed", "Compute again the rows of a finished run that have no value.")
]
EngineOption = Annotated[
    str,
    option(
        "--engine",
        "Where to compute: local, on this machine; or ray, on the Ray cluster that RAY_ADDRESS "
        "names, else one on this machine (pip install 'vlscore[ray]').",
        "NAME",
        ENCODER,
    ),
]
ShowOption = Annotated[
    int, option("--show", "Print the values of the first N rows.", "N", OUTPUT, min=0)
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ComputedOptions:
    """What is computed, and for which of the table's own columns."""

    metrics: MetricsOption = None
    keep: KeepOption = None
    by: ByOption = None
    patient_column: PatientColumnOption = None
    retry_failed: RetryFailedOption = False

    @property
    def wanted(self) -> list[str]:
        """Names of the metrics."""
        return self.metrics or ["vlscore"]

    def needs(self) -> set[str]:
        """Return what the metrics look at, such as "image"."""
        from vlscore.metrics import Plan

        return Plan(self.wanted).needs.roles

    def own_columns(self) -> "OwnColumns | None":
        """Return the table's columns that the results use; None without any."""
        from vlscore.evaluation import OwnColumns

        if not (self.keep or self.by or self.patient_column):
            return None
        return OwnColumns(names_in(self.keep), names_in(self.by), self.patient_column)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PrecisionCheckOptions:
    """Whether the precision is compared with fp32 first."""

    check_precision: Annotated[
        bool,
        option(
            "--check-precision",
            "First embed some studies in fp32, too, and print what --precision changes in T, "
            "in the scores and in the order of the studies.",
            panel=ENCODER,
        ),
    ] = False
    check_studies: Annotated[
        int,
        option("--check-studies", "Number of studies for --check-precision.", "N", ENCODER, min=2),
    ] = 100

    def check(
        self, table: "StudyTable", scorer: "Scorer", printing: PrintOptions
    ) -> "PrecisionCheck | None":
        """Return, and print, what the precision changes; None without --check-precision."""
        from vlscore.evaluation import check_drift

        if not self.check_precision:
            return None
        checked = check_drift(table, scorer, self.check_studies)
        if not printing.is_silent:
            echo(checked.table().text(terminal_width()) + "\n")
        return checked


@grouped(after={"check_precision": "compile", "check_studies": "check_precision"})
def evaluate(
    *,
    studies: Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="STUDIES")],
    out: OutOption,
    computed: ComputedOptions,
    columns: TableOptions,
    encoding: ScorerOptions,
    checking: PrecisionCheckOptions,
    engine: EngineOption = "local",
    format: FormatOption = "parquet",
    figure: FigureOption = None,
    running: RunOptions,
    show: ShowOption = 0,
    printing: PrintOptions,
) -> None:
    """Compute metrics for every study of a table.

    The table has one study a row: id, image (one path, or several), reference, candidate; metrics
    of texts need no image. If references and candidates are in two files, join them with `vlscore
    pair`. A row without a value is listed in failures.csv with the reason, and the exit status is 1
    unless --keep-going is used. If the first hundred rows fail for one reason, the run ends.

    Stop with Ctrl-C; the same command resumes. With further metrics it adds their columns. Under
    torchrun several processes share the work and write the same results.

    Example: vlscore evaluate studies.csv -m bleu-4,rouge-l --out scored
    """
    from vlscore.cli.progress import row_progress
    from vlscore.core import Processes
    from vlscore.evaluation import evaluate as run
    from vlscore.evaluation import facts_of, serve_evaluation, when_all_are_ready

    if engine not in ENGINES:
        raise InvalidSetting(f"engine is {' or '.join(ENGINES)}, not {engine!r}")
    check_figure(figure)
    processes = Processes.from_torchrun(encoding.device)
    chosen = dataclasses.replace(encoding, device=processes.device)

    def prepare() -> "tuple[StudyTable, Scorer]":
        # The table first: a slip in it is found before seconds go into loading an encoder.
        table = columns.studies(studies, computed.needs())
        return table, chosen.scorer(computed.wanted, quiet=not processes.leads)

    decoding = encoding.decoders(processes.on_this_machine)
    with ending_together(processes):
        prepared = when_all_are_ready(processes, prepare, lambda both: facts_of(*both))
        if prepared is not None and not processes.leads:
            serve_evaluation(*prepared, processes, workers=decoding)
        elif prepared is not None:
            table, scorer = prepared
            checked = checking.check(table, scorer, printing)
            elsewhere = _elsewhere(engine, *prepared, chosen, computed.wanted)
            quiet, also = printing.is_silent, cache_hits(scorer.embedder)
            with (
                stopping(out, "finished rows are"),
                row_progress(table.count(), quiet=quiet, also=also) as on_progress,
            ):
                result = run(
                    table,
                    out,
                    scorer,
                    format=format,
                    workers=decoding,
                    overwrite=running.overwrite,
                    retry_failed=computed.retry_failed,
                    keep_going=running.keep_going,
                    processes=processes,
                    elsewhere=elsewhere,
                    checked=checked,
                    own=computed.own_columns(),
                    on_progress=on_progress,
                )
    if processes.leads:
        draw_figures(result.folder, figure)
        print_encoder_warning(scorer.embedder)
        _print(result, out, show, printing)
        if result.summary.failed and not running.keep_going:
            raise typer.Exit(1)


def _elsewhere(
    engine: str, table: "StudyTable", scorer: "Scorer", encoding: ScorerOptions, metrics: list[str]
) -> "OnRay | None":
    """Return the cluster that computes; None for this machine."""
    if engine != "ray":
        return None
    from vlscore.evaluation import OnRay

    recipe = partial(encoding.absolute().scorer, metrics, quiet=True)
    return OnRay(table, scorer, recipe, workers=encoding.workers)


def _print_summary(result: "RunResult") -> None:
    """Print the numbers, and the subgroups, as far as they fit on a screen."""
    from vlscore.evaluation import summary_text

    width = terminal_width()
    text = summary_text(result.summary, width)
    if text.count("\n") >= SCREEN:
        text = summary_text(result.summary, width, every=False)
        text += f"\nfurther numbers of these metrics: {result.summary_file}"
    echo(text)
    room = SCREEN - text.count("\n")
    groups = [table.text(width) for table in result.subgroups]
    for k, shown in enumerate(groups):
        room -= shown.count("\n") + 2
        if k and room < 0:
            echo(f"\n{len(groups) - k} more tables of subgroups: {result.folder / 'subgroups.csv'}")
            break
        echo("\n" + shown)


def _print(result: "RunResult", out: Path, show: int, printing: PrintOptions) -> None:
    """Print the first scores, the summary, and the rows that lack a value."""
    from vlscore.evaluation import scores_table

    print_run_notes(result)
    summary = result.summary
    if printing.as_json:
        print_json(summary.to_dict())
    elif not printing.quiet:
        if show:
            echo(scores_table(result.first_scores(show)).text(terminal_width()) + "\n")
        _print_summary(result)
        for name in (result.scores, result.summary_file, result.record):
            echo(f"wrote {name}")
    if guessed := summary.views_guessed:
        first = ", ".join(result.first_guessed(_NAMED)) + (", ..." if guessed > _NAMED else "")
        echo(
            f"note: {guessed} {'studies have' if guessed > 1 else 'study has'} several images, and "
            f"neither a column nor a DICOM header states their views ({first}): the first image "
            "was used as the frontal one. State the views in a column (--view-column), or use all "
            "images with --views mean",
            err=True,
        )
    if summary.failed:
        shown = result.first_failures(GROUPED_FAILURES)
        listed = f"{result.failures}; --retry-failed computes them again"
        print_failures(shown, summary.failed, "rows lack a value", "row lacks a value", listed)
