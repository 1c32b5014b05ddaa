"""`vlscore train`: an encoder from images and reports."""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vlscore.cli.option_groups import PrintOptions, RunOptions, TableOptions, grouped
from vlscore.cli.options import (
    OUTPUT,
    TABLE,
    TABLE_HELP,
    DeviceOption,
    FigureOption,
    ImagePolicyOption,
    OutOption,
    SectionOption,
    WorkersOption,
    option,
    worker_count,
)
from vlscore.cli.output import (
    check_figure,
    draw_figures,
    echo,
    print_failures,
    print_json,
    print_notes,
    print_tables,
)
from vlscore.cli.progress import stopping
from vlscore.training import Start, TrainingSettings

if TYPE_CHECKING:
    from vlscore.training import Preparation, TrainingRun

LEARNING, HELD_OUT = "Learning", "Validation"


def _config(context: typer.Context, path: Path | None) -> Path | None:
    """Take defaults from a file of settings; options of the command line have priority."""
    if path is None or context.resilient_parsing:
        return None
    from vlscore.training import read_config

    known = [p.name for p in context.command.params if p.name and p.name != "config"]
    context.default_map = {**(context.default_map or {}), **read_config(path, known)}
    return path


def _check_config(context: typer.Context, config: Path | None) -> None:
    """Check the names that the file chose; those of the command line are the user's own."""
    if config is None:
        return
    from vlscore.training import check_names

    chosen = {
        name: value
        for name, value in context.params.items()
        if name in (context.default_map or {})
        and value is not None
        and getattr(context.get_parameter_source(name), "name", "") == "DEFAULT_MAP"
    }
    check_names(config, chosen)


ConfigOption = Annotated[
    Path | None,
    option(
        "--config",
        "TOML file with any of these options, as in batch_size = 256; options on the command "
        "line have priority. Every result has such a file, training.toml, which repeats its run.",
        "FILE",
        is_eager=True,
        callback=_config,
    ),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ComputeOptions:
    """Where the training runs, and how much memory a step takes."""

    micro_batch: Annotated[
        int,
        option(
            "--micro-batch",
            "Largest number of pairs in the towers at once; 0 for all. It bounds memory, takes a "
            "third more time, and removes no negatives.",
            "N",
            LEARNING,
            min=0,
        ),
    ] = 0
    device: DeviceOption = None
    workers: WorkersOption = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ValidationOptions:
    """Which studies are held out."""

    validation: Annotated[
        Path | None,
        option(
            "--validation",
            "Table to validate on. Default: a share of the studies.",
            "TABLE",
            HELD_OUT,
            show_default=False,
        ),
    ] = None
    group_column: Annotated[
        str | None,
        option(
            "--group-column",
            "Column of what is held out whole, such as patients. Default: studies.",
            "NAME",
            HELD_OUT,
            show_default=False,
        ),
    ] = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairOptions:
    """How images and reports of the table become pairs."""

    image_policy: ImagePolicyOption = "auto"
    views: Annotated[
        str,
        option(
            "--views",
            "Images of one study: first-frontal, or frontal+lateral for an encoder with a "
            "tower for lateral views.",
            "POLICY",
            TABLE,
        ),
    ] = "first-frontal"
    section: SectionOption = "all"
    pairs: Annotated[
        Path | None,
        option(
            "--pairs",
            "Folder for decoded images, which runs on one table share. Default: pairs in the "
            "results.",
            "FOLDER",
            OUTPUT,
        ),
    ] = None

    def preparation(
        self, path: Path, table: TableOptions, start: Start, group: str | None
    ) -> "Preparation":
        """Return the table at `path`, and how its rows become pairs.

        Args: group: column of what is held out as a whole; None for studies.
        """
        from vlscore.data import ImagePolicy, TextPolicy, open_studies
        from vlscore.training import Preparation

        opened = open_studies(
            path,
            needs={"image", "reference"},
            image_root=table.image_root,
            columns=table.columns("id", "image", "reference", "view"),
            also=[group] if group is not None else [],
            unique=False,
        )
        policy = ImagePolicy.named(self.image_policy)
        text = TextPolicy(self.section)
        return Preparation(opened, start.stored_side, policy, text, self.views, group)


@grouped(
    "candidate_column",
    after={
        "tokenizer": "image_weights",
        "config": "objective",
        "micro_batch": "batch_size",
        "validation": "findings_weight",
        "group_column": "validation_share",
    },
)
def train(
    *,
    context: typer.Context,
    studies: Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="STUDIES")],
    out: OutOption,
    config: ConfigOption = None,
    starting: Start,
    settings: TrainingSettings,
    compute: ComputeOptions,
    held_out: ValidationOptions,
    table: TableOptions,
    pairing: PairOptions,
    figure: FigureOption = None,
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Train an encoder on images and their reports.

    The table has one study a row: id, image (one path, or several), reference. Each image is
    decoded once. A row without an image that can be read, or without a report, is listed in
    failures.csv and left out, and the exit status is 1 unless --keep-going is given.

    The folder is then a checkpoint: `vlscore evaluate ... --encoder small --weights FOLDER`. It
    also has training.toml (all settings), log.csv (loss of every step), validation.csv (retrieval)
    and run.json (digests of the data, versions).

    Stop with Ctrl-C and start the same command again to resume: the result is the same as without
    a stop. For several GPUs: torchrun --nproc-per-node 4 -m vlscore train ...

    Example: vlscore train studies.csv --objective limitr --style limitr --out mine
    """
    from vlscore.cli.progress import training_progress
    from vlscore.training import TrainingProcesses
    from vlscore.training import train as run

    _check_config(context, config)
    check_figure(figure)
    group = held_out.group_column
    made = pairing.preparation(studies, table, starting, group)
    held = None
    if held_out.validation is not None:
        held = pairing.preparation(held_out.validation, table, starting, group)
    leads = TrainingProcesses.launched().leads
    with (
        stopping(out, "finished steps are"),
        training_progress(made.table.count(), quiet=printing.is_silent or not leads) as (
            on_progress,
            on_step,
        ),
    ):
        result = run(
            made,
            out,
            settings,
            starting,
            validation=held,
            pairs=pairing.pairs,
            workers=worker_count(compute.workers),
            micro_batch=compute.micro_batch,
            device=compute.device,
            overwrite=running.overwrite,
            keep_going=running.keep_going,
            on_progress=on_progress,
            on_step=on_step,
        )
    if leads:
        draw_figures(result.folder, figure)
        _print(result, out, made.table.notes, printing)
        if result.failures and not running.keep_going:
            raise typer.Exit(1)


def _print(result: "TrainingRun", out: Path, notes: Iterable[str], printing: PrintOptions) -> None:
    """Print what was trained, and the rows that gave no pair."""
    print_notes([*notes, *result.notes])
    if result.unchanged:
        echo(f"{out} holds this encoder already; nothing was trained", err=True)
    record = result.record
    if printing.as_json:
        print_json(record)
    elif not printing.quiet:
        echo(f"{record['pairs']} pairs, {record['steps']} steps of {record['objective']}")
        print_tables(result.tables)
        echo(f"wrote {out}: use it with --encoder {result.encoder} --weights {out}")
    if failed := result.failures:
        listed = out / "failures.csv"
        print_failures(failed, len(failed), "rows gave no pair", "row gave no pair", listed)
