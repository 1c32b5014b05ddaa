"""Targets of a search by name, and the objectives that it minimises for them.

An objective has a fast float32 key and an exact float64 cost.

Each objective is linear in the corpus up to a cheap last step, so that one matrix product serves
all queries. Its key has a proven bound: `bound(key)` is never above the float64 cost, for any
order of summation in the product. The search is exact because of that bound, not because the
shortlist is long.

Source of the line's form: h²(g) = |g|² - 2⟨g,o⟩ + |o|² - ⟨g,u⟩², u the unit direction from image to
reference, o the point of the line nearest the origin. Bounds on rounding: Higham, Accuracy and
Stability of Numerical Algorithms, 2nd ed., section 3.1.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from vlscore.core import Registry
from vlscore.errors import InvalidSetting
from vlscore.retrieval.search_settings import GUARDS
from vlscore.retrieval.vector_search.corpus import (
    LARGEST_NORM,
    Array,
    Norms,
    cosines,
    dot,
    norm,
    projected,
)

# Range of the foot for the guard "window": only rows near the reference, 1, qualify.
WINDOW = (0.5, 1.5)

_UNIT_ROUNDOFF = 2.0**-24
_SMALLEST_NORM = 1e-15


class SearchObjective(ABC):
    """Search objective of q queries; the row of smallest cost is the best.

    Attributes:
        weights: (c·q, d) float32; c products with the corpus per query.
        constant: (q,) bool; True if every row has the same cost.
        origins, directions: (q, d) float64, the line of each query along which candidates lie.
    """

    weights: Array
    constant: Array
    origins: Array
    directions: Array

    def __len__(self) -> int:
        return len(self.constant)

    @abstractmethod
    def keys(self, products: tuple[Tensor, ...], squared_norms: Tensor, queries: Array) -> Tensor:
        """Compute keys (q', n) in place from c products (q', n) and the rows' squared norms."""

    @abstractmethod
    def bound(self, keys: Array, queries: Array) -> Array:
        """Return lower bounds (q', m) float64 of the costs of rows with these keys (q', m)."""

    @abstractmethod
    def costs(self, query: int | Array, rows: Array) -> Array:
        """Compute exact costs (..., m) of rows (..., m, d) float64; inf if a row does not qualify.

        Args: query: one query for all rows; (m,), one for each row; or (q, 1), one for each block
            (m, d).
        """


class Line(SearchObjective):
    """Area of the triangle (image, row, reference): half the base times the distance to the line.

    Args:
        images, references: (q, d).
        norms: of the corpus.
        guard: "none", the published area; "segment": distance to the segment instead of the line;
            "window": only rows whose foot lies in [0.5, 1.5].
        of_area: False for the distance alone. If image and reference coincide, the area is 0 for
            every row, and the distance is that from both.
    """

    def __init__(
        self,
        images: Array,
        references: Array,
        norms: Norms,
        guard: str = "none",
        *,
        of_area: bool = True,
    ) -> None:
        if guard not in GUARDS:
            raise InvalidSetting(f"guard is one of {', '.join(GUARDS)}, not {guard!r}")
        self.guard = guard
        self.images, self.references = _as_double(images), _as_double(references)
        self.edges = edges = self.references - self.images
        self.squares = dot(edges, edges)
        self.length = np.sqrt(self.squares)
        coincide = self.length == 0
        self.constant = coincide & of_area
        self.base = 0.5 * np.where(coincide, 2, self.length) if of_area else np.ones(len(edges))
        self.directions = edges / np.where(coincide, 1, self.length)[:, None]
        self.along = dot(self.images, self.directions)
        self.origins = self.images - self.along[:, None] * self.directions
        self.weights = _stack(-2 * self.origins, self.directions)
        gamma = _gamma(edges.shape[1])
        nearest, largest = norm(self.origins), norms.largest
        reach = largest + norm(self.images) + self.length
        error = gamma * (3 * largest**2 + 2 * largest * nearest)
        if guard == "segment":
            error += 3 * gamma * reach**2
        # The origins are rounded to float64, which matters if rows are far shorter than images and
        # a line passes through the origin.
        rounded = 4 * (edges.shape[1] + 8) * 2.0**-53 * norm(self.images)
        error += 2 * largest * rounded
        self.offset = np.maximum(nearest - rounded, 0) ** 2 - 1.1 * error - _tiny(edges.shape[1])
        self.slack = 1.1 * gamma * reach + _tiny(edges.shape[1])

    def keys(self, products: tuple[Tensor, ...], squared_norms: Tensor, queries: Array) -> Tensor:
        key, along = products
        key.addcmul_(along, along, value=-1).add_(squared_norms)
        if self.guard == "none":
            return key
        along.sub_(_column(self.along[queries], along))
        length = _column(self.length[queries], along)
        if self.guard == "segment":
            return key.add_((-along).clamp_(min=0).square_()).add_(
                along.sub_(length).clamp_(min=0).square_()
            )
        slack = _column(self.slack[queries], along)
        outside = along < WINDOW[0] * length - slack
        outside |= along > WINDOW[1] * length + slack
        return key.masked_fill_(outside, torch.inf)

    def bound(self, keys: Array, queries: Array) -> Array:
        squares = keys + self.offset[queries, None]
        bound: Array = self.base[queries, None] * np.sqrt(np.maximum(squares, 0))
        return bound

    def costs(self, query: int | Array, rows: Array) -> Array:
        foot, height = projected(
            self.images[query], rows, self.references[query], self.edges[query], self.squares[query]
        )
        if self.guard == "segment":
            beyond = self.length[query] * (np.maximum(-foot, 0) + np.maximum(foot - 1, 0))
            height = np.hypot(height, beyond)
        costs = self.base[query] * height
        if self.guard == "window":
            costs[(foot < WINDOW[0]) | (foot > WINDOW[1])] = np.inf
        return np.where(self.constant[query], 0.0, costs)


class Point(SearchObjective):
    """Distance of a row from one point.

    Args: points: (q, d). norms: of the corpus.
    """

    def __init__(self, points: Array, norms: Norms) -> None:
        self.points = self.origins = _as_double(points)
        self.constant = np.zeros(len(self.points), bool)
        self.directions = np.zeros_like(self.points)
        self.weights = _stack(-2 * self.points)
        length, largest = norm(self.points), norms.largest
        terms = self.points.shape[1]
        error = _gamma(terms) * (3 * largest**2 + 2 * largest * length)
        self.offset = length**2 - 1.1 * error - _tiny(terms)

    def keys(self, products: tuple[Tensor, ...], squared_norms: Tensor, queries: Array) -> Tensor:
        (key,) = products
        return key.add_(squared_norms)

    def bound(self, keys: Array, queries: Array) -> Array:
        return np.sqrt(np.maximum(keys + self.offset[queries, None], 0))

    def costs(self, query: int | Array, rows: Array) -> Array:
        return norm(rows - self.points[query])


class Cosine(SearchObjective):
    """Minus the cosine of a row and the query's vector.

    Args: vectors: (q, d), references or images. norms: of the corpus.
    """

    def __init__(self, vectors: Array, norms: Norms) -> None:
        self.vectors = _as_double(vectors)
        length = norm(self.vectors)
        self.constant = length == 0
        self.directions = self.vectors / np.where(self.constant, 1, length)[:, None]
        self.origins = np.zeros_like(self.directions)
        self.weights = _stack(self.directions)
        # Shorter rows lose digits to underflow, so the bound must be trivial.
        is_safe = norms.smallest > _SMALLEST_NORM
        self.error = 4 * _gamma(self.vectors.shape[1]) if is_safe else np.inf

    def keys(self, products: tuple[Tensor, ...], squared_norms: Tensor, queries: Array) -> Tensor:
        (key,) = products
        inverse = torch.where(squared_norms > 0, squared_norms.rsqrt(), 0)
        return key.mul_(inverse).neg_()

    def bound(self, keys: Array, queries: Array) -> Array:
        return keys - self.error if self.error < np.inf else np.full_like(keys, -np.inf)

    def costs(self, query: int | Array, rows: Array) -> Array:
        return -cosines(rows, self.vectors[query])


class ImageCentredCosine(SearchObjective):
    """Minus the cosine of the angle at the image, between row and reference."""

    def __init__(self, images: Array, references: Array, norms: Norms) -> None:
        self.images, edges = _as_double(images), _as_double(references) - _as_double(images)
        self.edges = edges
        length = norm(edges)
        self.constant = length == 0
        self.directions = edges / np.where(self.constant, 1, length)[:, None]
        self.along = dot(self.images, self.directions)
        self.origins = self.images - self.along[:, None] * self.directions
        self.weights = _stack(-2 * self.images, self.directions)
        image_norms = norm(self.images)
        self.image_squares = image_norms**2
        reach = norms.largest + image_norms
        gamma = _gamma(edges.shape[1])
        self.along_error = 1.1 * gamma * reach + _tiny(edges.shape[1])
        self.square_error = 3.3 * gamma * reach**2 + _tiny(edges.shape[1])

    def keys(self, products: tuple[Tensor, ...], squared_norms: Tensor, queries: Array) -> Tensor:
        square, along = products
        square.add_(squared_norms).add_(_column(self.image_squares[queries], square))
        along.sub_(_column(self.along[queries] - self.along_error[queries], along))
        error = _column(self.square_error[queries], square)
        # The largest cosine that the rounding errors allow, so its negative is a lower bound.
        shortest = (square - error).clamp_(min=0).sqrt_()
        longest = square.add_(error).clamp_(min=0).sqrt_()
        cosine = torch.where(along > 0, along / shortest, along / longest)
        return cosine.nan_to_num_(nan=1.0, posinf=1.0).clamp_(-1, 1).neg_()

    def bound(self, keys: Array, queries: Array) -> Array:
        return keys - 8 * _UNIT_ROUNDOFF

    def costs(self, query: int | Array, rows: Array) -> Array:
        return -cosines(rows - self.images[query], self.edges[query])


def _gamma(terms: int) -> float:
    """Return the relative error of a float32 sum of products of rounded factors, in any order."""
    product = (terms + 16) * _UNIT_ROUNDOFF
    return product / (1 - product) if product < 0.5 else np.inf


def _tiny(terms: int) -> float:
    """Return the largest absolute error of such a sum by underflow."""
    return 16 * terms * 2.0**-126


def _as_double(x: Array) -> Array:
    """Convert to (q, d) float64; raise InvalidSetting for values too large for float32 products."""
    rows = np.atleast_2d(np.ascontiguousarray(x, dtype=np.float64))
    if not (norm(rows) <= LARGEST_NORM).all():
        raise InvalidSetting(f"a query is not finite, or longer than {LARGEST_NORM:g}")
    return rows


def _stack(*vectors: Array) -> Array:
    """Stack the arrays to (c, q, d) float32."""
    return np.stack(vectors).astype(np.float32)


def _column(values: Array, like: Tensor) -> Tensor:
    return torch.from_numpy(values.astype(np.float32)).to(like.device)[:, None]


@dataclass(frozen=True)
class SearchTarget:
    """Target of a search.

    Attributes:
        name: name of a metric, or of a direction of retrieval.
        needs: which embeddings a query must have: "image", "reference".
        description: one sentence.
        rows: kind of the corpus's rows: "report" or "image".
        is_metric: whether it is a metric; a direction of retrieval only ranks.
    """

    name: str
    needs: tuple[str, ...]
    description: str
    rows: str = "report"
    is_metric: bool = True


_IMAGE, _REFERENCE = ("image",), ("reference",)
_BOTH = ("image", "reference")

OBJECTIVES: Registry[SearchTarget] = Registry("oracle metric")
for _target in (
    SearchTarget("vlscore", _BOTH, "smallest area of the triangle"),
    SearchTarget("cosine", _REFERENCE, "largest cosine with the reference"),
    SearchTarget(
        "image-centred-cosine", _BOTH, "largest cosine with the reference, both seen from the image"
    ),
    SearchTarget("clipscore", _IMAGE, "largest cosine with the image, 2.5 times"),
    SearchTarget("height", _BOTH, "smallest distance from their line"),
    SearchTarget("segment-distance", _BOTH, "smallest distance from their segment"),
    SearchTarget("midpoint-distance", _BOTH, "smallest distance from their midpoint"),
    SearchTarget(
        "image-gain-distance",
        _BOTH,
        "smallest distance from the point between them that the image's weight sets",
    ),
    SearchTarget(
        "image-gain-cosine", _BOTH, "largest cosine with the weighted sum of their directions"
    ),
    SearchTarget(
        "image-to-text",
        _IMAGE,
        "largest cosine with the image: retrieval of reports by a radiograph",
        is_metric=False,
    ),
    SearchTarget(
        "text-to-image",
        _REFERENCE,
        "largest cosine with the reference: retrieval of radiographs by a report",
        rows="image",
        is_metric=False,
    ),
):
    OBJECTIVES.register(_target, aliases=("text-to-text",) if _target.name == "cosine" else ())
