"""`vlscore sensitivity`: which changes of a report metrics notice."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from vlscore.cli.output import OutputOptions, echo, print_encoder_warning, show
from vlscore.cli.progress import phase_progress
from vlscore.cli.shared import (
    EncoderOptions,
    Format,
    Names,
    Out,
    TableOptions,
    options,
    worker_count,
)
from vlscore.core import with_noun
from vlscore.evaluation import SensitivitySettings

if TYPE_CHECKING:
    from vlscore.stats import Result, TextTable


def sensitivity(
    *,
    perturbations: Path,
    out: Out,
    studies: Path | None = None,
    metrics: Names | None = None,
    settings: Annotated[SensitivitySettings, options()] = SensitivitySettings(),
    table: TableOptions = TableOptions(),
    encoding: EncoderOptions = EncoderOptions(),
    figure: str | None = None,
    format: Format = "csv",
    output: OutputOptions = OutputOptions(),
) -> None:
    """Show which changes of a report each metric notices.

    Prints how much each kind of change lowers each metric. The folder also has every value, and the
    tables of the VLScore paper: removed sentences (Table 2), changed words (Table 3), standard
    normal reports (Figure 2). Metrics are compared on the changes for which all have values.

    Example: vlscore sensitivity -p perturbed --metrics bleu-4,judge -o noticed

    Args:
        perturbations: Folder that `vlscore perturb` wrote, or its .jsonl file; or tables of the
            VLScore paper's authors, with the columns Path_frontal, gt, output.
        studies: Table with ids and images of the studies. Without it, metrics that use the image
            are left out; tables of the authors name the images themselves.
        metrics: Metrics with commas between them; `vlscore metrics` lists all; text, image and bleu
            are groups. Default: all that need no model file.
        figure: Format of the figures: png, svg or pdf. Default: png, if matplotlib is installed.
    """
    from vlscore.evaluation import authors_tables
    from vlscore.evaluation import sensitivity as compute_sensitivity

    opened = None
    if studies is not None:
        opened = table.opened(studies, "id", "image", "view", needs={"image"}, limited=False)
    if metrics is not None:
        scorer = encoding.scorer(metrics)
    else:
        has_encoder = studies is not None or encoding.encoder is not None
        embedder = encoding.embedder() if has_encoder else None
        has_images = opened is not None or bool(authors_tables(perturbations))
        scorer = encoding.every_metric(embedder, images=has_images)
    embedder = scorer.embedder
    with phase_progress(quiet=output.is_silent, embedder=embedder) as on_phase:
        run = compute_sensitivity(
            perturbations,
            out,
            scorer,
            settings,
            # Metrics of texts alone look at no image.
            studies=opened if embedder is not None else None,
            image_root=None if opened is not None else table.image_root,
            limit=table.limit,
            figure=figure,
            format=format,
            workers=worker_count(encoding.workers),
            overwrite=output.overwrite,
            on_phase=on_phase,
        )
    print_encoder_warning(embedder)
    if run.record["truncated"]:
        count = with_noun(run.record["truncated"], "report")
        echo(f"longer than the encoder reads: {count}", err=True)
    show(run, output, "changes have no value", tables=_for_terminal(run))


def _for_terminal(run: "Result") -> "list[TextTable]":
    """Return the drops of every kind first, and whether the image counts, without intervals."""
    from vlscore.evaluation import sensitivity_tables
    from vlscore.stats import with_demonstration_note

    estimates = {
        name: rows[[column for column in rows if not column.endswith((".low", ".high"))]]
        for name, rows in run.frames.items()
    }
    short = sensitivity_tables(estimates, run.record["in_sample"])
    kinds = [table for table in short if table.columns[0] == "kind"]
    swaps = [table for table in short if "image" in table.columns]
    titles = [table.title for table in (*kinds, *swaps)]
    rest = [table for table in run.tables if table.title not in titles]
    caption = "Means over studies. tables.md has their 95 % bootstrap intervals."
    return [
        *(dataclasses.replace(table, caption=caption) for table in kinds),
        *with_demonstration_note(swaps, run.signatures.values()),
        *sorted(rest, key=lambda table: "ignores" not in table.columns),
    ]
