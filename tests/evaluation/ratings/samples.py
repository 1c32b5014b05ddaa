"""Sheets of reading studies for tests."""

import csv
from pathlib import Path

from vlscore.evaluation import SheetSettings, ratings_make
from vlscore.stats import Result


def make_sheets(sources, out: Path, *, studies=None, format=("csv",), **settings) -> Result:
    """Sheets as csv; other options are settings."""
    return ratings_make(sources, out, SheetSettings(format=format, **settings), studies=studies)


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))
