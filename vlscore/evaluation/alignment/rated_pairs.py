"""Rated pairs as plain data: candidate reports and their ratings.

Every reader of a layout adds its ratings, row by row, to the builder of RatedPairs.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vlscore.data import BadRow, StudyImages, number_of
from vlscore.errors import InvalidSetting, InvalidStudy, InvalidTable

Array = NDArray[np.float64]
Meaning = Literal["errors", "quality", "ranks"]
# A category of errors, and whether they matter clinically; None if it is not known.
CountKey = tuple[str, bool | None]
MEANINGS: tuple[Meaning, ...] = ("errors", "quality", "ranks")

# For error counts the first two ratings are all errors and the significant ones.
_HEADLINES = 2
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
    images: tuple[StudyImages | None, ...] | None = None
    rows: tuple[int | None, ...] | None = None
    bad: tuple[BadRow, ...] = ()
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

    @property
    def sign(self) -> int:
        """Return 1 where a larger rating is a better report, else -1; see `sign_of`."""
        return 1 if self.meaning == "quality" else -1

    def sign_of(self, rating: str) -> int:
        """Return 1 where a larger value of this rating is a better report, else -1."""
        return 1 if rating in self.qualities else self.sign

    @property
    def headlines(self) -> list[str]:
        """Return the main ratings: all errors, significant ones, the quality."""
        others = [name for name in self.ratings if name not in self.qualities]
        return [*others[:_HEADLINES], *(name for name in self.ratings if name in self.qualities)]

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

        def chosen(values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
            return None if values is None else tuple(values[k] for k in places)

        return replace(
            self,
            studies=tuple(self.studies[k] for k in places),
            candidates=tuple(self.candidates[k] for k in places),
            ratings={name: values[:, rows] for name, values in self.ratings.items()},
            counts={key: values[:, rows] for key, values in self.counts.items()},
            references=chosen(self.references),
            texts=chosen(self.texts),
            images=chosen(self.images),
        )

    @cached_property
    def means(self) -> dict[str, Array]:
        """Return rating -> (n,) mean over the raters who rated the pair; nan without any."""
        return {name: mean_of_raters(values) for name, values in self.ratings.items()}

    def with_images(self, images: Mapping[str, StudyImages]) -> "RatedPairs":
        """Return the same pairs with the images of each study, by its id."""
        return replace(self, images=tuple(images.get(study) for study in self.studies))


def mean_of_raters(values: Array) -> Array:
    """Return (n,) means of (k, n) ratings over k, without nan."""
    rated = ~np.isnan(values)
    counts = rated.sum(axis=0)
    sums = np.where(rated, values, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


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
            raise InvalidStudy(f"rater {rater!r} rates this candidate twice")
        scores[pair, rater] = value

    def add_count(
        self, pair: Pair, rater: str, category: str, significant: bool | None, count: float
    ) -> None:
        """Add the errors of one category; raise InvalidStudy if they were counted before."""
        self._raters.setdefault(rater)
        counts = self._counts.setdefault((pair, rater), {})
        if (category, significant) in counts:
            raise InvalidStudy(f"rater {rater!r} counts {category!r} of this candidate twice")
        counts[category, significant] = count

    def build(self) -> RatedPairs:
        """Return the pairs that some rater rated; raise InvalidTable if there are none."""
        self._check_counts()
        pairs, raters = list(self._pairs), list(self._raters)
        ratings = self._rated(pairs, raters)
        counts = self._counted(pairs, raters)
        rated = np.zeros(len(pairs), dtype=bool)
        for values in ratings.values():
            rated |= ~np.isnan(values).all(axis=0)
        if not rated.any():
            first = f"; row {self.bad[0].row}: {self.bad[0].reason}" if self.bad else ""
            raise InvalidTable(f"{self.files[0]}: no rating could be read{first}")
        pairs = [pair for pair, is_rated in zip(pairs, rated, strict=True) if is_rated]
        texts = [self._pairs[pair] for pair in pairs]
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
        raise InvalidStudy(f'column "{column}" is empty; a count is needed, 0 for none')
    if number < 0 or number != int(number):
        raise InvalidStudy(f'column "{column}" holds {value!r}; errors are counted 0, 1, 2, ...')
    return number


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
