"""`vlscore controlled`: does a metric tell sentences that agree from sentences that do not?"""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vlscore.cli.option_groups import PrintOptions, RunOptions, ScorerOptions, grouped
from vlscore.cli.options import TABLE, IdColumnOption, OutOption, TextColumnOption, names_of, option
from vlscore.cli.output import (
    echo,
    exit_if_failed,
    print_encoder_warning,
    print_result,
)
from vlscore.cli.progress import stopping
from vlscore.evaluation import Sampling

if TYPE_CHECKING:
    from vlscore.data import ReportTable
    from vlscore.evaluation import LabelledSentences

DEFAULT_METRICS = "bleu-4,rouge-l,findings-f1"

SourceArgument = Annotated[
    Path,
    typer.Argument(
        help="Table of reports; or, with --labelled, of sentences with labels.", metavar="REPORTS"
    ),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentenceOptions:
    """Metrics, and the observations whose sentences are compared."""

    metrics: Annotated[
        list[str] | None,
        option(
            "--metrics -m",
            "Metrics of texts, with commas between them; repeatable. "
            "text, image and bleu are groups; `vlscore metrics` lists all.",
            "NAMES",
            show_default=DEFAULT_METRICS,
        ),
    ] = None
    labelled: Annotated[
        bool,
        option(
            "--labelled",
            "REPORTS has one sentence a row and one column an observation: 1 positive, 0 "
            "negative, -1 uncertain, empty if it is not mentioned.",
        ),
    ] = False
    observations: Annotated[
        str,
        option(
            "--observations",
            "Observations, with commas. Default: six of CheXpert's, or with --labelled all "
            "columns with the name of one.",
            "NAMES",
        ),
    ] = ""

    @property
    def named(self) -> tuple[str, ...] | None:
        """Observations that --observations names; None for the default."""
        return names_of(self.observations) or None


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentenceColumnOptions:
    """Columns of the table."""

    id_column: IdColumnOption = "id"
    text_column: TextColumnOption = None
    sentence_column: Annotated[
        str,
        option("--sentence-column", "Column with the sentence, with --labelled.", "NAME", TABLE),
    ] = "sentence"

    def read(self, source: Path, sentences: SentenceOptions) -> "LabelledSentences | ReportTable":
        """Return the table at `source`: of sentences with labels, or of reports."""
        from vlscore.data import open_reports
        from vlscore.evaluation import read_labelled

        if sentences.labelled:
            return read_labelled(source, sentences.named, sentence_column=self.sentence_column)
        return open_reports(source, id_column=self.id_column, text_column=self.text_column)


@grouped(
    "C",
    "workers",
    "image_policy",
    "views",
    "reference_section",
    "candidate_section",
)
def controlled(
    *,
    source: SourceArgument,
    out: OutOption,
    sentences: SentenceOptions,
    sampling: Sampling,
    columns: SentenceColumnOptions,
    encoding: ScorerOptions,
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Test metrics on sentences whose meaning is known.

    Sentences of your reports are grouped by their label for an observation: positive, uncertain,
    negative, or not mentioned. The labels are those of our rules (`vlscore.findings`), or with
    --labelled those of your table. Prints how well each metric separates sentences that agree
    from those that do not (Pino 2022). Also writes the mean value for every two groups.

    Example: vlscore controlled reports.csv --metrics bleu-4,rouge-l --out controlled
    """
    from vlscore.cli.progress import phase_progress
    from vlscore.evaluation import controlled as compute_controlled

    scorer = encoding.scorer_of_sentences(sentences.metrics or DEFAULT_METRICS)
    found = columns.read(source, sentences)
    with stopping(None, stored=None), phase_progress(quiet=printing.is_silent) as on_phase:
        run = compute_controlled(
            found,
            out,
            scorer,
            observations=sentences.named,
            text_policy=encoding.section,
            sampling=sampling,
            overwrite=running.overwrite,
            on_phase=on_phase,
        )
    print_encoder_warning(scorer.embedder)
    if not printing.is_silent:
        echo(f"{run.record['sentences']} sentences, by {run.record['labelled_by']}\n")
    areas = run.tables[: run.record["areas"]]
    print_result(run, printing, "rows could not be used", "row could not be used", tables=areas)
    exit_if_failed(run.failures, running.keep_going)
