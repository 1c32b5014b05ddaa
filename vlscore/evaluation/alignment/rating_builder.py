"""Builder of RatedPairs, to which the reader of a layout adds ratings row by row."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.data import BadRow, StudyImages, number_of
from vlscore.errors import InvalidStudy, InvalidTable
from vlscore.evaluation.alignment.rated_pairs import (
    INSIGNIFICANT,
    SIGNIFICANT,
    TOTAL,
    Array,
    CountKey,
    Meaning,
    RatedPairs,
)

Pair = tuple[str, str]
_YES, _NO = {"true", "1", "1.0", "yes"}, {"false", "0", "0.0", "no"}


@dataclass
class _Texts:
    reference: str | None
    text: str | None
    images: StudyImages | None


@dataclass
class Builder:
    """Builder of RatedPairs from rows; it lists the rows that cannot be used.

    A rater's row that cannot be used takes that rater's whole rating of the pair with it: a sum of
    the errors that could be read would be too small, and nobody would notice.
    """

    files: tuple[Path, ...]
    meaning: Meaning = "errors"
    notes: list[str] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)
    qualities: frozenset[str] = frozenset()
    _pairs: dict[Pair, _Texts] = field(default_factory=dict)
    _rows: dict[Pair, int | None] = field(default_factory=dict)
    _raters: dict[str, None] = field(default_factory=dict)
    _scores: dict[str, dict[tuple[Pair, str], float]] = field(default_factory=dict)
    _counts: dict[tuple[Pair, str], dict[tuple[str, bool | None], float]] = field(
        default_factory=dict
    )
    # Rows of a rating whose count is empty.
    _uncounted: dict[tuple[Pair, str], list[tuple[int, str]]] = field(default_factory=dict)
    _unusable: set[tuple[Pair, str | None]] = field(default_factory=set)
    # Raters of rows whose pair cannot be read; None where the rater cannot be read either.
    _unplaced: list[str | None] = field(default_factory=list)

    def refuse(
        self, row: int, reason: object, pair: Pair | None = None, rater: str | None = None
    ) -> None:
        """Note a row that cannot be used, and leave out the rating that it belongs to.

        Args: rater: None leaves out every rater's rating of the pair.
        """
        self.bad.append(BadRow(row, pair[0] if pair is not None else None, str(reason)))
        if pair is not None:
            self._unusable.add((pair, rater))
        else:
            self._unplaced.append(rater)

    def add_pair(
        self,
        pair: Pair,
        reference: str | None = None,
        text: str | None = None,
        images: StudyImages | None = None,
        *,
        row: int | None = None,
    ) -> None:
        """Add a pair, if it is new; raise InvalidStudy if it had other reports before.

        Args: row: number in the table, where the set is one table.
        """
        self._rows.setdefault(pair, row)
        known = self._pairs.setdefault(pair, _Texts(reference, text, images))
        for name, before, now in (
            ("reference", known.reference, reference),
            ("candidate", known.text, text),
        ):
            if before != now:
                raise InvalidStudy(
                    f"study {pair[0]!r}, candidate {pair[1]!r} has another {name} report in an "
                    "earlier row"
                )

    def add_score(self, pair: Pair, rater: str, name: str, value: float | None) -> None:
        """Add one number; None if the rater gave none. Raise InvalidStudy for a second one."""
        self._raters.setdefault(rater)
        scores = self._scores.setdefault(name, {})
        if value is None:
            return
        if (pair, rater) in scores:
            raise InvalidStudy(
                f"rater {rater!r} rates this candidate twice; both ratings are left out"
            )
        scores[pair, rater] = value

    def add_count(
        self, pair: Pair, rater: str, category: str, significant: bool | None, count: float
    ) -> None:
        """Add the errors of one category; raise InvalidStudy if they were counted before."""
        self._raters.setdefault(rater)
        counts = self._counts.setdefault((pair, rater), {})
        if (category, significant) in counts:
            raise InvalidStudy(
                f"rater {rater!r} counts {category!r} of this candidate twice; this rater's rating "
                "of it is left out"
            )
        counts[category, significant] = count

    def add_empty_count(self, row: int, pair: Pair, rater: str, column: str) -> None:
        """Note an empty count: a rating of which all counts are empty was not made."""
        self._raters.setdefault(rater)
        self._uncounted.setdefault((pair, rater), []).append((row, column))

    def build(self) -> RatedPairs:
        """Return the pairs that some rater rated; raise InvalidTable if there are none."""
        self._check_empty_counts()
        self._check_counts()
        pairs, raters = list(self._pairs), list(self._raters)
        ratings = self._rated(pairs, raters)
        counts = self._counted(pairs, raters)
        rated = np.zeros(len(pairs), dtype=bool)
        for values in ratings.values():
            rated |= ~np.isnan(values).all(axis=0)
        if not rated.any():
            first = f"; row {self.bad[0].row}: {self.bad[0].reason}" if self.bad else ""
            notes = "".join(f"; {note}" for note in self.notes)
            raise InvalidTable(f"{self.files[0]}: no rating could be read{first}{notes}")
        pairs = [pair for pair, is_rated in zip(pairs, rated, strict=True) if is_rated]
        texts = [self._pairs[pair] for pair in pairs]
        self.notes += _rating_notes(ratings, self.meaning, self.qualities, raters)
        has_texts = all(t.text is not None for t in texts)
        has_references = all(t.reference is not None for t in texts)
        has_images = any(t.images for t in texts)
        return RatedPairs(
            studies=tuple(study for study, _ in pairs),
            candidates=tuple(candidate for _, candidate in pairs),
            raters=tuple(raters),
            ratings={name: values[:, rated] for name, values in ratings.items()},
            meaning=self.meaning,
            qualities=self.qualities,
            references=tuple(t.reference or "" for t in texts) if has_references else None,
            texts=tuple(t.text or "" for t in texts) if has_texts else None,
            images=tuple(t.images for t in texts) if has_images else None,
            rows=tuple(self._rows[pair] for pair in pairs),
            bad=tuple(self.bad),
            notes=tuple(self.notes),
            files=self.files,
            counts={key: values[:, rated] for key, values in counts.items()},
        )

    def _check_empty_counts(self) -> None:
        """Refuse empty counts of ratings that have others; note how many ratings have none."""
        for (pair, rater), rows in self._uncounted.items():
            for row, column in rows if (pair, rater) in self._counts else ():
                self.refuse(row, _empty_count(column), pair, rater)
        if self._uncounted:
            self.bad.sort(key=lambda bad: bad.row)
        if unrated := len(self._uncounted.keys() - self._counts.keys()):
            self.notes.append(
                f"{unrated} ratings have empty counts alone and are read as not rated; a report "
                "without errors needs a 0"
            )

    def _check_counts(self) -> None:
        """Leave out ratings that a row without a pair may belong to; note which have few rows.

        Where most ratings have as many counts as the fullest one, one with fewer has lost some. A
        table that leaves zeros out has ratings of all lengths; there nothing can be known.
        """
        sizes = {key: len(counts) for key, counts in self._counts.items()}
        most = max(sizes.values(), default=0)
        short = [
            (pair, rater)
            for (pair, rater), size in sizes.items()
            if size < most and not {(pair, rater), (pair, None)} & self._unusable
        ]
        if not short:
            return
        if 2 * len(short) >= len(sizes):
            if self._unplaced:
                self.notes.append(
                    f"{len(self._unplaced)} rows do not name their pair in a readable way; "
                    "sums of the ratings that they belong to are too small"
                )
            return
        lost = [key for key in short if None in self._unplaced or key[1] in self._unplaced]
        self._unusable.update(lost)
        if lost:
            self.notes.append(
                f"{len(lost)} ratings may lack counts, because a row of theirs cannot be used; "
                "they are left out"
            )
        if shorter := len(short) - len(lost):
            self.notes.append(
                f"{shorter} of {len(sizes)} ratings have fewer than {most} counts; those that are "
                "absent are read as 0"
            )

    def _counted(self, pairs: Sequence[Pair], raters: Sequence[str]) -> dict[CountKey, Array]:
        """Return errors of each category and significance; empty where there is one category."""
        keys = sorted(
            {key for counts in self._counts.values() for key in counts},
            key=lambda key: (key[0], key[1] is None, not key[1]),
        )
        if len({category for category, _ in keys}) < 2:
            return {}
        places = {pair: k for k, pair in enumerate(pairs)}
        rows = {rater: k for k, rater in enumerate(raters)}
        found = {key: np.full((len(raters), len(pairs)), np.nan) for key in keys}
        for (pair, rater), counts in self._counts.items():
            for key, values in found.items():
                values[rows[rater], places[pair]] = counts.get(key, 0.0)
        self._leave_out(found.values(), rows, places)
        return found

    def _rated(self, pairs: Sequence[Pair], raters: Sequence[str]) -> dict[str, Array]:
        places = {pair: k for k, pair in enumerate(pairs)}
        rows = {rater: k for k, rater in enumerate(raters)}
        names = list(self._scores)
        if self._counts:
            names += self._count_names()
        found = {name: np.full((len(raters), len(pairs)), np.nan) for name in names}
        for name, scores in self._scores.items():
            for (pair, rater), value in scores.items():
                found[name][rows[rater], places[pair]] = value
        for (pair, rater), counts in self._counts.items():
            for name in self._count_names():
                found[name][rows[rater], places[pair]] = _summed(counts, name)
        self._leave_out(found.values(), rows, places)
        return found

    def _leave_out(
        self, arrays: Iterable[Array], rows: dict[str, int], places: dict[Pair, int]
    ) -> None:
        """Set ratings to nan that a row which cannot be used belongs to."""
        every = list(arrays)
        for pair, of_rater in self._unusable:
            if pair in places:
                which = [rows[of_rater]] if of_rater in rows else []
                for values in every:
                    values[slice(None) if of_rater is None else which, places[pair]] = np.nan

    def _count_names(self) -> list[str]:
        keys = {key for counts in self._counts.values() for key in counts}
        significances = {significant for _, significant in keys}
        names = [TOTAL]
        if significances != {None}:
            names += [SIGNIFICANT, INSIGNIFICANT]
        categories = sorted({category for category, _ in keys})
        return names + (categories if len(categories) > 1 else [])


def _summed(counts: dict[tuple[str, bool | None], float], name: str) -> float:
    return sum(
        count
        for (category, significant), count in counts.items()
        if name in (TOTAL, category)
        or (name == SIGNIFICANT and significant is True)
        or (name == INSIGNIFICANT and significant is False)
    )


def count_of(value: Any, column: str) -> float:
    """Return a count of errors; raise InvalidStudy if it is empty, negative or no whole number."""
    number = number_of(value, column)
    if number is None:
        raise InvalidStudy(_empty_count(column))
    if number < 0 or number != int(number):
        raise InvalidStudy(f'column "{column}" holds {value!r}; errors are counted 0, 1, 2, ...')
    return number


def _empty_count(column: str) -> str:
    return f'column "{column}" is empty; a count is needed, 0 for none'


def yes_or_no(value: Any, column: str) -> bool:
    """Return the truth of true, false, 1, 0, yes or no; raise InvalidStudy for anything else."""
    word = str(value).strip().lower()
    if word not in _YES | _NO:
        raise InvalidStudy(f'column "{column}" holds {value!r}; write true or false')
    return word in _YES


def missing_columns(
    path: Path, found: Iterable[str], needed: Iterable[str], hint: str = ""
) -> None:
    """Raise InvalidTable where columns are missing."""
    there = list(found)
    missing = [name for name in needed if name not in there]
    if missing:
        raise InvalidTable(
            f"{path}: no column {', '.join(missing)}; found: {', '.join(there)}{hint}"
        )


def _rating_notes(
    ratings: Mapping[str, Array],
    meaning: Meaning,
    qualities: Collection[str],
    raters: Sequence[str],
) -> list[str]:
    """Return notes on numbers that cannot be what ratings are read as, and on names of raters.

    Args: ratings, meaning, qualities, raters: as of `RatedPairs`.
    """
    values = [array for name, array in ratings.items() if name not in qualities]
    found = []
    if meaning == "errors" and (count := _below(values, 0)):
        found.append(
            f"{count} ratings are negative, and ratings are read as errors, of which no number is "
            "below 0: is a larger rating a better report? Then give --ratings-are quality"
        )
    if meaning == "ranks" and (count := _below(values, 1)):
        found.append(f"{count} ranks are below 1, and 1 is read as the best candidate of its study")
    spellings: dict[str, list[str]] = {}
    for rater in raters:
        spellings.setdefault(rater.casefold(), []).append(rater)
    found += [
        f"raters {' and '.join(map(repr, names))} are read as different persons; their names "
        "differ in capital letters alone"
        for names in spellings.values()
        if len(names) > 1
    ]
    return found


def _below(values: Iterable[Array], least: int) -> int:
    return sum(int((array < least).sum()) for array in values)
