"""Blinded sheets that raters fill in: their layout, and the ratings in them.

A folder holds one sheet a rater, `sheet-NAME.csv`, with one row an item: a reference, a report to
be judged, and a column of counts for each category of error and significance (Yu et al. 2023).
Which study an item is of, and who chose the report, is in `key.csv` alone.
"""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlscore._files import atomic_write
from vlscore.alignment.building import Builder, Pair, count_of, missing_columns, name_of
from vlscore.alignment.pairs import RatedPairs
from vlscore.alignment.rexval import CATEGORIES
from vlscore.errors import InvalidStudy, InvalidTable
from vlscore.studies import columns_of, read_rows
from vlscore.studies.cells import is_missing

KEY = "key.csv"
_SHEET, _SUFFIX = "sheet-", ".csv"
_ITEM = "item"
_KEY_COLUMNS = (_ITEM, "study_id", "candidate_id", "reference", "candidate")
# Column -> category and whether the errors matter clinically.
COUNTS = {
    f"{category}, {'significant' if significant else 'insignificant'}": (category, significant)
    for category in CATEGORIES.values()
    for significant in (True, False)
}


@dataclass(frozen=True)
class Item:
    """A report to be judged once, whoever chose it.

    Attributes:
        name: what raters see.
        study: id.
        candidates: what chose this report for the study, at least one.
        reference, text: the reports.
    """

    name: str
    study: str
    candidates: tuple[str, ...]
    reference: str
    text: str

    @property
    def pairs(self) -> list[Pair]:
        """(study, candidate) of everyone who chose the report."""
        return [(self.study, candidate) for candidate in self.candidates]


def sheet_name(rater: str) -> str:
    """Name of a rater's sheet."""
    return f"{_SHEET}{rater}{_SUFFIX}"


def write_sheet(path: Path, items: Iterable[Item]) -> None:
    """Write an empty sheet; nothing in it tells who chose a report."""
    with atomic_write(path) as stream:
        writer = csv.writer(stream)
        writer.writerow([_ITEM, "reference", "candidate", *COUNTS])
        for item in items:
            writer.writerow([item.name, item.reference, item.text, *[""] * len(COUNTS)])


def write_key(path: Path, items: Iterable[Item]) -> None:
    """Write what the items are."""
    with atomic_write(path) as stream:
        writer = csv.writer(stream)
        writer.writerow(_KEY_COLUMNS)
        for item in items:
            for candidate in item.candidates:
                writer.writerow([item.name, item.study, candidate, item.reference, item.text])


def read_sheets(folder: str | Path) -> RatedPairs:
    """The ratings of a folder of sheets, unblinded by its key.

    A row whose counts are all empty is not rated yet; where some are filled in, an empty one is 0.
    Reports are read from the key: a program for tables may have changed those in a sheet.

    Raises: InvalidTable where there is no sheet, a file lacks columns, or nothing is rated. A row
    that cannot be used is in `bad`, with the name of its sheet.
    """
    folder = Path(folder)
    items = _read_key(folder / KEY)
    sheets = sorted(folder.glob(f"{_SHEET}*{_SUFFIX}"))
    if not sheets:
        raise InvalidTable(f"{folder}: has {KEY}, and no sheet: {_SHEET}NAME{_SUFFIX}, one a rater")
    builder = Builder((folder / KEY, *sheets))
    for path in sheets:
        rater = path.name.removeprefix(_SHEET).removesuffix(_SUFFIX)
        rated = _read_sheet(builder, path, rater, items)
        if rated < len(items):
            builder.notes.append(f"{path.name}: {rated} of {len(items)} reports are rated")
    return builder.build()


def _read_key(path: Path) -> dict[str, Item]:
    missing_columns(path, columns_of(path), _KEY_COLUMNS)
    found: dict[str, Item] = {}
    for number, record in read_rows(path):
        if isinstance(record, str):
            raise InvalidTable(f"{path}, row {number}: {record}")
        try:
            name, study, candidate = (name_of(record[c], c) for c in _KEY_COLUMNS[:3])
        except InvalidStudy as error:
            raise InvalidTable(f"{path}, row {number}: {error}") from None
        earlier = found[name].candidates if name in found else ()
        reports = (str(record["reference"] or ""), str(record["candidate"] or ""))
        found[name] = Item(name, study, (*earlier, candidate), *reports)
    return found


def _read_sheet(builder: Builder, path: Path, rater: str, items: dict[str, Item]) -> int:
    """Give the ratings of one sheet to the builder; returns how many reports are rated."""
    missing_columns(path, columns_of(path), (_ITEM, *COUNTS))
    rated: set[str] = set()
    for number, record in read_rows(path):
        if isinstance(record, str):
            builder.refuse(number, f"{path.name}: {record}")
            continue
        pairs: Sequence[Pair] = ()
        try:
            name = name_of(record[_ITEM], _ITEM)
            if name not in items:
                raise InvalidStudy(f'column "{_ITEM}" holds {name!r}, which is not in {KEY}')
            if all(is_missing(record[column]) for column in COUNTS):
                continue
            pairs = items[name].pairs
            _add(builder, items[name], rater, record)
            rated.add(name)
        except InvalidStudy as error:
            for pair in pairs or (None,):
                builder.refuse(number, f"{path.name}: {error}", pair, rater)
    return len(rated)


def _add(builder: Builder, item: Item, rater: str, record: dict[str, Any]) -> None:
    for pair in item.pairs:
        builder.add_pair(pair, item.reference, item.text)
        for column, (category, significant) in COUNTS.items():
            count = 0.0 if is_missing(record[column]) else count_of(record[column], column)
            builder.add_count(pair, rater, category, significant, count)
