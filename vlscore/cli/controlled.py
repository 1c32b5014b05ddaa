"""`vlscore controlled`: test whether a metric distinguishes sentences that agree from others."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from vlscore.cli.output import OutputOptions, echo, print_encoder_warning, show
from vlscore.cli.progress import phase_progress
from vlscore.cli.shared import (
    EncoderOptions,
    Limit,
    Names,
    Out,
    Rename,
    TableOptions,
    options,
    renamed,
)
from vlscore.evaluation import ControlledSettings

if TYPE_CHECKING:
    from vlscore.data import ReportTable
    from vlscore.evaluation import LabelledSentences


def controlled(
    reports: Path,
    /,
    *,
    out: Out,
    metrics: Names = ("bleu-4", "rouge-l", "findings-f1"),
    labelled: bool = False,
    observations: Names = (),
    settings: Annotated[
        ControlledSettings, options(without=("references", "candidates"))
    ] = ControlledSettings(),
    rename: Rename = (),
    limit: Limit = None,
    encoding: Annotated[
        EncoderOptions, options(without=("C", "workers", "image_policy", "views"))
    ] = EncoderOptions(),
    output: OutputOptions = OutputOptions(),
) -> None:
    """Test metrics on sentences whose meaning is known.

    Sentences of your reports are grouped by their label for an observation: positive, uncertain,
    negative, or not mentioned. Our rules (`vlscore.findings`) make the labels, or with --labelled
    they come from your table. Prints how well each metric separates pairs of sentences that agree
    from pairs that do not (Pino 2022). Also writes the mean value for each pair of groups.

    Example: vlscore controlled reports.csv --metrics bleu-4,rouge-l --out controlled

    Args:
        reports: Table of reports; or, with --labelled, of sentences with labels.
        metrics: Text metrics, with commas between them; text and bleu are groups; `vlscore metrics`
            lists all. Default: bleu-4,rouge-l,findings-f1.
        labelled: REPORTS has one row for each sentence (column sentence) and one column for each
            observation: 1 positive, 0 negative, -1 uncertain, empty if not mentioned.
        observations: Observations, with commas. Default: six of CheXpert's, or with --labelled all
            columns with the name of an observation.
    """
    from vlscore.evaluation import controlled as compute_controlled

    scorer = encoding.scorer(metrics, of_sentences=True)
    found = _read(reports, rename, observations or None, limit, labelled=labelled)
    with phase_progress(quiet=output.is_silent) as on_phase:
        run = compute_controlled(
            found,
            out,
            scorer,
            observations=observations or None,
            text_policy=encoding.section,
            settings=settings,
            overwrite=output.overwrite,
            on_phase=on_phase,
        )
    print_encoder_warning(scorer.embedder)
    if not output.is_silent:
        echo(f"{run.record['sentences']} sentences, by {run.record['labelled_by']}\n")
    # The first tables are those of areas, one for each observation.
    areas = run.frames["separations"]
    count = areas["observation"].nunique() if len(areas) else 0
    show(run, output, tables=run.tables[:count])


def _read(
    path: Path, rename: Names, observations: Names | None, limit: int | None, *, labelled: bool
) -> "LabelledSentences | ReportTable":
    """Return a table of sentences with labels, or of reports."""
    from vlscore.evaluation import read_labelled

    if not labelled:
        return TableOptions(rename=rename, limit=limit).reports(path)
    column = renamed(rename, "sentence").get("sentence", "sentence")
    return read_labelled(path, observations, sentence_column=column, limit=limit)
