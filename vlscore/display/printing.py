"""Tables as they are printed and pasted: with every digit, however narrow the terminal."""

import io
from collections.abc import Iterable
from copy import copy

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

_WIDEST = 10_000


def print_table(table: Table, console: Console | None = None) -> None:
    """Print as wide as the table needs; a narrower terminal wraps the lines and loses nothing."""
    console = console or Console()
    width = console.width
    console.width = max(width, _width(table, console))
    console.print(table)
    console.width = width


def markdown(tables: Iterable[Table]) -> str:
    """The tables as Markdown, each with its title above and its caption below."""
    stream = io.StringIO()
    console = Console(file=stream, width=_WIDEST, color_system=None)
    for table in tables:
        bare = copy(table)
        bare.title = bare.caption = None
        bare.box = box.MARKDOWN
        parts = (str(table.title or ""), _drawn(bare, console), str(table.caption or ""))
        stream.write("\n\n".join(part for part in parts if part) + "\n\n")
    return stream.getvalue().rstrip() + "\n"


def _drawn(table: Table, console: Console) -> str:
    with console.capture() as captured:
        console.print(table)
    lines = (line.strip() for line in captured.get().splitlines())
    return "\n".join(line for line in lines if line)


def _width(table: Table, console: Console) -> int:
    return Measurement.get(console, console.options.update(max_width=_WIDEST), table).maximum
