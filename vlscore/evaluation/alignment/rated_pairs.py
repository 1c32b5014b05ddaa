"""Rated pairs: candidate reports and their ratings, made from the rows that a reader yields."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from vlscore.core import file_digest
from vlscore.data import Study
from vlscore.errors import Failure, InvalidSetting, InvalidStudy, InvalidTable
from vlscore.stats import without_rounding

if TYPE_CHECKING:
    from pandas import DataFrame

Array = NDArray[np.float64]
Meaning = Literal["errors", "quality", "ranks"]
# Study and candidate.
Pair = tuple[str, str]
# A category of errors, and whether they matter clinically; None if it is not known.
CountKey = tuple[str, bool | None]
MEANINGS: tuple[Meaning, ...] = ("errors", "quality", "ranks")

# For error counts the first two ratings are all errors and the significant ones.
_PRIMARY = 2
EMPTY_COUNT = "a count is empty; 0 is written for none"
TOTAL, SIGNIFICANT, INSIGNIFICANT = "total errors", "significant errors", "insignificant errors"


@dataclass(frozen=True, eq=False)
class RatedPairs:
    """Candidate reports (n), each with its reference, and the ratings of k raters.

    Attributes:
        studies: the study of each pair; candidates of one study have one reference.
        candidates: names that distinguish the candidates of one study.
        raters: their names.
        ratings: name of a rating -> (k, n) float64; nan where a rater did not rate a pair. Error
            counts have "total errors", "significant errors", "insignificant errors" as far as
            significance is known, then every category's errors, significant or not.
        counts: of error counts, (category, whether significant) -> (k, n), what `ratings` sums up;
            empty where errors were not counted by category.
        meaning: "errors" (more is worse), "quality" (more is better), or "ranks" (1 is the best
            candidate of its study; ranks of two studies cannot be compared).
        qualities: names of ratings of which more is better although the others count errors.
        references, texts: the reports; None where the set does not bring them.
        images: of each pair's study, None where it has none; None for a set without images.
        rows: number of each pair's first row in the table; None where the set is several files.
        bad: rows that could not be used, with the reason.
        notes: what a user should know of how the set was read.
        files: that were read.
    """

    studies: tuple[str, ...]
    candidates: tuple[str, ...]
    raters: tuple[str, ...]
    ratings: Mapping[str, Array]
    meaning: Meaning = "errors"
    references: tuple[str, ...] | None = None
    texts: tuple[str, ...] | None = None
    images: tuple[Study | None, ...] | None = None
    rows: tuple[int | None, ...] | None = None
    bad: tuple[Failure, ...] = ()
    notes: tuple[str, ...] = field(default=())
    files: tuple[Path, ...] = ()
    counts: Mapping[CountKey, Array] = field(default_factory=dict)
    qualities: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.studies)

    @property
    def source(self) -> str:
        """Return the name of the set in messages."""
        return str(self.files[0]) if self.files else "the rated set"

    @property
    def key(self) -> dict[str, Any]:
        """Return what results depend on: the files, and ids, reports, image paths and ratings."""
        return {"files": {f.name: file_digest(f) for f in self.files}, "pairs_sha256": self.sha256}

    @cached_property
    def sha256(self) -> str:
        """Return the hexadecimal digest of ids, reports, image paths and ratings."""
        shown = [
            None if each is None else list(map(str, each.images)) for each in self.images or ()
        ]
        texts = [self.studies, self.candidates, self.references, self.texts, shown]
        meaning = [self.meaning, *([sorted(self.qualities)] if self.qualities else [])]
        facts = json.dumps([*texts, self.raters, list(self.ratings), *meaning])
        digest = hashlib.sha256(facts.encode("utf-8"))
        for values in self.ratings.values():
            digest.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
        return digest.hexdigest()

    def sign_of(self, rating: str) -> int:
        """Return 1 where a larger value of this rating is a better report, else -1."""
        return 1 if rating in self.qualities or self.meaning == "quality" else -1

    @property
    def primary(self) -> list[str]:
        """Return the main ratings: all errors, significant ones, the quality."""
        others = [name for name in self.ratings if name not in self.qualities]
        return [*others[:_PRIMARY], *(name for name in self.ratings if name in self.qualities)]

    def only(self, candidates: Collection[str]) -> "RatedPairs":
        """Return the pairs of some candidates, as those of one generator.

        Raises: InvalidSetting for an unknown candidate.
        """
        if unknown := sorted(set(candidates) - set(self.candidates)):
            known = ", ".join(dict.fromkeys(self.candidates))
            raise InvalidSetting(
                f"{self.source} has no candidate {', '.join(unknown)}; it has: {known[:300]}"
            )
        return self.at([k for k, name in enumerate(self.candidates) if name in set(candidates)])

    def at(self, places: Sequence[int]) -> "RatedPairs":
        """Return the pairs at these places, in their order."""
        rows = np.asarray(places, dtype=np.intp)
        chosen: dict[str, Any] = {
            name: {key: array[:, rows] for key, array in getattr(self, name).items()}
            for name in ("ratings", "counts")
        }
        for name in ("studies", "candidates", "references", "texts", "images", "rows"):
            values = getattr(self, name)
            chosen[name] = None if values is None else tuple(values[k] for k in places)
        return replace(self, **chosen)

    def failures(self, reasons: Mapping[tuple[int, str], str]) -> list[Failure]:
        """Return pairs without a value; args: pair and metric -> why it has none."""
        names = [
            f"{study}, {name}" for study, name in zip(self.studies, self.candidates, strict=True)
        ]
        rows = self.rows or [None] * len(self)
        return [Failure(rows[k], names[k], f"{of}: {w}") for (k, of), w in sorted(reasons.items())]

    @property
    def ids(self) -> "DataFrame":
        """Return study_id and candidate_id of each pair."""
        from pandas import DataFrame

        return DataFrame({"study_id": self.studies, "candidate_id": self.candidates})

    def first(self, count: int | None) -> "RatedPairs":
        """Return the first pairs, with a note that says so; all of them for None."""
        if count is None or count >= len(self):
            return self
        note = f"limited to the first {count} of {len(self)} rated candidates"
        return replace(self.at(range(count)), notes=(*self.notes, note))

    def texts_at(self, row: int) -> tuple[str | None, str | None]:
        """Return reference and candidate of a pair; None where the set has no reports."""
        reports = (self.references, self.texts)
        reference, text = (None if each is None else each[row] for each in reports)
        return reference, text

    @cached_property
    def means(self) -> dict[str, Array]:
        """Return rating -> (n,) mean over the raters who rated the pair; nan without any."""
        return {name: mean_of_raters(values) for name, values in self.ratings.items()}


def mean_of_raters(values: Array) -> Array:
    """Return (n,) means of (k, n) ratings over k, without nan; means of equal sums are equal."""
    rated = ~np.isnan(values)
    counts = rated.sum(axis=0)
    sums = np.where(rated, values, 0.0).sum(axis=0)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return without_rounding(means, np.abs(np.where(rated, values, 0.0)).max(axis=0, initial=0.0))


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
    refused_once = {(row if row.id is None else k): row for k, row in enumerate(refused)}
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
    spoilt: Collection[tuple[str | None, Pair | None]],
) -> tuple[dict[str, Array], dict[CountKey, Array]]:
    """Return ratings and counts of errors, each (raters, pairs); nan where nothing can be used."""
    shape = len(raters), len(pairs)
    of_rater = {name: k for k, name in enumerate(raters)}
    of_pair = {pair: k for k, pair in enumerate(pairs)}
    ratings: dict[str, Array] = {}
    counts: dict[CountKey, Array] = {}
    has_counts = np.zeros(shape, dtype=bool)
    for row in good:
        at = of_rater[row.rater], of_pair[row.pair or ("", "")]
        for name, value in row.scores.items():
            ratings.setdefault(name, np.full(shape, np.nan))
            if value is not None:
                ratings[name][at] = value
        for key, count in row.counts.items():
            if count is not None:
                counts.setdefault(key, np.zeros(shape))[at] += count
                has_counts[at] = True
    counts = {
        key: np.where(has_counts, counts[key], np.nan)
        for key in sorted(counts, key=lambda key: (key[0], key[1] is None, not key[1]))
    }
    ratings |= _sums(counts)
    for rater, pair in spoilt:
        if pair in of_pair and (rater is None or rater in of_rater):
            own = slice(None) if rater is None else of_rater[rater]
            for values in (*ratings.values(), *counts.values()):
                values[own, of_pair[pair]] = np.nan
    return ratings, counts


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
                row.reason = EMPTY_COUNT
            else:
                unrated.add((row.pair, row.rater))
    if not unrated:
        return []
    return [
        f"{len(unrated)} ratings have empty counts alone and are read as not rated; a report "
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
            f"{len(lost)} ratings may lack counts, because a row of theirs cannot be used; "
            "they are left out"
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
