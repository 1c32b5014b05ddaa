"""Safe text: values of tables for terminals, spreadsheets, LaTeX and HTML.

Reports, ids and names come from tables that may come from elsewhere. A terminal obeys control
sequences (ECMA-48), a spreadsheet runs a cell that begins like a formula (CWE-1236), and a browser
that shows Markdown obeys HTML.
"""

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any

# Control and format characters (such as those that turn the direction of a line), halves of
# characters, and separators of lines; of the format characters, joiners of letters stay.
_ACTING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = {"\u200c", "\u200d"}
_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_TAG = re.compile(r"<(?=[A-Za-z/!?])")


def printable(text: str, *, one_line: bool = False) -> str:
    """Return the text with control characters that a terminal would obey escaped, as "\\u001b".

    Line breaks and tabs stay, unless `one_line` is set. Text that is json stays the same json,
    because json escapes such characters in this way.

    >>> print(printable("a\\x1b[2Jb"))
    a\\u001b[2Jb
    """
    allowed = "" if one_line else "\n\t"
    if text.isprintable():
        return text
    return "".join(c if _is_safe(c, allowed) else json.dumps(c)[1:-1] for c in text)


def _is_safe(letter: str, allowed: str) -> bool:
    return letter in allowed or letter in _JOINERS or unicodedata.category(letter) not in _ACTING


def cell(value: Any) -> Any:
    """Return a value for a cell of a csv file; text that begins like a formula gets a "'" in front.

    Numbers, also those written as text, and all other values do not change. `from_cell` removes
    the "'" again.

    >>> cell("=1+1"), cell("- No effusion."), cell("'=1"), cell(-0.5), cell("-0.5")
    ("'=1+1", "'- No effusion.", "''=1", -0.5, '-0.5')
    """
    if not isinstance(value, str) or _FORMULA.match(value) is None or _NUMBER.fullmatch(value):
        return value
    return f"'{value}"


def from_cell(text: str) -> str:
    """Return the text that `cell` made safe.

    >>> from_cell("'=1+1"), from_cell("''=1"), from_cell("'quoted'")
    ('=1+1', "'=1", "'quoted'")
    """
    is_safe_form = text.startswith("'") and _FORMULA.match(text) is not None
    return text[1:] if is_safe_form and _NUMBER.fullmatch(text[1:]) is None else text


def cells(values: Iterable[Any]) -> list[Any]:
    """Return a row for a csv file, with each value made safe by `cell`."""
    return [cell(value) for value in values]


def record_cells(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of a csv file by its columns, with each value made safe by `cell`."""
    return {name: cell(value) for name, value in record.items()}


def table_cells(table: Any) -> Any:
    """Return a pyarrow table for a csv file: its texts made safe by `cell`."""
    return _with_texts(table, cell)


def from_table_cells(table: Any) -> Any:
    """Return a pyarrow table that was read from a csv file, with its original texts."""
    return _with_texts(table, from_cell)


def _with_texts(table: Any, change: Callable[[str], str]) -> Any:
    """Return a pyarrow table with a function applied to each text."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            texts = table.column(place).to_pylist()
            column = [None if text is None else change(text) for text in texts]
            table = table.set_column(place, field, pa.array(column, field.type))
    return table


def without_html(text: str) -> str:
    """Return text for Markdown: no HTML tag, no link or image, one line a paragraph.

    >>> without_html("p < 0.001 <b>x</b>"), without_html("![x](http://a)")
    ('p < 0.001 &lt;b>x&lt;/b>', '![x]\\\\(http://a)')
    """
    return _TAG.sub("&lt;", printable(text)).replace("](", "]\\(")
