"""The meaning of a table's cells: ids, reports, numbers, paths of images, views.

Each function `*_of` takes a cell and the name of its column, and raises InvalidStudy with what was
found and what to give.
"""

import ast
import json
import math
import os
import re
from collections.abc import Collection, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from vlscore.errors import InvalidStudy, InvalidTable, UnreadableImage

# Texts that `str(None)` and the exports of pandas, R and spreadsheets write for a missing value.
_WRITTEN_FOR_MISSING = {"none", "nan", "na", "n/a", "#n/a", "null", "<na>", "nat"}
# Beyond this, a float cannot distinguish an integer from the next one.
_LARGEST_EXACT_INTEGER = 2.0**53
_ITEM = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|None|nan"""
# A list of texts as Python prints it, which pandas writes into a csv. Commas are required: numpy
# prints none, and Python would join two texts that are separated by a blank alone.
_PYTHON_LIST = re.compile(rf"\[\s*(?:(?:{_ITEM})\s*(?:,\s*(?:{_ITEM})\s*)*,?\s*)?\]", re.DOTALL)
# Characters of a report: 150,000 words. Of much longer texts, metrics need gigabytes.
_LONGEST_TEXT = 1 << 20
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
# A name of this form counts as a file's without a look at the disk.
_HAS_SUFFIX = re.compile(r"\.[A-Za-z]\w{0,7}$")


_KINDS = (
    (bool, "true or false"),
    (int | float | Decimal, "a number"),
    (str, "a text"),
    (bytes, "bytes"),
    (list | tuple, "a list"),
    (dict, "an object"),
    (date | time | timedelta, "a date or time"),
)


def kind_of(value: Any) -> str:
    """Return the kind of a value in words, for messages; never a part of the value.

    >>> kind_of({"a": 1}), kind_of(3), kind_of(None)
    ('an object', 'a number', 'nothing')
    """
    if value is None:
        return "nothing"
    named = f"a value of type {type(value).__name__}"
    return next((words for kinds, words in _KINDS if isinstance(value, kinds)), named)


def quoted(names: Collection[str]) -> str:
    """Return names in quotation marks, sorted, with commas between them."""
    return ", ".join(f'"{name}"' for name in sorted(names))


def check_names(path: Path, names: Sequence[str]) -> None:
    """Raise InvalidTable if two columns of a table have one name."""
    if twice := {name for name in names if names.count(name) > 1}:
        raise InvalidTable(f"{path}: column {quoted(twice)} occurs twice; rename one of them")


def is_encodable(text: str) -> bool:
    """Return True if the text can be encoded as UTF-8, which half a surrogate pair cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_missing(value: Any) -> bool:
    """Return True for None, nan, or blank text."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return isinstance(value, str) and not value.strip()


def looks_missing(text: str) -> bool:
    """Return True for a text that software writes for a missing value: "None", "nan", "NA", "null".

    >>> looks_missing(" NaN "), looks_missing("None."), looks_missing("")
    (True, False, False)
    """
    return text.strip().casefold() in _WRITTEN_FOR_MISSING


def why_missing(text: Any, name: str) -> str | None:
    """Return why a value is no report, None where it may be one.

    >>> why_missing("nan", "the reference")
    "the reference is 'nan', which software writes for a missing text"
    """
    if is_missing(text):
        return f"{name} is empty"
    if isinstance(text, str) and looks_missing(text):
        return f"{name} is {text!r}, which software writes for a missing text"
    return None


def looks_listed(text: str) -> bool:
    """Return True for a list of texts that is written as a text, which is no report.

    >>> looks_listed("['Clear.']"), looks_listed('["Clear.", "Normal."]'), looks_listed("[Clear.]")
    (True, True, False)
    """
    return text.lstrip().startswith("[") and _PYTHON_LIST.fullmatch(text.strip()) is not None


def id_of(value: Any, column: str) -> str | None:
    """Return an id as text, an integer without a decimal point; None if the cell is empty."""
    value = _decoded(value, column)
    if is_missing(value):
        return None
    if isinstance(value, float | Decimal):
        number = float(value)
        exact = abs(number) <= _LARGEST_EXACT_INTEGER and value == int(value)
        return str(int(value)) if exact else str(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidStudy(f'column "{column}" holds {kind_of(value)}, not a text or number')
    return str(value).strip()


def name_of(value: Any, column: str) -> str:
    """Return an id or name as text, an integer without a decimal point; the cell is not empty."""
    name = id_of(value, column)
    if name is None:
        raise InvalidStudy(f'column "{column}" is empty')
    return name


def number_of(value: Any, column: str) -> float | None:
    """Return a finite number; None if the cell is empty."""
    if is_missing(value):
        return None
    try:
        # Python reads "1_0" as 10, which no other program writes.
        if isinstance(value, bool) or (isinstance(value, str) and "_" in value):
            raise ValueError(value)
        number = float(value)
    except (TypeError, ValueError):
        is_comma = isinstance(value, str) and _DECIMAL_COMMA.fullmatch(value.strip())
        hint = "; write a decimal point, no comma" if is_comma else ""
        raise InvalidStudy(f'column "{column}" holds {value!r}, not a number{hint}') from None
    if math.isnan(number):
        return None
    if math.isinf(number):
        raise InvalidStudy(f'column "{column}" holds {value!r}; a finite number is needed')
    return number


def text_of(value: Any, column: str) -> str | None:
    """Return a report unchanged; None if the cell is empty or blank.

    Raises: InvalidStudy for a value that is no text, or longer than any report.
    """
    value = _decoded(value, column)
    if is_missing(value):
        return None
    if not isinstance(value, str):
        raise InvalidStudy(f'column "{column}" holds {kind_of(value)}, not a text')
    if len(value) > _LONGEST_TEXT:
        raise InvalidStudy(
            f'column "{column}" holds a text of {len(value)} characters; a report has at most '
            f"{_LONGEST_TEXT}"
        )
    return value


def paths_of(value: Any, column: str, root: Path) -> tuple[Path, ...]:
    """Return the paths of one or several images, relative to `root`; at least one.

    A folder is replaced by the images in it, in the order of their names.
    """
    names = [name for name in _texts_of(value, column) if name]
    if not names:
        raise InvalidStudy(f'column "{column}" names no image')
    if any("\0" in name for name in names):
        raise InvalidStudy(f'column "{column}" holds a NUL character; no path has one')
    paths: list[Path] = []
    for name in names:
        path = root / _file_named(name, column)
        if _HAS_SUFFIX.search(name) or not os.path.isdir(path):
            paths.append(path)
            continue
        # Imported here: few tables name folders, and this import loads numpy.
        from vlscore.data.images.file_formats import images_in

        try:
            paths += images_in(path)
        except UnreadableImage as error:
            raise InvalidStudy(f'column "{column}": {error}') from None
    return tuple(paths)


def _file_named(name: str, column: str) -> Path | str:
    """Return the file of an address that begins with "file:"; other texts unchanged.

    Raises: InvalidStudy for the address of a server.
    """
    if "://" not in name:
        return name
    from vlscore.data.images.file_formats import local_path

    try:
        return local_path(name)
    except UnreadableImage as error:
        raise InvalidStudy(f'column "{column}": {error}') from None


def views_of(value: Any, count: int, column: str) -> tuple[str | None, ...] | None:
    """Return a view for each image, None for a blank one; None if all are blank."""
    views = _texts_of(value, column)
    if not any(views):
        return None
    if len(views) != count:
        raise InvalidStudy(f'column "{column}" names {len(views)} views for {count} images')
    return tuple(view or None for view in views)


def check_encodable(values: Sequence[Any], column: str) -> None:
    """Raise InvalidStudy if a text (or a text in a list) cannot be encoded as UTF-8.

    For cells of unknown content; the functions that read ids, texts and names check them, too.
    """
    for value in values:
        if isinstance(value, list):
            check_encodable(value, column)
        elif isinstance(value, str):
            _decoded(value, column)


def _decoded(value: Any, column: str) -> Any:
    """Return a cell, decoded: parquet files of some programs hold their texts as bytes.

    Raises: InvalidStudy if it cannot be decoded, or is a text that cannot be encoded.
    """
    try:
        if isinstance(value, str):
            value.encode("utf-8")
        return value.decode("utf-8") if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        raise InvalidStudy(f'column "{column}" holds bytes that are not UTF-8') from None
    except UnicodeEncodeError:
        raise InvalidStudy(
            f'column "{column}" holds bytes that are not UTF-8, or half a surrogate pair: save '
            "the file as UTF-8"
        ) from None


def _texts_of(value: Any, column: str) -> list[str]:
    """Read one text, a list of texts, a list written as text, or texts separated by ";" or "|"."""
    value = _decoded(value, column)
    if is_missing(value):
        return []
    if isinstance(value, str):
        is_list = value.lstrip().startswith("[")
        value = _written_list(value, column) if is_list else re.split(r"[;|]", value)
    items = [value] if isinstance(value, dict) else value
    if isinstance(items, list) and any(isinstance(item, dict) for item in items):
        value = [_path_in(item, column) if isinstance(item, dict) else item for item in items]
    if not isinstance(value, list) or not all(
        item is None or isinstance(item, str) for item in value
    ):
        raise InvalidStudy(f'column "{column}" must hold a text or a list of texts')
    check_encodable(value, column)
    return [(item or "").strip() for item in value]


def _path_in(picture: dict[str, Any], column: str) -> Any:
    """Return the path of a picture as Hugging Face datasets store it: {"bytes", "path"}.

    Raises: InvalidStudy if the table holds the picture itself, or something else.
    """
    if set(picture) == {"bytes", "path"} and picture["bytes"] is None:
        return picture["path"]
    if isinstance(picture.get("bytes"), bytes):
        raise InvalidStudy(
            f'column "{column}" holds the pictures themselves, as Hugging Face datasets store '
            "them, and a table names files: write each picture to a file once (the bytes as they "
            'are: Path(name).write_bytes(row["image"]["bytes"]), after '
            "datasets.Image(decode=False)), and name it in the table"
        )
    raise InvalidStudy(f'column "{column}" must hold a text or a list of texts')


def _written_list(text: str, column: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        if _PYTHON_LIST.fullmatch(text.strip()):
            items = re.findall(_ITEM, text, re.DOTALL)
            return [None if item in ("None", "nan") else ast.literal_eval(item) for item in items]
    except (ValueError, SyntaxError):
        pass
    raise InvalidStudy(
        f'column "{column}" begins like a list but is none; give one text, texts separated by ";" '
        'or "|", or a list such as ["a.png", "b.png"]'
    )
