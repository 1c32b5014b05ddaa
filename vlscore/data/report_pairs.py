"""Join a file of references and a file of generated reports to one table of studies.

Other tools keep the two apart. This file reads their layouts as they are:

- CXR-Report-Metric (github.com/rajpurkarlab/CXR-Report-Metric, README): two csv tables with the
  columns `study_id` and `report`.
- RadEval (github.com/jbdel/RadEval, docs/file_formats.md): two text files, one report a line
  (.tok, .txt); or one json object with the lists `references` and `hypotheses`.
- ReXrank (github.com/rajpurkarlab/ReXrank): the manifest of a data set as the references. What is
  written can be its file of predictions, the manifest with `model_prediction` in each study.

Tables in every format of `read_rows` can be mixed with them, and folders of an archive, with
reports as text files (`vlscore.data.report_folders`).
"""

import csv
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vlscore.core import atomic_write, cells, write_json, written_together
from vlscore.data.cells import check_encodable, id_of, is_missing, text_of
from vlscore.data.join_keys import JoinedFile, how_ids_differ, key_columns, listed_ids
from vlscore.data.report_folders import (
    ReportFolder,
    add_images,
    images_below,
    read_report_folder,
)
from vlscore.data.rows import format_of, is_manifest, read_rows
from vlscore.data.table_writing import check_format, write_table
from vlscore.data.tables import REPORT_SECTIONS
from vlscore.errors import InvalidSetting, InvalidStudy, InvalidTable

_COLUMNS = {
    "reference": ("reference", "report", "text", "ref"),
    "candidate": (
        "candidate", "report", "text", "model_prediction", "hypothesis", "hyp", "prediction",
    ),
}  # fmt: skip
_LISTS = {"reference": "references", "candidate": "hypotheses"}
_LINES = (".txt", ".tok")
_ROLES = ("references", "candidates")

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
        key: columns of references and of candidates that joined the rows; None for their order, or
            where there are no candidates.
        left_out: reason -> number of rows that are not in `out`.
        unpaired: reason -> ids of such rows.
        notes: notes for the user besides the numbers, one sentence each.
    """

    out: Path
    rows_file: Path | None
    pairs: int
    key: tuple[str, str] | None
    left_out: Counter[str] = field(default_factory=Counter)
    unpaired: dict[str, list[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def by_id(self) -> bool:
        """Whether rows were joined by a key."""
        return self.key is not None


def pair(
    references: str | Path,
    candidates: str | Path | None,
    out: str | Path,
    *,
    reference_column: str | None = None,
    candidate_column: str | None = None,
    id_column: str | Mapping[str, str] | None = None,
    by_order: bool = False,
    images: str | Path | None = None,
) -> PairedReports:
    """Join references and candidates, and write a table for every command.

    Rows are joined by a key that both files have: columns called id or study_id (in any spelling),
    else another usual name of a study or image that both files have (dicom_id, uid, filename, ...).
    Files without columns, with one report a line, are joined by their lines. A candidate without a
    text is an empty report. Rows without a partner are left out, counted, and listed in
    NAME.rows.csv next to the table.

    Args:
        references: .csv, .tsv, .json, .jsonl or .parquet with a column `reference`, `report` or
            `text`, or with `findings` and `impression`; a manifest of ReXrank; .txt or .tok with
            one report a line; RadEval's json object; or a folder of reports as text files, and of
            images. Other columns (image, view, patient) are copied, except `candidate`; paths of
            images are not changed.
        candidates: the same with a column `candidate`, `report`, `text`, `model_prediction`,
            `hypothesis` or `prediction`; the same file again for RadEval's json object. None for a
            folder that holds both, or references alone.
        out: .csv, .jsonl or .parquet; .json writes a file of predictions for ReXrank, if
            `references` is a manifest.
        reference_column, candidate_column: columns of tables, instead of those above.
        id_column: column of ids, in those files that have it; or a dict of "references" and
            "candidates" with the column of each.
        by_order: join rows by their order.
        images: folder of images, which are found by the ids of folders of reports.

    Raises: InvalidTable if a file cannot be read, has no column of reports, the files have no key
        in common or two that contradict each other; InvalidSetting for another format of `out`.
    """
    paths = Path(references), None if candidates is None else Path(candidates)
    out = Path(out)
    if out.suffix != ".json":
        check_format(out)
    columns = reference_column, candidate_column
    folders = [read_report_folder(p) if p and p.is_dir() else None for p in paths]
    ours = _side(paths[0], "reference", columns[0], folders[0])
    theirs = None
    if paths[1] is not None:
        theirs = _side(paths[1], "candidate", columns[1], folders[1])
    elif folders[0] is None:
        raise InvalidSetting(f"{references}: name the file of the candidates, too")
    elif folders[0].texts.get("candidate"):
        theirs = _side(paths[0], "candidate", columns[1], folders[0])
    sides = _with_ids([side for side in (ours, theirs) if side is not None], id_column)
    key = None
    if len(sides) > 1:
        key = key_columns(sides[0], sides[1], by_order)
    rows = [list(_rows(s, None if key is None else key[k])) for k, s in enumerate(sides)]
    if len(rows) > 1 and key is None and len(rows[0]) != len(rows[1]):
        raise InvalidTable(
            f"{references} has {len(rows[0])} reports and {candidates} has {len(rows[1])}; without "
            "ids in both files, equal numbers are needed to join them"
        )
    result = PairedReports(out, None, 0, key)
    pairs = _paired(sides, rows, result)
    result.notes += add_images(pairs, [*folders, images_below(images)], out)
    result.pairs = len(pairs)
    if theirs is not None and key is None:
        result.notes.append("the rows were joined by their order")
    if empty := sum(not row.get("candidate", "x") for row in pairs):
        result.notes.append(f"{empty} candidates are empty; they will be scored")
    rows_file = out.with_name(f"{out.stem}.rows.csv")
    with written_together(out.parent, [rows_file.name, out.name], overwrite=True) as aside:
        if _write_left_out(sides, rows, aside / rows_file.name):
            result.rows_file = rows_file
        _write(aside / out.name, paths[0], pairs)
    return result


def _with_ids(sides: list[JoinedFile], chosen: str | Mapping[str, str] | None) -> list[JoinedFile]:
    """Return the sides with the columns of ids that the user names.

    Raises: InvalidTable where no file has such a column.
    """
    named = chosen if isinstance(chosen, Mapping) else {}
    if unknown := sorted(set(named) - set(_ROLES)):
        raise InvalidSetting(f"ids are of references and candidates, not of {unknown[0]}")
    found = []
    for side in sides:
        own = named.get(side.role)
        if own is not None and own not in side.columns:
            raise InvalidTable(
                f'{side.path}: no column "{own}"; found: {", ".join(side.columns) or "none"}'
            )
        if isinstance(chosen, str) and chosen in side.columns:
            own = chosen
        found.append(replace(side, named=own))
    if isinstance(chosen, str) and not any(side.named for side in found):
        listed = "; ".join(f"{s.path}: {', '.join(s.columns) or 'none'}" for s in found)
        raise InvalidTable(f'no file has the column "{chosen}"; found: {listed}')
    return found


def _paired(
    sides: Sequence[JoinedFile],
    rows: Sequence[list[dict[str, Any]]],
    result: PairedReports,
) -> list[dict[str, Any]]:
    """Return the rows of the table; what is left out enters `result`."""
    if len(rows) == 1:
        ours, theirs = rows[0], None
        _mark_unpaired(ours, ours, "id", NO_CANDIDATE)
        partners = {}
    else:
        ours, theirs = rows
        key = "key" if result.by_id else "number"
        _mark_unpaired(ours, theirs, key, NO_CANDIDATE)
        _mark_unpaired(theirs, ours, key, NO_REFERENCE)
        partners = {row[key]: row for row in theirs if row["reason"] is None}
    for row in (*ours, *(theirs or ())):
        if row["reason"] is not None:
            result.left_out[row["reason"]] += 1
            result.unpaired.setdefault(row["reason"], []).append(
                row["key"] or row["id"] or f"row {row['number']}"
            )
    alone = [result.unpaired.get(reason, []) for reason in (NO_CANDIDATE, NO_REFERENCE)]
    near = how_ids_differ(*alone)
    pairs = []
    for row in ours:
        other: dict[str, Any] | None = {} if theirs is None else partners.get(row[key])
        if other is None or row["reason"] is not None:
            continue
        id = row["id"] or row["key"] or other.get("id") or str(row["number"])
        candidate = {"candidate": other["text"]} if other else {}
        pairs.append({"id": id, **row["columns"], **candidate})
    if not pairs:
        raise InvalidTable(_why_nothing(sides, alone, near, [*ours, *(theirs or ())]))
    if near is not None:
        result.notes.append(near)
    return pairs


def _why_nothing(
    sides: Sequence[JoinedFile],
    alone: list[list[str]],
    near: str | None,
    rows: list[dict[str, Any]],
) -> str:
    names = f"no report of {sides[-1].path} belongs to one of {sides[0].path}"
    if near is not None:
        return f"{names}: {near}"
    if all(alone):
        return f"{names}; ids there: {listed_ids(alone[1])}; here: {listed_ids(alone[0])}"
    first = next(row for row in rows if row["reason"] not in (None, NO_CANDIDATE, NO_REFERENCE))
    return f"{names}; row {first['number']} of {first['file'].name}: {first['reason']}"


def _write_left_out(
    sides: Sequence[JoinedFile], rows: Sequence[list[dict[str, Any]]], path: Path
) -> bool:
    """Write the rows that are left out, if there are some, and return whether there are."""
    omitted = [
        (side.path.name, row["number"], row["id"] or row["key"], row["reason"])
        for side, own in zip(sides, rows, strict=True)
        for row in own
        if row["reason"] is not None
    ]
    if omitted:
        with atomic_write(path) as stream:
            table = csv.writer(stream)
            table.writerow(["file", "row", "id", "reason"])
            table.writerows(cells(each) for each in omitted)
    return bool(omitted)


def _write(out: Path, references: Path, pairs: list[dict[str, Any]]) -> None:
    """Write the table; as .json ReXrank's manifest with `model_prediction` in each study."""
    if out.suffix != ".json":
        write_table(out, pairs, list(dict.fromkeys(name for row in pairs for name in row)))
        return
    content, known = _json_of(references), {row["id"]: row["candidate"] for row in pairs}
    if not is_manifest(content):
        raise InvalidSetting(
            f"{out.name}: .json is for ReXrank, and {references} is no manifest of it"
        )
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


def _side(path: Path, role: str, chosen: str | None, folder: ReportFolder | None) -> JoinedFile:
    """Return a file of references or of candidates.

    Args: chosen: column with the report; None for any of the usual ones.
    Raises: InvalidTable if it cannot be read, or has no column of reports.
    """
    if folder is not None:
        records: Any = list(folder.rows(role))
        return JoinedFile(path, f"{role}s", records, (role,))
    records, is_lines = _records(path, role)
    found = dict.fromkeys(n for _, r in records if not isinstance(r, str) for n in r)
    names = _COLUMNS[role] if chosen is None else (chosen,)
    column = next((name for name in names if name in found), None)
    sections = [name for name in REPORT_SECTIONS if name in found and chosen is None]
    if column is None and not sections and found:
        raise InvalidTable(
            f"{path}: no column with the {role} ({', '.join(names)}); found: "
            f"{', '.join(found)}. Name it with --rename {role}=NAME"
        )
    sources = (column,) if column else tuple(sections)
    return JoinedFile(path, f"{role}s", records, sources, is_lines)


def _rows(side: JoinedFile, key_column: str | None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file of references or of candidates.

    A row has `file`, `number`, `key`, `id`, the `text` of a candidate, the `columns` of a
    reference, and the `reason` why it cannot be used, or None.
    """
    id_column = side.id_column
    for number, record in side.records:
        row: dict[str, Any] = {
            "file": side.path,
            "number": number,
            "key": None,
            "id": None,
            "text": "",
            "columns": {},
            "reason": None,
        }
        if isinstance(record, str):
            yield {**row, "reason": record}
            continue
        try:
            for name in dict.fromkeys([*filter(None, [id_column]), *record]):
                check_encodable([record.get(name)], name)
            for entry, column in (("id", id_column), ("key", key_column)):
                row[entry] = id_of(record.get(column), column) if column else None
            texts = {name: text_of(record.get(name), name) for name in side.texts}
        except InvalidStudy as error:
            yield {**row, "reason": str(error)}
            continue
        filled = {name: text for name, text in texts.items() if text is not None}
        row["text"] = " ".join(filled.values())
        if side.role == "references":
            row["columns"] = _columns_of_reference(record, filled, side, id_column)
            row["reason"] = None if filled else NO_TEXT
        yield row


def _columns_of_reference(
    record: Mapping[str, Any], filled: Mapping[str, str], side: JoinedFile, id_column: str | None
) -> dict[str, Any]:
    """Return the reference, and the other columns of its row."""
    dropped = {id_column, "id", "candidate", *side.texts}
    others = {name: record[name] for name in record if name not in dropped}
    for name, value in others.items():
        # Parquet has dates and other values that json has not.
        is_plain = isinstance(value, str | int | float | list | dict)
        others[name] = None if is_missing(value) else value if is_plain else str(value)
    by_section = next(iter(side.texts)) in REPORT_SECTIONS
    return {**(filled if by_section else {"reference": " ".join(filled.values())}), **others}


def _records(path: Path, role: str) -> tuple[list[tuple[int, Mapping[str, Any] | str]], bool]:
    """Return the rows of a table, of a text file, or of RadEval's object; see `read_rows`.

    The second value is whether they are lines without columns.
    """
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
            return list(read_rows(path)), False
    return list(enumerate(({role: text} for text in texts), start=1)), True


def _json_of(path: Path) -> Any:
    """Return the content of a .json file; None for any other file, and for one that is damaged."""
    if path.suffix.lower() != ".json" or format_of(path) != ".json":
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None  # `read_rows` reports what is wrong with it.
