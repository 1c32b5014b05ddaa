"""Rated pairs as plain data: what raters said of candidate reports."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vlscore.studies import BadRow, StudyImages

Array = NDArray[np.float64]
Meaning = Literal["errors", "quality", "ranks"]
# A category of errors, and whether they matter clinically; None where nobody said.
CountKey = tuple[str, bool | None]
MEANINGS: tuple[Meaning, ...] = ("errors", "quality", "ranks")

TOTAL, SIGNIFICANT, INSIGNIFICANT = "total errors", "significant errors", "insignificant errors"


@dataclass(frozen=True, eq=False)
class RatedPairs:
    """n candidate reports, each with its reference, and what k raters said of them.

    Attributes:
        studies: the study of each pair; candidates of one study have one reference.
        candidates: what tells the candidates of one study apart.
        raters: their names.
        ratings: name of a rating -> (k, n) float64; nan where a rater did not rate a pair. Error
            counts have "total errors", "significant errors", "insignificant errors" as far as
            significance is known, then every category's errors, significant or not.
        counts: of error counts, (category, whether significant) -> (k, n), what `ratings` sums up;
            empty where errors were not counted by category.
        meaning: "errors" (more is worse), "quality" (more is better), or "ranks" (1 is the best
            candidate of its study; ranks of two studies cannot be compared).
        references, texts: the reports; None where the set does not bring them.
        images: of each pair's study, None where it has none; None where the set brings none.
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
    bad: tuple[BadRow, ...] = ()
    notes: tuple[str, ...] = field(default=())
    files: tuple[Path, ...] = ()
    counts: Mapping[CountKey, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.studies)

    @property
    def source(self) -> str:
        """What to call the set in messages."""
        return str(self.files[0]) if self.files else "the rated set"

    @cached_property
    def sha256(self) -> str:
        """Of ids, reports, image paths and ratings, hexadecimal."""
        shown = [
            None if each is None else list(map(str, each.images)) for each in self.images or ()
        ]
        texts = [self.studies, self.candidates, self.references, self.texts, shown]
        facts = json.dumps([*texts, self.raters, list(self.ratings), self.meaning])
        digest = hashlib.sha256(facts.encode("utf-8"))
        for values in self.ratings.values():
            digest.update(np.ascontiguousarray(values, dtype="<f8").tobytes())
        return digest.hexdigest()

    @property
    def sign(self) -> int:
        """1 where a larger rating is a better report, else -1."""
        return 1 if self.meaning == "quality" else -1

    @cached_property
    def means(self) -> dict[str, Array]:
        """Name of a rating -> (n,) mean over the raters who rated the pair; nan where none did."""
        return {name: mean_of_raters(values) for name, values in self.ratings.items()}

    def with_images(self, images: Mapping[str, StudyImages]) -> "RatedPairs":
        """The same pairs with the images of each study, by its id."""
        return replace(self, images=tuple(images.get(study) for study in self.studies))


def mean_of_raters(values: Array) -> Array:
    """(k, n) -> (n,) means without nan; equal sums of equally many raters give equal means."""
    rated = ~np.isnan(values)
    counts = rated.sum(axis=0)
    sums = np.where(rated, values, 0.0).sum(axis=0)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
