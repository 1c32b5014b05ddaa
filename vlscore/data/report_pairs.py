"""Join a file of references and a file of generated reports to one table of studies.

Other tools keep the two apart. This file reads their layouts as they are:

- CXR-Report-Metric (github.com/rajpurkarlab/CXR-Report-Metric, README): two csv tables with the
  columns `study_id` and `report`.
- RadEval (github.com/jbdel/RadEval, docs/file_formats.md): two text files, one report a line
  (.tok, .txt); or one json object with the lists `references` and `hypotheses`.
- ReXrank (github.com/rajpurkarlab/ReXrank): the manifest of a data set as the references. What is
  written can be its file of predictions, the manifest with `model_prediction` in each study.

Tables in every format of `read_rows` can be mixed with them.
"""

import csv
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vlscore.core import atomic_write, cells, write_json
from vlscore.data.cells import check_encodable, id_of, is_missing, text_of
from vlscore.data.rows import format_of, is_manifest, read_rows
from vlscore.data.study_tables import REPORT_SECTIONS
from vlscore.data.table_writing import check_format, write_table
from vlscore.errors import InvalidSetting, InvalidStudy, InvalidTable

_IDS = ("id", "study_id")
_COLUMNS = {
    "reference": ("reference", "report", "text", "ref"),
    "candidate": (
        "candidate", "report", "text", "model_prediction", "hypothesis", "hyp", "prediction",
    ),
}  # fmt: skip
_LISTS = {"reference": "references", "candidate": "hypotheses"}
_LINES = (".txt", ".tok")

NO_CANDIDATE = "no candidate has this id"
NO_REFERENCE = "no reference has this id"
TWICE = "the id comes a second time"
NO_TEXT = "the reference is empty"
NO_ID = "the row has no id"


@dataclass
class PairedReports:
    """Result of `pair`.

    Attributes:
        out: table, or file of predictions for ReXrank.
        rows_file: table of the rows that have no partner or cannot be read; None where there are
            none.
        pairs: number of studies in `out`.
        left_out: reason -> number of rows that are not in `out`.
        by_id: whether rows were joined by their ids; else by their order.
        notes: notes for the user besides the numbers, one sentence each.
    """

    out: Path
    rows_file: Path | None
    pairs: int
    by_id: bool
    left_out: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)


def pair(
    references: str | Path,
    candidates: str | Path,
    out: str | Path,
    *,
    reference_column: str | None = None,
    candidate_column: str | None = None,
    id_column: str | None = None,
) -> PairedReports:
    """Join references and candidates, and write a table for every command.

    Rows are joined by their ids where both files have some (column `id` or `study_id`), else by
    their order. A candidate without a text is an empty report. Rows without a partner are left out,
    counted, and listed in NAME.rows.csv next to the table.

    Args:
        references: .csv, .tsv, .json, .jsonl or .parquet with a column `reference`, `report` or
            `text`, or with `findings` and `impression`; a manifest of ReXrank; .txt or .tok with
            one report a line; or RadEval's json object. Other columns (image, view, patient) are
            copied, except `candidate`; paths of images are not changed.
        candidates: the same with a column `candidate`, `report`, `text`, `model_prediction`,
            `hypothesis` or `prediction`; the same file again for RadEval's json object.
        out: .csv, .jsonl or .parquet; .json writes a file of predictions for ReXrank, if
            `references` is a manifest.
        reference_column, candidate_column, id_column: columns of tables, instead of those above.

    Raises: InvalidTable if a file cannot be read, has no column of reports, or the files have
        different numbers of rows and no ids; InvalidSetting for another format of `out`.
    """
    references, candidates, out = Path(references), Path(candidates), Path(out)
    if out.suffix != ".json":
        check_format(out)
    ids = _IDS if id_column is None else (id_column,)
    ours = list(_rows(references, "reference", reference_column, ids))
    theirs = list(_rows(candidates, "candidate", candidate_column, ids))
    by_id = all(any(row["id"] is not None for row in rows) for rows in (ours, theirs))
    if not by_id and len(ours) != len(theirs):
        raise InvalidTable(
            f"{references} has {len(ours)} reports and {candidates} has {len(theirs)}; without "
            "ids in both files, equal numbers are needed to join them"
        )
    key = "id" if by_id else "number"
    _mark_unpaired(ours, theirs, key, NO_CANDIDATE)
    _mark_unpaired(theirs, ours, key, NO_REFERENCE)
    partners = {row[key]: row for row in theirs if row["reason"] is None}
    pairs = [
        {
            "id": row["id"] or partners[row[key]]["id"] or str(row["number"]),
            **row["columns"],
            "candidate": partners[row[key]]["text"],
        }
        for row in ours
        if row["reason"] is None and row[key] in partners
    ]
    if not pairs:
        raise InvalidTable(f"no report of {candidates} belongs to one of {references}")
    omitted = [
        (path.name, row["number"], row["id"], row["reason"])
        for path, rows in ((references, ours), (candidates, theirs))
        for row in rows
        if row["reason"] is not None
    ]
    rows_file = out.with_name(f"{out.stem}.rows.csv")
    result = PairedReports(out, rows_file if omitted else None, len(pairs), by_id)
    result.left_out = Counter(reason for *_, reason in omitted)
    if not by_id:
        result.notes.append("not both files have ids, so the rows were joined by their order")
    if empty := sum(not row["candidate"] for row in pairs):
        result.notes.append(f"{empty} candidates are empty; they will be scored")
    _write(out, references, pairs)
    if not omitted:
        # A list of an earlier call would be wrong now.
        rows_file.unlink(missing_ok=True)
        return result
    with atomic_write(rows_file) as stream:
        table = csv.writer(stream)
        table.writerow(["file", "row", "id", "reason"])
        table.writerows(cells(each) for each in omitted)
    return result


def _write(out: Path, references: Path, pairs: list[dict[str, Any]]) -> None:
    """Write the table; as .json ReXrank's manifest with `model_prediction` in each study."""
    if out.suffix != ".json":
        write_table(out, pairs, list(dict.fromkeys(name for row in pairs for name in row)))
        return
    content, known = _json_of(references), {row["id"]: row["candidate"] for row in pairs}
    if not is_manifest(content):
        raise InvalidSetting(f"{out}: .json is for ReXrank, and {references} is no manifest of it")
    studies = {
        study: {**entry, "model_prediction": known[study]}
        for study, entry in content.items()
        if study in known
    }
    write_json(out, studies)


def _mark_unpaired(
    rows: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]], key: str, absent: str
) -> None:
    """Set the reason of the rows without a key or a partner, or whose key comes again."""
    known, seen = {row[key] for row in others}, set()
    for row in rows:
        if row["reason"] is None:
            without = NO_ID if row[key] is None else None if row[key] in known else absent
            row["reason"] = TWICE if row[key] in seen and row[key] is not None else without
        seen.add(row[key])


def _rows(
    path: Path, role: str, chosen: str | None, ids: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file of references or of candidates.

    A row has `number`, `id`, the `text` of a candidate, the `columns` of a reference, and the
    `reason` why it cannot be used, or None.

    Args:
        chosen: column with the report; None for any of the usual ones.
        ids: columns that may hold the id.
    """
    names = _COLUMNS[role] if chosen is None else (chosen,)
    column = id_column = None
    for number, record in _records(path, role):
        row: dict[str, Any] = {
            "number": number,
            "id": None,
            "text": "",
            "columns": {},
            "reason": None,
        }
        if isinstance(record, str):
            yield {**row, "reason": record}
            continue
        id_column = id_column or next((name for name in ids if name in record), None)
        column = column or next((name for name in names if name in record), None)
        sections = [name for name in REPORT_SECTIONS if name in record and chosen is None]
        if column is None and not sections:
            raise InvalidTable(
                f"{path}: no column with the {role} ({', '.join(names)}); found: "
                f"{', '.join(record)}. Name it with --rename {role}=NAME"
            )
        sources = [column] if column else sections
        try:
            for name in [id_column, *record] if id_column else record:
                check_encodable([record.get(name)], name)
            row["id"] = id_of(record.get(id_column), id_column) if id_column else None
            texts = {name: text_of(record.get(name), name) for name in sources}
        except InvalidStudy as error:
            yield {**row, "reason": str(error)}
            continue
        filled = {name: text for name, text in texts.items() if text is not None}
        row["text"] = " ".join(filled.values())
        if role == "reference":
            dropped = {id_column, "id", "candidate", *sources}
            others = {name: record[name] for name in record if name not in dropped}
            for name, value in others.items():
                # Parquet has dates and other values that json has not.
                is_plain = isinstance(value, str | int | float | list | dict)
                others[name] = None if is_missing(value) else value if is_plain else str(value)
            named = filled if sources[0] in REPORT_SECTIONS else {"reference": row["text"]}
            row["columns"] = {**named, **others}
            row["reason"] = None if filled else NO_TEXT
        yield row


def _records(path: Path, role: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yield the rows of a table, of a text file, or of RadEval's object; see `read_rows`."""
    if path.suffix.lower() in _LINES:
        try:
            # Blank lines at the end belong to no report.
            texts: Any = path.read_text(encoding="utf-8-sig").rstrip().split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidTable(f"{path}: cannot be read ({type(error).__name__})") from None
    else:
        content = _json_of(path)
        texts = content.get(_LISTS[role]) if isinstance(content, dict) else None
        if not isinstance(texts, list):
            yield from read_rows(path)
            return
    yield from enumerate(({role: text} for text in texts), start=1)


def _json_of(path: Path) -> Any:
    """Return the content of a .json file; None for any other file, and for one that is damaged."""
    if path.suffix.lower() != ".json" or format_of(path) != ".json":
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None  # `read_rows` reports what is wrong with it.
