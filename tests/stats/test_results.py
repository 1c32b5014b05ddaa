"""A result is written once, and read again as it was computed."""

import json
import math

import pandas as pd
import pytest

from vlscore.core import frame
from vlscore.errors import Failure
from vlscore.stats import (
    PRESENTATIONS,
    Content,
    Interval,
    Presentation,
    Result,
    text_table,
)

KEY = {"command": "tested", "seed": 0}
RECORDS = [
    {"metric": "bleu-4", "mean": Interval(0.123456, 0.1, 0.2), "p": 0.0001, "n": 3},
    {"metric": "rouge-l", "mean": Interval(math.nan, math.nan, math.nan), "p": math.nan, "n": 0},
]


def compute(path):
    (path / "figure.svg").write_text("<svg/>")
    return Content(
        {"means": frame(RECORDS)},
        {"values.csv": pd.DataFrame({"id": ["=1+1", "b"], "bleu-4": [0.1, math.nan]})},
        [Failure(1, "=s", "s.png: no such file"), Failure("ours", "", "too short")],
        {"bleu-4": "bleu-4|v:1"},
        ["Two rows failed."],
        {"encoder": None},
    )


def tables_of(result):
    return [text_table("Means", result.frames["means"], "All.")]


@pytest.fixture
def result(tmp_path):
    PRESENTATIONS.register(Presentation(tables_of), "tested")
    yield Result.make(tmp_path / "run", KEY, compute)
    PRESENTATIONS.unregister("tested")


def test_numbers_come_back_in_full_precision(result):
    back = result.frame("means")
    assert list(back.columns) == ["metric", "mean", "mean.low", "mean.high", "p", "n"]
    assert back["mean"][0] == 0.123456
    assert math.isnan(back["mean"][1])
    assert back.attrs["signatures"] == {"bleu-4": "bleu-4|v:1"}


def test_a_printed_table_has_intervals_in_one_cell(result):
    assert result.tables[0].rows == (
        ("bleu-4", "0.123 [0.100, 0.200]", "< 0.001", "3"),
        ("rouge-l", "-", "-", "0"),
    )
    assert "0.123 [0.100, 0.200]" in (result.folder / "tables.md").read_text()
    assert "0.123" in (result.folder / "tables.tex").read_text()


def test_failed_rows_come_back_by_name(result):
    assert result.failures == [
        Failure(1, "=s", "s.png: no such file"),
        Failure("ours", "", "too short"),
    ]


def test_a_csv_holds_no_formula_and_no_nan(result):
    assert (result.folder / "values.csv").read_text() == "id,bleu-4\n'=1+1,0.1\nb,\n"


def test_a_finished_result_is_read_and_not_computed(result):
    def never(path):
        raise AssertionError

    again = Result.make(result.folder, KEY, never, notes=["a note of this call"])
    assert again.unchanged
    assert again.content == result.content
    assert "tables" not in result.content
    assert again.tables == result.tables
    assert again.notes == ("a note of this call", "Two rows failed.")
    assert set(json.loads((result.folder / "run.json").read_text())["results"]) == {
        "failures.csv",
        "figure.svg",
        "result.json",
        "tables.md",
        "tables.tex",
        "values.csv",
    }
