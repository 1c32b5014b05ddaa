"""Tables of LaTeX that fit a column or a page, with the packages booktabs and siunitx.

Widths are estimated from the characters, at the size footnotesize of a document of 10 pt.
A table that is wider than a page is cut into parts of whole columns, one below the other.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from vlscore.core import printable

#: Text below the first line of a file: what the document's preamble needs.
PREAMBLE = r"\usepackage{booktabs,siunitx}"

# Points. A column of a page of two columns; the page of the classes article and llncs, which is
# the narrowest of those that conferences use.
_COLUMN, _PAGE = 219.0, 345.0
_GAP = 6.0
# Of a narrow letter, a wide one, a capital, and any other sign of Computer Modern at 8 points.
_NARROW, _WIDE, _CAPITAL, _OTHER = 2.6, 6.8, 5.9, 4.3
# Of the size scriptsize to footnotesize.
_SMALL = 0.9
_LONG_HEADING = 9

_NUMBER = re.compile(r"(?P<number>-?\d+(?:\.\d+)?)(?: ± (?P<half>\d+(?:\.\d+)?))?", re.ASCII)
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

    A column of numbers, also as "0.41 ± 0.02", is aligned at the points.

    Args:
        title: text of the caption.
        bold: `best` of a `TextTable`; the other arguments are its attributes of these names.
    """
    table = _LatexTable(columns, rows, bold, signs)
    blocks = table.blocks(_PAGE)
    is_narrow = len(blocks) == 1 and table.width(blocks[0]) <= _COLUMN
    kind = "table" if is_narrow else "table*"
    lines = [
        f"% {PREAMBLE}",
        rf"\begin{{{kind}}}",
        r"\centering",
        rf"\caption{{{_caption(title)}}}",
        *([rf"\label{{{label}}}"] if label else []),
        r"\vspace{4pt}",
        r"\footnotesize",
        r"\setlength{\tabcolsep}{3pt}",
        r"\sisetup{detect-weight,mode=text,separate-uncertainty}",
    ]
    for place, block in enumerate(blocks):
        lines += [r"", r"\medskip", ""] * (place > 0)
        lines += table.tabular(block)
    if notes:
        lines += ["", r"\smallskip", r"\begin{minipage}{\linewidth}", r"\scriptsize\raggedright"]
        lines += [rf"\texttt{{{breakable(note)}}}\par" for note in notes]
        lines += [r"\end{minipage}"]
    lines += [rf"\end{{{kind}}}", ""]
    return "\n".join(lines)


def text_width(text: str) -> float:
    """Return about how many points a text is wide."""
    return sum(
        _NARROW
        if letter in " ijltf.,;:|[]()'!-"
        else _WIDE
        if letter in "mwMW±↑↓"
        else _CAPITAL
        if letter.isupper()
        else _OTHER
        for letter in text
    )


class _LatexTable:
    """A table with the facts of its columns."""

    def __init__(
        self, columns: Sequence[str], rows: Rows, bold: Collection[tuple[int, int]], signs: Rows
    ) -> None:
        self._columns, self._rows = columns, rows
        self._bold, self._signs = set(bold), signs
        self._numeric = [False, *(self._is_numeric(k) for k in range(1, len(columns)))]
        self._widths = [self._width(k) for k in range(len(columns))]

    def blocks(self, limit: float) -> list[list[int]]:
        """Return the columns that fit together, in blocks of about the same width.

        The first column is in every block.
        """
        found = list(self._filled(limit))
        while limit > 0 and len(narrower := list(self._filled(limit))) == len(found):
            found, limit = narrower, limit - _GAP
        return found

    def _filled(self, limit: float) -> Iterator[list[int]]:
        block = [0]
        for k in range(1, len(self._columns)):
            if len(block) > 1 and self.width([*block, k]) > limit:
                yield block
                block = [0]
            block.append(k)
        yield block

    def width(self, block: Sequence[int]) -> float:
        """Return the width of some columns in points."""
        return sum(self._widths[k] for k in block)

    def tabular(self, block: Sequence[int]) -> list[str]:
        """Return the lines of a tabular of some columns."""
        kinds = "".join(self._kind(k) for k in block)
        return [
            rf"\begin{{tabular}}{{{kinds}}}",
            r"\toprule",
            " & ".join(self._heading(k) for k in block) + r" \\",
            r"\midrule",
            *(self._line(r, block) for r in range(len(self._rows))),
            r"\bottomrule",
            r"\end{tabular}",
        ]

    def _is_numeric(self, column: int) -> bool:
        cells = [row[column] for row in self._rows]
        return any(_NUMBER.fullmatch(cell) for cell in cells) and all(
            _NUMBER.fullmatch(cell) or cell in ("", "-") or cell.startswith("[") for cell in cells
        )

    def _found(self, column: int) -> list[re.Match[str]]:
        matches = (_NUMBER.fullmatch(row[column]) for row in self._rows)
        return [match for match in matches if match is not None]

    def _sign(self, row: int, column: int) -> str:
        sign = self._signs[row][column] if self._signs else ""
        return rf"{{\textsuperscript{{{escaped(sign)}}}}}" if sign else ""

    def _kind(self, column: int) -> str:
        """Return the type of a column: l, r, or S with the digits of its numbers."""
        if not self._numeric[column]:
            return "r" if column else "l"
        numbers = [match["number"] for match in self._found(column)]
        parts = [number.lstrip("-").partition(".") for number in numbers]
        form = f"{max(len(p[0]) for p in parts)}.{max(len(p[2]) for p in parts)}"
        form = ("-" if any(number.startswith("-") for number in numbers) else "") + form
        if halves := [_last_digits(m["half"]) for m in self._found(column) if m["half"]]:
            form += f"({max(map(len, halves))})"
        more = ""
        if self._signs:
            widest = max(range(len(self._rows)), key=lambda r: text_width(self._signs[r][column]))
            if sign := self._sign(widest, column):
                more = f",table-space-text-post={sign}"
        return f"S[table-format={form}{more}]"

    def _width(self, column: int) -> float:
        heading = self._columns[column]
        widths = [text_width(line) for line in (_lines(heading) if column else [heading])]
        for row, line in enumerate(self._rows):
            size = _SMALL if line[column].startswith("[") else 1
            sign = self._signs[row][column] if self._signs else ""
            widths.append(text_width(line[column]) * size + text_width(sign))
        return max(widths) + _GAP

    def _heading(self, column: int) -> str:
        if column == 0:
            return _guarded(escaped(self._columns[0]))
        lines = [escaped(line) for line in _lines(self._columns[column])]
        stacked = r"\\".join(lines)
        shown = lines[0] if len(lines) == 1 else rf"\shortstack{{{stacked}}}"
        if self._numeric[column]:
            return rf"\multicolumn{{1}}{{c}}{{{shown}}}"
        return rf"\multicolumn{{1}}{{r}}{{{shown}}}" if len(lines) > 1 else shown

    def _line(self, row: int, block: Sequence[int]) -> str:
        cells = [self._cell(row, column) for column in block]
        return " & ".join([_guarded(cells[0]), *cells[1:]]) + r" \\"

    def _cell(self, row: int, column: int) -> str:
        text, sign = self._rows[row][column], self._sign(row, column)
        is_bold = (row, column) in self._bold
        if not self._numeric[column]:
            shown = escaped(text)
            return (rf"\textbf{{{shown}}}" if is_bold else shown) + sign
        match = _NUMBER.fullmatch(text)
        if match is None:
            shown = "--" if text == "-" else escaped(text)
            return rf"{{\scriptsize {shown}}}" if text.startswith("[") else f"{{{shown}}}"
        half = f"({_last_digits(match['half'])})" if match["half"] else ""
        return (r"\bfseries " if is_bold else "") + match["number"] + half + sign


def _caption(text: str) -> str:
    # No line ends within a name such as BLEU-4.
    return re.sub(r"(?<=[A-Za-z])-(?=\d)", r"\\mbox{-}", escaped(text))


def _last_digits(half: str) -> str:
    """Return an uncertainty in units of the last digit, as siunitx reads it.

    >>> _last_digits("0.012")
    '12'
    """
    return half.replace(".", "").lstrip("0") or "0"


def _lines(heading: str) -> list[str]:
    """Return a heading in one or two lines; an arrow stays behind its word."""
    words = heading.replace(" ↑", "\0↑").replace(" ↓", "\0↓").split(" ")
    if len(heading) <= _LONG_HEADING or len(words) == 1:
        return [heading]
    ways = [(" ".join(words[:k]), " ".join(words[k:])) for k in range(1, len(words))]
    best = min(ways, key=lambda way: max(map(len, way)))
    return [line.replace("\0", " ") for line in best]


def _guarded(text: str) -> str:
    # LaTeX would read a bracket after the end of a row as the space between two rows.
    return ("{}" if text.startswith("[") else "") + text
