"""Oracle search on arrays: the best rows of a corpus for a query, under a metric of embeddings.

`Shards` splits a corpus among processes that torchrun started. Costs are float64 and have the same
bits in any shard, so merging the shards' best k by (cost, row) gives exactly the result of one
search over the whole corpus.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from vlscore.core import FULL_PRECISION, Place, ProcessLost
from vlscore.errors import InvalidSetting
from vlscore.metrics import (
    CLIPSCORE_WEIGHT,
    check_weight,
    height,
    image_gain_cosine,
    image_gain_distance,
    midpoint_distance,
    segment_distance,
)
from vlscore.retrieval.vector_search.approximate import ApproximateIndex
from vlscore.retrieval.vector_search.corpus import Array, Corpus, Norms, cosines, dot, feet, norm
from vlscore.retrieval.vector_search.exact import Excluded, Hits, merge, search
from vlscore.retrieval.vector_search.objectives import (
    OBJECTIVES,
    Cosine,
    ImageCentredCosine,
    Line,
    Point,
    SearchObjective,
)


class Shards:
    """Rank of this process among `count` processes; the default is a single process."""

    def __init__(self, rank: int = 0, count: int = 1, device: str = "cpu") -> None:
        self.rank, self.count = rank, count
        self._device = torch.device(device)

    @classmethod
    def from_torchrun(cls, device: str | None = None) -> "Shards":
        """Join the processes of torchrun (NCCL on GPUs, else gloo), if it started this one.

        Args: device: the user's choice; see `Place.own_device`.
        Raises: InvalidSetting, as `Place.own_device`.
        """
        place = Place.launched()
        if place.count == 1:
            return cls()
        own = place.own_device(device)
        place.join(own)
        return cls(place.rank, place.count, own or "cpu")

    @property
    def device(self) -> str:
        """Return the device of this process's shard."""
        return str(self._device)

    def close(self) -> None:
        """Leave the group of processes."""
        Place(self.rank, self.count).leave()

    def range(self, rows: int) -> slice:
        """Return this process's part of this number of rows."""
        return slice(rows * self.rank // self.count, rows * (self.rank + 1) // self.count)

    def broadcast(self, values: Any) -> Any:
        """Send values of the first process to all: arrays, numbers, texts, dicts of them.

        Raises: ProcessLost in the other processes, if the first has ended.
        """
        if self.count == 1:
            return values
        box = [values]
        try:
            dist.broadcast_object_list(box, src=0, device=self._device)
        except RuntimeError:
            if self.rank == 0:
                raise
            raise ProcessLost("the first process has ended; its own message says why") from None
        return box[0]

    def merge(self, hits: Hits) -> Hits:
        """Return the best of all shards' hits."""
        if self.count == 1:
            return hits
        rows, costs = self._gather(hits.rows), self._gather(hits.costs)
        merged = Hits(np.full_like(hits.rows, -1), np.full_like(hits.costs, np.inf))
        for shard_rows, shard_costs in zip(rows, costs, strict=True):
            for query in range(len(merged.rows)):
                kept = shard_rows[query] >= 0
                merge(merged, query, shard_rows[query][kept], shard_costs[query][kept])
        return merged

    def gather_vectors(self, corpus: Corpus, rows: Array) -> list[Array]:
        """Return float64 vectors of the rows (q, k) from all shards, k' of each query."""
        vectors = np.zeros((*rows.shape, corpus.dim))
        mine = (rows >= corpus.start) & (rows < corpus.start + len(corpus))
        vectors[mine] = corpus.rows(rows[mine])
        # Every row lies in one shard and is 0 in the others, so adding up changes no bit.
        total = self._sum(vectors)
        return [total[query][rows[query] >= 0] for query in range(len(rows))]

    def add(self, counts: Sequence[Sequence[int]]) -> list[list[int]]:
        """Add up the counts of all shards."""
        if self.count == 1:
            return [list(row) for row in counts]
        flat = self._sum(np.array([n for row in counts for n in row], np.int64)).tolist()
        numbers = iter(flat)
        return [[next(numbers) for _ in row] for row in counts]

    def _gather(self, values: Array) -> list[Array]:
        mine = torch.from_numpy(values).to(self._device)
        all_values = [torch.empty_like(mine) for _ in range(self.count)]
        dist.all_gather(all_values, mine)
        return [part.cpu().numpy() for part in all_values]

    def _sum(self, values: Array) -> Array:
        if self.count == 1:
            return values
        total = torch.from_numpy(values).to(self._device)
        dist.all_reduce(total)
        return total.cpu().numpy()


# Limit of rows below which exact search answers hundreds of queries a second on one core.
EXACT_UP_TO = 1_000_000


@dataclass(frozen=True)
class Found:
    """Row that the oracle found for a study.

    Attributes:
        row: its number in the corpus.
        score: under the metric; VLScore is the published one, with any guard.
        area: of the triangle image, row, reference; nan if the query lacks one of them.
        foot: where the row projects onto the line image (0) to reference (1); nan where none is.
        height: distance to that line in units of |reference - image|.
        distance: |row - reference|; nan without a reference.
        distance_rank: by that distance among all rows of the corpus, 1 the nearest, equals sharing
            the best rank; None if not asked.
    """

    row: int
    score: float
    area: float = math.nan
    foot: float = math.nan
    height: float = math.nan
    distance: float = math.nan
    distance_rank: int | None = None


class Oracle:
    """Search of a corpus for the best rows of a query.

    Args:
        vectors: (n, d) float32, or a Corpus, which may be a shard.
        metric: a name in OBJECTIVES.
        C: the constant of VLScore; needed for metric "vlscore".
        image: weight of the image, for the metrics named "image-gain-...".
        guard: "none" (the published score), "segment" or "window"; for "vlscore".
        approximate: take candidates from this index instead of exact search.
        device: device of the matrix products of exact search.
        shards: rank of this process among several; the corpus is then one shard.

    Raises: UnknownName, InvalidSetting.
    """

    def __init__(
        self,
        vectors: Array | Corpus,
        *,
        metric: str = "vlscore",
        C: float | None = None,
        image: float = 1.0,
        guard: str = "none",
        approximate: ApproximateIndex | None = None,
        device: str = "cpu",
        shards: Shards | None = None,
    ) -> None:
        self._objective = OBJECTIVES.find(metric)
        metric = self._objective.name
        if metric == "vlscore" and not (C is not None and C > 0):
            raise InvalidSetting(f"vlscore needs C, a positive number, not {C}")
        if guard != "none" and metric != "vlscore":
            raise InvalidSetting(f"a guard belongs to vlscore, not to {metric}")
        self.corpus = vectors if isinstance(vectors, Corpus) else Corpus(vectors, device=device)
        check_weight(image)
        self.metric, self.C, self.image, self.guard = metric, C, image, guard
        self.approximate = approximate
        self.shards = shards or Shards()

    def search(
        self,
        images: Array | None,
        references: Array | None,
        *,
        k: int = 10,
        excluded: Excluded | None = None,
        ranks: bool = False,
    ) -> list[list[Found]]:
        """Return the k best rows of each query, best first; fewer if fewer qualify.

        Args:
            images, references: (q, d) embeddings; None if the metric does not need them. Embeddings
                that it does not need describe the hits, and may be nan for some queries.
            excluded: query -> rows it must not find.
            ranks: also rank each hit by its distance to the reference, which costs another
                product.

        Raises: InvalidSetting for a missing embedding or another dimension.
        """
        if k < 1:
            raise InvalidSetting(f"k must be at least 1, not {k}")
        hits = self.hits(images, references, k=k, excluded=excluded)
        described = self.shards.gather_vectors(self.corpus, hits.rows)
        found = [
            [self._found(rows[j], described[q][j], images, references, q) for j in range(len(rows))]
            for q, rows in enumerate(row[row >= 0].tolist() for row in hits.rows)
        ]
        if ranks and references is not None:
            return self._with_ranks(found, references)
        return found

    def hits(
        self,
        images: Array | None,
        references: Array | None,
        *,
        k: int,
        excluded: Excluded | None = None,
    ) -> Hits:
        """Return rows and costs alone; costs are areas, or minus cosines."""
        objective = self.objective(images, references)
        if self.approximate is not None:
            return self.approximate.search(objective, k, excluded)
        return self.shards.merge(search(self.corpus, objective, k, excluded))

    def objective(self, images: Array | None, references: Array | None) -> SearchObjective:
        """Return the objective that a search of these queries minimises."""
        given = {"image": images, "reference": references}
        vectors = []
        for name in self._objective.needs:
            value = given[name]
            if value is None or value.ndim != 2 or value.shape[1] != self.corpus.dim:
                shape = None if value is None else value.shape
                raise InvalidSetting(
                    f"{self.metric} needs {name} embeddings (q, {self.corpus.dim}), not {shape}"
                )
            vectors.append(value)
        return _objective(self.metric, vectors, self.corpus.norms, self.guard, self.image)

    def _found(
        self, row: int, vector: Array, images: Array | None, references: Array | None, query: int
    ) -> Found:
        g, i, r = vector[None], _vector_of(images, query), _vector_of(references, query)
        foot = height = area = distance = np.nan
        if r is not None:
            distance = float(norm(g - r)[0])
        if i is not None and r is not None:
            base = float(norm((r - i)[None])[0])
            area = 0.0
            if base > 0:
                feet_, heights, _ = feet(i, g, r)
                foot, height = float(feet_[0]), float(heights[0]) / base
                area = 0.5 * base * float(heights[0])
        score = self._score(g, i, r, area)
        return Found(row, score, area, foot, height, distance)

    def _score(self, g: Array, i: Array | None, r: Array | None, area: float) -> float:
        if self.metric == "vlscore":
            assert self.C is not None
            return max(1 - area / self.C, 0.0)
        if self._objective.needs == ("image", "reference"):
            assert i is not None
            assert r is not None
            return _score_of_both(self.metric, i, g, r, self.image)
        vector = i if self._objective.needs == ("image",) else r
        assert vector is not None
        cosine = float(cosines(g, vector)[0])
        return CLIPSCORE_WEIGHT * max(cosine, 0.0) if self.metric == "clipscore" else cosine

    def _with_ranks(self, found: list[list[Found]], references: Array) -> list[list[Found]]:
        # Without a reference a query has no distances to its hits.
        ranked = [
            hits if _vector_of(references, q) is not None else [] for q, hits in enumerate(found)
        ]
        distances = [[hit.distance for hit in hits] for hits in ranked]
        counts = self.shards.add(nearer(self.corpus, np.nan_to_num(references), distances))
        return [
            [replace(hit, distance_rank=int(n) + 1) for hit, n in zip(hits, count, strict=True)]
            or unranked
            for hits, count, unranked in zip(ranked, counts, found, strict=True)
        ]


def _objective(
    metric: str, vectors: Sequence[Array], norms: Norms, guard: str, image: float
) -> SearchObjective:
    if len(vectors) == 1:
        return Cosine(vectors[0], norms)
    images, references = vectors
    if metric == "vlscore":
        return Line(images, references, norms, guard)
    if metric == "height":
        return Line(images, references, norms, of_area=False)
    if metric == "segment-distance":
        return Line(images, references, norms, "segment", of_area=False)
    if metric == "image-centred-cosine":
        return ImageCentredCosine(images, references, norms)
    images, references = (np.asarray(x, np.float64) for x in vectors)
    if metric == "image-gain-cosine":
        # Rows are ranked by their cosine with this sum, which does not depend on its length.
        return Cosine(_unit(references) + image * _unit(images), norms)
    weight = image if metric == "image-gain-distance" else 1.0
    return Point((references + weight * images) / (1 + weight), norms)


def _score_of_both(metric: str, i: Array, g: Array, r: Array, image: float) -> float:
    """Compute the score of one row g (1, d), as `vlscore.metrics.similarity` defines it."""
    if metric == "image-centred-cosine":
        return float(cosines(g - i, r - i)[0])
    function = {
        "height": height,
        "segment-distance": segment_distance,
        "midpoint-distance": midpoint_distance,
    }.get(metric)
    if function is not None:
        return float(function(i, g, r))
    weighed = {"image-gain-distance": image_gain_distance, "image-gain-cosine": image_gain_cosine}
    return float(weighed[metric](i, g, r, image))


def _unit(vectors: Array) -> Array:
    length = norm(vectors)
    directions: Array = vectors / np.where(length > 0, length, 1)[..., None]
    return directions


def nearer(
    corpus: Corpus, references: Array, distances: Sequence[Sequence[float]]
) -> list[list[int]]:
    """Count exactly how many rows of the corpus are nearer to each reference than each distance.

    Args: references: (q, d). distances: any number for each of the q references.
    """
    targets = np.asarray(references, np.float64)
    limits = [np.asarray(one, np.float64) for one in distances]
    counts = [np.zeros(len(one), np.int64) for one in limits]
    resident = torch.from_numpy(targets.astype(np.float32)).to(corpus.device)
    reach = corpus.norms.largest + norm(targets)
    slack = 4 * (corpus.dim + 16) * 2.0**-24 * reach**2
    own = dot(targets, targets)
    for rows in corpus.chunks():
        # With fewer bits the error of a product would exceed the slack.
        with FULL_PRECISION:
            products = (resident @ corpus.block(rows).T).double()
        squares = (corpus.squared_norms[rows].double() - 2 * products).cpu().numpy() + own[:, None]
        for query, wanted in enumerate(limits):
            if len(wanted):
                counts[query] += _count_below(
                    squares[query], wanted, slack[query], corpus, rows.start, targets[query]
                )
    return [one.tolist() for one in counts]


def _count_below(
    squares: Array, limits: Array, slack: float, corpus: Corpus, start: int, target: Array
) -> Array:
    """Count rows of a chunk nearer than each limit; uncertain ones are measured exactly."""
    low, high = limits**2 - slack, limits**2 + slack
    order = np.sort(squares)
    sure = np.searchsorted(order, low)
    if (sure == np.searchsorted(order, high, side="right")).all():
        return sure
    in_doubt = (squares[:, None] >= low) & (squares[:, None] <= high)
    doubtful = np.flatnonzero(in_doubt.any(axis=1))
    exact = norm(corpus.rows(doubtful + start + corpus.start) - target)
    counts: Array = sure + (in_doubt[doubtful] & (exact[:, None] < limits)).sum(axis=0)
    return counts


def recall(oracle: Oracle, images: Any, references: Any, *, k: int = 1) -> float:
    """Return the share of exact search's k best rows that the approximate index also finds."""
    exact = Oracle(
        oracle.corpus, metric=oracle.metric, C=oracle.C, image=oracle.image, guard=oracle.guard
    )
    truth = exact.hits(images, references, k=k).rows
    found = oracle.hits(images, references, k=k).rows
    pairs = [(set(t[t >= 0].tolist()), set(f.tolist())) for t, f in zip(truth, found, strict=True)]
    total = sum(len(t) for t, _ in pairs)
    return sum(len(t & f) for t, f in pairs) / total if total else float("nan")


def _vector_of(vectors: Array | None, query: int) -> Array | None:
    """Return (d,) float64 of one query; None if it has no such vector."""
    if vectors is None or not np.isfinite(vectors[query]).all():
        return None
    return np.asarray(vectors[query], np.float64)
