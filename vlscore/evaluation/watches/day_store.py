"""Store of a watch: one parquet file a day, which is there whole or not at all.

A row is a report: its number in the table of its day, its values, and those columns of the table
that the user asked for. The file's metadata has the sums of the day, so that a course of years is
read without the rows.
"""

import json
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vlscore.core import atomic_write, from_plain, plain
from vlscore.errors import ChecksumMismatch, InvalidSetting

if TYPE_CHECKING:
    import pandas

#: Groups of streams, each with an equal share of the false alarms.
ERRORS, SCORES, FINDINGS = "errors", "scores", "findings"
DAYS = "days"
_FACTS = b"vlscore"


class Stream(NamedTuple):
    """A value of every report that is watched.

    Attributes:
        name: column of the stored rows.
        group: errors, scores or findings.
        direction: 1 where only a rise gives an alarm, -1 where only a fall does, 0 for both.
    """

    name: str
    group: str
    direction: int


@dataclass(frozen=True)
class StoredDay:
    """One day of a store.

    Attributes:
        day: as in 2026-03-01.
        number: of the day in the order in which days were added, from 1.
        period: number of the reference period that it belongs to, from 1.
        key: what the values depend on: metrics, encoder, settings.
        digest: sha256 of what was read: ids, reports, image files.
        reports: rows of its table.
        references: of these, with a reference.
        streams: name -> [reports with a value, sum of the values].
        failures: [row, reason] of what lacks a value; no reason names a study.
    """

    day: str
    number: int
    period: int
    key: dict[str, Any]
    digest: str
    reports: int
    references: int
    streams: dict[str, list[float]]
    failures: list[list[str]]


def read_days(store: str | Path) -> list[StoredDay]:
    """Return the days of a store in the order in which they were added.

    Raises: ChecksumMismatch for a file that no watch wrote.
    """
    found = [_read(path) for path in sorted(Path(store, DAYS).glob("*.parquet"))]
    return sorted(found, key=lambda each: each.number)


def _read(path: Path) -> StoredDay:
    import pyarrow
    import pyarrow.parquet

    try:
        metadata = pyarrow.parquet.read_schema(path).metadata or {}
        day: StoredDay = from_plain(StoredDay, json.loads(metadata[_FACTS]))
        if path.stem == date.fromisoformat(day.day).isoformat():
            return day
    except (OSError, ValueError, KeyError, TypeError, OverflowError, pyarrow.ArrowException):
        pass
    raise ChecksumMismatch(
        f"{path} is damaged, or no file of a watch: bring it back from a copy, or remove it and "
        "give this day again"
    )


def write_day(store: Path, day: StoredDay, rows: "pandas.DataFrame") -> None:
    """Add a day, or replace it, at once."""
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.Table.from_pandas(rows, preserve_index=False)
    facts = json.dumps(plain(asdict(day)), allow_nan=False).encode()
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), _FACTS: facts})
    with atomic_write(store / DAYS / f"{day.day}.parquet", "wb") as stream:
        pyarrow.parquet.write_table(table, stream)


def watched_rows(store: str | Path) -> "pandas.DataFrame":
    """Return the values of every report of a store: day, row, one column a value.

    Raises: InvalidSetting where there is no day.
    """
    import pandas

    days = sorted(day.day for day in read_days(store))
    if not days:
        raise InvalidSetting(f"{store} holds no day: name the --out of `vlscore watch`")
    parts = [pandas.read_parquet(Path(store, DAYS, f"{day}.parquet")) for day in days]
    return pandas.concat(parts, keys=days, names=["day", ""]).reset_index("day")


def day_of(path: Path, given: str | None = None) -> str:
    """Return the day of a table or folder: the one that is given, else the date in its name.

    Raises: InvalidSetting where neither is a date.
    """
    text = path.name[:10] if given is None else given
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise InvalidSetting(
            f"{path}: which day is it? Write 2026-03-01={path.name}, or begin the name of the "
            f"table or folder with the date; {text!r} is none"
        ) from None
