"""Tables of text, and the format of numbers in them; no cell is ever cut."""

import csv
import io
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlscore.core import cells, from_plain, printable, without_html
from vlscore.stats.intervals import Interval

NOTHING = "-"


def number(value: float | None, digits: int = 3) -> str:
    """Format a number; "-" if it is not defined.

    >>> number(0.12345), number(float("nan"))
    ('0.123', '-')
    """
    if value is None or math.isnan(value):
        return NOTHING
    return f"{value:.{digits}f}"


def interval(value: Interval | None, digits: int = 3) -> str:
    """Format an estimate with its interval, if that is defined.

    >>> interval(Interval(0.5, 0.4, 0.6))
    '0.500 [0.400, 0.600]'
    """
    if value is None:
        return NOTHING
    estimate = number(value.estimate, digits)
    if math.isnan(value.low):
        return estimate
    return f"{estimate} [{value.low:.{digits}f}, {value.high:.{digits}f}]"


def p_value(value: float) -> str:
    """Format a p value, never as 0."""
    return "< 0.001" if value < 0.001 else number(value)


_GAP = "  "


@dataclass(frozen=True)
class TextTable:
    """A table of text cells.

    Attributes:
        title: title above the table.
        columns: headings; the first column names the rows.
        rows: rows, each with a cell for every column.
        caption: explanation below the table.

    >>> print(TextTable("T", ("metric", "mean"), (("bleu-4", "0.11"),)).text())
    T
    metric  mean
    bleu-4  0.11
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""

    def text(self, width: int = 80) -> str:
        """Return aligned text; columns that do not fit follow below, after the names of rows."""
        shown = [[printable(text, one_line=True) for text in r] for r in (self.columns, *self.rows)]
        blocks = ["\n".join(_aligned(shown, columns)) for columns in _blocks(shown, width)]
        body = "\n\n".join(blocks)
        below = [_wrapped(printable(self.caption), width)] if self.caption else []
        return "\n".join([*([printable(self.title)] if self.title else []), body, *below])

    def markdown(self) -> str:
        """Return Markdown, for README files and notes."""
        head = _pipes(self.columns)
        line = "| --- |" + " ---: |" * (len(self.columns) - 1)
        body = "\n".join([head, line, *map(_pipes, self.rows)])
        title = f"**{without_html(self.title)}**" if self.title else ""
        caption = without_html(self.caption)
        return "\n\n".join(part for part in (title, body, caption) if part) + "\n"

    def latex(self) -> str:
        """Return LaTeX, for papers; needs the package booktabs."""
        lines = [
            r"\begin{table}",
            rf"\caption{{{_escaped('. '.join(filter(None, (self.title, self.caption))))}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}",
            r"\toprule",
            " & ".join(map(_escaped, self.columns)) + r" \\",
            r"\midrule",
            *(_latex_row(row) for row in self.rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """Return csv: headings and cells alone; "-" becomes an empty cell."""
        written = io.StringIO()
        writer = csv.writer(written, lineterminator="\n")
        writer.writerow(cells(self.columns))
        writer.writerows(cells("" if c == NOTHING else c for c in row) for row in self.rows)
        return written.getvalue()


def tables_of(content: Mapping[str, Any]) -> list[TextTable]:
    """Return the tables that a result file holds under "tables", as json has them.

    Raises: ValueError, TypeError for something else.

    >>> content = {"tables": [{"title": "T", "columns": ["a"], "rows": [["1"]], "caption": ""}]}
    >>> tables_of(content)
    [TextTable(title='T', columns=('a',), rows=(('1',),), caption='')]
    """
    tables: list[TextTable] = from_plain(list[TextTable], content.get("tables", []))
    for table in tables:
        if any(len(row) != len(table.columns) for row in table.rows):
            raise ValueError(f"a row of {table.title} has not one cell for each column")
    return tables


def markdown(tables: Iterable[TextTable], notes: Iterable[str] = ()) -> str:
    """Return several tables, and notes such as signatures, as one Markdown text."""
    parts = [table.markdown() for table in tables]
    listed = "\n".join(f"- `{printable(n, one_line=True).replace('`', chr(39))}`" for n in notes)
    return "\n".join([*parts, *([listed + "\n"] if listed else [])])


def write_tables(place: Path, tables: Sequence[TextTable], notes: Iterable[str] = ()) -> None:
    """Write tables.md, with the notes, and tables.tex into a folder."""
    (place / "tables.md").write_text(markdown(tables, notes), encoding="utf-8")
    latex = "\n".join(table.latex() for table in tables)
    (place / "tables.tex").write_text(latex, encoding="utf-8")


def _blocks(rows: Sequence[Sequence[str]], width: int) -> Iterable[list[int]]:
    """Yield the columns that fit into the width together.

    Every block begins with the columns that tell the rows apart: the first, and those after it up
    to the first that makes all rows differ, if they leave half of the width.
    """
    widths = [max(len(row[k]) + len(_GAP) for row in rows) for k in range(len(rows[0]))]
    keys = 1
    while keys < len(widths) and len({tuple(row[:keys]) for row in rows}) < len(rows):
        keys += 1
    if keys == len(widths) or sum(widths[:keys]) > width // 2:
        keys = 1
    first = list(range(keys))
    block, used = list(first), sum(widths[:keys])
    for k in range(keys, len(widths)):
        if used + widths[k] - len(_GAP) > width and len(block) > keys:
            yield block
            block, used = list(first), sum(widths[:keys])
        block.append(k)
        used += widths[k]
    yield block


def _aligned(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> list[str]:
    widths = {k: max(len(row[k]) for row in rows) for k in columns}
    return [
        _GAP.join(
            f"{row[k]:<{widths[k]}}" if place == 0 else f"{row[k]:>{widths[k]}}"
            for place, k in enumerate(columns)
        ).rstrip()
        for row in rows
    ]


def _wrapped(text: str, width: int) -> str:
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


def _pipes(texts: Sequence[str]) -> str:
    shown = (without_html(printable(text, one_line=True)).replace("|", "\\|") for text in texts)
    return "| " + " | ".join(text or " " for text in shown) + " |"


_LATEX = str.maketrans(
    {
        **{letter: "\\" + letter for letter in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "|": r"\textbar{}",
        "<": "$<$",
        ">": "$>$",
        "Δ": r"$\Delta$",
    }
)


def _latex_row(cells: Sequence[str]) -> str:
    row = " & ".join(map(_escaped, cells))
    # LaTeX would read a bracket after the end of a row as the space between two rows.
    return ("{}" if row.startswith("[") else "") + row + r" \\"


def _escaped(text: str) -> str:
    return printable(text, one_line=True).translate(_LATEX)
