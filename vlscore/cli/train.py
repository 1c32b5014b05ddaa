"""`vlscore train`: an encoder from images and reports."""

import dataclasses
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter, Token
from cyclopts.types import NonNegativeInt

from vlscore.cli.output import RESULTS, OutputOptions, echo, print_notes, show
from vlscore.cli.progress import training_progress
from vlscore.cli.shared import (
    Device,
    Figure,
    GreyLevels,
    Names,
    Out,
    Section,
    Table,
    TableOptions,
    Views,
    Workers,
    named_values,
    options,
    worker_count,
)
from vlscore.errors import InvalidSetting
from vlscore.training import Start, TrainingSettings

if TYPE_CHECKING:
    from vlscore.data import StudyTable

LEARNING = Group("Learning", sort_key=1)
# Settings without an option of their own.
ONLY_IN_CONFIG = (
    "loaded_rate",
    "weight_decay",
    "warm_up",
    "clip",
    "frozen_norms",
    "validation_share",
    "validate_every",
    "patience",
)


def train(
    studies: Table,
    /,
    *,
    out: Out,
    config: Path | None = None,
    starting: Annotated[Start, options(Group("What is trained", sort_key=1))] = Start(),
    settings: Annotated[
        TrainingSettings, options(LEARNING, without=ONLY_IN_CONFIG)
    ] = TrainingSettings(),
    further: Annotated[Names, Parameter(name="--set", group=LEARNING)] = (),
    micro_batch: Annotated[NonNegativeInt, Parameter(group=LEARNING)] = 0,
    validation: Annotated[Path | None, Parameter(group=LEARNING)] = None,
    device: Device = None,
    workers: Workers = None,
    table: TableOptions = TableOptions(),
    image_policy: GreyLevels = "auto",
    views: Views = "first-frontal",
    section: Section = "all",
    pairs: Annotated[Path | None, Parameter(group=RESULTS)] = None,
    figure: Figure = None,
    output: OutputOptions = OutputOptions(),
) -> None:
    """Train an encoder on images and their reports.

    The table has one row for each study: id, image (one or several paths), reference. A row without
    a readable image or without a report is listed in failures.csv and left out, and the exit status
    is then 1 (0 with --keep-going). With --rename patient=COLUMN, whole patients are held out.

    The folder is then a checkpoint: `vlscore evaluate ... --encoder small --weights FOLDER`. It
    also has training.toml (all settings), log.csv (loss of every step) and validation.csv.

    After Ctrl-C, the same command resumes, with the same result as without a stop. For several
    GPUs: torchrun --nproc-per-node 4 -m vlscore train ...

    Example: vlscore train studies.csv --objective limitr --style limitr --out mine

    Args:
        config: TOML file of settings, as in batch_size = 256; options have priority. Every result
            has such a file, training.toml, with which its run can be repeated.
        further: Further settings, as in clip=0.5,patience=3: loaded_rate, weight_decay, warm_up,
            clip, frozen_norms, validation_share, validate_every, patience.
        micro_batch: Largest number of pairs in the towers at once; 0 for all. Limits memory for a
            third more time; all negatives of the batch are still used.
        validation: Table to validate on. Default: a share of the studies.
        pairs: Folder for decoded images; several runs on one table can share it. Default: pairs in
            the results.
    """
    from vlscore.data import ImagePolicy, TextPolicy
    from vlscore.training import Execution, Preparation, TrainingProcesses
    from vlscore.training import train as run

    settings = dataclasses.replace(settings, **_rare_settings(config, further))
    execution = Execution(pairs, worker_count(workers), micro_batch, device)
    policy, text = ImagePolicy.named(image_policy), TextPolicy.named(section)

    def prepared(path: Path) -> Preparation:
        opened, patient = _opened(path, table)
        return Preparation(opened, starting.stored_side, policy, text, views, patient)

    made = prepared(studies)
    held_out = None if validation is None else prepared(validation)
    leads = TrainingProcesses.launched().leads
    quiet = output.is_silent or not leads
    with training_progress(made.table.count(), out, quiet) as (on_progress, on_step):
        execution = dataclasses.replace(execution, on_progress=on_progress, on_step=on_step)
        result = run(
            made,
            out,
            settings,
            starting,
            validation=held_out,
            execution=execution,
            overwrite=output.overwrite,
        )
    if leads:
        print_notes(made.table.notes)
        if not output.is_silent:
            echo("{pairs} pairs, {steps} steps of {objective}".format(**result.record))
        use = f"use it with: --encoder {result.encoder} --weights {out}"
        gave = "rows gave no pair"
        show(result, output, gave, verb="trained", closing_lines=[use], figure=figure)


def _opened(path: Path, options: TableOptions) -> "tuple[StudyTable, str | None]":
    """Return a table, and its column of patients."""
    from vlscore.data import open_studies

    columns = options.columns("id", "image", "reference", "view", "patient")
    patient = columns.pop("patient", None)
    opened = open_studies(
        path,
        needs={"image", "reference"},
        image_root=options.image_root,
        columns=columns,
        limit=options.limit,
        also=[patient] if patient is not None else [],
        unique=False,
    )
    return opened, patient


def _rare_settings(config: Path | None, further: Names) -> dict[str, Any]:
    """Return the settings without an option: those of the file, then those of --set."""
    values = {} if config is None else tomllib.loads(config.read_text(encoding="utf-8"))
    found = {name: value for name, value in values.items() if name in ONLY_IN_CONFIG}
    for name, text in named_values(further, "--set clip=0.5"):
        if name not in ONLY_IN_CONFIG:
            raise InvalidSetting(f"--set has no {name!r}; it has {', '.join(ONLY_IN_CONFIG)}")
        try:
            found[name] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            raise InvalidSetting(f"{name} is a number, true or false, not {text!r}") from None
    return found


def from_config(arguments: Any) -> None:
    """Take the options that the file of --config has and the command line lacks.

    It is called before values are read from what is written.
    """
    chosen = [each for each in arguments if each.name == "--config" and each.tokens]
    if not chosen:
        return
    from vlscore.training import check_names, read_config

    path = Path(chosen[0].tokens[0].value)
    known = {each.field_info.name: each for each in arguments if each.parse and not each.children}
    del known["config"]
    values = read_config(path, [*known, *ONLY_IN_CONFIG])
    taken = {n: value for n, value in values.items() if n in known and not known[n].tokens}
    check_names(path, taken)
    for name, value in taken.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        known[name].append(Token(keyword=known[name].name, value=text, source=str(path)))
