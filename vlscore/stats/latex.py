"""Texts and widths of LaTeX, for tables with the packages booktabs and graphicx.

Widths are estimated from the number of characters, at the size footnotesize of a document of
10 pt. A table that is wider than a page is scaled down to its width.
"""

import re

from vlscore.core import printable

#: Text below the first line of a file: what the document's preamble needs.
PREAMBLE = r"\usepackage{booktabs,graphicx}"

# Characters of 4.5 points: a column of a page of two columns; the page of the classes article and
# llncs, which is the narrowest of those that conferences use.
COLUMN, PAGE = 48, 76
_LETTERS = str.maketrans(
    {
        **{letter: "\\" + letter for letter in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "|": r"\textbar{}",
        "<": "$<$",
        ">": "$>$",
        "Δ": r"$\Delta$",
        "±": r"$\pm$",
        "×": r"$\times$",
        "≥": r"$\geq$",
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        "†": r"\textdagger{}",
        "‡": r"\textdaggerdbl{}",
        "−": "$-$",
        "τ": r"$\tau$",
    }
)


def escaped(text: str) -> str:
    """Return a text that LaTeX prints as it is.

    >>> print(escaped("50 % of a_b"))
    50 \\% of a\\_b
    """
    return printable(text, one_line=True).translate(_LETTERS)


def breakable(text: str) -> str:
    """Return a long text without blanks, such as a signature, that may break behind its facts."""
    parts = re.split(r"(?<=[|,@/+])", printable(text, one_line=True))
    return r"\allowbreak{}".join(escaped(part) for part in parts if part)
