"""`vlscore compare`: several systems, every metric, one table."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from vlscore.cli.output import RESULTS, OutputOptions, print_encoder_warning, show
from vlscore.cli.progress import row_progress
from vlscore.cli.shared import (
    STUDY,
    EncoderOptions,
    Figure,
    Names,
    Out,
    Several,
    TableOptions,
    options,
    renamed,
    worker_count,
)
from vlscore.errors import InvalidSetting
from vlscore.evaluation import ComparisonSettings, TableSettings

if TYPE_CHECKING:
    from vlscore.evaluation import Source
    from vlscore.metrics import Scorer


def compare(
    *systems: Several[str],
    out: Out,
    metrics: Names | None = None,
    text_only: bool = False,
    train: Path | None = None,
    settings: Annotated[
        ComparisonSettings, options(without=("train", "patient_column", "shared_errors"))
    ] = ComparisonSettings(),
    table: TableOptions = TableOptions(),
    encoding: EncoderOptions = EncoderOptions(),
    paper: Annotated[TableSettings, options(RESULTS)] = TableSettings(),
    figure: Figure = None,
    output: OutputOptions = OutputOptions(),
) -> None:
    """Compare systems that wrote reports for the same studies.

    Prints a table of the primary number of every metric, with the best system and those that are
    not significantly different. The folder has it as table.tex and table.md, and all numbers and
    tests in tables.md. To change its form, repeat the command with --columns or --digits; nothing
    is computed again.

    Tables are joined by id, and need the same studies and references. --rename id=uid renames a
    column in all tables, --rename theirs.id=uid in one. With --rename patient=COLUMN, intervals and
    tests resample patients.

    Example: vlscore compare ours.csv theirs.csv --text-only --out compared

    Args:
        systems: Tables of studies with candidates, one for each system, or folders of finished
            `vlscore evaluate` runs. Write NAME=PATH to name a system.
        metrics: Metrics with commas between them, as in bleu-4,rouge-l; `vlscore metrics` lists
            all, and presets (rexrank, r2gen). Default: all that need no model file, or those of
            the first folder of a run.
        text_only: Use only text metrics: no encoder, no images.
        train: Table of training reports: baselines learn from them, and candidates that copy one
            are counted.
    """
    from vlscore.data import open_reports
    from vlscore.evaluation import compare as compute
    from vlscore.evaluation import open_sources, paper_table, with_preset_columns

    general, own = _by_system(table.rename)
    columns = renamed(general, *STUDY, "patient")
    settings = dataclasses.replace(
        settings,
        train=None if train is None else open_reports(train),
        patient_column=columns.pop("patient", None),
    )
    sources = open_sources(systems, columns, own, table.limit)
    scorer = _scorer_of(sources, metrics, settings, encoding, text_only, output.quiet)
    embedder = scorer.embedder if scorer is not None else None
    paper = with_preset_columns(paper, scorer)
    with row_progress(None, quiet=output.is_silent, embedder=embedder) as on_progress:
        result = compute(
            sources,
            out,
            scorer,
            settings,
            table=paper,
            image_root=table.image_root,
            workers=worker_count(encoding.workers),
            overwrite=output.overwrite,
            on_progress=on_progress,
        )
    print_encoder_warning(embedder)
    folder = result.folder
    show(
        result,
        output,
        "rows or values are missing",
        "row or value is missing",
        tables=[paper_table(result, paper), *result.tables],
        closing_lines=[
            f"for a paper: {folder / 'table.tex'}; to read the reports: vlscore report {folder}"
        ],
        figure=figure,
        columns=paper.columns,
    )


def _by_system(rename: Sequence[str]) -> tuple[list[str], dict[str, dict[str, str]]]:
    """Return what --rename says of all tables, and system -> role -> column."""
    general: list[str] = []
    own: dict[str, dict[str, str]] = {}
    for entry in rename:
        role, _, column = entry.partition("=")
        system, point, role = role.rpartition(".")
        if point and column and role in STUDY:
            own.setdefault(system, {})[role] = column
        else:
            general.append(entry)
    return general, own


def _scorer_of(
    sources: "Sequence[Source]",
    metrics: Names | None,
    settings: ComparisonSettings,
    encoding: EncoderOptions,
    text_only: bool,
    quiet: bool,
) -> "Scorer | None":
    """Return the scorer of a comparison; None where the folders have every value."""
    from vlscore.metrics import Plan

    if metrics is not None:
        unlike = [str(each) for each in Plan(metrics).steps if each.uses_embeddings]
        if text_only and unlike:
            raise InvalidSetting(
                f"--text-only allows no embeddings, but {', '.join(unlike)} uses them; leave one "
                "out"
            )
        return encoding.scorer(metrics)
    if finished := [source for source in sources if source.run is not None]:
        if len(finished) == len(sources) and not settings.baselines:
            return None
        # A folder has no other metrics than its own: tables and baselines get these.
        return _metrics_of(finished[0], encoding, text_only=text_only)
    if not text_only and any(source.has_images for source in sources):
        return encoding.every_metric(encoding.embedder(), quiet=quiet)
    if encoding.encoder or encoding.weights or encoding.tokenizer:
        raise InvalidSetting(
            "an encoder is named, but no table has a column of images, or --text-only is used; "
            "name metrics of embeddings that need no image with --metrics"
        )
    return encoding.every_metric(None, quiet=quiet)


def _metrics_of(source: "Source", encoding: EncoderOptions, *, text_only: bool) -> "Scorer":
    """Return a scorer of the metrics of a finished run, of those of texts alone if `text_only`."""
    metrics = [each for each in source.metrics if not (text_only and each.uses_embeddings)]
    if not metrics:
        raise InvalidSetting(
            f"{source.name} has no metric of texts alone; name metrics with --metrics, or leave "
            "--text-only out"
        )
    return encoding.scorer(metrics)
