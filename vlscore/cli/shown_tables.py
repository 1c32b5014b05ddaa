"""Tables of results on a terminal: a screen of them, named as papers name metrics."""

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from vlscore.cli.output import echo, terminal_width

if TYPE_CHECKING:
    from vlscore.stats import TextTable

# Lines of results that a command prints at most, unless its first table is longer.
SCREEN = 40


def show_tables(
    tables: "Iterable[TextTable]", signatures: Iterable[str], folder: Path, rest: str
) -> None:
    """Print the first table, and what else fits on a screen; name the file with the rest.

    Args:
        tables: the most important one first.
        signatures: what the numbers depend on.
        rest: file in the folder with all tables and signatures.
    """
    texts = [table.text(terminal_width()) + "\n" for table in tables]
    signed = "\n".join(signatures)
    shown, room = 0, SCREEN
    for text in texts:
        room -= text.count("\n") + 1
        if shown and room < 0:
            break
        echo(text)
        shown += 1
    more = []
    if left := len(texts) - shown:
        more.append(f"{left} more {'tables' if left > 1 else 'table'}")
    if signed and room > signed.count("\n"):
        echo(signed)
    elif signed:
        more.append("the signatures")
    echo(f"wrote {folder}")
    if more:
        echo(f"{' and '.join(more)}: {folder / rest}")


def named_as_in_papers(table: "TextTable") -> "TextTable":
    """Return the table with the papers' names of metrics, as tables.md has it."""
    from vlscore.metrics import named_as_in_papers as named  # loads the registry of metrics

    return named(table)


def without_intervals(table: "TextTable", but: str = "") -> "TextTable":
    """Return the table with the estimates alone: "0.35 [0.26, 0.44]" becomes "0.35".

    Args: but: heading of a column that retains its intervals.
    """
    rows = tuple(
        tuple(
            cell if heading == but else re.sub(r" \[[^\[\]]*\]", "", cell)
            for heading, cell in zip(table.columns, row, strict=True)
        )
        for row in table.rows
    )
    return dataclasses.replace(table, rows=rows)


def fitting(table: "TextTable") -> "TextTable":
    """Return the table with rows and columns exchanged where only that fits the terminal."""
    columns = [table.columns, *table.rows]
    widths = [max(map(len, cells)) + 2 for cells in zip(*columns, strict=True)]
    if sum(widths) <= terminal_width() or len(table.rows) >= len(table.columns):
        return table
    (first, *names), *rows = zip(*columns, strict=True)
    return dataclasses.replace(table, columns=(first, *names), rows=tuple(rows), best=(), signs=())
