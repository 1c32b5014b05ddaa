"""`vlscore pair`: a file of references and a file of generated reports as one table."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vlscore.cli.option_groups import PrintOptions, RunOptions, grouped
from vlscore.cli.options import OUTPUT, TABLE, option
from vlscore.cli.output import echo, print_json, print_notes

if TYPE_CHECKING:
    from vlscore.data import PairedReports


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairColumnOptions:
    """Columns of both files."""

    id_column: Annotated[
        str | None,
        option("--id-column", "Column with the id. Default: id or study_id.", "NAME", TABLE),
    ] = None
    reference_column: Annotated[
        str | None,
        option(
            "--reference-column",
            "Column with the reference. Default: reference, report, text; or findings and "
            "impression.",
            "NAME",
            TABLE,
        ),
    ] = None
    candidate_column: Annotated[
        str | None,
        option(
            "--candidate-column",
            "Column with the generated report. Default: candidate, report, text, prediction, "
            "model_prediction or hypothesis.",
            "NAME",
            TABLE,
        ),
    ] = None


@grouped("overwrite")
def pair(
    *,
    references: Annotated[
        Path,
        typer.Argument(
            help="References: a table, a manifest of ReXrank, or a text file with one report a "
            "line.",
            metavar="REFERENCES",
        ),
    ],
    candidates: Annotated[
        Path,
        typer.Argument(
            help="Generated reports: a table, or a text file with one report a line.",
            metavar="CANDIDATES",
        ),
    ],
    out: Annotated[
        Path,
        option(
            "--out -o",
            "Table to write: .csv, .jsonl or .parquet; .json is ReXrank's file of predictions.",
            "TABLE",
            OUTPUT,
        ),
    ],
    columns: PairColumnOptions,
    running: RunOptions,
    printing: PrintOptions,
) -> None:
    """Join references and candidates of two files to one table.

    Rows are joined by id or study_id, else by their order. Rows without a partner are listed in
    NAME.rows.csv, and the exit status is then 1.

    Also reads the files of CXR-Report-Metric, RadEval (one report a line; or lists "references" and
    "hypotheses" in one json file, which is then both arguments) and ReXrank as they are.

    Example: vlscore pair references.csv generated.csv --out studies.csv
    """

    from vlscore.data import pair as run

    found = run(references, candidates, out, **vars(columns))
    print_notes(found.notes)
    if printing.as_json:
        print_json(_content(found))
    elif not printing.quiet:
        echo(f"{found.pairs} studies")
        for reason, count in found.left_out.most_common():
            echo(f"{count} left out: {reason}")
        echo(f"wrote {found.out}\nwrote {found.rows_file}")
    if found.left_out and not running.keep_going:
        echo(f"{found.left_out.total()} rows are left out: {found.rows_file}", err=True)
        raise typer.Exit(1)


def _content(found: "PairedReports") -> dict[str, object]:
    return {
        "table": str(found.out),
        "studies": found.pairs,
        "left_out": dict(found.left_out),
        "by_id": found.by_id,
        "notes": found.notes,
    }
