"""`vlscore findings`: CheXpert's labels of reports, and how well they agree with given ones."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.option_groups import PrintOptions, RunOptions, SectionOptions, grouped
from vlscore.cli.options import (
    TABLE,
    TABLE_HELP,
    IdColumnOption,
    OutOption,
    TextColumnOption,
    option,
)
from vlscore.cli.output import finish_rows
from vlscore.cli.progress import stopping
from vlscore.findings import LabelPolicy

FormatOption = Annotated[
    str, option("--format", "Format of labels and findings: csv or jsonl.", "NAME")
]


AgainstOption = Annotated[
    Path | None,
    option(
        "--against",
        "Table of labels to compare with: ids, and one column a label with 1, 0, -1 or "
        "nothing, as the CheXpert labeller writes it.",
        "PATH",
    ),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LabelColumnOptions:
    """Columns of the reports, and of the labels to compare with."""

    id_column: IdColumnOption = "id"
    text_column: TextColumnOption = None
    against_id_column: Annotated[
        str | None,
        option(
            "--against-id-column",
            "Column of --against with the ids. Default: id or study_id.",
            "NAME",
            TABLE,
        ),
    ] = None


@grouped("reference_section", "candidate_section", "as_json", after={"against": "uncertain"})
def findings(
    *,
    reports: Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="REPORTS")],
    out: OutOption,
    policy: LabelPolicy,
    against: AgainstOption = None,
    format: FormatOption = "csv",
    columns: LabelColumnOptions,
    sections: SectionOptions,
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Label reports with CheXpert's fourteen observations.

    With --against, compare these labels with labels that you have.

    Writes labels.csv (one row a report; 1 positive, 0 negative, -1 uncertain, empty not mentioned),
    findings.csv (one row a finding: observation, label, side, zones, severity, change, size, the
    words), failures.csv, and with --against agreement.csv and tables.md: precision, recall, F1 and
    n of each label, micro and macro.

    To compare a generator's reports with the radiologists', label the references and give their
    labels.csv as --against; the metric findings-f1 of `vlscore evaluate` and `vlscore compare` does
    both at once.

    Stop with Ctrl-C and start the same command again to resume.

    Example: vlscore findings reports.csv --out labelled --against chexpert.csv
    """
    from vlscore.cli.progress import row_progress
    from vlscore.data import count_rows
    from vlscore.evaluation import findings as write_findings

    with (
        stopping(out, "finished reports are"),
        row_progress(count_rows(reports), "labelling", quiet=printing.quiet) as on_progress,
    ):
        result = write_findings(
            reports,
            out,
            policy=policy,
            against=against,
            against_id_column=columns.against_id_column,
            format=format,
            text_policy=None if sections.section == "all" else sections.policy(),
            id_column=columns.id_column,
            text_column=columns.text_column,
            overwrite=running.overwrite,
            on_progress=on_progress,
        )
    quiet, keep_going = printing.quiet, running.keep_going
    finish_rows(result, "labelled", "used", quiet=quiet, keep_going=keep_going)
