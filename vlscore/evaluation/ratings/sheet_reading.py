"""Filled-in sheets of a reading study: what the raters answered, checked row by row."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vlscore.core import file_digest, finished_run, with_noun
from vlscore.data import is_missing, name_of, read_rows
from vlscore.errors import Failure, InvalidStudy, InvalidTable
from vlscore.evaluation.alignment.rated_pairs import RatedPairs
from vlscore.evaluation.alignment.rating_rows import (
    RatingRow,
    Record,
    rated_pairs,
    rating_rows,
    require_columns,
)
from vlscore.evaluation.ratings.questions import (
    COUNTS,
    DIMENSIONS,
    ERRORS,
    PREFERENCES,
    PREFERRED,
    Question,
)
from vlscore.evaluation.ratings.rater_agreement import preferences_of
from vlscore.evaluation.ratings.sheet_files import (
    CSV,
    ITEM,
    KEY,
    QUESTIONS,
    SHEET,
    SheetItem,
    read_key,
    read_questions,
)

if TYPE_CHECKING:
    from pandas import DataFrame

RANK = "preference rank"


def read_sheets(folder: str | Path) -> "tuple[RatedPairs, DataFrame, list[dict[str, Any]]]":
    """Read the sheets that raters filled in; the key of the folder names the system of each item.

    A row without an answer is not rated yet. In any other row, an empty number of errors is 0, and
    an empty rating of a dimension is missing. Reports are read from the key, because a program for
    tables may have changed those in a sheet.

    Returns: ratings of the reports, of preferences each system's rank in its study; the
        comparisons, as `preferences_of` returns them, none where reports were rated one by one; and
        a record a sheet: sheet, answered, asked (numbers of items).
    Raises: InvalidTable where there is no sheet, a file lacks columns, or nothing is rated. A row
        that cannot be used is in `bad` of the ratings, with the name of its sheet.
    """
    folder = Path(folder)
    if not all((folder / name).is_file() for name in (KEY, QUESTIONS)):
        raise InvalidTable(f"{folder}: no folder of `vlscore ratings make`, with {KEY}")
    made = finished_run(folder)
    if made is not None and made.digests.get(KEY) not in (None, file_digest(folder / KEY)):
        raise InvalidTable(
            f"{folder / KEY} has been changed since the sheets were made, so that answers may "
            "count for another system; restore it"
        )
    items, questions = read_key(folder / KEY), read_questions(folder)
    asks = {question.ask for question in questions}
    compares = PREFERENCES in asks
    paths = sorted(folder.glob(f"{SHEET}*{CSV}"))
    if not paths:
        raise InvalidTable(
            f"{folder}: has {KEY}, and no sheet: {SHEET}NAME{CSV}, one a rater. A page saves "
            "such a file; put it into the folder"
        )
    rows: list[RatingRow] = []
    bad: list[Failure] = []
    notes: list[str] = []
    sheets = []
    for path in paths:
        rater = path.stem.removeprefix(SHEET)
        own = _read_sheet(path, rater, items, questions)
        for row in own:
            if row.reason is not None and (compares or row.pair is None):
                bad.append(Failure(row.number, "", row.reason))
            elif row.reason is not None or _is_answered(row):
                rows.append(row)
        asked = [name for name, each in items.items() if rater in each.raters]
        there = {row.pair[1] for row in own if row.pair is not None}
        if not asked:
            notes.append(
                f"{path.name}: no sheet was made for a rater {rater!r}; it is read as that rater's"
            )
            asked = sorted(there)
        for name in sorted(set(asked) - there):
            reason = f"{path.name}: has no row for {name!r}, which this rater was asked about"
            bad.append(Failure(0, "", reason))
        answered = sum(map(_is_answered, own))
        sheets.append({"sheet": path.name, "answered": answered, "asked": len(asked)})
        if answered < len(asked):
            what = "comparisons" if compares else "reports"
            notes.append(f"{path.name}: {answered} of {len(asked)} {what} are rated")
    preferences = _preferences(rows if compares else [], items)
    if compares:
        rows, further = _ranks(preferences, items)
        notes += further
    else:
        # Systems with equal reports have equal ratings.
        rows = [
            replace(row, pair=(item.study, system), reference=item.reference, text=text)
            for row in rows
            for item in [items[(row.pair or ("", ""))[1]]]
            for text, systems in item.reports.items()
            for system in systems
        ]
    pairs = rated_pairs(
        rows,
        [folder / KEY, *paths],
        meaning="ranks" if compares else "errors" if ERRORS in asks else "quality",
        qualities=[each.name for each in questions if each.ask == DIMENSIONS],
        notes=notes,
        bad=bad,
    )
    return pairs, preferences, sheets


def _read_sheet(
    path: Path, rater: str, items: Mapping[str, SheetItem], questions: Sequence[Question]
) -> list[RatingRow]:
    """Return the rows of a sheet; a row's pair is study and item, where it names one."""
    require_columns(path, (ITEM, *(question.name for question in questions)))
    read: set[str] = set()

    def read_record(row: RatingRow, record: Record) -> None:
        row.rater = rater
        name = name_of(record.get(ITEM), ITEM)
        if name not in items:
            raise InvalidStudy(f'column "{ITEM}" holds {name!r}, which is not in {KEY}')
        if name in read:
            raise InvalidStudy(f'column "{ITEM}" holds {name!r}, which has an earlier row')
        read.add(name)
        row.pair = items[name].study, name
        if all(is_missing(record.get(question.name)) for question in questions):
            return
        values = [question.value(record.get(question.name)) for question in questions]
        for question, value in zip(questions, values, strict=True):
            if question.ask == ERRORS:
                row.counts[COUNTS[question.name]] = value or 0.0
            elif value is None:
                raise InvalidStudy(f'column "{question.name}" is empty; the row is filled in part')
            else:
                row.scores[question.name] = value

    return rating_rows(read_rows(path), read_record, f"{path.name}: ")


def _is_answered(row: RatingRow) -> bool:
    return row.reason is None and bool(row.scores or row.counts)


def _preferences(rows: Sequence[RatingRow], items: Mapping[str, SheetItem]) -> "DataFrame":
    """Return the answers to comparisons, in one order of the names, whichever report was A."""
    return preferences_of(
        (study, row.rater, *min(names, names[::-1]), sign * int(row.scores[PREFERRED] or 0), k > 0)
        for row in rows
        for study, name in [row.pair or ("", "")]
        for k, names in enumerate(_couples(items[name]))
        for sign in [1 if names[0] < names[1] else -1]
    )


def _ranks(
    preferences: "DataFrame", items: Mapping[str, SheetItem]
) -> tuple[list[RatingRow], list[str]]:
    """Return the rank of each system, for each study and rater; 1 is the best, ties share a rank.

    A rater's ranks of a study need all comparisons of the study; a note counts those without.
    """
    asked: dict[str, set[tuple[str, ...]]] = {}
    texts: dict[tuple[str, str], tuple[str, str]] = {}
    for item in items.values():
        asked.setdefault(item.study, set()).update(tuple(sorted(c)) for c in _couples(item))
        for text, systems in item.reports.items():
            texts |= {(item.study, name): (item.reference, text) for name in systems}
    rows, incomplete = [], 0
    for (rater, study), own in preferences.groupby(["rater", "study"], sort=False):
        own = own.drop_duplicates(["first", "second"], keep="last")
        if len(own) < len(asked[study]):
            incomplete += 1
            continue
        wins = own.groupby("first")["answer"].sum()
        points = wins.sub(own.groupby("second")["answer"].sum(), fill_value=0)
        for system, rank in points.rank(ascending=False).items():
            pair = study, str(system)
            rows.append(RatingRow(0, pair, rater, *texts[pair], scores={RANK: float(rank)}))
    if not incomplete:
        return rows, []
    return rows, [
        f"{with_noun(incomplete, 'time')} a rater compared only some reports of a study; such a "
        "study has no ranks of that rater, its comparisons count"
    ]


def _couples(item: SheetItem) -> Iterator[tuple[str, ...]]:
    """Yield the systems that a comparison is of: several where systems have equal reports."""
    return product(*map(sorted, item.systems))
