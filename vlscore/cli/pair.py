"""`vlscore pair`: a file of references and a file of generated reports as one table."""

from pathlib import Path
from typing import Annotated

from vlscore.cli.output import echo, end_with, print_json, print_notes
from vlscore.cli.shared import OutputOptions, Rename, options, renamed


def pair(
    references: Path,
    candidates: Path,
    /,
    *,
    out: Path,
    rename: Rename = (),
    output: Annotated[OutputOptions, options(without=("overwrite", "report"))] = OutputOptions(),
) -> None:
    """Join references and candidates of two files to one table.

    Rows are joined by id or study_id, else by their order. Rows without a partner are listed in
    NAME.rows.csv, and the exit status is then 1. References are in the column reference, report or
    text, or in findings and impression; generated reports in candidate, report, text, prediction,
    model_prediction or hypothesis; for others use --rename.

    Also reads the files of CXR-Report-Metric, RadEval (one report a line; or lists "references" and
    "hypotheses" in one json file, which is then both arguments) and ReXrank as they are.

    Example: vlscore pair references.csv generated.csv --out studies.csv

    Args:
        references: References: a table, a manifest of ReXrank, or a text file with one report a
            line.
        candidates: Generated reports: a table, or a text file with one report a line.
        out: Table to write: .csv, .jsonl or .parquet; .json is ReXrank's file of predictions.
    """
    from vlscore.data import pair as run

    names = renamed(rename, "id", "reference", "candidate")
    columns = {f"{role}_column": name for role, name in names.items()}
    found = run(references, candidates, out, **columns)
    print_notes(found.notes)
    if output.as_json:
        content = {"table": str(found.out), "studies": found.pairs, "left_out": found.left_out}
        print_json({**content, "by_id": found.by_id, "notes": found.notes})
    elif not output.quiet:
        echo(f"{found.pairs} studies")
        for reason, count in found.left_out.most_common():
            echo(f"{count} left out: {reason}")
        for path in filter(None, (found.out, found.rows_file)):
            echo(f"wrote {path}")
    if found.left_out and not output.keep_going:
        echo(f"{found.left_out.total()} rows are left out: {found.rows_file}", err=True)
    end_with(found.left_out, output.keep_going)
