"""Filled-in sheets of a reading study: what the raters answered, checked row by row."""

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

from vlscore.core import file_digest, finished_run
from vlscore.data import is_missing, name_of, read_rows
from vlscore.errors import Failure, InvalidStudy, InvalidTable
from vlscore.evaluation.alignment.rating_rows import RatingRow, rated_pairs, require_columns
from vlscore.evaluation.ratings.questions import COUNTS, DIMENSIONS, ERRORS, PREFERENCES
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

RANK = "preference rank"


class FilledSheets:
    """Answers of the raters on the sheets of a folder; its key names the system of each item.

    A row without an answer is not rated yet. In any other row, an empty number of errors is 0, and
    an empty rating of a dimension is missing. Reports are read from the key, because a program for
    tables may have changed those in a sheet.

    Attributes:
        pairs: ratings of the reports; of preferences, each system's rank in its study.
        preferences: the comparisons, as `preferences_of` returns them; none where reports were
            rated one by one.
        questions: questions that raters were asked.
        sheets: name of a sheet -> (items that are answered, items that were asked).

    Raises: InvalidTable where there is no sheet, a file lacks columns, or nothing is rated. A row
    that cannot be used is in `pairs.bad`, with the name of its sheet.
    """

    def __init__(self, folder: str | Path) -> None:
        folder = Path(folder)
        if not all((folder / name).is_file() for name in (KEY, QUESTIONS)):
            raise InvalidTable(f"{folder}: no folder of `vlscore ratings make`, with {KEY}")
        made = finished_run(folder)
        if made is not None and made.digests.get(KEY) not in (None, file_digest(folder / KEY)):
            raise InvalidTable(
                f"{folder / KEY} has been changed since the sheets were made, so that answers may "
                "count for another system; restore it"
            )
        self._items, self.questions = read_key(folder / KEY), read_questions(folder)
        asks = {question.ask for question in self.questions}
        self._compares = PREFERENCES in asks
        self._rows: list[RatingRow] = []
        self._bad: list[Failure] = []
        self._notes: list[str] = []
        # (rater, item) -> 1, 0 or -1.
        self._answers: dict[tuple[str, str], int] = {}
        self.sheets: dict[str, tuple[int, int]] = {}
        paths = sorted(folder.glob(f"{SHEET}*{CSV}"))
        if not paths:
            raise InvalidTable(
                f"{folder}: has {KEY}, and no sheet: {SHEET}NAME{CSV}, one a rater. A page saves "
                "such a file; put it into the folder"
            )
        for path in paths:
            self._read(path)
        # In one order of the names, whichever report was A.
        self.preferences = preferences_of(
            (item.study, rater, *min(names, names[::-1]), sign * answer, k > 0)
            for (rater, name), answer in self._answers.items()
            for item in [self._items[name]]
            for k, names in enumerate(_couples(item))
            for sign in [1 if names[0] < names[1] else -1]
        )
        if self._compares:
            self._add_ranks()
        self.pairs = rated_pairs(
            self._rows,
            [folder / KEY, *paths],
            meaning="ranks" if self._compares else "errors" if ERRORS in asks else "quality",
            qualities=[each.name for each in self.questions if each.ask == DIMENSIONS],
            notes=self._notes,
            bad=self._bad,
        )

    def _read(self, path: Path) -> None:
        """Read one sheet."""
        rater = path.stem.removeprefix(SHEET)
        require_columns(path, (ITEM, *(q.name for q in self.questions)))
        seen: set[str] = set()
        rated = 0
        for number, record in read_rows(path):
            item: SheetItem | None = None
            try:
                if isinstance(record, str):
                    raise InvalidStudy(record)
                name = name_of(record.get(ITEM), ITEM)
                if name not in self._items:
                    raise InvalidStudy(f'column "{ITEM}" holds {name!r}, which is not in {KEY}')
                if name in seen:
                    raise InvalidStudy(f'column "{ITEM}" holds {name!r}, which has an earlier row')
                seen.add(name)
                item = self._items[name]
                rated += self._take(item, rater, record)
            except InvalidStudy as error:
                reason = f"{path.name}: {error}"
                if item is None or self._compares:
                    self._bad.append(Failure(number, "", reason))
                    continue
                for system in item.reports[0].systems:
                    pair = item.study, system
                    self._rows.append(RatingRow(number, pair, rater, reason=reason))
        asked = [name for name, each in self._items.items() if rater in each.raters]
        if not asked:
            self._notes.append(
                f"{path.name}: no sheet was made for a rater {rater!r}; it is read as that rater's"
            )
            asked = sorted(seen)
        for name in sorted(set(asked) - seen):
            reason = f"{path.name}: has no row for {name!r}, which this rater was asked about"
            self._bad.append(Failure(0, "", reason))
        self.sheets[path.name] = (rated, len(asked))
        if rated < len(asked):
            what = "comparisons" if self._compares else "reports"
            self._notes.append(f"{path.name}: {rated} of {len(asked)} {what} are rated")

    def _take(self, item: SheetItem, rater: str, record: Mapping[str, Any]) -> bool:
        """Take the answers of a row; return whether there are any."""
        if all(is_missing(record.get(question.name)) for question in self.questions):
            return False
        values = {q.name: q.value(record.get(q.name)) for q in self.questions}
        for question in self.questions:
            if values[question.name] is None and question.ask != ERRORS:
                raise InvalidStudy(f'column "{question.name}" is empty; the row is filled in part')
        if self._compares:
            (answer,) = values.values()
            self._answers[rater, item.name] = int(answer or 0)
            return True
        (report,) = item.reports
        for system in report.systems:
            row = RatingRow(0, (item.study, system), rater, item.reference, report.text)
            for question in self.questions:
                value = values[question.name]
                if question.ask == ERRORS:
                    row.counts[COUNTS[question.name]] = value or 0.0
                else:
                    row.scores[question.name] = value
            self._rows.append(row)
        return True

    def _add_ranks(self) -> None:
        """Add the rank of each system, for each study and rater; 1 is the best, ties share a rank.

        A rater's ranks of a study need all comparisons of the study.
        """
        asked: dict[str, set[tuple[str, ...]]] = {}
        texts: dict[tuple[str, str], tuple[str, str]] = {}
        for item in self._items.values():
            asked.setdefault(item.study, set()).update(tuple(sorted(c)) for c in _couples(item))
            for report in item.reports:
                texts |= {(item.study, name): (item.reference, report.text) for name in report[0]}
        incomplete = 0
        for (rater, study), own in self.preferences.groupby(["rater", "study"], sort=False):
            own = own.drop_duplicates(["first", "second"], keep="last")
            if len(own) < len(asked[study]):
                incomplete += 1
                continue
            wins = own.groupby("first")["answer"].sum()
            points = wins.sub(own.groupby("second")["answer"].sum(), fill_value=0)
            for system, rank in points.rank(ascending=False).items():
                row = RatingRow(0, (study, str(system)), rater, *texts[study, str(system)])
                row.scores[RANK] = float(rank)
                self._rows.append(row)
        if incomplete:
            self._notes.append(
                f"{incomplete} times a rater compared only some reports of a study; such a study "
                "has no ranks of that rater, its comparisons count"
            )


def _couples(item: SheetItem) -> Iterator[tuple[str, ...]]:
    """Yield the systems that a comparison is of: several where systems have equal reports."""
    return product(*(sorted(report.systems) for report in item.reports))
