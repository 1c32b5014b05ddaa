"""The studies of a finished run, read again from the table that run.json names."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vlscore.core import LIMIT, Signature, file_digest
from vlscore.data import ColumnNames, Study, StudyTable, TextPolicy, open_studies
from vlscore.errors import Failure, InvalidTable, VLScoreError
from vlscore.stats import Result

_SECTIONS = re.compile(r"(\w*section)='([\w+]+)'")


def text_policy_of(run: Result, signatures: Iterable[str]) -> TextPolicy:
    """Return which section of the reports was scored."""
    for signature in signatures:
        if (section := Signature.parse(signature).get("txt")) is not None:
            return TextPolicy.named(section)
    written = dict(_SECTIONS.findall(str(run.key.get("text_policy"))))
    return TextPolicy(**written) if written else TextPolicy()


def table_of(
    run: Result,
    needs: Sequence[str],
    table: str | Path | None = None,
    image_root: str | Path | None = None,
) -> StudyTable:
    """Open the table of a run.

    A table that run.json names is opened only if its digest is there, too: a folder from elsewhere
    could name any table of this machine, and its reports would become part of a page.

    Args:
        needs: "reference", "candidate", "image": what its rows must have.
        table: where it is now; default: where run.json says.
        image_root: folder that image paths start from; default: as in the run.

    Raises: InvalidTable where it is not there, or is another one.
    """
    key = run.key.get("studies") or run.key
    columns = key.get("columns")
    return open_table(
        table or run.record.get("table") or run.record.get("studies"),
        key.get("table_sha256"),
        columns if isinstance(columns, Mapping) else {},
        needs,
        image_root or key.get("image_root"),
        limit=key.get(LIMIT),
        is_chosen=table is not None,
    )


def open_table(
    path: str | Path | None,
    sha256: str | None,
    columns: Mapping[str, Any],
    needs: Sequence[str],
    image_root: str | Path | None = None,
    *,
    limit: int | None = None,
    is_chosen: bool = False,
) -> StudyTable:
    """Open a table whose content has this digest; the arguments are entries of run.json.

    Args: is_chosen: the user named the table, not run.json; then it may lack a digest.

    Raises: InvalidTable where the file is absent, or its content is another one.
    """
    if path is None:
        raise InvalidTable("run.json does not name a table of reports")
    if not Path(path).is_file():
        raise InvalidTable(f"the table {path} does not exist")
    if sha256 is None and not is_chosen:
        raise InvalidTable(
            f"run.json names the table {path} without its digest; name the table with --table"
        )
    if sha256 is not None and file_digest(Path(path)) != sha256:
        raise InvalidTable(f"the table {path} is not the one that the run read")
    root = image_root if image_root and Path(image_root).is_dir() else None
    wants = {"image", "reference", "candidate"} - set(needs)
    names = ColumnNames(**columns)
    return open_studies(path, needs=needs, wants=wants, columns=names, image_root=root, limit=limit)


def studies_by_row(table: StudyTable, policy: TextPolicy) -> dict[int, Study]:
    """Return the studies of a table by row number, with the sections that the policy scores.

    A row that cannot be read is absent; one that lacks the section has its whole text.
    """
    found = {}
    for row in table:
        if isinstance(row, Failure):
            continue
        try:
            found[row.row] = row.selected(policy)
        except VLScoreError:
            found[row.row] = row
    return found
