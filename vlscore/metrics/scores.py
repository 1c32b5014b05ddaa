"""Scores of one study (`Score`) or of several (`ScoreTable`), with the geometry of their triangle.

The geometry (area, distances, foot) of image, candidate and reference helps to judge a score.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from vlscore.core import Signature, frame_of_columns, plain
from vlscore.errors import VLScoreError
from vlscore.metrics.batch import Computed, EmbeddingTriples, spread
from vlscore.metrics.metric import Metric

if TYPE_CHECKING:
    import pandas

    from vlscore.stats import Interval


NUMBERS = ("area", "image_candidate", "image_reference", "candidate_reference", "foot")
FLAGS = ("candidate_truncated", "reference_truncated")


def geometry(triples: EmbeddingTriples) -> dict[str, NDArray[Any]]:
    """Compute name -> (n,) float64, as far as the embeddings allow; see `Score` for each."""
    import torch

    from vlscore.metrics.similarity import foot, sides

    i, g, r = (
        None if part is None else torch.as_tensor(part)
        for part in (triples.images, triples.candidates, triples.references)
    )
    assert g is not None
    if i is not None and r is not None:
        image_candidate, image_reference, candidate_reference = sides(i, g, r)
        found = {
            "area": triples.areas,
            "image_candidate": image_candidate,
            "image_reference": image_reference,
            "candidate_reference": candidate_reference,
            "foot": foot(i, g, r),
        }
    elif r is not None:
        found = {"candidate_reference": sides(r, g, r)[0]}
    elif i is not None:
        found = {"image_candidate": sides(i, g, i)[0]}
    else:
        found = {}
    return {name: np.array(values.double().numpy()) for name, values in found.items()}


_ROWS_SHOWN = 20
_SHORT = {"image_candidate": "|i-g|", "image_reference": "|i-r|", "candidate_reference": "|g-r|"}


def _of_triangle(name: str, description: str, absent: float = math.nan) -> Any:
    """Return an attribute that a score's `geometry` holds; nan, or `absent`, where it does not."""
    return property(lambda score: score.geometry.get(name, absent), doc=description)


@dataclass(frozen=True)
class Score:
    """Score of one candidate report.

    Attributes:
        values: column -> value of each metric's numbers; the first is `score`.
        geometry: numbers of the triangle image, candidate, reference, as far as these are
            embedded; see `geometry`.
        signatures: metric -> what its value depends on.
        error: why the first metric has no value; None where it has one.
    """

    values: Mapping[str, float]
    geometry: Mapping[str, Any]
    signatures: Mapping[str, Signature]
    error: VLScoreError | None = None

    @property
    def score(self) -> float:
        """Value of the first metric; for VLScore in [0, 1], 1 is best; nan where `error` is set."""
        return next(iter(self.values.values()))

    @property
    def signature(self) -> Signature:
        """Return what the first metric's value depends on."""
        return next(iter(self.signatures.values()))

    area = _of_triangle("area", "T of Eq. 1, in squared units of the embeddings.")
    image_candidate = _of_triangle("image_candidate", "Euclidean distance of image and candidate.")
    image_reference = _of_triangle("image_reference", "Euclidean distance of image and reference.")
    candidate_reference = _of_triangle(
        "candidate_reference", "Euclidean distance of candidate and reference."
    )
    foot = _of_triangle(
        "foot",
        "Where the candidate projects onto the line from image (0) to reference (1). Far outside "
        "[0, 1], a high score means little; nan where image and reference coincide.",
    )
    candidate_truncated = _of_triangle(
        "candidate_truncated", "Whether the encoder did not see the candidate's tail.", False
    )
    reference_truncated = _of_triangle(
        "reference_truncated", "Whether the encoder did not see the reference's tail.", False
    )

    def __float__(self) -> float:
        if self.error is not None:
            raise self.error
        return self.score

    def __str__(self) -> str:
        if self.error is not None:
            return f"failed: {self.error}\n{self.signature}"
        facts = [
            f"{_SHORT.get(name, name)} {value:.4g}"
            for name, value in self.geometry.items()
            if isinstance(value, float)
        ]
        shown = "  ".join(f"{name} {value:.4f}" for name, value in self.values.items())
        behind = f"  ({', '.join(facts)})" if facts else ""
        cut = [
            name for name in ("candidate", "reference") if self.geometry.get(f"{name}_truncated")
        ]
        warning = f"\ntruncated: {', '.join(cut)}" if cut else ""
        lines = "\n".join(map(str, self.signatures.values()))
        return f"{shown}{behind}{warning}\n{lines}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for json: None replaces what is not a finite number."""
        content: dict[str, Any] = plain(
            {
                "score": self.score,
                **self.values,
                **self.geometry,
                "error": None if self.error is None else str(self.error),
                "signature": str(self.signature),
                "signatures": {name: str(each) for name, each in self.signatures.items()},
            }
        )
        return content


@dataclass(frozen=True, eq=False)
class ScoreTable(Sequence[Score]):
    """Values of n studies.

    Attributes:
        values: metric -> its values, in the order asked for.
        geometry: name -> (n,) array, of the embedded triangles; empty without embeddings.
        labels: index of the pandas Series that were scored; None for other arguments.
    """

    values: Mapping[Metric, Computed]
    geometry: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    labels: "pandas.Index[Any] | None" = None

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Return the metrics in order; the first is the score."""
        return tuple(self.values)

    @property
    def first(self) -> Computed:
        """Values of the first metric."""
        return next(iter(self.values.values()))

    @property
    def failures(self) -> dict[int, VLScoreError]:
        """Return row -> error of the first metric without a value; other metrics may have one."""
        found: dict[int, VLScoreError] = {}
        for each in self.values.values():
            for row, error in each.failures.items():
                found.setdefault(row, error)
        return dict(sorted(found.items()))

    def spread(
        self, rows: Sequence[int], count: int, failures: Mapping[int, VLScoreError]
    ) -> "ScoreTable":
        """Return the values of `count` studies, of which these are some rows.

        Args: failures: row -> why the other studies have no value.
        """
        return ScoreTable(
            {m: each.spread(rows, count, failures) for m, each in self.values.items()},
            {name: spread(each, rows, count) for name, each in self.geometry.items()},
        )

    def filled(self, part: "ScoreTable", rows: Sequence[int]) -> "ScoreTable":
        """Return the table with the values of some rows, of those metrics that `part` has."""
        whole = part.spread(rows, len(self), {})
        replaced = set(rows)
        values = dict(self.values)
        for metric, new in whole.values.items():
            old = values[metric]
            columns = [np.array(column) for column in old.columns]
            sums = None if old.statistics is None else np.array(old.statistics)
            for column, own in zip(columns, new.columns, strict=True):
                column[rows] = own[rows]
            if sums is not None and new.statistics is not None:
                sums[rows] = new.statistics[rows]
            kept = {row: error for row, error in old.failures.items() if row not in replaced}
            failures = dict(sorted({**kept, **new.failures}.items()))
            values[metric] = replace(old, columns=columns, statistics=sums, failures=failures)
        geometry = dict(self.geometry)
        for name, own in whole.geometry.items():
            geometry[name] = np.array(geometry.get(name, own))
            geometry[name][rows] = own[rows]
        return ScoreTable(values, geometry)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """Return column -> (n,) array: every metric's numbers, then the geometry; nan if absent."""
        numbers = {
            name: column
            for metric, each in self.values.items()
            for name, column in zip(metric.columns, each.columns, strict=True)
        }
        return {**numbers, **self.geometry}

    @property
    def scores(self) -> NDArray[np.float64]:
        """Return the values of the first metric, (n,) float64."""
        return self.first.columns[0]

    @property
    def signature(self) -> Signature:
        """Return what the first metric's values depend on."""
        return next(iter(self.signatures.values()))

    @property
    def signatures(self) -> dict[str, Signature]:
        """Return metric -> what its values depend on."""
        found = {metric.columns[0]: each.signature for metric, each in self.values.items()}
        return {name: signature for name, signature in found.items() if signature is not None}

    def mean(self) -> float:
        """Mean of the first metric over the studies that have a value; nan if none has."""
        valid = self.scores[np.isfinite(self.scores)]
        return float(valid.mean()) if len(valid) else float("nan")

    def interval(self, *, seed: int = 0) -> "Interval | None":
        """Mean of the first metric with a 95 % bootstrap interval; None if nothing has a value."""
        from vlscore.stats import bootstrap_mean

        valid = self.scores[np.isfinite(self.scores)]
        return bootstrap_mean(valid, seed=seed) if len(valid) else None

    def __len__(self) -> int:
        return len(next(iter(self.values.values())).columns[0])

    @overload
    def __getitem__(self, position: int) -> Score: ...
    @overload
    def __getitem__(self, position: slice) -> list[Score]: ...
    def __getitem__(self, position: int | slice) -> Score | list[Score]:
        if isinstance(position, slice):
            return [self[k] for k in range(*position.indices(len(self)))]
        first = next(iter(self.values.values()))
        count = len(first.columns[0])
        if not -count <= position < count:
            raise IndexError(f"the table has {count} scores, but no score {position}")
        row = position % count
        return Score(
            values={
                name: float(column[row])
                for metric, each in self.values.items()
                for name, column in zip(metric.columns, each.columns, strict=True)
            },
            geometry={name: column[row].item() for name, column in self.geometry.items()},
            signatures=self.signatures,
            error=first.failures.get(row),
        )

    def __iter__(self) -> Iterator[Score]:
        return (self[position] for position in range(len(self)))

    def __float__(self) -> float:
        raise TypeError(
            "a ScoreTable is not a single number: use .mean() or .scores. A list of images is a "
            "batch of studies; write several views of one study as a tuple"
        )

    def to_pandas(self) -> "pandas.DataFrame":
        """Return one row a study, with its label; `attrs` holds the signatures. Needs pandas."""
        failures = self.failures
        errors = [str(failures[k]) if k in failures else None for k in range(len(self))]
        found = frame_of_columns({**self.columns, "error": errors}, self.signatures)
        return found if self.labels is None else found.set_axis(self.labels)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for json: None replaces what is not a finite number."""
        content: dict[str, Any] = plain(
            {
                "signatures": {name: str(each) for name, each in self.signatures.items()},
                "failures": {str(row): str(error) for row, error in self.failures.items()},
                **{name: values.tolist() for name, values in self.columns.items()},
            }
        )
        return content

    def __str__(self) -> str:
        names = [
            *(name for metric in self.values for name in metric.columns),
            *(name for name in ("area", "foot") if name in self.geometry),
        ]
        widths = [max(len(name), 10) for name in names]
        columns = self.columns
        head = "study  " + "  ".join(f"{n:>{w}}" for n, w in zip(names, widths, strict=True))
        shown = [
            f"{k:5d}  "
            + "  ".join(f"{columns[n][k]:{w}.4f}" for n, w in zip(names, widths, strict=True))
            for k in range(min(len(self), _ROWS_SHOWN))
        ]
        more = len(self) - _ROWS_SHOWN
        interval = self.interval()
        mean = "mean   nothing was scored"
        if interval is not None:
            from vlscore.stats import interval as shown_interval

            count = int(np.isfinite(self.scores).sum())
            mean = f"mean   {shown_interval(interval, 4)} of {count}"
        return "\n".join(
            [
                head,
                *shown,
                *([f"  ... {more} more"] if more > 0 else []),
                mean,
                *([f"{len(self.failures)} failed"] if self.failures else []),
                *map(str, self.signatures.values()),
            ]
        )
