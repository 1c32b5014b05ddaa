"""Rated pairs: candidate reports and their ratings."""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from vlscore.core import file_digest
from vlscore.data import Study
from vlscore.errors import Failure, InvalidSetting
from vlscore.stats import Array, mean_of_defined, without_rounding

if TYPE_CHECKING:
    from pandas import DataFrame

Meaning = Literal["errors", "quality", "ranks"]
# A category of errors, and whether they matter clinically; None if it is not known.
CountKey = tuple[str, bool | None]
MEANINGS: tuple[Meaning, ...] = ("errors", "quality", "ranks")

# For error counts the first two ratings are all errors and the significant ones.
_PRIMARY = 2
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
    scale = np.abs(np.nan_to_num(values)).max(axis=0, initial=0.0)
    return without_rounding(mean_of_defined(values), scale)
