"""What a cell of a table means: an id, a report, paths of images, views.

Every function takes the cell and the name of its column, and raises InvalidStudy with what was
found and what to give.
"""

import ast
import json
import math
import os
import re
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from vlscore.errors import InvalidStudy, UnreadableImage

# What `str(None)` and the exports of pandas, R and spreadsheets leave of a cell without a value.
_WRITTEN_FOR_MISSING = {"none", "nan", "na", "n/a", "#n/a", "null", "<na>", "nat"}
# Beyond this, a float no longer tells an integer from the next.
_LARGEST_EXACT_INTEGER = 2.0**53
_ITEM = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|None|nan"""
# Python's own way to print a list of texts, which pandas leaves in a csv. Commas are required:
# numpy prints none, and Python would join two texts that only a blank parts.
_PYTHON_LIST = re.compile(rf"\[\s*(?:(?:{_ITEM})\s*(?:,\s*(?:{_ITEM})\s*)*,?\s*)?\]", re.DOTALL)
# A name of this form is taken for a file's without asking the disk.
_HAS_SUFFIX = re.compile(r"\.[A-Za-z]\w{0,7}$")


def is_encodable(text: str) -> bool:
    """Whether a file can hold the text; half a surrogate pair stands for bytes that were none."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def is_missing(value: Any) -> bool:
    """None, nan, or blank text."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return isinstance(value, str) and not value.strip()


def looks_missing(text: str) -> bool:
    """Whether a text is what software writes for a missing value: "None", "nan", "NA", "null".

    >>> looks_missing(" NaN "), looks_missing("None."), looks_missing("")
    (True, False, False)
    """
    return text.strip().casefold() in _WRITTEN_FOR_MISSING


def id_of(value: Any, column: str) -> str | None:
    """An id as text, an integer without a decimal point; None where the cell is empty."""
    value = _decoded(value, column)
    if is_missing(value):
        return None
    if isinstance(value, float | Decimal):
        number = float(value)
        exact = abs(number) <= _LARGEST_EXACT_INTEGER and value == int(value)
        return str(int(value)) if exact else str(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise InvalidStudy(f"{_holds(value, column)}, not a text or number")
    return str(value).strip()


def text_of(value: Any, column: str) -> str | None:
    """A report as it stands; None where the cell is empty or blank."""
    value = _decoded(value, column)
    if is_missing(value):
        return None
    if not isinstance(value, str):
        raise InvalidStudy(f"{_holds(value, column)}, not a text")
    return value


def paths_of(value: Any, column: str, root: Path) -> tuple[Path, ...]:
    """Paths of one image or several, from `root` on; at least one.

    A folder stands for the images in it, in the order of their names.
    """
    names = [name for name in _texts_of(value, column) if name]
    if not names:
        raise InvalidStudy(f'column "{column}" names no image')
    if any("\0" in name for name in names):
        raise InvalidStudy(f'column "{column}" holds a NUL character; no path has one')
    return tuple(path for name in names for path in _images_of(name, root, column))


def views_of(value: Any, count: int, column: str) -> tuple[str | None, ...] | None:
    """As many views as there are images, None for each that is blank; None where all are."""
    views = _texts_of(value, column)
    if not any(views):
        return None
    if len(views) != count:
        raise InvalidStudy(f'column "{column}" names {len(views)} views for {count} images')
    return tuple(view or None for view in views)


def check_encodable(values: Sequence[Any], column: str) -> None:
    """Raise InvalidStudy where a text, in lists too, is none that a file could hold."""
    for value in values:
        if isinstance(value, str) and not is_encodable(value):
            raise InvalidStudy(
                f'column "{column}" holds bytes that are not UTF-8, or half a surrogate pair'
            )
        if isinstance(value, list):
            check_encodable(value, column)


def _decoded(value: Any, column: str) -> Any:
    """Parquet files of some programs hold their texts as bytes."""
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidStudy(f'column "{column}" holds bytes that are not UTF-8') from None


def _holds(value: Any, column: str) -> str:
    return f'column "{column}" holds a {type(value).__name__}'


def _images_of(name: str, root: Path, column: str) -> tuple[Path, ...]:
    path = root / name
    if _HAS_SUFFIX.search(name) or not os.path.isdir(path):
        return (path,)
    # Few tables name folders, and this brings numpy.
    from vlscore.images.files import images_in

    try:
        return images_in(path)
    except UnreadableImage as error:
        raise InvalidStudy(f'column "{column}": {error}') from None


def _texts_of(value: Any, column: str) -> list[str]:
    """One text, a list of texts, a list written in a text, or texts separated by ";" or "|"."""
    value = _decoded(value, column)
    if is_missing(value):
        return []
    if isinstance(value, str):
        is_list = value.lstrip().startswith("[")
        value = _written_list(value, column) if is_list else re.split(r"[;|]", value)
    if not isinstance(value, list) or not all(
        item is None or isinstance(item, str) for item in value
    ):
        raise InvalidStudy(f'column "{column}" must hold a text or a list of texts')
    check_encodable(value, column)
    return [(item or "").strip() for item in value]


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
