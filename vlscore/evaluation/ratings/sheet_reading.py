"""Filled-in sheets of a reading study: what the raters answered, checked row by row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from vlscore.data import BadRow, is_missing, name_of
from vlscore.errors import InvalidStudy, InvalidTable
from vlscore.evaluation.alignment.rated_pairs import Meaning, RatedPairs
from vlscore.evaluation.alignment.rating_builder import Builder, missing_columns
from vlscore.evaluation.ratings.questions import COUNTS, DIMENSIONS, ERRORS, PREFERENCES, Question
from vlscore.evaluation.ratings.rater_agreement import Preference
from vlscore.evaluation.ratings.sheet_files import (
    CSV,
    ITEM,
    KEY,
    SHEET,
    XLSX,
    AnyItem,
    ItemPair,
    SheetItem,
    read_key,
    read_questions,
    read_sheet,
    sheet_columns,
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
    items, questions = read_key(folder / KEY), read_questions(folder)
    sheets = _sheets(folder)
    builder = Builder((folder / KEY, *sheets), _meaning(questions))
    builder.qualities = frozenset(each.name for each in questions if each.ask == DIMENSIONS)
    reading = _Reading(builder, items, questions)
    for path in sheets:
        reading.read(path)
    reading.add_ranks()
    pairs = builder.build()
    return FilledSheets(pairs, tuple(reading.preferences), tuple(questions), reading.counts)


def _meaning(questions: Sequence[Question]) -> Meaning:
    asks = {question.ask for question in questions}
    if PREFERENCES in asks:
        return "ranks"
    return "errors" if ERRORS in asks else "quality"


def _sheets(folder: Path) -> list[Path]:
    """Return the sheets; of a rater with csv and xlsx, the one that is filled in.

    Raises: InvalidTable where there is none, or both of a rater are filled in.
    """
    found = sorted(p for p in folder.glob(f"{SHEET}*") if p.suffix in (CSV, XLSX))
    if not found:
        raise InvalidTable(
            f"{folder}: has {KEY}, and no sheet: {SHEET}NAME{CSV} or {XLSX}, one a rater. A page "
            "saves such a file; put it into the folder"
        )
    chosen = []
    for _, group in groupby(found, key=_rater):
        same = list(group)
        filled = [path for path in same if len(same) == 1 or _is_filled(path)]
        if len(filled) > 1:
            names = " and ".join(path.name for path in filled)
            raise InvalidTable(f"{folder}: {names} are both filled in; remove one of them")
        chosen += filled or same[:1]
    return chosen


def _rater(path: Path) -> str:
    return path.stem.removeprefix(SHEET)


def _is_filled(path: Path) -> bool:
    texts = {ITEM, "reference", "candidate", "report A", "report B"}
    return any(
        isinstance(row, dict) and any(not is_missing(row[c]) for c in row if c not in texts)
        for _, row in read_sheet(path)
    )


class _Reading:
    """Reader of all sheets: it passes rows to a builder, and collects the preferences."""

    def __init__(
        self, builder: Builder, items: Mapping[str, AnyItem], questions: Sequence[Question]
    ) -> None:
        self._builder, self._items, self._questions = builder, items, questions
        self.preferences: list[Preference] = []
        self.counts: dict[str, tuple[int, int]] = {}

    def read(self, path: Path) -> None:
        """Read one sheet."""
        rater = _rater(path)
        missing_columns(path, sheet_columns(path), (ITEM, *(q.name for q in self._questions)))
        seen: set[str] = set()
        rated = 0
        for number, record in read_sheet(path):
            if isinstance(record, str):
                self._builder.refuse(number, f"{path.name}: {record}")
                continue
            item: AnyItem | None = None
            try:
                item = self._item(record, seen)
                rated += self._take(item, rater, record)
            except InvalidStudy as error:
                for pair in _pairs_of(item):
                    self._builder.refuse(number, f"{path.name}: {error}", pair, rater)
        asked = [name for name, each in self._items.items() if rater in each.raters]
        if not asked:
            if any(item.raters for item in self._items.values()):
                self._builder.notes.append(
                    f"{path.name}: no sheet was made for a rater {rater!r}; it is read as that "
                    "rater's"
                )
            asked = sorted(seen)
        for name in sorted(set(asked) - seen):
            reason = f"{path.name}: has no row for {name!r}, which this rater was asked about"
            self._builder.bad.append(BadRow(0, None, reason))
        self.counts[path.name] = (rated, len(asked))
        if rated < len(asked):
            what = "comparisons" if self._compares else "reports"
            self._builder.notes.append(f"{path.name}: {rated} of {len(asked)} {what} are rated")

    @property
    def _compares(self) -> bool:
        return self._questions[0].ask == PREFERENCES

    def _item(self, record: Mapping[str, Any], seen: set[str]) -> AnyItem:
        name = name_of(record.get(ITEM), ITEM)
        if name not in self._items:
            raise InvalidStudy(f'column "{ITEM}" holds {name!r}, which is not in {KEY}')
        if name in seen:
            raise InvalidStudy(f'column "{ITEM}" holds {name!r}, which has an earlier row')
        seen.add(name)
        return self._items[name]

    def _take(self, item: AnyItem, rater: str, record: Mapping[str, Any]) -> bool:
        """Take the answers of a row; return whether there are any."""
        if all(is_missing(record.get(question.name)) for question in self._questions):
            return False
        values = {q.name: q.value(record.get(q.name)) for q in self._questions}
        for question in self._questions:
            if values[question.name] is None and question.ask != ERRORS:
                raise InvalidStudy(f'column "{question.name}" is empty; the row is filled in part')
        if isinstance(item, ItemPair):
            (answer,) = values.values()
            self._compare(item, rater, int(answer or 0))
            return True
        for pair in item.pairs:
            self._builder.add_pair(pair, item.reference, item.text)
            for question in self._questions:
                value = values[question.name]
                if question.ask == ERRORS:
                    category, significant = COUNTS[question.name]
                    self._builder.add_count(pair, rater, category, significant, value or 0.0)
                else:
                    self._builder.add_score(pair, rater, question.name, value)
        return True

    def _compare(self, item: ItemPair, rater: str, answer: int) -> None:
        ones, others = sorted(item.first.candidates), sorted(item.second.candidates)
        for first in ones:
            for second in others:
                repeats = (first, second) != (ones[0], others[0])
                # In one order of the names, whichever report was A.
                names, sign = ((first, second), 1) if first < second else ((second, first), -1)
                self.preferences.append(
                    Preference(item.study, rater, *names, sign * answer, repeats)
                )

    def add_ranks(self) -> None:
        """Add the rank of each system, for each study and rater; 1 is the best, ties share a rank.

        A rater's ranks of a study need all comparisons of the study.
        """
        import scipy.stats

        asked: dict[str, set[tuple[str, str]]] = {}
        texts: dict[tuple[str, str], SheetItem] = {}
        for item in self._items.values():
            if isinstance(item, ItemPair):
                for side in (item.first, item.second):
                    texts |= dict.fromkeys(side.pairs, side)
                couples = asked.setdefault(item.study, set())
                for first in item.first.candidates:
                    couples |= {
                        (min(first, other), max(first, other)) for other in item.second.candidates
                    }
        answers: dict[tuple[str, str], dict[tuple[str, str], int]] = {}
        for each in self.preferences:
            compared = answers.setdefault((each.rater, each.study), {})
            compared[each.first, each.second] = each.answer
        incomplete = 0
        for (rater, study), compared in answers.items():
            if set(compared) != asked[study]:
                incomplete += 1
                continue
            points = dict.fromkeys(sorted({name for couple in compared for name in couple}), 0)
            for (first, second), answer in compared.items():
                points[first] += answer
                points[second] -= answer
            ranks = scipy.stats.rankdata([-value for value in points.values()])
            for name, rank in zip(points, ranks.tolist(), strict=True):
                shown = texts[study, name]
                self._builder.add_pair((study, name), shown.reference, shown.text)
                self._builder.add_score((study, name), rater, RANK, rank)
        if incomplete:
            self._builder.notes.append(
                f"{incomplete} times a rater compared only some reports of a study; such a study "
                "has no ranks of that rater, its comparisons count"
            )


def _pairs_of(item: AnyItem | None) -> list[tuple[str, str] | None]:
    """Return the rated pairs of a row that cannot be used; None where they are not known."""
    return [*item.pairs] if isinstance(item, SheetItem) else [None]
