"""`vlscore findings`: CheXpert's labels of reports, and each finding."""

from typing import Annotated, Literal

from vlscore.cli.output import OutputOptions, show
from vlscore.cli.progress import row_progress
from vlscore.cli.shared import Out, Section, Table, TableOptions, options
from vlscore.findings import LabelPolicy


def findings(
    reports: Table,
    /,
    *,
    out: Out,
    policy: Annotated[LabelPolicy, options()] = LabelPolicy(),
    format: Literal["csv", "jsonl"] = "csv",
    table: Annotated[TableOptions, options(without=("image_root",))] = TableOptions(),
    section: Section = "all",
    output: OutputOptions = OutputOptions(),
) -> None:
    """Label reports with CheXpert's fourteen observations.

    Writes labels.csv (one row for each report: 1 positive, 0 negative, -1 uncertain, empty if not
    mentioned) and findings.csv (one row for each finding: observation, label, side, zones,
    severity, change, size, text).

    To compare the findings of generated reports with those of references, use the metric
    findings-f1 of `vlscore evaluate` or `vlscore compare`.

    Example: vlscore findings reports.csv --out labelled

    Args:
        format: Format of labels and findings: csv or jsonl.
    """
    from vlscore.data import TextPolicy
    from vlscore.evaluation import findings as write_findings

    opened = table.reports(reports)
    with row_progress(opened.count, "labelling", quiet=output.is_silent) as on_progress:
        result = write_findings(
            opened,
            out,
            policy=policy,
            format=format,
            text_policy=None if section == "all" else TextPolicy.named(section),
            overwrite=output.overwrite,
            on_progress=on_progress,
        )
    show(result, output, studies=reports)
