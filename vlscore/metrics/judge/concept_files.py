"""Small csv files of a run."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from vlscore.data import BadRow


def csv_of(rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as csv text with one line end for all systems."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()


def failed_rows(path: Path) -> list[BadRow]:
    """Return the rows that a file of failures lists."""
    with path.open(encoding="utf-8", newline="") as stream:
        return [
            BadRow(int(record["row"]), record["id"] or None, record["error"])
            for record in csv.DictReader(stream)
        ]
