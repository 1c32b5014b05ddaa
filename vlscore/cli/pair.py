"""`vlscore pair`: a file of references and a file of generated reports as one table."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from vlscore.cli.output import OutputOptions, echo, print_json, print_notes
from vlscore.cli.shared import Rename, named_values, options
from vlscore.errors import InvalidSetting

_SIDES = {
    "references": "references",
    "reference": "references",
    "candidates": "candidates",
    "candidate": "candidates",
}


def pair(
    references: Path,
    candidates: Path | None = None,
    /,
    *,
    out: Path,
    rename: Rename = (),
    by_order: bool = False,
    images: Path | None = None,
    output: Annotated[OutputOptions, options(without=("overwrite", "report"))] = OutputOptions(),
) -> None:
    """Join references and candidates of two files to one table.

    Rows are joined by a column that both files have: id or study_id, else dicom_id, uid, filename,
    image or the like; without one the command stops. Rows without a partner are listed in
    NAME.rows.csv, and the exit status is then 1. References are in the column reference, report or
    text, or in findings and impression; generated reports in candidate, report, text, prediction,
    model_prediction or hypothesis; for others use --rename. --rename id=NAME is for all files that
    have the column, candidates.id=NAME or FILE.id=NAME for one.

    A folder has one text file for each report, and images, as an archive exports them. The name of
    a file is the id of the study. One folder may contain all files (1001.dcm and 1001.txt), or
    folders such as references, generated and images, or a folder for each study.

    Also reads the files of CXR-Report-Metric, RadEval (one report on each line; or lists
    "references" and "hypotheses" in one json file, which is then both arguments) and ReXrank.

    Example: vlscore pair references.csv generated.csv --out studies.csv

    Folders: vlscore pair hospital/reports hospital/generated --images hospital/dicom
    --out studies.csv

    Args:
        references: References: a table, a manifest of ReXrank, a text file with one report on each
            line, or a folder.
        candidates: Generated reports: a table, a text file with one report on each line, or a
            folder. Omit it if the folder REFERENCES has both, or only references.
        out: Table to write: .csv, .jsonl or .parquet; .json is ReXrank's file of predictions.
        by_order: Join rows by their order, the first with the first.
        images: Folder of the images; their names are the ids, as in folders of reports.
    """
    from vlscore.data import listed_ids
    from vlscore.data import pair as run

    names, ids = _columns(rename, references, candidates)
    columns = {f"{role}_column": name for role, name in names.items()}
    found = run(
        references, candidates, out, **columns, id_column=ids, by_order=by_order, images=images
    )
    print_notes(found.notes)
    if output.as_json:
        content = {"table": str(found.out), "studies": found.pairs, "left_out": found.left_out}
        joined = {"by_id": found.by_id, "key": found.key, "unpaired": found.unpaired}
        print_json({**content, **joined, "notes": found.notes})
    elif not output.quiet:
        key = " and ".join(dict.fromkeys(found.key or ()))
        echo(f"{found.pairs} studies" + (f", joined by {key}" if key else ""))
        for reason, count in found.left_out.most_common():
            echo(f"{count} left out: {reason} ({listed_ids(found.unpaired[reason])})")
        for path in filter(None, (found.out, found.rows_file)):
            echo(f"wrote {path}")
    if found.left_out and not output.keep_going:
        echo(f"{found.left_out.total()} rows are left out: {found.rows_file}", err=True)
    if found.left_out and not output.keep_going:
        raise SystemExit(1)


def _columns(
    rename: Sequence[str], references: Path, candidates: Path | None
) -> tuple[dict[str, str], str | dict[str, str] | None]:
    """Return role -> column of the reports, and the column of ids: of all files, or of each.

    Raises: InvalidSetting for an unknown role or file.
    """
    files = {"references": references, "candidates": candidates or references}
    reports: dict[str, str] = {}
    own: dict[str, str] = {}
    general = None
    for name, column in named_values(rename, "--rename id=study_id"):
        file, _, role = name.rpartition(".")
        if role not in ("id", "reference", "candidate"):
            raise InvalidSetting(
                f"--rename: this command reads no column {role!r}; it reads id, reference and "
                "candidate"
            )
        if role != "id":
            reports[role] = column
        elif not file:
            general = column
        else:
            sides = {_SIDES[file]} if file in _SIDES else set()
            sides |= {side for side, path in files.items() if file in (path.name, path.stem)}
            if len(sides) != 1:
                raise InvalidSetting(
                    f"--rename: write references.id=NAME or candidates.id=NAME; {file!r} names "
                    f"{'both files' if sides else 'neither file'}"
                )
            own[sides.pop()] = column
    if own and general is not None:
        own = {**dict.fromkeys(files, general), **own}
    return reports, own or general
