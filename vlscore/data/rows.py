"""Rows of a table file: csv, tsv, json, jsonl, parquet, and the json manifest of ReXrank.

There is one function a format. A row is a dict of column name to value, or a reason why it cannot
be read: a broken row costs itself alone, which pandas' readers do not promise. Rows are counted
from 1: line numbers for jsonl, elements of the list for json, data rows without the header for csv,
tsv and parquet. If the wanted columns are named, the others are not read, so nothing in them can
spoil a row.

The manifest of ReXrank (Zhang et al. 2024) is one object: study id -> its fields. The data files
(github.com/rajpurkarlab/ReXrank, folder `data`) have `image_path` (one or several, relative to the
folder of images), `frontal_lateral` (their views), `section_findings`, `section_impression` and
`context`; a model's output file (example_files/prediction.json) also has `model_prediction`.
"""

import csv
import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

from vlscore.core import from_cell
from vlscore.data.cells import check_names, is_missing, kind_of, quoted
from vlscore.data.file_kinds import GZIP, SPREADSHEETS, check_kind, head_of
from vlscore.data.parquet_rows import count_parquet_rows, parquet_columns, read_parquet
from vlscore.errors import InvalidTable

_FIELDS = ("model_prediction", "section_findings", "section_impression", "image_path")
# ReXrank writes the reports that it compares as "Findings: ... Impression: ...". The line break is
# white space to every metric, and a text policy needs it to find the sections.
_SECTIONS = (("Findings", "section_findings"), ("Impression", "section_impression"))


def is_manifest(content: Any) -> bool:
    """Return True if the content of a json file is a manifest of ReXrank."""
    if not isinstance(content, dict):
        return False
    entries = (entry for entry in content.values() if isinstance(entry, dict))
    return any(name in entry for entry in entries for name in _FIELDS)


def _manifest_row(study: str, entry: Any) -> Any:
    """Return the row of a study of a manifest; an entry that is no object stays unchanged."""
    if not isinstance(entry, _JsonObject):
        return entry
    row = _JsonObject(id=study)
    if any(name in entry for _, name in _SECTIONS):
        row["reference"] = "\n".join(
            f"{title}: {entry[name]}"
            for title, name in _SECTIONS
            if not is_missing(entry.get(name))
        )
    elif "report" in entry:
        row["reference"] = entry["report"]
    if "model_prediction" in entry:
        row["candidate"] = entry["model_prediction"]
    if "image_path" in entry:
        # They start from the folder of images, whether or not with a slash.
        paths = entry["image_path"]
        several = paths if isinstance(paths, list) else [paths]
        several = [path.lstrip("/") if isinstance(path, str) else path for path in several]
        row["image"] = several if isinstance(paths, list) else several[0]
    if "frontal_lateral" in entry:
        row["view"] = entry["frontal_lateral"]
    # The file's own fields are available under their own names, too.
    row.update({name: value for name, value in entry.items() if name not in row})
    row.twice = entry.twice
    return row


Record = dict[str, Any]
RawRow = tuple[int, Record | str]
Wanted = Collection[str] | None

# Limit of a cell; it holds a report of 10,000 words many times over.
_LONGEST_FIELD = 16 * 1024 * 1024
# Characters of a line that are read; the rest of a longer one, such as an unpacked bomb, is not.
_LONGEST_LINE = 64 * 1024 * 1024
# A .json table is one value, so it is read whole.
_LARGEST_JSON = 256 * 1024 * 1024
# Number of rows from which the columns of a table without a header are taken.
_HEAD = 100
# First line by which a file tells Excel its separator.
_SEPARATOR = re.compile(r"\"?sep=(.)\"?[\r\n]*", re.IGNORECASE)
# Characters that Python's "surrogateescape" makes of bytes that are not UTF-8.
_UNDECODABLE = re.compile("[\udc80-\udcff]")


def read_rows(path: str | Path, columns: Wanted = None) -> Iterator[RawRow]:
    """Yield (row number, record or reason) for every row; constant memory, except for .json.

    Args:
        columns: columns to read; default: all. The records lack columns that the table lacks.

    Raises: InvalidTable if the file is absent or of no known format; also while iterating, if the
    rest of the file cannot be read.
    """
    path = Path(path)
    return _READERS[format_of(path)](path, columns)


def whole_rows(path: str | Path, columns: Wanted = None) -> Iterator[tuple[int, Record]]:
    """Yield (row number, record) as `read_rows`, of a table whose every row must be readable.

    Raises: InvalidTable, which names a row that is not; and as `read_rows`.
    """
    for number, record in read_rows(path, columns):
        if isinstance(record, str):
            raise InvalidTable(f"{path}, row {number}: {record}")
        yield number, record


def columns_of(path: str | Path) -> list[str]:
    """Return the names of a table's columns; for .jsonl and .json, of its first 100 rows.

    Raises: InvalidTable as `read_rows`.
    """
    path = Path(path)
    format = format_of(path)
    if format == ".parquet":
        return parquet_columns(path)
    if format in (".csv", ".tsv"):
        with _open_text(path) as stream:
            return _csv_reader(stream, path)[0]
    rows = _read_json(path, None) if format == ".json" else _read_jsonl(path, None, checks=False)
    records = [record for _, record in islice(rows, _HEAD) if isinstance(record, dict)]
    return list(dict.fromkeys(name for record in records for name in record))


def count_rows(path: str | Path, limit: int | None = None) -> int | None:
    """Return the number of rows, at most `limit`, if it is cheap to find, else None.

    Raises: InvalidTable as `read_rows`.
    """
    path = Path(path)
    format = format_of(path)
    if format == ".parquet":
        count = count_parquet_rows(path)
        return count if limit is None else min(count, limit)
    if head_of(path).startswith(GZIP):
        return None
    if format == ".jsonl":
        with _open_text(path) as stream:
            return sum(1 for _ in islice((x for x in _lines(stream, path) if x.strip()), limit))
    return sum(1 for _ in islice(read_rows(path), limit))


def format_of(path: Path) -> str:
    """Return the suffix that names the table's format. Raises: InvalidTable for an unknown one."""
    name = path.name.lower()
    suffix = Path(name.removesuffix(".gz")).suffix
    if suffix in SPREADSHEETS:
        raise InvalidTable(
            f'{path}: is a workbook; save the sheet as "CSV UTF-8 (.csv)". Plain "CSV" loses '
            "letters, and Excel removes zeros at the beginning of ids"
        )
    if suffix not in _READERS and os.path.isdir(path):
        raise InvalidTable(
            f"{path}: is a folder; give the table in it. `vlscore pair FOLDER --out studies.csv` "
            "makes a table of a folder of images and of reports as text files"
        )
    if suffix not in _READERS:
        raise InvalidTable(f"{path}: tables are {', '.join(_READERS)} (or .gz of all but parquet)")
    if suffix == ".parquet" and name.endswith(".gz"):
        raise InvalidTable(f"{path}: parquet files are packed inside; unpack the .gz")
    if not os.path.isfile(path):
        kind = "is a folder; give the table in it" if os.path.isdir(path) else "no such file"
        raise InvalidTable(f"{path}: {kind}")
    if suffix != ".parquet":
        check_kind(path, suffix)
    return suffix


def _open_text(path: Path) -> IO[str]:
    opener: Callable[..., IO[Any]] = gzip.open if head_of(path).startswith(GZIP) else open
    try:
        # Undecodable bytes become lone surrogates, so that they spoil their own row alone.
        return opener(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="")
    except OSError as error:
        raise InvalidTable(f"{path}: cannot be opened ({error.strerror or error})") from None


def _lines(stream: IO[str], path: Path) -> Iterator[str]:
    """Yield the lines; of a line that is too long its beginning, with one character too many."""
    try:
        while line := stream.readline(_LONGEST_LINE + 1):
            yield line
            while len(line) > _LONGEST_LINE and not line.endswith(("\n", "\r")):
                line = stream.readline(_LONGEST_LINE + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InvalidTable(f"{path}: cannot be read on ({type(error).__name__})") from None


def _has_undecodable(text: str) -> bool:
    return not text.isascii() and _UNDECODABLE.search(text) is not None


class _JsonObject(dict[str, Any]):
    """Json object, and its repeated names, of which Python stores only the last value."""

    twice: frozenset[str] = frozenset()


def _object(pairs: list[tuple[str, Any]]) -> _JsonObject:
    made = _JsonObject(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        made.twice = frozenset(name for name in made if names.count(name) > 1)
    return made


def _read_jsonl(path: Path, wanted: Wanted, checks: bool = True) -> Iterator[RawRow]:
    """Yield the rows; without `checks` a row may hold bytes that are no text."""
    with _open_text(path) as stream:
        for number, line in enumerate(_lines(stream, path), start=1):
            if len(line) > _LONGEST_LINE:
                yield number, f"the line has more than {_LONGEST_LINE} characters"
                continue
            if not line.strip():
                continue
            # If columns are named, the code that reads a cell checks it.
            if wanted is None and checks and _has_undecodable(line):
                yield number, "the line is not valid UTF-8"
                continue
            try:
                record = json.loads(line, object_pairs_hook=_object)
            except (ValueError, RecursionError) as error:
                yield number, f"the line is not valid json ({error})"
                continue
            yield number, _as_record(record, "line", wanted)


def _read_json(path: Path, wanted: Wanted) -> Iterator[RawRow]:
    for number, record in enumerate(_json_list(path), start=1):
        yield number, _as_record(record, "element", wanted)


def _as_record(record: Any, place: str, wanted: Wanted) -> Record | str:
    if not isinstance(record, _JsonObject):
        return f"the {place} holds {kind_of(record)}, not an object"
    if twice := [name for name in record.twice if wanted is None or name in wanted]:
        return f"the {place} holds {quoted(twice)} twice"
    return {name: value for name, value in record.items() if wanted is None or name in wanted}


def _json_list(path: Path) -> list[Any]:
    advice = "a .json table is a list of objects, one a study, or a manifest of ReXrank"
    with _open_text(path) as stream:
        try:
            text = stream.read(_LARGEST_JSON + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidTable(f"{path}: cannot be read on ({type(error).__name__})") from None
    if len(text) > _LARGEST_JSON:
        raise InvalidTable(
            f"{path}: is larger than {_LARGEST_JSON >> 20} MiB, and a .json table is read whole; "
            "save it as .jsonl, one object a line"
        )
    try:
        content = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        lines = "; one object a line is .jsonl" if text.lstrip().startswith("{") else ""
        raise InvalidTable(f"{path}: is not valid json ({error}); {advice}{lines}") from None
    if is_manifest(content):
        if content.twice:
            raise InvalidTable(f"{path}: names {quoted(content.twice)} twice")
        return [_manifest_row(study, entry) for study, entry in content.items()]
    if not isinstance(content, list):
        raise InvalidTable(f"{path}: holds {kind_of(content)}; {advice}")
    return content


def _read_csv(path: Path, wanted: Wanted) -> Iterator[RawRow]:
    with _open_text(path) as stream:
        names, reader, skipped = _csv_reader(stream, path)
        number = 0
        while True:
            begins = reader.line_num + 1 + skipped
            record: Record | str
            try:
                values = next(reader)
                record = _csv_record(names, values, begins, reader.line_num + skipped, wanted)
            except StopIteration:
                return
            except csv.Error as error:
                values = [""]
                record = f"the row from line {begins} on is not valid csv ({error})"
            if values:
                number += 1
                yield number, record


def _csv_reader(stream: IO[str], path: Path) -> tuple[list[str], Any, int]:
    """Return the column names, a reader at the first data row, and the lines before the header."""
    csv.field_size_limit(max(_LONGEST_FIELD, csv.field_size_limit()))
    lines = _lines(stream, path)
    first = next(lines, "")
    # The delimiter is the one that makes the most names, or that a line for Excel names.
    delimiters: tuple[str, ...] = (",", ";", "\t")
    if path.name.lower().removesuffix(".gz").endswith(".tsv"):
        delimiters = ("\t",)
    if named := _SEPARATOR.fullmatch(first):
        delimiters, first = (named[1],), next(lines, "")
    try:
        delimiter = max(delimiters, key=lambda d: len(next(csv.reader([first], delimiter=d), [])))
        reader = csv.reader(chain([first], lines), delimiter=delimiter)
        header = next(reader, [])
    except csv.Error as error:
        raise InvalidTable(f"{path}: its first line is not valid csv ({error})") from None
    names = [from_cell(name.strip()) for name in header]
    if not any(names):
        raise InvalidTable(f"{path}: is empty; a csv table begins with a row of column names")
    if any(_has_undecodable(name) for name in names):
        raise InvalidTable(f"{path}: its column names are not valid UTF-8; save it as UTF-8")
    check_names(path, names)
    return names, reader, 0 if named is None else 1


def _csv_record(
    names: list[str], values: list[str], begins: int, ends: int, wanted: Wanted
) -> Record | str:
    if len(values) != len(names):
        # A surplus quote joins the rows up to the next quote: the message names the lines.
        lines = f"line {begins}" if begins == ends else f"lines {begins} to {ends}"
        return f"the row ({lines}) has {len(values)} fields, the header {len(names)}"
    if wanted is None and any(_has_undecodable(value) for value in values):
        return "the row is not valid UTF-8"
    cells = zip(names, values, strict=True)
    # Tables of this package have a "'" before a text that a spreadsheet would run as a formula.
    return {name: from_cell(value) for name, value in cells if wanted is None or name in wanted}


_READERS: dict[str, Callable[[Path, Wanted], Iterator[RawRow]]] = {
    ".jsonl": _read_jsonl,
    ".json": _read_json,
    ".csv": _read_csv,
    ".tsv": _read_csv,
    ".parquet": read_parquet,
}
