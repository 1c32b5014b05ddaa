"""Cells of result tables: texts that are safe in terminals, spreadsheets, LaTeX and HTML.

Reports, ids and names come from tables that others may have made. A terminal obeys control
sequences (ECMA-48), a spreadsheet runs a cell that begins like a formula (CWE-1236), and a browser
that shows Markdown obeys HTML.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
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
    return "".join(
        c
        if c in allowed or c in _JOINERS or unicodedata.category(c) not in _ACTING
        else json.dumps(c)[1:-1]
        for c in text
    )


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


def with_noun(number: int, noun: str) -> str:
    """Return a number with its noun, in the singular after 1.

    >>> with_noun(1, "study"), with_noun(1200, "study"), with_noun(0, "test"), with_noun(2, "day")
    ('1 study', '1,200 studies', '0 tests', '2 days')
    """
    if number != 1:
        is_consonant = noun[-2:-1] not in "aeiou"
        noun = f"{noun[:-1]}ies" if noun.endswith("y") and is_consonant else f"{noun}s"
    return f"{number:,} {noun}"


def first_of(names: Sequence[object], count: int = 5) -> str:
    """Return the first names, with commas between them, and dots where there are more.

    >>> first_of(["a", "b"]), first_of([1, 2, 3], 2)
    ('a, b', '1, 2, ...')
    """
    return ", ".join(map(str, names[:count])) + (", ..." if len(names) > count else "")


def without_html(text: str) -> str:
    """Return text for Markdown: no HTML tag, no link or image, one line a paragraph.

    >>> without_html("p < 0.001 <b>x</b>"), without_html("![x](http://a)")
    ('p < 0.001 &lt;b>x&lt;/b>', '![x]\\\\(http://a)')
    """
    return _TAG.sub("&lt;", printable(text)).replace("](", "]\\(")
