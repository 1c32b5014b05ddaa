"""`vlscore judge`: each error of generated reports, with its severity and correction."""

from pathlib import Path
from typing import Annotated

import typer

from vlscore.cli.option_groups import (
    PrintOptions,
    RunOptions,
    SectionOptions,
    TableOptions,
    grouped,
)
from vlscore.cli.options import TABLE, TABLE_HELP, OutOption, option
from vlscore.cli.output import finish_rows, stopping

AgeColumnOption = Annotated[
    str,
    option(
        "--age-column",
        "Column with the age, in years or as DICOM writes it; used where there is one.",
        "NAME",
        TABLE,
    ),
]
IndicationColumnOption = Annotated[
    str,
    option(
        "--indication-column", "Column with the indication; used where there is one.", "NAME", TABLE
    ),
]


@grouped(
    "image_root", "image_column", "view_column", "reference_section", "candidate_section", "as_json"
)
def judge(
    *,
    studies: Annotated[Path, typer.Argument(help=TABLE_HELP, metavar="STUDIES")],
    out: OutOption,
    table: TableOptions,
    age_column: AgeColumnOption = "age",
    indication_column: IndicationColumnOption = "indication",
    sections: SectionOptions,
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Name each error of a report, how severe it is, and why.

    The judge works by rules, without a model or a network. Writes judgements.jsonl (each error of
    each study), totals.csv (one row a study: scores, and errors by category), summary.json,
    tables.md and failures.csv.

    The same judge is the metric "judge" of `vlscore evaluate`, `compare`, `align` and
    `sensitivity`.

    Stop with Ctrl-C and start the same command again to go on where it was.

    Example: vlscore judge studies.csv --out judged
    """
    from vlscore.cli.output import row_progress
    from vlscore.data import count_rows
    from vlscore.evaluation import judge_table

    with (
        stopping(out, "finished judgements are"),
        row_progress(count_rows(studies), "judging", quiet=printing.quiet) as on_progress,
    ):
        result = judge_table(
            studies,
            out,
            columns=table.columns("id", "reference", "candidate"),
            age_column=age_column,
            indication_column=indication_column,
            text_policy=None if sections.section == "all" else sections.policy(),
            overwrite=running.overwrite,
            on_progress=on_progress,
        )
    finish_rows(
        result,
        done="judged",
        could_not_be="judged",
        quiet=printing.quiet,
        keep_going=running.keep_going,
    )
