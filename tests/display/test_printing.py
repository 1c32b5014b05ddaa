"""No digit of a table is lost, on whatever terminal."""

import io

import pytest
from rich.console import Console
from rich.table import Table

from vlscore.display.printing import markdown, print_table

CELLS = [f"0.{k}23 [0.{k}00, 0.{k}99]" for k in range(8)]


@pytest.fixture
def table():
    made = Table(title="Table 2. Removed sentences", caption="Δ: a difference. " * 12)
    made.add_column("metric", no_wrap=True)
    for k in range(len(CELLS)):
        made.add_column(f"column {k}", justify="right")
    made.add_row("vlscore", *CELLS)
    made.add_row("bleu-4(smoothing=exp)", *reversed(CELLS))
    return made


@pytest.mark.parametrize("width", [20, 80, 400])
def test_every_cell_stands_on_one_line(table, width):
    stream = io.StringIO()
    console = Console(file=stream, width=width)
    print_table(table, console)
    (line,) = (line for line in stream.getvalue().splitlines() if "vlscore" in line)
    assert all(cell in line for cell in CELLS)
    assert "…" not in stream.getvalue()
    assert console.width == width


def test_markdown_has_a_row_a_line(table):
    text = markdown([table, table])
    lines = text.splitlines()
    assert lines[0] == "Table 2. Removed sentences"
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    ]
    assert len(rows) == 8
    assert rows[:4] == rows[4:]
    assert rows[0] == ["metric", *(f"column {k}" for k in range(8))]
    assert all(set(cell) <= set("-:") and len(cell) >= 3 for cell in rows[1])
    assert rows[2] == ["vlscore", *CELLS]
    assert text.count("Δ: a difference.") == 24
    assert table.title == "Table 2. Removed sentences"
