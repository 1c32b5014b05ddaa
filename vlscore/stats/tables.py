"""Tables of text, and the format of numbers in them; no cell is ever cut."""

import math
import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vlscore.core import printable, without_html
from vlscore.stats.intervals import LEAST_SUPPORT, Interval
from vlscore.stats.latex import COLUMN, PAGE, PREAMBLE, breakable, escaped

if TYPE_CHECKING:
    import pandas

NOTHING = "-"
NO_INTERVAL = "[-]"
_WHY_NONE = (
    f"{NO_INTERVAL}: no interval, because all resamples have the same value, or the references "
    f"state the observation fewer than {LEAST_SUPPORT} times."
)


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

    >>> interval(Interval(0.5, 0.4, 0.6)), interval(Interval(0.5, math.nan, math.nan))
    ('0.500 [0.400, 0.600]', '0.500 [-]')
    """
    if value is None or math.isnan(value.estimate):
        return NOTHING
    return f"{number(value.estimate, digits)} {bounds(value.low, value.high, digits)}"


def bounds(low: float, high: float, digits: int = 3) -> str:
    """Format low and high of an interval; "[-]" if there is none, which a table then explains."""
    if math.isnan(low):
        return NO_INTERVAL
    return f"[{low:.{digits}f}, {high:.{digits}f}]"


def p_value(value: float) -> str:
    """Format a p value, never as 0."""
    return "< 0.001" if value < 0.001 else number(value)


_P_VALUES = ("p", "p_value")
_GAP = "  "


@dataclass(frozen=True)
class TextTable:
    """A table of text cells.

    Attributes:
        title: title above the table.
        columns: headings; the first column names the rows.
        rows: rows, each with a cell for every column.
        caption: explanation below the table.
        best: (row, column) of the best cells: in bold face, on a terminal with a star.
        signs: signs behind the cells, such as †, raised where the format has that; in the shape
            of `rows`, or empty.
        notes: long texts below the table, such as signatures.
        label: for \\ref in LaTeX; empty: none.
        has_texts: whether it holds words of reports, or ids of studies, which a page without
            texts leaves out.

    >>> print(TextTable("T", ("metric", "mean"), (("bleu-4", "0.11"),)).text())
    T
    metric  mean
    bleu-4  0.11
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""
    best: tuple[tuple[int, int], ...] = ()
    signs: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()
    label: str = ""
    has_texts: bool = False

    def text(self, width: int = 80) -> str:
        """Return aligned text; columns that do not fit follow below, after the names of rows."""
        rows = self._padded("*") if self.best or self.signs else (self.columns, *self.rows)
        shown = [[printable(text, one_line=True) for text in r] for r in rows]
        blocks = ["\n".join(_aligned(shown, columns)) for columns in _blocks(shown, width)]
        body = "\n\n".join(blocks)
        caption = self._caption("*")
        below = []
        if caption:
            text = printable(caption)
            below = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
        return "\n".join([*([printable(self.title)] if self.title else []), body, *below])

    def markdown(self) -> str:
        """Return Markdown, for README files and notes."""
        rows = [list(map(_safe, self.columns)), *self._cells(_safe, "**{}**", "<sup>{}</sup>")]
        lines = ["| " + " | ".join(text or " " for text in row) + " |" for row in rows]
        lines.insert(1, "| --- |" + " ---: |" * (len(self.columns) - 1))
        title = f"**{without_html(self.title)}**" if self.title else ""
        caption = without_html(self._caption("Bold"))
        notes = "\n".join(f"- `{_safe(note).replace('`', chr(39))}`" for note in self.notes)
        parts = (title, "\n".join(lines), caption, notes)
        return "\n\n".join(part for part in parts if part) + "\n"

    def latex(self) -> str:
        """Return LaTeX, for papers: one floating table with caption, over a column or the page.

        Columns are aligned to the right: numbers of one column have the same digits. It needs the
        packages booktabs and graphicx.
        """
        title, caption = self.title, self._caption("Bold")
        if title and caption:
            title = f"{title.rstrip('.')}."
        # No line ends within a name such as BLEU-4.
        caption = re.sub(
            r"(?<=[A-Za-z])-(?=\d)", r"\\mbox{-}", escaped(f"{title} {caption}".strip())
        )
        columns = zip(self.columns, *self.rows, strict=True)
        width = sum(max(map(len, each)) + len(_GAP) for each in columns)
        kind = "table" if width <= COLUMN else "table*"
        cells = self._cells(escaped, r"\textbf{{{}}}", r"\textsuperscript{{{}}}")
        head, *rows = (" & ".join(row) + r" \\" for row in [map(escaped, self.columns), *cells])
        lines = [
            f"% {PREAMBLE}",
            rf"\begin{{{kind}}}",
            r"\centering",
            rf"\caption{{{caption}}}",
            *([rf"\label{{{self.label}}}"] if self.label else []),
            r"\vspace{4pt}",
            r"\footnotesize",
            r"\setlength{\tabcolsep}{3pt}",
            *([r"\resizebox{\linewidth}{!}{%"] if width > PAGE else []),
            rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}",
            r"\toprule",
            head,
            r"\midrule",
            # LaTeX would read a bracket after the end of a row as the space between two rows.
            *("{}" + row if row.startswith("[") else row for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
            *(["}"] if width > PAGE else []),
        ]
        if self.notes:
            lines += [
                "",
                r"\smallskip",
                r"\begin{minipage}{\linewidth}",
                r"\scriptsize\raggedright",
            ]
            lines += [rf"\texttt{{{breakable(note)}}}\par" for note in self.notes]
            lines += [r"\end{minipage}"]
        return "\n".join([*lines, rf"\end{{{kind}}}", ""])

    def _cells(self, safe: Callable[[str], str], best: str, sign: str) -> list[list[str]]:
        """Return the cells in a format: made safe by a function, marked by two templates."""
        cells = [list(map(safe, row)) for row in self.rows]
        for row, column in set(self.best):
            cells[row][column] = best.format(cells[row][column])
        for row, signs in enumerate(self.signs):
            for column, text in enumerate(signs):
                cells[row][column] += sign.format(safe(text)) if text else ""
        return cells

    def _caption(self, best: str) -> str:
        """Return the caption, with sentences about best cells and about absent intervals."""
        lacking = any(NO_INTERVAL in cell for row in self.rows for cell in row)
        parts = (f"{best}: best." if self.best else "", self.caption, _WHY_NONE if lacking else "")
        return " ".join(filter(None, parts))

    def _padded(self, best: str) -> list[list[str]]:
        """Return headings and cells as text; what follows the numbers has one width."""
        signs = [
            [(best if (r, c) in self.best else "") + sign for c, sign in enumerate(row)]
            for r, row in enumerate(self.signs or [[""] * len(self.columns)] * len(self.rows))
        ]
        widths = [max((len(row[c]) for row in signs), default=0) for c in range(len(self.columns))]
        return [
            [heading + " " * width for heading, width in zip(self.columns, widths, strict=True)],
            *(
                [cell + f"{s:<{w}}" for cell, s, w in zip(row, own, widths, strict=True)]
                for row, own in zip(self.rows, signs, strict=True)
            ),
        ]


def text_table(
    title: str,
    rows: "Iterable[Mapping[Any, Any]] | pandas.DataFrame",
    caption: str = "",
    *,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    digits: int = 3,
) -> TextTable:
    """Return a frame, or records, as they are printed: intervals in one cell, rounded numbers.

    The columns x, x.low and x.high become one cell; columns called p, p_value or adjusted_p are p
    values.

    Args:
        columns: columns that are printed, with their headings where these differ from their
            names; default: all. A column that the rows lack is not printed.
        digits: of numbers that are no integers.

    >>> text_table("T", [{"metric": "bleu-4", "mean": 0.1234, "n": 3}], digits=2).rows
    (('bleu-4', '0.12', '3'),)
    """
    records = list(rows.to_dict("records") if hasattr(rows, "to_dict") else rows)
    known = rows.columns if hasattr(rows, "columns") else records[0] if records else ()
    if columns is None:
        bounds = {f"{name}.{bound}" for name in known for bound in ("low", "high")}
        columns = [name for name in known if name not in bounds]
    headings = columns if isinstance(columns, Mapping) else {name: str(name) for name in columns}
    shown = {name: heading for name, heading in headings.items() if name in known}
    printed = [tuple(_cell(record, name, digits) for name in shown) for record in records]
    return TextTable(title, tuple(shown.values()), tuple(printed), caption)


def _cell(record: Mapping[Any, Any], name: Any, digits: int) -> str:
    value = record[name]
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, float):
        return str(value)
    is_p = str(name).split(".")[-1] in _P_VALUES or str(name).startswith("adjusted_p")
    if is_p and value == value:
        return p_value(value)
    low, high = (record.get(f"{name}.{bound}") for bound in ("low", "high"))
    if low is None or high is None:
        return number(value, digits)
    return interval(Interval(value, low, high), digits)


def interval_cells(rows: "pandas.DataFrame", name: str, digits: int = 3) -> list[str]:
    """Return the estimates in the columns x, x.low and x.high with their intervals, as text.

    Without the columns of bounds, they are numbers alone.
    """
    if f"{name}.low" not in rows:
        return [number(value, digits) for value in rows[name].astype(float)]
    columns = (rows[f"{name}{bound}"].astype(float) for bound in ("", ".low", ".high"))
    return [interval(Interval(*each), digits) for each in zip(*columns, strict=True)]


def crossed(
    rows: "pandas.DataFrame", index: str | list[str], columns: str, cell: str
) -> "pandas.DataFrame":
    """Return the texts of a column as a table: rows and columns are named by other columns.

    Args:
        index: column, or columns, whose values name the rows, in the order of `rows`.
        columns: column whose values name the columns, in the order of `rows`.
        cell: column of texts; an absent one is "-".
    """
    wide = rows.pivot(index=index, columns=columns, values=cell)
    wide = wide.loc[rows.set_index(index).index.unique(), rows[columns].unique()]
    return wide.astype(object).where(wide.notna(), NOTHING).reset_index()


def markdown(tables: Iterable[TextTable], notes: Iterable[str] = ()) -> str:
    """Return several tables, and notes such as signatures, as one Markdown text."""
    parts = [table.markdown() for table in tables]
    listed = "\n".join(f"- `{printable(n, one_line=True).replace('`', chr(39))}`" for n in notes)
    return "\n".join([*parts, *([listed + "\n"] if listed else [])])


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
            f"{row[k]:<{widths[k]}}" if number == 0 else f"{row[k]:>{widths[k]}}"
            for number, k in enumerate(columns)
        ).rstrip()
        for row in rows
    ]


def _safe(text: str) -> str:
    return without_html(printable(text, one_line=True)).replace("|", "\\|")


DEMONSTRATION = "Made with the demonstration encoder: no statement about real radiographs."


def is_demonstration(signatures: Iterable[object]) -> bool:
    """Return True if one of these signatures names the demonstration encoder."""
    return any("DEMONSTRATION" in str(signature) for signature in signatures)


def with_demonstration(note: str, signatures: Iterable[object]) -> str:
    """Return the note of a figure, with a mark if a signature names the demonstration encoder."""
    return " ".join(filter(None, (note, DEMONSTRATION if is_demonstration(signatures) else "")))


def with_demonstration_note(
    tables: Iterable[TextTable], signatures: Collection[object]
) -> list[TextTable]:
    """Return the tables, with a caption if a signature names the demonstration encoder.

    In LaTeX a signature is in a comment, which a printed page does not show.
    """
    if not is_demonstration(signatures):
        return list(tables)
    return [replace(t, caption=f"{t.caption} {DEMONSTRATION}".strip()) for t in tables]
