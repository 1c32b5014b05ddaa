"""Filled-in sheets of a reading study: what the raters answered, checked row by row."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vlscore.core import file_digest, finished_run
from vlscore.data import BadRow, columns_of, is_missing, name_of, read_rows
from vlscore.errors import InvalidStudy, InvalidTable
from vlscore.evaluation.alignment.rated_pairs import Meaning, RatedPairs, RatingRow, rated_pairs
from vlscore.evaluation.alignment.rated_sets import missing_columns
from vlscore.evaluation.ratings.questions import COUNTS, DIMENSIONS, ERRORS, PREFERENCES, Question
from vlscore.evaluation.ratings.rater_agreement import Preference
from vlscore.evaluation.ratings.sheet_files import (
    CSV,
    ITEM,
    KEY,
    SHEET,
    SheetItem,
    read_key,
    read_questions,
)

RANK = "preference rank"


@dataclass(frozen=True)
class FilledSheets:
    """Answers of the raters.

    Attributes:
        pairs: ratings of the reports; of preferences, each system's rank in its study.
        preferences: the comparisons; empty where reports were rated one by one.
        questions: questions that raters were asked.
        sheets: name of a sheet -> (items that are answered, items that were asked).
    """

    pairs: RatedPairs
    preferences: tuple[Preference, ...] = ()
    questions: tuple[Question, ...] = ()
    sheets: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def read_sheets(folder: str | Path) -> RatedPairs:
    """Return the ratings of a folder of sheets; see `read_filled`."""
    return read_filled(folder).pairs


def read_filled(folder: str | Path) -> FilledSheets:
    """Read the sheets of a folder; its key names the system of each item.

    A row without an answer is not rated yet. In any other row, an empty number of errors is 0, and
    an empty rating of a dimension is missing. Reports are read from the key, because a program for
    tables may have changed those in a sheet.

    Raises: InvalidTable where there is no sheet, a file lacks columns, or nothing is rated. A row
    that cannot be used is in `pairs.bad`, with the name of its sheet.
    """
    folder = Path(folder)
    made = finished_run(folder)
    if made is not None and made.digests.get(KEY) not in (None, file_digest(folder / KEY)):
        raise InvalidTable(
            f"{folder / KEY} has been changed since the sheets were made, so that answers may "
            "count for another system; restore it"
        )
    items, questions = read_key(folder / KEY), read_questions(folder)
    sheets = sorted(folder.glob(f"{SHEET}*{CSV}"))
    if not sheets:
        raise InvalidTable(
            f"{folder}: has {KEY}, and no sheet: {SHEET}NAME{CSV}, one a rater. A page saves such "
            "a file; put it into the folder"
        )
    reading = _Reading(items, questions)
    for path in sheets:
        reading.read(path)
    reading.add_ranks()
    pairs = rated_pairs(
        reading.rows,
        [folder / KEY, *sheets],
        meaning=_meaning(questions),
        qualities=[each.name for each in questions if each.ask == DIMENSIONS],
        notes=reading.notes,
        bad=reading.bad,
    )
    return FilledSheets(pairs, tuple(reading.preferences), tuple(questions), reading.counts)


def _meaning(questions: Sequence[Question]) -> Meaning:
    asks = {question.ask for question in questions}
    if PREFERENCES in asks:
        return "ranks"
    return "errors" if ERRORS in asks else "quality"


class _Reading:
    """Reader of all sheets: it collects ratings and preferences."""

    def __init__(self, items: Mapping[str, SheetItem], questions: Sequence[Question]) -> None:
        self._items, self._questions = items, questions
        self._compares = questions[0].ask == PREFERENCES
        self.rows: list[RatingRow] = []
        self.bad: list[BadRow] = []
        self.notes: list[str] = []
        self.preferences: list[Preference] = []
        self.counts: dict[str, tuple[int, int]] = {}

    def read(self, path: Path) -> None:
        """Read one sheet."""
        rater = path.stem.removeprefix(SHEET)
        missing_columns(path, columns_of(path), (ITEM, *(q.name for q in self._questions)))
        seen: set[str] = set()
        rated = 0
        for number, record in read_rows(path):
            item: SheetItem | None = None
            try:
                if isinstance(record, str):
                    raise InvalidStudy(record)
                item = self._item(record, seen)
                rated += self._take(item, rater, record)
            except InvalidStudy as error:
                self._refuse(number, f"{path.name}: {error}", item, rater)
        asked = [name for name, each in self._items.items() if rater in each.raters]
        if not asked:
            self.notes.append(
                f"{path.name}: no sheet was made for a rater {rater!r}; it is read as that rater's"
            )
            asked = sorted(seen)
        for name in sorted(set(asked) - seen):
            reason = f"{path.name}: has no row for {name!r}, which this rater was asked about"
            self.bad.append(BadRow(0, None, reason))
        self.counts[path.name] = (rated, len(asked))
        if rated < len(asked):
            what = "comparisons" if self._compares else "reports"
            self.notes.append(f"{path.name}: {rated} of {len(asked)} {what} are rated")

    def _item(self, record: Mapping[str, Any], seen: set[str]) -> SheetItem:
        name = name_of(record.get(ITEM), ITEM)
        if name not in self._items:
            raise InvalidStudy(f'column "{ITEM}" holds {name!r}, which is not in {KEY}')
        if name in seen:
            raise InvalidStudy(f'column "{ITEM}" holds {name!r}, which has an earlier row')
        seen.add(name)
        return self._items[name]

    def _take(self, item: SheetItem, rater: str, record: Mapping[str, Any]) -> bool:
        """Take the answers of a row; return whether there are any."""
        if all(is_missing(record.get(question.name)) for question in self._questions):
            return False
        values = {q.name: q.value(record.get(q.name)) for q in self._questions}
        for question in self._questions:
            if values[question.name] is None and question.ask != ERRORS:
                raise InvalidStudy(f'column "{question.name}" is empty; the row is filled in part')
        if self._compares:
            (answer,) = values.values()
            self._compare(item, rater, int(answer or 0))
            return True
        (report,) = item.reports
        for system in report.systems:
            row = RatingRow(0, (item.study, system), rater, item.reference, report.text)
            for question in self._questions:
                value = values[question.name]
                if question.ask == ERRORS:
                    row.counts[COUNTS[question.name]] = value or 0.0
                else:
                    row.scores[question.name] = value
            self.rows.append(row)
        return True

    def _refuse(self, number: int, reason: str, item: SheetItem | None, rater: str) -> None:
        """Note a row that cannot be used; of a single report it costs that report's rating."""
        if item is None or self._compares:
            self.bad.append(BadRow(number, None, reason))
            return
        for system in item.reports[0].systems:
            self.rows.append(RatingRow(number, (item.study, system), rater, reason=reason))

    def _compare(self, item: SheetItem, rater: str, answer: int) -> None:
        for k, (first, second) in enumerate(_couples(item)):
            # In one order of the names, whichever report was A.
            names, sign = ((first, second), 1) if first < second else ((second, first), -1)
            repeats = k > 0
            self.preferences.append(Preference(item.study, rater, *names, sign * answer, repeats))

    def add_ranks(self) -> None:
        """Add the rank of each system, for each study and rater; 1 is the best, ties share a rank.

        A rater's ranks of a study need all comparisons of the study.
        """
        import scipy.stats

        asked: dict[str, set[frozenset[str]]] = {}
        texts: dict[tuple[str, str], tuple[str, str]] = {}
        for item in self._items.values() if self._compares else ():
            asked.setdefault(item.study, set()).update(map(frozenset, _couples(item)))
            for report in item.reports:
                for system in report.systems:
                    texts[item.study, system] = item.reference, report.text
        answers: dict[tuple[str, str], dict[frozenset[str], Preference]] = {}
        for each in self.preferences:
            compared = answers.setdefault((each.rater, each.study), {})
            compared[frozenset((each.first, each.second))] = each
        incomplete = 0
        for (rater, study), compared in answers.items():
            if set(compared) != asked[study]:
                incomplete += 1
                continue
            points = dict.fromkeys(sorted(set().union(*compared)), 0)
            for each in compared.values():
                points[each.first] += each.answer
                points[each.second] -= each.answer
            ranks = scipy.stats.rankdata([-value for value in points.values()])
            for system, rank in zip(points, ranks.tolist(), strict=True):
                row = RatingRow(0, (study, system), rater, *texts[study, system])
                row.scores[RANK] = rank
                self.rows.append(row)
        if incomplete:
            self.notes.append(
                f"{incomplete} times a rater compared only some reports of a study; such a study "
                "has no ranks of that rater, its comparisons count"
            )


def _couples(item: SheetItem) -> Iterator[tuple[str, str]]:
    """Yield the systems that a comparison is of: several where systems have equal reports."""
    one, other = (sorted(report.systems) for report in item.reports)
    for first in one:
        for second in other:
            yield first, second
