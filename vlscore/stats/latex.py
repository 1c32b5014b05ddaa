"""Tables of LaTeX that fit a column or a page, with the packages booktabs and graphicx.

Widths are estimated from the number of characters, at the size footnotesize of a document of
10 pt. A table that is wider than a page is scaled down to its width.
"""

import re
from collections.abc import Collection, Sequence

from vlscore.core import printable

#: Text below the first line of a file: what the document's preamble needs.
PREAMBLE = r"\usepackage{booktabs,graphicx}"

# Characters of 4.5 points: a column of a page of two columns; the page of the classes article and
# llncs, which is the narrowest of those that conferences use.
_COLUMN, _PAGE, _GAP = 48, 76, 2
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

Rows = Sequence[Sequence[str]]


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


def float_of(
    title: str,
    columns: Sequence[str],
    rows: Rows,
    *,
    bold: Collection[tuple[int, int]] = (),
    signs: Rows = (),
    notes: Sequence[str] = (),
    label: str = "",
) -> str:
    """Return a floating table with caption; it spans the page where it is wider than a column.

    Columns are aligned to the right: numbers of one column have the same digits.

    Args:
        title: text of the caption.
        bold: `best` of a `TextTable`; the other arguments are its attributes of these names.
    """

    def cell(row: int, column: int) -> str:
        shown = escaped(rows[row][column])
        shown = rf"\textbf{{{shown}}}" if (row, column) in bold else shown
        sign = escaped(signs[row][column]) if signs else ""
        return shown + (rf"\textsuperscript{{{sign}}}" if sign else "")

    def line(cells: Sequence[str]) -> str:
        # LaTeX would read a bracket after the end of a row as the space between two rows.
        return ("{}" if cells[0].startswith("[") else "") + " & ".join(cells) + r" \\"

    width = sum(max(map(len, each)) + _GAP for each in zip(columns, *rows, strict=True))
    kind = "table" if width <= _COLUMN else "table*"
    # No line ends within a name such as BLEU-4.
    caption = re.sub(r"(?<=[A-Za-z])-(?=\d)", r"\\mbox{-}", escaped(title))
    lines = [
        f"% {PREAMBLE}",
        rf"\begin{{{kind}}}",
        r"\centering",
        rf"\caption{{{caption}}}",
        *([rf"\label{{{label}}}"] if label else []),
        r"\vspace{4pt}",
        r"\footnotesize",
        r"\setlength{\tabcolsep}{3pt}",
        *([r"\resizebox{\linewidth}{!}{%"] if width > _PAGE else []),
        rf"\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}}",
        r"\toprule",
        line([escaped(heading) for heading in columns]),
        r"\midrule",
        *(line([cell(r, c) for c in range(len(columns))]) for r in range(len(rows))),
        r"\bottomrule",
        r"\end{tabular}",
        *(["}"] if width > _PAGE else []),
    ]
    if notes:
        lines += ["", r"\smallskip", r"\begin{minipage}{\linewidth}", r"\scriptsize\raggedright"]
        lines += [rf"\texttt{{{breakable(note)}}}\par" for note in notes]
        lines += [r"\end{minipage}"]
    return "\n".join([*lines, rf"\end{{{kind}}}", ""])
