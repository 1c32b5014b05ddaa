"""Objectives that a search minimises: a fast float32 key and an exact float64 cost of each row.

Each objective is linear in the corpus up to a cheap last step, so that one matrix product serves
all queries. Its key has a proven bound: `bound(key)` is never above the float64 cost, for any
order of summation in the product. The search is exact because of that bound, not because the
shortlist is long.

Source of the line's form: h²(g) = |g|² - 2⟨g,o⟩ + |o|² - ⟨g,u⟩², u the unit direction from image to
reference, o the point of the line nearest the origin. Bounds on rounding: Higham, Accuracy and
Stability of Numerical Algorithms, 2nd ed., section 3.1.
"""

from abc import ABC, abstractmethod

import numpy as np
import torch
from torch import Tensor

from vlscore.core import check_word
from vlscore.errors import InvalidSetting
from vlscore.retrieval.corpus import (
    LARGEST_NORM,
    Array,
    Corpus,
    cosines,
    directions_of,
    dot,
    norm,
    projected,
    underflow,
)

GUARDS = ("none", "segment", "window")
# Range of the foot for the guard "window": only rows near the reference, 1, qualify.
WINDOW = (0.5, 1.5)

_UNIT_ROUNDOFF = 2.0**-24
# Squares of shorter rows lose digits to underflow.
_SMALLEST_SQUARE = 1e-30


class SearchObjective(ABC):
    """Search objective of q queries; the row of smallest cost is the best.

    Attributes:
        weights: (c, q, d) float32; c products with the corpus per query.
        origins, directions: (q, d) float64, the line of each query along which candidates lie.
    """

    weights: Array
    origins: Array
    directions: Array

    def __len__(self) -> int:
        return len(self.directions)

    @abstractmethod
    def keys(self, products: tuple[Tensor, ...], squared_norms: Tensor, queries: Array) -> Tensor:
        """Compute keys (n, q') in place from c products (n, q') and squared norms (n, 1)."""

    @abstractmethod
    def bound(self, keys: Array, queries: Array) -> Array:
        """Return lower bounds (q', m) float64 of the costs of rows with these keys (q', m)."""

    @abstractmethod
    def costs(self, queries: int | Array, rows: Array) -> Array:
        """Compute exact costs (m,) of rows (m, d) float64; inf if a row does not qualify.

        Args: queries: one query for all rows, or (m,), one for each row.
        """


class Line(SearchObjective):
    """Area of the triangle (image, row, reference): half the base times the distance to the line.

    Args:
        images, references: (q, d). If they coincide, the area is 0 for every row.
        guard: "none", the published area; "segment": distance to the segment instead of the line;
            "window": only rows whose foot lies in [0.5, 1.5].
        of_area: False for the distance alone; where image and reference coincide, it is that from
            both.
    """

    def __init__(
        self,
        images: Array,
        references: Array,
        corpus: Corpus,
        guard: str = "none",
        *,
        of_area: bool = True,
    ) -> None:
        check_word("guard", guard, GUARDS)
        self._guard = guard
        self._images, self._references = _as_double(images), _as_double(references)
        self._edges = edges = self._references - self._images
        self._squares = dot(edges, edges)
        self._length = np.sqrt(self._squares)
        self._base = 0.5 * self._length if of_area else np.ones(len(edges))
        if guard == "segment":
            # Where image and reference coincide every area is 0; the distance still ranks.
            self._base = np.where(self._length == 0, 1.0, self._base)
        self.directions = directions_of(edges)
        self._along = dot(self._images, self.directions)
        self.origins = self._images - self._along[:, None] * self.directions
        self.weights = _stack(-2 * self.origins, self.directions)
        dim, largest = corpus.dim, corpus.largest_norm
        gamma, nearest = _gamma(dim), norm(self.origins)
        reach = largest + norm(self._images) + self._length
        error = gamma * (3 * largest**2 + 2 * largest * nearest)
        if guard == "segment":
            error += 3 * gamma * reach**2
        # The origins are rounded to float64, which matters if rows are far shorter than images and
        # a line passes through the origin.
        rounded = 4 * (dim + 8) * 2.0**-53 * norm(self._images)
        error += 2 * largest * rounded
        self._offset = np.maximum(nearest - rounded, 0) ** 2 - 1.1 * error - underflow(dim)
        self._slack = 1.1 * gamma * reach + underflow(dim)

    def keys(self, products: tuple[Tensor, ...], squared_norms: Tensor, queries: Array) -> Tensor:
        key, along = products
        key.addcmul_(along, along, value=-1).add_(squared_norms)
        if self._guard == "none":
            return key
        along.sub_(_row(self._along[queries], along))
        length = _row(self._length[queries], along)
        if self._guard == "segment":
            key.add_((-along).clamp_(min=0).square_())
            return key.add_(along.sub_(length).clamp_(min=0).square_())
        slack = _row(self._slack[queries], along)
        outside = along < WINDOW[0] * length - slack
        outside |= along > WINDOW[1] * length + slack
        return key.masked_fill_(outside, torch.inf)

    def bound(self, keys: Array, queries: Array) -> Array:
        # Excluded rows have infinite keys.
        squares = np.clip(keys + self._offset[queries, None], 0, 1e300)
        bound: Array = self._base[queries, None] * np.sqrt(squares)
        return bound

    def costs(self, queries: int | Array, rows: Array) -> Array:
        foot, height = projected(
            self._images[queries],
            rows,
            self._references[queries],
            self._edges[queries],
            self._squares[queries],
        )
        if self._guard == "segment":
            beyond = self._length[queries] * (np.maximum(-foot, 0) + np.maximum(foot - 1, 0))
            height = np.hypot(height, beyond)
        costs: Array = self._base[queries] * height
        if self._guard == "window":
            costs[(foot < WINDOW[0]) | (foot > WINDOW[1])] = np.inf
        return costs


class Cosine(SearchObjective):
    """Minus the cosine of a row and the query's vector.

    Args: vectors: (q, d), references or images.
    """

    def __init__(self, vectors: Array, corpus: Corpus) -> None:
        self._vectors = _as_double(vectors)
        self.directions = directions_of(self._vectors)
        self.origins = np.zeros_like(self.directions)
        self.weights = _stack(self.directions)
        self._error = 4 * _gamma(corpus.dim)

    def keys(self, products: tuple[Tensor, ...], squared_norms: Tensor, queries: Array) -> Tensor:
        (key,) = products
        is_safe = squared_norms > _SMALLEST_SQUARE
        key.mul_(torch.where(is_safe, -squared_norms.rsqrt(), 0))
        # Nothing is known of the other rows, so they get the smallest possible cost.
        return key.sub_((~is_safe).float())

    def bound(self, keys: Array, queries: Array) -> Array:
        return keys - self._error

    def costs(self, queries: int | Array, rows: Array) -> Array:
        return -cosines(rows, self._vectors[queries])


class ImageCentredCosine(SearchObjective):
    """Minus the cosine of the angle at the image, between row and reference.

    Args: images, references: (q, d).
    """

    def __init__(self, images: Array, references: Array, corpus: Corpus) -> None:
        self._images, edges = _as_double(images), _as_double(references) - _as_double(images)
        self._edges = edges
        self.directions = directions_of(edges)
        self._along = dot(self._images, self.directions)
        self.origins = self._images - self._along[:, None] * self.directions
        self.weights = _stack(-2 * self._images, self.directions)
        image_norms = norm(self._images)
        self._image_squares = image_norms**2
        reach = corpus.largest_norm + image_norms
        gamma = _gamma(corpus.dim)
        self._along_error = 1.1 * gamma * reach + underflow(corpus.dim)
        self._square_error = 3.3 * gamma * reach**2 + underflow(corpus.dim)

    def keys(self, products: tuple[Tensor, ...], squared_norms: Tensor, queries: Array) -> Tensor:
        square, along = products
        square.add_(squared_norms).add_(_row(self._image_squares[queries], square))
        along.sub_(_row(self._along[queries] - self._along_error[queries], along))
        error = _row(self._square_error[queries], square)
        # The largest cosine that the rounding errors allow, so its negative is a lower bound.
        shortest = (square - error).clamp_(min=0).sqrt_()
        longest = square.add_(error).clamp_(min=0).sqrt_()
        cosine = torch.where(along > 0, along / shortest, along / longest)
        return cosine.nan_to_num_(nan=1.0, posinf=1.0).clamp_(-1, 1).neg_()

    def bound(self, keys: Array, queries: Array) -> Array:
        return keys - 8 * _UNIT_ROUNDOFF

    def costs(self, queries: int | Array, rows: Array) -> Array:
        return -cosines(rows - self._images[queries], self._edges[queries])


def _gamma(terms: int) -> float:
    """Return the relative error of a float32 sum of products of rounded factors, in any order."""
    product = (terms + 16) * _UNIT_ROUNDOFF
    return product / (1 - product) if product < 0.5 else np.inf


def _as_double(x: Array) -> Array:
    """Convert to (q, d) float64; raise InvalidSetting for values too large for float32 products."""
    rows = np.atleast_2d(np.ascontiguousarray(x, dtype=np.float64))
    if not (norm(rows) <= LARGEST_NORM).all():
        raise InvalidSetting(f"a query is not finite, or longer than {LARGEST_NORM:g}")
    return rows


def _stack(*vectors: Array) -> Array:
    """Stack the arrays to (c, q, d) float32."""
    return np.stack(vectors).astype(np.float32)


def _row(values: Array, like: Tensor) -> Tensor:
    """Return values of queries as (q,), to be broadcast over (n, q)."""
    return torch.from_numpy(values.astype(np.float32)).to(like.device)
