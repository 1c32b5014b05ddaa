"""Oracle search on arrays: the best rows of a corpus for a query, under a metric of embeddings."""

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from vlscore.core import FULL_PRECISION, Registry
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
from vlscore.retrieval.approximate import ApproximateIndex
from vlscore.retrieval.corpus import Array, Corpus, dot, norm, projected, underflow
from vlscore.retrieval.exact import Excluded, Hits, search
from vlscore.retrieval.objectives import Cosine, ImageCentredCosine, Line, SearchObjective

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
        vectors: (n, d) float32, or a Corpus.
        metric: a name in TARGETS.
        C: the constant of VLScore; needed for metric "vlscore".
        image: weight of the image, for the metrics named "image-gain-...".
        guard: "none" (the published score), "segment" or "window"; for "vlscore".
        approximate: take candidates from this index instead of exact search.
        device: device of the matrix products of exact search.

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
    ) -> None:
        self.target = TARGETS.find(metric)
        metric = self.target.name
        if metric == "vlscore" and not (C is not None and C > 0):
            raise InvalidSetting(f"vlscore needs C, a positive number, not {C}")
        if guard != "none" and metric != "vlscore":
            raise InvalidSetting(f"a guard belongs to vlscore, not to {metric}")
        check_weight(image)
        self.corpus = vectors if isinstance(vectors, Corpus) else Corpus(vectors, device=device)
        self.C, self.image, self.guard, self.approximate = C or math.nan, image, guard, approximate

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
        hits = self.hits(images, references, k=k, excluded=excluded)
        found = [self._described(hits, images, references, q) for q in range(len(hits.rows))]
        if ranks and references is not None:
            # A query without a reference has no distances to its hits.
            distances = [[hit.distance for hit in some if hit.distance >= 0] for some in found]
            counts = nearer(self.corpus, np.nan_to_num(references), distances)
            for some, own in zip(found, counts, strict=True):
                for k, count in enumerate(own):
                    some[k] = replace(some[k], distance_rank=count + 1)
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
        if k < 1:
            raise InvalidSetting(f"k must be at least 1, not {k}")
        given = {"image": images, "reference": references}
        for name in self.target.needs:
            value = given[name]
            if value is None or value.ndim != 2 or value.shape[1] != self.corpus.dim:
                shape = None if value is None else value.shape
                raise InvalidSetting(
                    f"{self.target.name} needs {name} embeddings (q, {self.corpus.dim}), "
                    f"not {shape}"
                )
        objective = self.target.objective(images, references, self)
        if self.approximate is not None:
            return self.approximate.search(objective, k, excluded)
        return search(self.corpus, objective, k, excluded)

    def _described(
        self, hits: Hits, images: Array | None, references: Array | None, query: int
    ) -> list[Found]:
        rows = hits.rows[query][hits.rows[query] >= 0]
        costs = hits.costs[query][: len(rows)]
        g, i, r = self.corpus.rows(rows), _vector_of(images, query), _vector_of(references, query)
        area, foot, heights, distance = np.full((4, len(rows)), np.nan)
        if r is not None:
            distance = norm(g - r)
        if i is not None and r is not None:
            edge = r - i
            base = float(norm(edge))
            area = np.zeros(len(rows))
            if base > 0:
                foot, heights = projected(i, g, r, edge, dot(edge, edge))
                area, heights = 0.5 * base * heights, heights / base
        scores = self.target.score(costs, area, (i, g, r), self)
        columns = (each.tolist() for each in (rows, scores, area, foot, heights, distance))
        return [Found(*values) for values in zip(*columns, strict=True)]


Triple = tuple[Any, Array, Any]


@dataclass(frozen=True)
class Target:
    """What a search maximises: a metric of embeddings, or a direction of retrieval.

    Attributes:
        name: as printed.
        needs: which embeddings a query must have: "image", "reference".
        objective: function of images (q, d), references (q, d) and the oracle that returns what
            the search minimises.
        score: function of costs (k,), areas (k,), the vectors of image (d,), rows (k, d) and
            reference (d,), and the oracle, that returns scores (k,).
        rows: kind of the corpus's rows: "report" or "image".
        is_metric: whether it is a metric; a direction of retrieval only ranks.
    """

    name: str
    needs: tuple[str, ...]
    objective: Callable[[Any, Any, Oracle], SearchObjective]
    score: Callable[[Array, Array, Triple, Oracle], Array]
    rows: str = "report"
    is_metric: bool = True


def _point(images: Array, references: Array, weight: float, oracle: Oracle) -> SearchObjective:
    """Return the distance from the point between reference and image: from a line of no length."""
    i, r = np.asarray(images, np.float64), np.asarray(references, np.float64)
    points = (r + weight * i) / (1 + weight)
    return Line(points, points, oracle.corpus, of_area=False)


def _scored_by(function: Callable[..., Any], *, is_weighted: bool = False) -> Callable[..., Array]:
    """Return the score by a function of `vlscore.metrics`, maybe with the weight of the image."""

    def score(costs: Array, area: Array, vectors: Triple, oracle: Oracle) -> Array:
        i, g, r = (np.broadcast_to(x, vectors[1].shape).copy() for x in vectors)
        weights = (oracle.image,) if is_weighted else ()
        values: Array = function(i, g, r, *weights).numpy()
        return values

    return score


def _minus_cost(costs: Array, *_: Any) -> Array:
    return -costs


_IMAGE, _REFERENCE, _BOTH = ("image",), ("reference",), ("image", "reference")

# In what follows, i and r are images and references, o is the oracle.
TARGETS: Registry[Target] = Registry("oracle metric")
for _target in (
    Target(
        "vlscore",
        _BOTH,
        lambda i, r, o: Line(i, r, o.corpus, o.guard),
        lambda costs, area, vectors, o: np.maximum(1 - area / o.C, 0),
    ),
    Target("cosine", _REFERENCE, lambda i, r, o: Cosine(r, o.corpus), _minus_cost),
    Target(
        "image-centred-cosine",
        _BOTH,
        lambda i, r, o: ImageCentredCosine(i, r, o.corpus),
        _minus_cost,
    ),
    Target(
        "clipscore",
        _IMAGE,
        lambda i, r, o: Cosine(i, o.corpus),
        lambda costs, *_: CLIPSCORE_WEIGHT * np.maximum(-costs, 0),
    ),
    Target(
        "height", _BOTH, lambda i, r, o: Line(i, r, o.corpus, of_area=False), _scored_by(height)
    ),
    Target(
        "segment-distance",
        _BOTH,
        lambda i, r, o: Line(i, r, o.corpus, "segment", of_area=False),
        _scored_by(segment_distance),
    ),
    Target(
        "midpoint-distance",
        _BOTH,
        lambda i, r, o: _point(i, r, 1, o),
        _scored_by(midpoint_distance),
    ),
    Target(
        "image-gain-distance",
        _BOTH,
        lambda i, r, o: _point(i, r, o.image, o),
        _scored_by(image_gain_distance, is_weighted=True),
    ),
    Target(
        "image-gain-cosine",
        _BOTH,
        # The cosine with a weighted sum does not depend on the sum's length.
        lambda i, r, o: Cosine(_unit(r) + o.image * _unit(i), o.corpus),
        _scored_by(image_gain_cosine, is_weighted=True),
    ),
    Target(
        "image-to-text", _IMAGE, lambda i, r, o: Cosine(i, o.corpus), _minus_cost, is_metric=False
    ),
    Target(
        "text-to-image",
        _REFERENCE,
        lambda i, r, o: Cosine(r, o.corpus),
        _minus_cost,
        rows="image",
        is_metric=False,
    ),
):
    TARGETS.register(_target, aliases=("text-to-text",) if _target.name == "cosine" else ())


def _unit(vectors: Array) -> Array:
    vectors = np.asarray(vectors, np.float64)
    length = norm(vectors)
    directions: Array = vectors / np.where(length > 0, length, 1)[..., None]
    return directions


def _vector_of(vectors: Array | None, query: int) -> Array | None:
    """Return (d,) float64 of one query; None if it has no such vector."""
    if vectors is None or not np.isfinite(vectors[query]).all():
        return None
    return np.asarray(vectors[query], np.float64)


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
    slack = 4 * (corpus.dim + 16) * 2.0**-24 * (corpus.largest_norm + norm(targets)) ** 2
    slack += underflow(corpus.dim)
    for rows in corpus.chunks():
        # With fewer bits the error of a product would exceed the slack.
        with FULL_PRECISION:
            products = (resident @ corpus.block(rows).T).double()
        squares = (corpus.squared_norms[rows].double() - 2 * products).cpu().numpy()
        squares += dot(targets, targets)[:, None]
        for query, own_limits in enumerate(limits):
            low, high = own_limits**2 - slack[query], own_limits**2 + slack[query]
            own = squares[query]
            order = np.sort(own)
            sure = np.searchsorted(order, low)
            counts[query] += sure
            if (sure == np.searchsorted(order, high, side="right")).all():
                continue
            # Rows so near a limit that only their exact distance decides.
            in_doubt = (own[:, None] >= low) & (own[:, None] <= high)
            doubtful = np.flatnonzero(in_doubt.any(axis=1))
            exact = norm(corpus.rows(doubtful + rows.start) - targets[query])
            counts[query] += (in_doubt[doubtful] & (exact[:, None] < own_limits)).sum(axis=0)
    return [one.tolist() for one in counts]


def recall(oracle: Oracle, images: Any, references: Any, *, k: int = 1) -> float:
    """Return the share of exact search's k best rows that the approximate index also finds."""
    exact = copy(oracle)
    exact.approximate = None
    truth = exact.hits(images, references, k=k).rows
    found = oracle.hits(images, references, k=k).rows
    pairs = [(set(t[t >= 0].tolist()), set(f.tolist())) for t, f in zip(truth, found, strict=True)]
    total = sum(len(t) for t, _ in pairs)
    return sum(len(t & f) for t, f in pairs) / total if total else float("nan")
