"""`vlscore findings`: CheXpert's labels of reports, and each finding."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.option_groups import PrintOptions, RunOptions, SectionOptions, grouped
from vlscore.cli.options import (
    TABLE_HELP,
    IdColumnOption,
    OutOption,
    TextColumnOption,
    option,
)
from vlscore.cli.output import exit_if_failed, print_result
from vlscore.cli.progress import stopping
from vlscore.findings import LabelPolicy

FormatOption = Annotated[
    str, option("--format", "Format of labels and findings: csv or jsonl.", "NAME")
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelColumnOptions:
    """Columns of the reports."""

    id_column: IdColumnOption = "id"
    text_column: TextColumnOption = None


@grouped("reference_section", "candidate_section", "as_json")
def findings(
    *,
    reports: Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="REPORTS")],
    out: OutOption,
    policy: LabelPolicy,
    format: FormatOption = "csv",
    columns: LabelColumnOptions,
    sections: SectionOptions,
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Label reports with CheXpert's fourteen observations.

    Writes labels.csv (one row a report; 1 positive, 0 negative, -1 uncertain, empty not mentioned),
    findings.csv (one row a finding: observation, label, side, zones, severity, change, size, the
    words).

    To compare a generator's findings with the radiologists', score its reports with the metric
    findings-f1 of `vlscore evaluate` or `vlscore compare`.

    Example: vlscore findings reports.csv --out labelled
    """
    from vlscore.cli.progress import row_progress
    from vlscore.data import count_rows
    from vlscore.evaluation import findings as write_findings

    with (
        stopping(out, stored=None),
        row_progress(count_rows(reports), "labelling", quiet=printing.quiet) as on_progress,
    ):
        result = write_findings(
            reports,
            out,
            policy=policy,
            format=format,
            text_policy=None if sections.section == "all" else sections.policy(),
            id_column=columns.id_column,
            text_column=columns.text_column,
            overwrite=running.overwrite,
            on_progress=on_progress,
        )
    print_result(result, printing, "rows could not be used", "row could not be used")
    exit_if_failed(result.failures, running.keep_going)
