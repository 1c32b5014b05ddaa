"""Scores: one, or a table of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.errors import VLScoreError
from vlscore.scorer.signature import Signature

COLUMNS: dict[str, type] = {
    "score": float,
    "area": float,
    "image_candidate": float,
    "image_reference": float,
    "candidate_reference": float,
    "foot": float,
    "candidate_truncated": bool,
    "reference_truncated": bool,
}


@dataclass(frozen=True)
class Score:
    """How well one candidate report fits an image and its reference report.

    Attributes:
        score: value of the similarity; for VLScore in [0, 1], 1 is best.
        area: T of Eq. 1, in squared units of the embeddings.
        image_candidate, image_reference, candidate_reference: Euclidean distances.
        foot: where the candidate projects onto the line from image (0) to reference (1); nan
            where the two coincide. Far outside [0, 1], a high score means little.
        candidate_truncated, reference_truncated: the encoder did not see the text's tail.
        signature: what the score depends on.
    """

    score: float
    area: float
    image_candidate: float
    image_reference: float
    candidate_reference: float
    foot: float
    candidate_truncated: bool
    reference_truncated: bool
    signature: Signature

    def __float__(self) -> float:
        return self.score

    def __str__(self) -> str:
        cut = [
            name
            for name, truncated in (
                ("candidate", self.candidate_truncated),
                ("reference", self.reference_truncated),
            )
            if truncated
        ]
        warning = f"\ntruncated: {', '.join(cut)}" if cut else ""
        return (
            f"{self.signature.similarity} {self.score:.4f}  (area {self.area:.4g}, "
            f"|i-g| {self.image_candidate:.4g}, |i-r| {self.image_reference:.4g}, "
            f"|g-r| {self.candidate_reference:.4g}, foot {self.foot:.3f}){warning}\n"
            f"{self.signature}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for json."""
        values = {name: kind(getattr(self, name)) for name, kind in COLUMNS.items()}
        return {**values, "signature": str(self.signature)}


@dataclass(frozen=True, eq=False)
class ScoreTable(Sequence[Score]):
    """Scores of n studies under one signature.

    Attributes:
        columns: name -> (n,) array, the fields of `Score`; failed studies hold nan.
        signature: what the scores depend on.
        failures: position -> why there is no score.
    """

    columns: Mapping[str, NDArray[Any]]
    signature: Signature
    failures: Mapping[int, VLScoreError] = field(default_factory=dict)

    @property
    def scores(self) -> NDArray[np.float64]:
        """(n,) float64."""
        return self.columns["score"]

    def mean(self) -> float:
        """Mean score over the studies that have one; nan if none has."""
        valid = self.scores[~np.isnan(self.scores)]
        return float(valid.mean()) if len(valid) else float("nan")

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, position: Any) -> Any:
        if isinstance(position, slice):
            return [self[k] for k in range(*position.indices(len(self)))]
        if not -len(self) <= position < len(self):
            raise IndexError(f"no score {position} in a table of {len(self)}")
        values = {name: kind(self.columns[name][position]) for name, kind in COLUMNS.items()}
        return Score(**values, signature=self.signature)

    def __iter__(self) -> Iterator[Score]:
        return (self[position] for position in range(len(self)))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for json."""
        return {
            "signature": str(self.signature),
            "failures": {position: str(error) for position, error in self.failures.items()},
            **{name: values.tolist() for name, values in self.columns.items()},
        }

    def __str__(self) -> str:
        shown = [
            f"{k:5d}  {self.scores[k]:8.4f}  {self.columns['area'][k]:10.4g}  "
            f"{self.columns['foot'][k]:7.3f}"
            for k in range(min(len(self), 20))
        ]
        more = [f"  ... {len(self) - 20} more"] if len(self) > 20 else []
        failed = [f"{len(self.failures)} failed"] if self.failures else []
        return "\n".join(
            [
                "study     score        area     foot",
                *shown,
                *more,
                f"mean  {self.mean():9.4f}  of {len(self) - len(self.failures)}",
                *failed,
                str(self.signature),
            ]
        )
