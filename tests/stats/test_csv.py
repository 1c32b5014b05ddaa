"""Tables as csv."""

import csv

from vlscore.stats import TextTable


def test_csv_holds_cells_that_a_program_reads_back():
    table = TextTable("T", ("metric", "n"), (('a, "b"', "-"), ("line\nbreak", "2")), "caption")
    rows = list(csv.reader(table.csv().splitlines(keepends=True)))
    assert rows == [["metric", "n"], ['a, "b"', ""], ["line\nbreak", "2"]]
