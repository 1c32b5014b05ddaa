"""Rows of a rated set, as its reader fills them, and the rated pairs that are made of them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vlscore.core import with_noun
from vlscore.data import Study, columns_of, number_of
from vlscore.errors import Failure, InvalidStudy, InvalidTable
from vlscore.evaluation.alignment.rated_pairs import (
    INSIGNIFICANT,
    SIGNIFICANT,
    TOTAL,
    CountKey,
    Meaning,
    RatedPairs,
)
from vlscore.stats import Array

Record = Mapping[str, Any]
# Study and candidate.
Pair = tuple[str, str]
# Name of a rating with one number a rater.
RATING = "rating"
_EMPTY_COUNT = "a count is empty; 0 is written for none"
_YES, _NO = {"true", "1", "1.0", "yes"}, {"false", "0", "0.0", "no"}


@dataclass
class RatingRow:
    """One row of a rated set, as far as it could be read.

    Attributes:
        number: of the row in its file.
        pair: study and candidate.
        rater: who rated; None where nobody is named, or could not be read.
        reference, text, images: of the pair.
        scores: name of a rating -> number; None where the rater gave none.
        counts: of errors, by category and significance; None for an empty cell.
        reason: why the row cannot be used.
    """

    number: int
    pair: Pair | None = None
    rater: str | None = None
    reference: str | None = None
    text: str | None = None
    images: Study | None = None
    scores: dict[str, float | None] = field(default_factory=dict)
    counts: dict[CountKey, float | None] = field(default_factory=dict)
    reason: str | None = None


def rating_rows(
    records: Iterable[tuple[int, Any]],
    read_record: Callable[[RatingRow, Any], None],
    prefix: str = "",
) -> list[RatingRow]:
    """Return a row for each record; one that cannot be used costs itself alone.

    Args:
        records: numbers and contents; a text is an error.
        read_record: enters a record into its row; raises InvalidStudy where it cannot be used.
        prefix: of the reasons, such as the name of a file.
    """
    rows = []
    for number, record in records:
        rows.append(row := RatingRow(number))
        try:
            if isinstance(record, str):
                raise InvalidStudy(record)
            read_record(row, record)
        except InvalidStudy as error:
            row.reason = f"{prefix}{error}"
    return rows


def rated_pairs(
    rows: Sequence[RatingRow],
    files: Sequence[Path],
    *,
    meaning: Meaning = "errors",
    qualities: Iterable[str] = (),
    notes: Iterable[str] = (),
    is_count: bool = False,
    numbered: bool = False,
    bad: Iterable[Failure] = (),
) -> RatedPairs:
    """Return the pairs that some rater rated.

    A rater's row that cannot be used takes that rater's whole rating of the pair with it: a sum of
    the errors that could be read would be too small, and nobody would notice.

    Args:
        is_count: whether a row counts errors of one kind, so that several rows make one rating; a
            row without a readable rater may then belong to the sum of any rater.
        numbered: whether the rows' numbers are those of one table.
        bad: further rows that could not be used.

    Raises: InvalidTable where no rating can be used.
    """
    _check_rows(rows)
    notes = [*notes, *_check_empty_counts(rows)]
    good = [row for row in rows if row.reason is None and row.pair is not None]
    spoilt = {(r.rater, r.pair) for r in rows if r.reason and (r.rater or is_count)}
    notes += _check_lacking_counts(rows, good, spoilt)
    # The first row of each pair has its reports and images.
    first: dict[Pair, RatingRow] = {}
    for row in good:
        first.setdefault(row.pair or ("", ""), row)
    raters = list(dict.fromkeys(row.rater for row in good))
    ratings, counts = _arrays(good, raters, list(first), spoilt)
    refused = (Failure(r.number, r.pair[0] if r.pair else "", r.reason) for r in rows if r.reason)
    # A row of several raters that names no pair is refused once for each of them.
    refused_once = {(k if row.id else row): row for k, row in enumerate(refused)}
    found_bad = (*bad, *refused_once.values())
    is_rated = np.any([~np.isnan(values).all(axis=0) for values in ratings.values()], axis=0)
    if not ratings or not is_rated.any():
        why = f"; row {found_bad[0].row}: {found_bad[0].reason}" if found_bad else ""
        shown = "".join(f"; {note}" for note in notes)
        raise InvalidTable(f"{files[0]}: no rating could be read{why}{shown}")
    firsts = list(first.values())
    several = len({category for category, _ in counts}) > 1
    found = RatedPairs(
        studies=tuple(study for study, _ in first),
        candidates=tuple(candidate for _, candidate in first),
        raters=tuple(map(str, raters)),
        ratings=ratings,
        meaning=meaning,
        qualities=frozenset(qualities),
        references=_texts(row.reference for row in firsts),
        texts=_texts(row.text for row in firsts),
        images=tuple(r.images for r in firsts) if any(row.images for row in firsts) else None,
        rows=tuple(row.number for row in firsts) if numbered else None,
        bad=found_bad,
        notes=tuple(notes),
        files=tuple(files),
        counts=counts if several else {},
    )
    return found.at(np.flatnonzero(is_rated).tolist())


def _arrays(
    good: Sequence[RatingRow],
    raters: Sequence[str | None],
    pairs: Sequence[Pair],
    spoilt: set[tuple[str | None, Pair | None]],
) -> tuple[dict[str, Array], dict[CountKey, Array]]:
    """Return ratings and counts of errors, each (raters, pairs); nan where nothing can be used."""
    of_rater = {name: k for k, name in enumerate(raters)}
    of_pair: dict[Pair | None, int] = {pair: k for k, pair in enumerate(pairs)}
    nothing = np.full((len(raters), len(pairs)), np.nan)
    ratings: dict[str, Array] = defaultdict(nothing.copy)
    counts: dict[CountKey, Array] = defaultdict(nothing.copy)
    for row in good:
        at = of_rater[row.rater], of_pair[row.pair]
        is_spoilt = not spoilt.isdisjoint({(row.rater, row.pair), (None, row.pair)})
        for name, value in row.scores.items():
            own = ratings[name]
            own[at] = own[at] if value is None or is_spoilt else value
        for key, count in row.counts.items():
            if count is not None:
                counts[key][at] = np.nan if is_spoilt else count
    # A category that is not named in a rating with counts has no error.
    is_counted = ~np.all([np.isnan(each) for each in counts.values()], axis=0)
    counts = {
        key: np.where(is_counted, np.nan_to_num(counts[key]), np.nan)
        for key in sorted(counts, key=lambda key: (key[0], key[1] is None, not key[1]))
    }
    return ratings | _sums(counts), counts


def _texts(found: Iterable[str | None]) -> tuple[str, ...] | None:
    texts = tuple(text for text in found if text is not None)
    return texts or None


def _check_rows(rows: Sequence[RatingRow]) -> None:
    """Refuse rows of other reports than an earlier row of the pair, and second ratings."""
    reports: dict[Pair, RatingRow] = {}
    seen: set[object] = set()
    for row in rows:
        if row.reason is not None or row.pair is None:
            continue
        first = reports.setdefault(row.pair, row)
        for what, here, there in (
            ("reference", row.reference, first.reference),
            ("candidate", row.text, first.text),
        ):
            if here != there:
                row.reason = (
                    f"study {row.pair[0]!r}, candidate {row.pair[1]!r} has another {what} report "
                    "in an earlier row"
                )
        given = [name for name, value in row.scores.items() if value is not None]
        for key in (*given, *(key for key, value in row.counts.items() if value is not None)):
            if (row.pair, row.rater, key) in seen:
                what = "rates this candidate" if isinstance(key, str) else f"counts {key[0]!r}"
                row.reason = f"rater {row.rater!r} {what} twice; both ratings are left out"
            seen.add((row.pair, row.rater, key))


def _check_empty_counts(rows: Sequence[RatingRow]) -> list[str]:
    """Refuse empty counts of ratings that have others; a rating of empty ones was not made."""
    has = {(r.pair, r.rater) for r in rows if any(v is not None for v in r.counts.values())}
    unrated = set()
    for row in rows:
        if row.reason is None and row.counts and None in row.counts.values():
            if (row.pair, row.rater) in has:
                row.reason = _EMPTY_COUNT
            else:
                unrated.add((row.pair, row.rater))
    if not unrated:
        return []
    return [
        f"read as not rated: {with_noun(len(unrated), 'rating')} with empty counts alone; a report "
        "without errors needs a 0"
    ]


def _check_lacking_counts(
    rows: Sequence[RatingRow], good: Sequence[RatingRow], spoilt: set[tuple[str | None, Any]]
) -> list[str]:
    """Leave out ratings that a row without a readable pair may belong to.

    Where most ratings have as many counts as the fullest one, one with fewer has lost some. A table
    that leaves zeros out has ratings of all lengths; there nothing can be known.
    """
    unplaced = [row.rater for row in rows if row.reason and row.pair is None]
    sizes = Counter((r.rater, r.pair) for r in good for v in r.counts.values() if v is not None)
    most = max(sizes.values(), default=0)
    short = [
        (rater, pair)
        for (rater, pair), size in sizes.items()
        if size < most and not {(rater, pair), (None, pair)} & spoilt
    ]
    if not short or 2 * len(short) >= len(sizes):
        return []
    lost = [key for key in short if None in unplaced or key[0] in unplaced]
    spoilt.update(lost)
    if lost:
        return [
            f"left out: {with_noun(len(lost), 'rating')} that may lack counts, because a row of "
            "the rater cannot be used"
        ]
    return [
        f"{len(short)} of {len(sizes)} ratings have fewer than {most} counts; those that are "
        "absent are read as 0"
    ]


def _sums(counts: Mapping[CountKey, Array]) -> dict[str, Array]:
    """Return the ratings that error counts sum up to."""
    if not counts:
        return {}
    found = {TOTAL: np.sum(list(counts.values()), axis=0)}
    if {significant for _, significant in counts} != {None}:
        for name, wanted in ((SIGNIFICANT, True), (INSIGNIFICANT, False)):
            own = [values for (_, is_so), values in counts.items() if is_so is wanted]
            found[name] = np.sum(own, axis=0) if own else np.zeros_like(found[TOTAL])
            found[name] = np.where(np.isnan(found[TOTAL]), np.nan, found[name])
    categories = dict.fromkeys(category for category, _ in counts)
    for name in categories if len(categories) > 1 else ():
        found[name] = np.sum([v for (category, _), v in counts.items() if category == name], axis=0)
    return found


def count_of(value: Any, column: str) -> float:
    """Return a count of errors; raise InvalidStudy if it is empty, negative or no whole number."""
    number = number_of(value, column)
    if number is None:
        raise InvalidStudy(f'column "{column}": {_EMPTY_COUNT}')
    if number < 0 or number != int(number):
        raise InvalidStudy(f'column "{column}" holds {value!r}; errors are counted 0, 1, 2, ...')
    return number


def yes_or_no(value: Any, column: str) -> bool:
    """Return the truth of true, false, 1, 0, yes or no; raise InvalidStudy for anything else."""
    word = str(value).strip().lower()
    if word not in _YES | _NO:
        raise InvalidStudy(f'column "{column}" holds {value!r}; write true or false')
    return word in _YES


def require_columns(path: Path, needed: Iterable[str], hint: str = "") -> None:
    """Raise InvalidTable where a table lacks columns."""
    found = columns_of(path)
    if missing := [name for name in needed if name not in found]:
        raise InvalidTable(
            f"{path}: no column {', '.join(missing)}; found: {', '.join(found)}{hint}"
        )
