"""Oracle search on arrays: the best rows of a corpus for a query, under a metric of embeddings."""

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vlscore.core import Registry, plain_name, split_call
from vlscore.errors import InvalidSetting, UnknownName
from vlscore.metrics import (
    CLIPSCORE_WEIGHT,
    METRICS,
    Metric,
    Plan,
    find_metric,
    height,
    image_gain_cosine,
    image_gain_distance,
    midpoint_distance,
    segment_distance,
)
from vlscore.retrieval.approximate import ApproximateIndex
from vlscore.retrieval.corpus import Array, Corpus, directions_of, dot, norm, projected
from vlscore.retrieval.exact import Excluded, Hits, search
from vlscore.retrieval.objectives import Cosine, ImageCentredCosine, Line, SearchObjective
from vlscore.retrieval.ranks import nearer


@dataclass(frozen=True)
class Hit:
    """Row of a corpus that was found for a study.

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
        metric: as of `OracleSettings`, without the metrics of texts.
        C: the constant of VLScore, unless the metric has its own.
        guard: "none" (the published score), "segment" or "window"; for "vlscore".
        approximate: take candidates from this index instead of exact search.
        device: device of the matrix products of exact search.

    Raises: UnknownName, InvalidSetting.
    """

    def __init__(
        self,
        vectors: Array | Corpus,
        *,
        metric: Any = "vlscore",
        C: float | None = None,
        guard: str = "none",
        approximate: ApproximateIndex | None = None,
        device: str = "cpu",
    ) -> None:
        self.target = find_target(metric)
        if self.target.reads_texts:
            raise InvalidSetting(f"{self.target.name} is of texts: TextSearch searches by it")
        parameters = self.target.metric.settings
        if "C" in parameters:
            C = C if parameters["C"] is None else float(parameters["C"])
            if C is None or not C > 0:
                raise InvalidSetting(f"vlscore needs C, a positive number, not {C}")
        self.target.check_guard(guard)
        self.corpus = vectors if isinstance(vectors, Corpus) else Corpus(vectors, device=device)
        self.C, self.guard, self.approximate = C or math.nan, guard, approximate
        self.image = float(parameters.get("image") or 1.0)

    def search(
        self,
        images: Array | None,
        references: Array | None,
        *,
        k: int = 10,
        excluded: Excluded | None = None,
        ranks: bool = False,
    ) -> list[list[Hit]]:
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
    ) -> list[Hit]:
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
        return [Hit(*values) for values in zip(*columns, strict=True)]


Triple = tuple[Any, Array, Any]


@dataclass(frozen=True)
class Target:
    """What a search maximises: a metric, or a direction of retrieval.

    Attributes:
        name: as printed, with the metric's parameters.
        metric: of the scores; for a direction of retrieval, the one that is the same cosine.
        needs: which inputs a query must have: "image", "reference".
        objective: function of images (q, d), references (q, d) and the oracle that returns what
            the search by embeddings minimises; for a metric of texts, how candidates are found.
        score: function of costs (k,), areas (k,), the vectors of image (d,), rows (k, d) and
            reference (d,), and the oracle, that returns scores (k,).
        rows: kind of the corpus's rows: "report" or "image".
        is_metric: whether it is a metric; a direction of retrieval only ranks.
    """

    name: str
    metric: Metric
    needs: tuple[str, ...]
    objective: Callable[[Any, Any, Oracle], SearchObjective]
    score: Callable[[Array, Array, Triple, Oracle], Array]
    rows: str = "report"
    is_metric: bool = True

    @property
    def reads_texts(self) -> bool:
        """Whether the metric scores texts, not embeddings."""
        return not self.metric.uses_embeddings

    def check_guard(self, guard: str) -> None:
        """Raise InvalidSetting for a guard of another metric than vlscore."""
        if guard != "none" and self.metric.name != "vlscore":
            raise InvalidSetting(f"a guard belongs to vlscore, not to {self.name}")


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


def _metric(
    name: str,
    objective: Callable[[Any, Any, Oracle], SearchObjective],
    score: Callable[[Array, Array, Triple, Oracle], Array] = _minus_cost,
) -> Target:
    metric = find_metric(name)
    inputs = {"image": metric.uses_image, "reference": metric.uses_reference}
    return Target(name, metric, tuple(each for each in inputs if inputs[each]), objective, score)


# In what follows, i and r are images and references, o is the oracle.
TARGETS: Registry[Target] = Registry("oracle metric")
for _target in (
    _metric(
        "vlscore",
        lambda i, r, o: Line(i, r, o.corpus, o.guard),
        lambda costs, area, vectors, o: np.maximum(1 - area / o.C, 0),
    ),
    _metric("cosine", lambda i, r, o: Cosine(r, o.corpus)),
    _metric("image-centred-cosine", lambda i, r, o: ImageCentredCosine(i, r, o.corpus)),
    _metric(
        "clipscore",
        lambda i, r, o: Cosine(i, o.corpus),
        lambda costs, *_: CLIPSCORE_WEIGHT * np.maximum(-costs, 0),
    ),
    _metric("height", lambda i, r, o: Line(i, r, o.corpus, of_area=False), _scored_by(height)),
    _metric(
        "segment-distance",
        lambda i, r, o: Line(i, r, o.corpus, "segment", of_area=False),
        _scored_by(segment_distance),
    ),
    _metric("midpoint-distance", lambda i, r, o: _point(i, r, 1, o), _scored_by(midpoint_distance)),
    _metric(
        "image-gain-distance",
        lambda i, r, o: _point(i, r, o.image, o),
        _scored_by(image_gain_distance, is_weighted=True),
    ),
    _metric(
        "image-gain-cosine",
        # The cosine with a weighted sum does not depend on the sum's length.
        lambda i, r, o: Cosine(
            directions_of(np.asarray(r, np.float64))
            + o.image * directions_of(np.asarray(i, np.float64)),
            o.corpus,
        ),
        _scored_by(image_gain_cosine, is_weighted=True),
    ),
    Target(
        "image-to-text",
        find_metric("clipscore"),
        ("image",),
        lambda i, r, o: Cosine(i, o.corpus),
        _minus_cost,
        is_metric=False,
    ),
    Target(
        "text-to-image",
        find_metric("clipscore"),
        ("reference",),
        lambda i, r, o: Cosine(r, o.corpus),
        _minus_cost,
        rows="image",
        is_metric=False,
    ),
):
    TARGETS.register(_target, aliases=("text-to-text",) if _target.name == "cosine" else ())


def find_target(metric: Any) -> Target:
    """Return what an oracle maximises, for a name in any spelling, with parameters, or a Metric.

    Raises: UnknownName; InvalidSetting for a metric that an oracle cannot maximise.

    >>> find_target("image_centred_cosine").name, find_target("Text-to-Text").name
    ('image-centred-cosine', 'cosine')
    >>> find_target("bleu-4(smoothing=exp)").reads_texts
    True
    """
    if isinstance(metric, Target):
        return metric
    if not isinstance(metric, str):
        metric = METRICS.find(metric)
    name = metric.name if isinstance(metric, Metric) else split_call(metric)[0]
    if name in TARGETS:
        target = TARGETS.find(name)
        if not target.is_metric:
            if plain_name(str(metric)) != plain_name(name):
                raise InvalidSetting(f"{target.name} has no parameters")
            return target
        if isinstance(metric, str):
            # The registry of metrics does not know aliases of the search, such as text-to-text.
            metric = target.metric(**split_call(metric)[1])
        return replace(target, name=str(metric), metric=metric)
    try:
        found = find_metric(metric)
    except UnknownName:
        meant = METRICS.similar_to(name)
        hint = f"did you mean {' or '.join(meant)}? " if meant else ""
        texts = [each for each, other in METRICS.items() if not other.uses_embeddings]
        raise UnknownName(
            f"no oracle metric is called {metric!r}; {hint}Of embeddings: {', '.join(TARGETS)}; "
            f"of texts: {', '.join(texts)}"
        ) from None
    needs = Plan([found]).needs
    if needs.embeddings or needs.images:
        raise InvalidSetting(
            f"no oracle searches by {found}; choose {', '.join(TARGETS)}, or a metric of texts"
        )
    return replace(TARGETS.find("cosine"), name=str(found), metric=found)


def _vector_of(vectors: Array | None, query: int) -> Array | None:
    """Return (d,) float64 of one query; None if it has no such vector."""
    if vectors is None or not np.isfinite(vectors[query]).all():
        return None
    return np.asarray(vectors[query], np.float64)


def recall(oracle: Oracle, images: Any, references: Any, *, k: int = 1) -> float:
    """Return the share of exact search's k best rows that the approximate index also finds."""
    exact = copy(oracle)
    exact.approximate = None
    truth = exact.hits(images, references, k=k).rows
    found = oracle.hits(images, references, k=k).rows
    pairs = [(set(t[t >= 0].tolist()), set(f.tolist())) for t, f in zip(truth, found, strict=True)]
    total = sum(len(t) for t, _ in pairs)
    return sum(len(t & f) for t, f in pairs) / total if total else float("nan")
