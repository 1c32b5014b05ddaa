"""`vlscore compare`: several systems, every metric, one table."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vlscore.cli.option_groups import PrintOptions, RunOptions, ScorerOptions, TableOptions, grouped
from vlscore.cli.options import TABLE, FigureOption, OutOption, option
from vlscore.cli.output import (
    echo,
    exit_if_failed,
    print_encoder_warning,
    print_left_out,
    print_result,
)
from vlscore.cli.progress import cache_hits, stopping
from vlscore.evaluation import ComparisonSettings, TableSettings

if TYPE_CHECKING:
    from vlscore.embedding import StudyEmbedder
    from vlscore.evaluation import Source
    from vlscore.metrics import Scorer


SystemsArgument = Annotated[
    list[str],
    typer.Argument(
        help="Tables of studies with candidates, one a system, or folders of finished "
        "`vlscore evaluate` runs; name=path gives a system another name than its file's.",
        metavar="SYSTEMS",
    ),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ComparedOptions:
    """Metrics that are computed, and training reports of the baselines."""

    metrics: Annotated[
        list[str] | None,
        option(
            "--metrics -m",
            "Metrics with commas between them, as in bleu-4,rouge-l; `vlscore metrics` lists "
            "all; text, image and bleu are groups. Default: all that need no model file; where a "
            "folder of a finished run is among the systems, those of the first folder.",
            "NAMES",
        ),
    ] = None
    text_only: Annotated[
        bool, option("--text-only", "Use metrics of texts only: no encoder, no images.")
    ] = False
    train: Annotated[
        Path | None,
        option(
            "--train",
            "Table of training reports: baselines use them, and verbatim copies of them are "
            "counted.",
            "REPORTS",
            TABLE,
        ),
    ] = None


@grouped()
def compare(
    *,
    systems: SystemsArgument,
    out: OutOption,
    compared: ComparedOptions,
    settings: ComparisonSettings,
    table: TableOptions,
    encoding: ScorerOptions,
    paper: TableSettings,
    figure: FigureOption = None,
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Compare systems that wrote reports for the same studies.

    Prints one table with the primary number of every metric: the best system, and which others are
    not significantly different from it. Writes it as table.tex and table.md; tables.md has all
    numbers, intervals and paired tests. Repeat the command with --columns, --digits and the like to
    print the table in another way; nothing is computed again.

    Tables are joined by id. They need the same studies and the same references.

    Example: vlscore compare ours.csv theirs.csv --text-only --out compared
    """
    from vlscore.cli.progress import row_progress
    from vlscore.data import open_reports
    from vlscore.evaluation import compare as run
    from vlscore.evaluation import has_images, open_sources, paper_table

    sources = open_sources(systems, table.columns())
    reports = open_reports(compared.train) if compared.train is not None else None
    scorer: Scorer | None = None
    if compared.metrics is not None:
        if compared.text_only:
            _refuse_embeddings(compared.metrics)
        scorer = encoding.scorer(compared.metrics)
    elif finished := [source for source in sources if source.run is not None]:
        if settings.baselines or len(finished) < len(sources):
            # A folder has no other metrics than its own: tables and baselines get these.
            scorer = _metrics_of(finished[0], encoding, text_only=compared.text_only)
    else:
        embedder = None
        if not compared.text_only and any(map(has_images, sources)):
            embedder = encoding.embedder()
        scorer = _every_metric(embedder, encoding, quiet=printing.quiet)
    embedder = scorer.embedder if scorer is not None else None
    with (
        stopping(out, stored=None),
        row_progress(None, quiet=printing.is_silent, also=cache_hits(embedder)) as on_progress,
    ):
        result = run(
            sources,
            out,
            scorer,
            image_root=table.image_root,
            **{**vars(settings), "train": reports},
            table=paper,
            figure=figure,
            workers=encoding.decoders(),
            overwrite=running.overwrite,
            on_progress=on_progress,
        )
    print_encoder_warning(embedder)
    tables = [paper_table(result, paper), *result.tables]
    print_result(result, printing, "values are missing", "value is missing", tables=tables)
    if not printing.is_silent:
        folder = result.folder
        echo(f"for a paper: {folder / 'table.tex'}; to read the reports: vlscore report {folder}")
    exit_if_failed(result.failures, running.keep_going)


def _metrics_of(source: "Source", encoding: ScorerOptions, *, text_only: bool) -> "Scorer":
    """Return a scorer of the metrics of a finished run, of those of texts alone if `text_only`."""
    from vlscore.errors import InvalidSetting

    metrics = [each for each in source.metrics if not (text_only and each.uses_embeddings)]
    if not metrics:
        raise InvalidSetting(
            f"{source.name} has no metric of texts alone; name metrics with --metrics, or leave "
            "--text-only out"
        )
    return encoding.scorer(metrics)


def _every_metric(
    embedder: "StudyEmbedder | None", encoding: ScorerOptions, *, quiet: bool
) -> "Scorer":
    """Return a scorer of every free metric that can run, of texts alone without an embedder."""
    from vlscore.errors import InvalidSetting
    from vlscore.metrics import EmbeddingTriples, Scorer, usable_metrics

    C, example = None, None
    if embedder is not None:
        import torch

        C = encoding.C
        none = torch.empty(0, embedder.dim)
        C_used = embedder.C if C is None else C
        example = EmbeddingTriples(none, none, none, embedder.signature, C_used)
    elif encoding.encoder or encoding.weights or encoding.tokenizer:
        raise InvalidSetting(
            "an encoder is named, but no table has a column of images, or --text-only is used; "
            "name metrics of embeddings that need no image with --metrics"
        )
    found, left_out = usable_metrics(example)
    if left_out and not quiet:
        print_left_out(left_out)
    return Scorer(embedder, metrics=found, text_policy=encoding.policy(), C=C)


def _refuse_embeddings(metrics: list[str]) -> None:
    from vlscore.errors import InvalidSetting
    from vlscore.metrics import Plan

    if unlike := [str(metric) for metric in Plan(metrics).steps if metric.uses_embeddings]:
        raise InvalidSetting(
            f"--text-only allows no embeddings, but {', '.join(unlike)} uses them; leave one out"
        )
