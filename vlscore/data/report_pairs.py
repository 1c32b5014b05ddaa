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
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vlscore.core import atomic_write, cells, json_line, write_json
from vlscore.data.rows import format_of, is_manifest, read_rows
from vlscore.data.study import check_encodable, id_of, is_missing, text_of
from vlscore.data.study_tables import REPORT_SECTIONS
from vlscore.errors import InvalidSetting, InvalidStudy, InvalidTable

_IDS = ("id", "study_id")
_REFERENCES = ("reference", "report", "text", "ref")
_CANDIDATES = (
    "candidate", "report", "text", "model_prediction", "hypothesis", "hyp", "prediction",
)  # fmt: skip
_LISTS = {"reference": "references", "candidate": "hypotheses"}
_LINES = (".txt", ".tok")
_FILMS = (".dcm", ".dicom", ".png", ".jpg", ".jpeg", ".tif", ".tiff")
_JSON = (str, int, float, list, dict)

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
        rows_file: table of the rows that have no partner or cannot be read.
        pairs: number of studies in `out`.
        left_out: reason -> number of rows that are not in `out`.
        by_id: whether rows were joined by their ids; else by their order.
        empty_candidates: number of candidates without a text; they are in `out`.
        without_film: number of studies of `out` for which the folder of films has no file; None
            without such a folder.
    """

    out: Path
    rows_file: Path
    pairs: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    by_id: bool = True
    empty_candidates: int = 0
    without_film: int | None = None

    @property
    def notes(self) -> list[str]:
        """Return notes for the user besides the numbers, one sentence each."""
        notes = []
        if not self.by_id:
            notes.append("not both files have ids, so the rows were joined by their order")
        if self.empty_candidates:
            notes.append(f"{self.empty_candidates} candidates are empty; they will be scored")
        if self.without_film:
            notes.append(
                f"{self.without_film} of {self.pairs} studies have no film whose name begins with "
                "their id"
            )
        return notes


@dataclass(frozen=True)
class _ReportRow:
    """One row of one of the files: its number, id, text, and other columns, or why it fails."""

    number: int
    id: str | None
    text: str | None = None
    others: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None


def pair(
    references: str | Path,
    candidates: str | Path,
    out: str | Path,
    *,
    reference_column: str | None = None,
    candidate_column: str | None = None,
    id_column: str | None = None,
    films: str | Path | None = None,
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
        out: .csv or .jsonl; .json writes a file of predictions for ReXrank, if `references` is a
            manifest.
        reference_column, candidate_column, id_column: columns of tables, instead of those above.
        films: folder of images: the column `image` gets those whose file names are a study's id,
            or begin with it and a sign that is no letter or digit; or the folder of that name.
            Paths start from the folder of `out`.

    Raises: InvalidTable if a file cannot be read, has no column of reports, or the files have
        different numbers of rows and no ids; InvalidSetting for another format of `out`, or where
        no film has a study's id.
    """
    references, candidates, out = Path(references), Path(candidates), Path(out)
    if out.suffix not in (".csv", ".jsonl", ".json"):
        raise InvalidSetting(f"{out}: write .csv, .jsonl, or .json for ReXrank")
    ids = _IDS if id_column is None else (id_column,)
    ours = list(_rows(references, "reference", reference_column, ids))
    theirs = list(_rows(candidates, "candidate", candidate_column, ids))
    result = PairedReports(out, out.with_name(f"{out.stem}.rows.csv"))
    result.by_id = all(any(row.id is not None for row in rows) for rows in (ours, theirs))
    if not result.by_id and len(ours) != len(theirs):
        raise InvalidTable(
            f"{references} has {len(ours)} reports and {candidates} has {len(theirs)}; without "
            "ids in both files, equal numbers are needed to join them"
        )
    omitted: list[tuple[str, int, str | None, str]] = []
    pairs = _joined(ours, theirs, (references.name, candidates.name), result.by_id, omitted)
    if not pairs:
        raise InvalidTable(f"no report of {candidates} belongs to one of {references}")
    result.pairs = len(pairs)
    result.left_out = Counter(reason for *_, reason in omitted)
    result.empty_candidates = sum(not row["candidate"] for _, row in pairs)
    if films is not None:
        result.without_film = _add_films(pairs, Path(films), out)
    if out.suffix == ".json":
        _write_predictions(references, out, {id: row["candidate"] for id, row in pairs})
    else:
        _write_table(out, [row for _, row in pairs])
    with atomic_write(result.rows_file) as stream:
        rows = csv.writer(stream)
        rows.writerow(["file", "row", "id", "reason"])
        rows.writerows(cells(each) for each in omitted)
    return result


def _joined(
    ours: Sequence[_ReportRow],
    theirs: Sequence[_ReportRow],
    files: tuple[str, str],
    by_id: bool,
    omitted: list[tuple[str, int, str | None, str]],
) -> list[tuple[str, dict[str, Any]]]:
    """Return (id, row of the table) in the order of the references; the others go to `omitted`."""
    tables: list[dict[str, _ReportRow]] = []
    for name, rows in zip(files, (ours, theirs), strict=True):
        found: dict[str, _ReportRow] = {}
        for row in rows:
            id = row.id if by_id else str(row.number)
            reason = row.reason or (NO_ID if id is None else TWICE if id in found else None)
            if reason is not None:
                omitted.append((name, row.number, row.id, reason))
            if id is not None:
                found.setdefault(id, row)
        tables.append(found)
    references, candidates = tables
    pairs = []
    for id, row in references.items():
        partner = candidates.get(id)
        if partner is None:
            omitted.append((files[0], row.number, row.id, NO_CANDIDATE))
        elif row.reason is None and partner.reason is None:
            shown = row.id or partner.id or id
            pairs.append((shown, {"id": shown, **row.others, "candidate": partner.text or ""}))
    for id, row in candidates.items():
        if id not in references:
            omitted.append((files[1], row.number, row.id, NO_REFERENCE))
    return pairs


def _add_films(pairs: Sequence[tuple[str, dict[str, Any]]], folder: Path, out: Path) -> int:
    """Set the column `image` of the rows, and return the number of rows without a film."""
    if not folder.is_dir():
        raise InvalidSetting(f"{folder}: no such folder of films")
    found: dict[str, list[str]] = {}
    for path in sorted(folder.iterdir()):
        is_film = path.is_dir() or path.suffix.lower() in _FILMS
        name = path.name if path.is_dir() else path.stem
        ends = [match.start() for match in re.finditer(r"[^A-Za-z0-9]", name)]
        for end in (*ends, len(name)) if is_film else ():
            found.setdefault(name[:end], []).append(os.path.relpath(path, out.parent))
    without = 0
    for id, row in pairs:
        films = found.get(id, [])
        without += not films
        row["image"] = films[0] if len(films) == 1 else (films or None)
    if without == len(pairs):
        raise InvalidSetting(f"{folder}: no film has a name that begins with a study's id")
    return without


def _rows(path: Path, role: str, chosen: str | None, ids: tuple[str, ...]) -> Iterator[_ReportRow]:
    """Yield the rows of a file of references or of candidates.

    Args:
        chosen: column with the report; None for any of the usual ones.
        ids: columns that may hold the id.
    """
    lists = _texts(path, role)
    if lists is not None:
        for number, text in enumerate(lists, start=1):
            yield _text_row(number, text, role)
        return
    names: tuple[str, ...] = _REFERENCES if role == "reference" else _CANDIDATES
    if chosen is not None:
        names = (chosen,)
    column = id_column = None
    for number, record in read_rows(path):
        if isinstance(record, str):
            yield _ReportRow(number, None, reason=record)
            continue
        if id_column is None:
            id_column = next((name for name in ids if name in record), None)
        if column is None:
            column = next((name for name in names if name in record), None)
        sections = [name for name in REPORT_SECTIONS if name in record and chosen is None]
        if column is None and not sections:
            raise InvalidTable(
                f"{path}: no column with the {role} ({', '.join(names)}); found: "
                f"{', '.join(record)}. Name it with --{role}-column"
            )
        yield _table_row(number, record, id_column, [column] if column else sections, role)


def _texts(path: Path, role: str) -> list[Any] | None:
    """Return the reports of a text file or of RadEval's object; None for any other file."""
    if path.suffix.lower() in _LINES:
        try:
            # Blank lines at the end belong to no report.
            return path.read_text(encoding="utf-8-sig").rstrip().split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidTable(f"{path}: cannot be read ({type(error).__name__})") from None
    content = _json_of(path)
    lists = content.get(_LISTS[role]) if isinstance(content, dict) else None
    return lists if isinstance(lists, list) else None


def _json_of(path: Path) -> Any:
    """Return the content of a .json file; None for any other file, and for one that is damaged."""
    if format_of(path) != ".json" or path.suffix.lower() == ".gz":
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None  # `read_rows` reports what is wrong with it.


def _text_row(number: int, text: Any, role: str) -> _ReportRow:
    if not isinstance(text, str):
        return _ReportRow(number, None, reason=f"the {role} is a {type(text).__name__}, not a text")
    try:
        check_encodable([text], role)
    except InvalidStudy as error:
        return _ReportRow(number, None, reason=str(error))
    if role == "candidate":
        return _ReportRow(number, None, text if text.strip() else "")
    reason = None if text.strip() else NO_TEXT
    return _ReportRow(number, None, text, {"reference": text}, reason)


def _table_row(
    number: int, record: Mapping[str, Any], id_column: str | None, sources: list[str], role: str
) -> _ReportRow:
    id = None
    try:
        if id_column is not None:
            check_encodable([record.get(id_column)], id_column)
            id = id_of(record.get(id_column), id_column)
        for name, value in record.items():
            check_encodable([value], name)
        texts = {name: text_of(record.get(name), name) for name in sources}
    except InvalidStudy as error:
        return _ReportRow(number, id, reason=str(error))
    filled = {name: text for name, text in texts.items() if text is not None}
    if role == "candidate":
        return _ReportRow(number, id, " ".join(filled.values()))
    named = filled
    if filled and sources[0] not in REPORT_SECTIONS:
        named = {"reference": filled[sources[0]]}
    dropped = {id_column, "id", "candidate", *sources}
    # Parquet has dates and other values that json has not.
    others = {
        name: value if value is None or isinstance(value, _JSON) else str(value)
        for name, value in record.items()
        if name not in dropped
    }
    return _ReportRow(number, id, None, {**named, **others}, None if filled else NO_TEXT)


def _write_table(out: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with atomic_write(out) as stream:
        if out.suffix == ".jsonl":
            stream.writelines(json_line(dict(row)) for row in rows)
            return
        table = csv.writer(stream)
        table.writerow(columns)
        for row in rows:
            values = (row.get(name) for name in columns)
            table.writerow(
                cells(
                    json.dumps(value, ensure_ascii=False)
                    if isinstance(value, list | dict)
                    else None
                    if is_missing(value)
                    else value
                    for value in values
                )
            )


def _write_predictions(manifest: Path, out: Path, candidates: Mapping[str, str]) -> None:
    """Write ReXrank's file of predictions: its manifest with `model_prediction` in each study."""
    content: Any = None if manifest.suffix.lower() in _LINES else _json_of(manifest)
    if not is_manifest(content):
        raise InvalidSetting(f"{out}: .json is for ReXrank, and {manifest} is no manifest of it")
    write_json(
        out,
        {
            study: {**entry, "model_prediction": candidates[study]}
            for study, entry in content.items()
            if study in candidates
        },
    )
