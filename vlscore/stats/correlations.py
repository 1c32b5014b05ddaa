"""Correlations with ratings: tau_b, tau_c, Spearman's and Pearson's, with bootstrap intervals.

All resamples of a bootstrap are computed at once: a resample is a weight for each row, the number
of times it was drawn. Every correlation is computed from the weights exactly, as if rows were
repeated.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import compress

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from vlscore.core import as_floats
from vlscore.errors import InvalidSetting
from vlscore.stats.grouped import drawn_weights
from vlscore.stats.intervals import (
    ROUNDING,
    Array,
    Interval,
    bootstrap_interval,
    checked,
    checked_pairs,
    without_rounding,
)

CORRELATIONS = ("tau_b", "tau_c", "spearman", "pearson")

# Weights that are counted at once: they stay in the processor's cache.
_CELLS = 2**19
# Up to this many distinct values, counts are a product of matrices.
_FEW_VALUES = 64


def kendall_tau_b(x: ArrayLike, y: ArrayLike) -> float:
    """Compute Kendall's tau_b of two (n,) variables, in [-1, 1]; nan if one is constant.

    Raises: InvalidSetting if lengths differ or a value is not finite.

    >>> round(kendall_tau_b([1, 2, 3], [10, 20, 15]), 4)
    0.3333
    """
    first, second = map(without_rounding, checked_pairs(x, y))
    if first.min() == first.max() or second.min() == second.max():
        return float("nan")
    return float(scipy.stats.kendalltau(first, second, variant="b").statistic)


def largest_tau_b(y: ArrayLike) -> float:
    """Compute the largest tau_b that a variable without ties can have with y.

    With n0 pairs, of which n2 are tied in y, the best score orders all others correctly:
    tau_b = (n0 - n2) / sqrt(n0 (n0 - n2)) = sqrt(1 - n2 / n0) (from Kendall 1945). It is nan where
    y has a single value.

    >>> largest_tau_b([1, 2, 3]), round(largest_tau_b([1, 1, 2]), 4)
    (1.0, 0.8165)
    """
    _, counts = np.unique(without_rounding(checked(y)), return_counts=True)
    if len(counts) < 2:
        return float("nan")
    n = int(counts.sum())
    tied = int((counts * (counts - 1)).sum())
    return float(np.sqrt(1 - tied / (n * (n - 1))))


def bootstrap_p_value(differences: ArrayLike) -> float:
    """Compute the two-sided p value of no difference of correlations from (B,) resamples.

    Twice the smaller share of resamples on either side of 0, counted with one more on that side, so
    it is never below 2 / (B + 1). Nan if all resamples are nan.
    """
    drawn = as_floats(differences)
    kept = drawn[~np.isnan(drawn)]
    # Correlations lie in [-1, 1], so their rounding is an absolute one.
    smaller = min(int((kept <= ROUNDING).sum()), int((kept >= -ROUNDING).sum()))
    return min(1.0, 2 * (smaller + 1) / (len(kept) + 1)) if len(kept) else float("nan")


def correlation_interval(
    x: ArrayLike,
    y: ArrayLike,
    kind: str = "tau_b",
    *,
    groups: Sequence[str] | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    seed: int = 0,
) -> Interval:
    """Compute one of CORRELATIONS with a bootstrap interval over rows or groups of rows.

    Args:
        x, y: (n,); rows where either is nan do not count.
        groups: the group of each row, as the study of each candidate; None resamples rows.

    Nan if fewer than two rows are left, or one variable is constant on them. The interval of two
    rows is nan.

    >>> correlation_interval([1, 2, 3, 4], [1, 2, 3, 4], resamples=50).estimate
    1.0
    """
    first, second = (as_floats(each) for each in (x, y))
    weights = drawn_weights(len(first), groups, resamples=resamples, seed=seed)
    drawn = resampled_correlations([first], [second], weights, [kind])[kind][0, 0]
    present = ~(np.isnan(first) | np.isnan(second))
    return bootstrap_interval(drawn, resampled_units(present, groups), level)


def resampled_units(present: NDArray[np.bool_], groups: Sequence[str] | None = None) -> int:
    """Return the number of units that determine an interval's width; 0 for two rows.

    Two rows have a correlation of 1 or -1, and every resample with a defined correlation has the
    same one. So the interval would have no width, as if the value were certain.

    Args:
        present: (n,) whether a row counts.
        groups: the group of each row, which are the units; None: rows are.
    """
    rows = int(present.sum())
    if rows <= 2 or groups is None:
        return rows if rows > 2 else 0
    return len(set(compress(groups, present)))


def resampled_correlations(
    xs: Sequence[ArrayLike],
    ys: Sequence[ArrayLike],
    weights: Array,
    kinds: Sequence[str] = CORRELATIONS,
) -> dict[str, Array]:
    """Compute the correlations of each of `xs` with each of `ys` in every resample.

    Args:
        xs, ys: variables (n,); a row where either of two is nan does not count for them.
        weights: (B, n) from `drawn_weights`.
        kinds: names in CORRELATIONS.

    Returns: kind -> (len(xs), len(ys), B); nan where a resample leaves a variable constant.
    """
    if unknown := [kind for kind in kinds if kind not in CORRELATIONS]:
        raise InvalidSetting(
            f"a correlation must be one of {', '.join(CORRELATIONS)}, not {unknown[0]!r}"
        )
    variables = [[as_floats(x) for x in side] for side in (xs, ys)]
    if any(np.isinf(x).any() for side in variables for x in side):
        raise InvalidSetting("a correlation needs finite values; leave out rows without a value")
    found = {kind: np.full((len(xs), len(ys), len(weights)), np.nan) for kind in kinds}
    # Each variable under the weights, for the rows that it was compared on last.
    memory: dict[tuple[int, int], tuple[bytes, _Resampled]] = {}

    def drawn(side: int, number: int, rows: NDArray[np.bool_]) -> "_Resampled":
        mask = rows.tobytes()
        if memory.get((side, number), (b"",))[0] != mask:
            own = weights if rows.all() else weights[:, rows]
            memory[side, number] = mask, _Resampled(variables[side][number][rows], own)
        return memory[side, number][1]

    for k, x in enumerate(variables[0]):
        for j, y in enumerate(variables[1]):
            rows = ~(np.isnan(x) | np.isnan(y))
            if rows.any():
                for kind, values in _correlate(drawn(0, k, rows), drawn(1, j, rows), kinds).items():
                    found[kind][k, j] = values
        memory.pop((0, k), None)
    return found


class _Resampled:
    """A variable of n rows under the weights of B resamples.

    Attributes:
        codes: (n,) numbers of the distinct values, ascending.
        sizes, distinct: (B,) rows and distinct values of each resample.
        untied: (B,) ordered pairs of rows whose values differ.
    """

    def __init__(self, values: Array, weights: Array) -> None:
        self._values, self.weights = values, weights
        self.codes = np.unique(without_rounding(values), return_inverse=True)[1].reshape(-1)
        self._counts = _counted(self.codes, weights)
        self.sizes = weights.sum(axis=1)
        self.distinct = (self._counts > 0).sum(axis=1)
        self.untied = self.sizes**2 - (self._counts**2).sum(axis=1)

    @cached_property
    def ranks(self) -> tuple[Array, Array]:
        """Mean ranks in each resample, minus their mean (B, n), and their norms (B,)."""
        ends = np.cumsum(self._counts, axis=1)
        ranks = ends - (self._counts - 1) / 2 - (self.sizes[:, None] + 1) / 2
        return self._normed(ranks[:, self.codes])

    @cached_property
    def centred(self) -> tuple[Array, Array]:
        """Values minus their mean in each resample (B, n), and their norms (B,)."""
        # A power of two changes no digit, and squares of very large numbers stay finite.
        values = np.ldexp(self._values, -int(np.frexp(np.abs(self._values).max())[1]))
        # The overall mean is subtracted first, so that a large mean costs no digits.
        values = values - values.mean()
        means = (self.weights @ values) / np.maximum(self.sizes, 1)
        return self._normed(values[None, :] - means[:, None])

    def _normed(self, values: Array) -> tuple[Array, Array]:
        return values, np.sqrt(np.einsum("bn,bn->b", self.weights * values, values))


def _correlate(x: _Resampled, y: _Resampled, kinds: Sequence[str]) -> dict[str, Array]:
    """Compute the correlations (B,) of two variables."""
    fewer = np.minimum(x.distinct, y.distinct)
    defined = fewer >= 2
    found: dict[str, Array] = {}
    if "tau_b" in kinds or "tau_c" in kinds:
        scale = np.sqrt(x.untied * y.untied)
        concordance = _concordance((x.codes, y.codes), x.weights)
        found["tau_b"] = _ratio(concordance, scale, defined)
        most = x.sizes**2 * (fewer - 1) / np.maximum(fewer, 1)
        found["tau_c"] = _ratio(concordance, most, defined)
    for kind, name in (("spearman", "ranks"), ("pearson", "centred")):
        if kind in kinds:
            (first, norms), (second, other_norms) = getattr(x, name), getattr(y, name)
            product = np.einsum("bn,bn->b", x.weights * first, second)
            found[kind] = np.clip(_ratio(product, norms * other_norms, defined), -1.0, 1.0)
    return {kind: found[kind] for kind in kinds}


def _counted(codes: NDArray[np.intp], weights: Array) -> Array:
    """Count how often each of v distinct values appears in each resample, (B, v)."""
    distinct = int(codes.max()) + 1
    if distinct <= _FEW_VALUES:
        counted: Array = weights @ np.eye(distinct)[codes]
        return counted
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    return np.add.reduceat(weights[:, order], starts, axis=1)


def _concordance(codes: Sequence[NDArray[np.intp]], weights: Array) -> Array:
    """Count ordered pairs of rows in the same order minus those in opposite order, (B,).

    Knight's sort-based count (1966), for all resamples at once: two values differ first at some bit
    of their codes. For each bit of y, rows that agree in the higher bits are ordered by x; sums of
    weights up to a row then count the rows with a 0 that are before and after a row with a 1.
    """
    x, y = sorted(codes, key=lambda each: -int(each.max()))
    steps = [_of_bit(x, y, bit) for bit in range(int(y.max()).bit_length())]
    found = np.zeros(len(weights))
    size = max(_CELLS // len(x), 1)
    for start in range(0, len(weights), size):
        # Weights are whole numbers. Rows come first, so that those of one row are copied at once.
        part = np.ascontiguousarray(weights[start : start + size].T).astype(np.int32)
        for zeros, ones, (below, up_to, first, last) in steps:
            sums = np.zeros((len(zeros) + 1, part.shape[1]), np.int32)
            np.cumsum(part[zeros], axis=0, out=sums[1:])
            before_less_after = sums[below]
            before_less_after += sums[up_to]
            before_less_after -= sums[first]
            before_less_after -= sums[last]
            found[start : start + size] += 2 * np.einsum(
                "nb,nb->b", part[ones], before_less_after, dtype=np.float64
            )
    return found


def _of_bit(
    x: NDArray[np.intp], y: NDArray[np.intp], bit: int
) -> tuple[NDArray[np.intp], NDArray[np.intp], list[NDArray[np.intp]]]:
    """Return the rows with a 0 and those with a 1 in a bit of y, and what the latter compare with.

    Returns: zeros in the order of their group (the higher bits of y) and x; ones; and for each of
        these how many zeros have a smaller x or group, at most this x, a smaller group, at most
        this group.
    """
    group, width = y >> (bit + 1), int(x.max()) + 1
    key = group * width + x
    is_one = (y >> bit) & 1 == 1
    zeros, ones = (rows[np.argsort(key[rows])] for rows in map(np.flatnonzero, (~is_one, is_one)))
    starts = group[ones] * width
    below, first, last = (
        np.searchsorted(key[zeros], each) for each in (key[ones], starts, starts + width)
    )
    up_to = np.searchsorted(key[zeros], key[ones], "right")
    return zeros, ones, [below, up_to, first, last]


def _ratio(above: Array, below: Array, defined: NDArray[np.bool_]) -> Array:
    usable = defined & (below > 0)
    return np.where(usable, above / np.where(usable, below, 1.0), np.nan)
