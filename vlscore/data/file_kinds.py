"""What a table file holds, by its first bytes: programs and people give files other names."""

import re
from pathlib import Path

from vlscore.errors import InvalidTable

GZIP = b"\x1f\x8b"
_HEAD = 2048
_SAVE_AS = (
    'open it in the program that made it and save it as "CSV UTF-8 (.csv)"; plain "CSV" of Excel '
    "loses letters"
)
_WORKBOOK = f"a workbook of a spreadsheet program: {_SAVE_AS}"
SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods", ".numbers")

# Signs at the beginning of a file -> what it is, and what to do.
_SIGNS = (
    (b"PK\x03\x04", _WORKBOOK + ". If it is a .zip file, unpack it"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", _WORKBOOK),
    (b"PAR1", "a parquet file: give it the suffix .parquet"),
    (b"ARROW1", "an Arrow or Feather file: save it as .parquet"),
    (b"BZh", "packed by bzip2: unpack it, or pack it by gzip"),
    (b"\xfd7zXZ\x00", "packed by xz: unpack it, or pack it by gzip"),
    (b"\x28\xb5\x2f\xfd", "packed by zstandard: unpack it, or pack it by gzip"),
    (b"7z\xbc\xaf\x27\x1c", "packed by 7-Zip: unpack it"),
    (b"\x89HDF\r\n", "an HDF5 file: save it as .parquet"),
    (b"\x93NUMPY", "an array of numpy, which has no ids and no reports"),
    (b"SQLite format 3\x00", "an SQLite database: export the table as .csv"),
    (b"%PDF-", "a PDF file, which holds no table"),
    (b"{\\rtf", "a document, which holds no table: save the table as .csv"),
    (b"\xff\xfe", f"text in UTF-16: {_SAVE_AS}"),
    (b"\xfe\xff", f"text in UTF-16: {_SAVE_AS}"),
)
_HTML = re.compile(rb"\s*<(?:!doctype|html|\?xml)", re.IGNORECASE)
_JSON_LINE = re.compile(rb'\s*\{\s*"[^"]*"\s*:')
_JSON_LIST = re.compile(rb"\s*\[\s*(?:\{|\])")


def check_kind(path: Path, format: str) -> None:
    """Raise InvalidTable if a file clearly holds something else than its suffix says.

    Args: format: suffix of the table, as ".csv".
    """
    head = head_of(path)
    found = next((what for sign, what in _SIGNS if head.startswith(sign)), None)
    text = head.removeprefix(b"\xef\xbb\xbf")
    if found is None and _HTML.match(text):
        found = "an HTML or XML page, not a table: fetch or export the file again"
    is_csv = format in (".csv", ".tsv")
    if found is None and is_csv and _JSON_LINE.match(text):
        found = "json, one object a line: give it the suffix .jsonl"
    if found is None and format in (".csv", ".tsv", ".jsonl") and _JSON_LIST.match(text):
        found = "one list of json objects: give it the suffix .json"
    if found is not None:
        raise InvalidTable(f"{path}: is named {format}, but is {found}")


def head_of(path: Path) -> bytes:
    """Return the first bytes of a file, whatever its name; none if it cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(_HEAD)
    except OSError:
        return b""  # Opening the table says why.
