"""No digit of a table is lost on any terminal; numbers are never shown as what they are not."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlscore.stats import Interval, TextTable, interval, markdown, number, p_value

CELLS = tuple(f"0.{k}23 [0.{k}00, 0.{k}99]" for k in range(8))
COLUMNS = ("metric", *(f"column {k}" for k in range(8)))


@pytest.fixture
def table():
    rows = (("vlscore", *CELLS), ("bleu-4(smoothing=exp)", *reversed(CELLS)))
    return TextTable("Table 2. Removed sentences", COLUMNS, rows, "Δ: a difference. " * 12)


@pytest.mark.parametrize("width", [20, 60, 80, 118, 400])
def test_nothing_is_cut_and_every_line_fits_where_it_can(table, width):
    shown = table.text(width)
    for row in table.rows:
        for cell in row:
            assert cell in shown
    for column in table.columns:
        assert column in shown
    # Two columns stand beside each other at least, so that a row has its name.
    widest = max(map(len, (row[0] for row in table.rows))) + 2 + max(map(len, CELLS))
    assert max(map(len, shown.splitlines())) <= max(width, widest)
    assert "…" not in shown
    assert shown.splitlines()[0] == table.title
    assert not any(line != line.rstrip() for line in shown.splitlines())


def test_what_does_not_fit_stands_below_beside_the_names_again(table):
    wide, narrow = table.text(400), table.text(60)
    assert wide.count("vlscore") == 1
    blocks = narrow.split("\n\n")
    assert len(blocks) == narrow.count("vlscore") > 1
    # Cells keep their column: the k-th number of a row stands under the k-th heading.
    pairs = []
    for block in blocks:
        heads = next(
            cells
            for cells in (re.split(r" {2,}", line) for line in block.splitlines())
            if cells[0] == "metric"
        )
        line = next(line for line in block.splitlines() if line.startswith("vlscore"))
        pairs += list(zip(heads[1:], re.split(r" {2,}", line)[1:], strict=True))
    assert pairs == list(zip(COLUMNS[1:], CELLS, strict=True))


words = st.text(
    st.characters(blacklist_categories=("Cs", "Cc", "Cf", "Zl", "Zp", "Zs")), min_size=1, max_size=9
)


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.tuples(
            st.tuples(*[words] * n), st.lists(st.tuples(*[words] * n), min_size=1, max_size=4)
        )
    ),
    st.integers(5, 100),
)
def test_every_cell_of_every_table_is_there(content, width):
    columns, rows = content
    table = TextTable("", columns, tuple(rows))
    shown = table.text(width)
    for cells in (columns, *rows):
        assert all(cell in shown for cell in cells)


def test_markdown_has_a_row_a_line(table):
    text = markdown([table, table], ["signature|C:1"])
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    assert len(rows) == 8
    assert rows[:4] == rows[4:]
    assert rows[0] == list(COLUMNS)
    assert all(set(cell) <= set("-: ") for cell in rows[1])
    assert rows[2] == ["vlscore", *CELLS]
    assert text.count("Δ: a difference.") == 24
    assert text.count("**Table 2. Removed sentences**") == 2
    assert "- `signature|C:1`" in text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Interval(0.5, 0.4, 0.6), "0.500 [0.400, 0.600]"),
        (Interval(0.5, float("nan"), float("nan")), "0.500 [-]"),
        (Interval(float("nan"), float("nan"), float("nan")), "-"),
        (None, "-"),
    ],
)
def test_intervals(value, shown):
    assert interval(value) == shown


def test_numbers_and_p_values():
    assert (number(0.12345, 4), number(float("nan")), number(None)) == ("0.1235", "-", "-")
    assert (p_value(0.0), p_value(0.0009), p_value(0.001), p_value(float("nan"))) == (
        "< 0.001",
        "< 0.001",
        "0.001",
        "-",
    )


def test_every_block_of_a_wide_table_has_the_columns_that_tell_its_rows_apart():
    rows = tuple((m, k, *CELLS[:4]) for m in ("vlscore", "bleu-4") for k in ("image", "text"))
    shown = TextTable("", ("metric", "kind", *(f"column {k}" for k in range(4))), rows).text(60)
    blocks = shown.split("\n\n")
    assert len(blocks) > 1
    for block in blocks:
        names = [line.split()[:2] for line in block.splitlines()]
        assert names == [["metric", "kind"], *(list(row[:2]) for row in rows)]
    # Where their names are too wide, or rows are equal, the first column alone is repeated.
    for name, kinds in (("x" * 30, ("image", "text")), ("vlscore", ("image", "image"))):
        rows = tuple((name, kind, *CELLS[:4]) for kind in kinds)
        again = TextTable("", ("metric", "kind", *"abcd"), rows).text(60)
        assert len(again.split("\n\n")) > 1
        assert all(block.split()[0] == "metric" for block in again.split("\n\n"))
        assert again.count("kind") == 1
