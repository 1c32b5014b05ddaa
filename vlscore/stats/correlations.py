"""Correlations with ratings: tau_b, tau_c, Spearman's and Pearson's, with bootstrap intervals.

All resamples of a bootstrap are computed at once: a resample is a weight for each row, the number
of times it was drawn. Every correlation is computed from the weights exactly, as if rows were
repeated.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from vlscore.errors import InvalidSetting
from vlscore.stats.intervals import Interval, checked_pairs, percentiles
from vlscore.stats.rank import kendall_tau_b

CORRELATIONS = ("tau_b", "tau_c", "spearman", "pearson")

# Up to this many rows the concordance of all resamples is one product of matrices, with n x n signs
# of comparisons; beyond, it is counted again for each resample.
_WEIGHED = 3000

Array = NDArray[np.float64]


def kendall_tau_c(x: ArrayLike, y: ArrayLike) -> float:
    """Compute Stuart's tau_c of two (n,) variables; nan if one of them is constant.

    2 (P - Q) m / (n^2 (m - 1)), with P concordant and Q discordant pairs, and m the number of
    distinct values of the variable that has fewer (Stuart 1953).

    Raises: InvalidSetting if lengths differ or a value is not finite.

    >>> kendall_tau_c([1, 2, 3], [1, 2, 3])
    1.0
    """
    first, second = checked_pairs(x, y)
    if _is_constant(first) or _is_constant(second):
        return float("nan")
    return float(scipy.stats.kendalltau(first, second, variant="c").statistic)


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Compute Spearman's rank correlation of two (n,) variables, with mean ranks for ties.

    Raises: InvalidSetting if lengths differ or a value is not finite.

    >>> round(spearman([1, 2, 3], [10, 20, 15]), 4)
    0.5
    """
    first, second = checked_pairs(x, y)
    return pearson(scipy.stats.rankdata(first), scipy.stats.rankdata(second))


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Compute Pearson's correlation of two (n,) variables; nan if one of them is constant.

    Raises: InvalidSetting if lengths differ or a value is not finite.

    >>> round(pearson([1, 2, 3], [1, 2, 4]), 4)
    0.982
    """
    first, second = checked_pairs(x, y)
    if _is_constant(first) or _is_constant(second):
        return float("nan")
    a, b = _centred(first), _centred(second)
    product = float(np.dot(a / np.linalg.norm(a), b / np.linalg.norm(b)))
    # A value that is 1 or -1 except for rounding is set to 1 or -1.
    return math.copysign(1.0, product) if abs(product) > 1 - _ROUNDING else product


# With this many rows or fewer, every resample has a correlation of 1 or -1.
_LEAST_ROWS = 2

# A few rounding errors of float64.
_ROUNDING = 8 * float(np.finfo(np.float64).eps)

_POINT = {"tau_b": kendall_tau_b, "tau_c": kendall_tau_c, "spearman": spearman, "pearson": pearson}


def _centred(values: Array) -> Array:
    """Return differences from the mean, scaled so that no square overflows or vanishes."""
    largest = float(np.abs(values).max())
    if not 1e-100 < largest < 1e100:
        # Scaling by a power of two changes no digit.
        values = np.ldexp(values, -math.frexp(largest)[1])
    centred: Array = values - values.mean()
    return centred


def correlation(x: ArrayLike, y: ArrayLike, kind: str = "tau_b") -> float:
    """Compute one of CORRELATIONS of two (n,) variables over the rows where neither is nan.

    Nan if fewer than two such rows are left, or one variable is constant on them.
    """
    if kind not in _POINT:
        raise InvalidSetting(f"a correlation must be one of {', '.join(_POINT)}, not {kind!r}")
    first, second = (np.asarray(each, dtype=np.float64) for each in (x, y))
    present = ~(np.isnan(first) | np.isnan(second))
    if present.sum() < 2:
        return float("nan")
    return _POINT[kind](first[present], second[present])


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

    The interval of two rows is nan.

    >>> correlation_interval([1, 2, 3, 4], [1, 2, 3, 4], "spearman", resamples=50).estimate
    1.0
    """
    first, second = (np.asarray(each, dtype=np.float64) for each in (x, y))
    weights = drawn_weights(len(first), groups, resamples=resamples, seed=seed)
    drawn = resampled_correlations([first], [second], weights, [kind])[kind][0, 0]
    present = ~(np.isnan(first) | np.isnan(second))
    count = int(present.sum())
    units = count
    if groups is not None:
        units = len({group for group, is_there in zip(groups, present, strict=True) if is_there})
    units = resampled_units(count, units)
    return percentiles(correlation(first, second, kind), drawn, level, units)


def resampled_units(rows: int, units: int) -> int:
    """Return the number of units that determine an interval's width; 0 for two rows.

    Two rows have a correlation of 1 or -1, and every resample with a defined correlation has the
    same one. So the interval would have no width, as if the value were certain.
    """
    return units if rows > _LEAST_ROWS else 0


def drawn_weights(
    count: int, groups: Sequence[str] | None = None, *, resamples: int, seed: int
) -> Array:
    """Draw weights (resamples, count): how often each row is drawn, with replacement.

    Args: groups: the group of each row; whole groups are drawn, as many as there are. None draws
        rows.
    """
    if resamples < 1:
        raise InvalidSetting(f"resamples must be 1 or more, not {resamples}")
    if not count:
        raise InvalidSetting("there are no rows: a correlation needs at least one")
    rng = np.random.default_rng(seed)
    codes = np.arange(count)
    if groups is not None:
        if len(groups) != count:
            raise InvalidSetting(
                f"there are {len(groups)} groups for {count} rows; each row needs one"
            )
        codes = np.unique(np.asarray(groups, dtype=str), return_inverse=True)[1].reshape(-1)
    size = int(codes.max()) + 1
    drawn = rng.multinomial(size, np.full(size, 1 / size), size=resamples)
    return drawn[:, codes].astype(np.float64)


def resampled_correlations(
    xs: Sequence[ArrayLike],
    ys: Sequence[ArrayLike],
    weights: Array,
    kinds: Sequence[str] = CORRELATIONS,
) -> dict[str, Array]:
    """Compute correlations of every x with every y, on every resample.

    Args:
        xs, ys: (n,) variables; a row where one of the two is nan does not count for that pair.
        weights: (B, n) from `drawn_weights`.
        kinds: names in CORRELATIONS.

    Returns: kind -> (len(xs), len(ys), B); nan where a resample leaves a variable constant.
    """
    if unknown := [kind for kind in kinds if kind not in CORRELATIONS]:
        raise InvalidSetting(
            f"a correlation must be one of {', '.join(CORRELATIONS)}, not {unknown[0]!r}"
        )
    firsts, seconds = [_Variable(x) for x in xs], [_Variable(y) for y in ys]
    found = {kind: np.full((len(xs), len(ys), len(weights)), np.nan) for kind in kinds}
    for k, x in enumerate(firsts):
        for j, y in enumerate(seconds):
            for kind, drawn in _correlate(x, y, weights, kinds).items():
                found[kind][k, j] = drawn
        x.forget()
    return found


def _is_constant(values: Array) -> bool:
    return bool(values.min() == values.max())


class _Variable:
    """One variable of n rows, with intermediate results for one set of resamples."""

    def __init__(self, values: ArrayLike) -> None:
        self.values = np.asarray(values, dtype=np.float64)
        self.present = ~np.isnan(self.values)
        if not np.isfinite(self.values[self.present]).all():
            raise InvalidSetting(
                "a correlation needs finite values; leave out rows without a value"
            )
        # Absent rows get any code, because their weight is 0.
        filled = np.where(self.present, self.values, self.values[self.present][:1].sum())
        self.codes = np.unique(filled, return_inverse=True)[1].reshape(-1)
        self._order = np.argsort(self.codes, kind="stable")
        self._starts = np.flatnonzero(np.diff(self.codes[self._order], prepend=-1))
        self._signs: NDArray[np.int8] | None = None
        self._mask: NDArray[np.bool_] | None = None
        self._weighed: _Weighed | None = None

    def signs(self) -> NDArray[np.int8]:
        """Return the signs of all comparisons, (n, n)."""
        if self._signs is None:
            above = self.codes[:, None] > self.codes[None, :]
            self._signs = above.astype(np.int8) - above.T.astype(np.int8)
        return self._signs

    def counted(self, weights: Array) -> Array:
        """Count how often each distinct value appears, (B, values)."""
        return np.add.reduceat(weights[:, self._order], self._starts, axis=1)

    def weighed(self, weights: Array, mask: NDArray[np.bool_]) -> "_Weighed":
        """Return the variable under weights, 0 outside the mask; remembers one mask at a time."""
        if self._weighed is None or self._mask is None or (self._mask != mask).any():
            self._mask, self._weighed = mask, _Weighed(self, weights, mask)
        return self._weighed

    def forget(self) -> None:
        """Free the memory of results that can be computed again."""
        self._signs = self._mask = self._weighed = None


class _Weighed:
    """A variable of n rows under the weights of B resamples.

    Attributes:
        sizes: (B,) rows of each resample.
        distinct: (B,) how many values appear.
        untied: (B,) ordered pairs of rows whose values differ.
    """

    def __init__(self, variable: "_Variable", masked: Array, mask: NDArray[np.bool_]) -> None:
        self._variable, self._masked, self._mask = variable, masked, mask
        self._groups = variable.counted(masked)
        self.sizes = self._groups.sum(axis=1)
        self.distinct = (self._groups > 0).sum(axis=1)
        self.untied = self.sizes**2 - (self._groups**2).sum(axis=1)

    @cached_property
    def ranks(self) -> "_Deviations":
        """Return the mean rank of each row among the rows of its resample."""
        ends = np.cumsum(self._groups, axis=1)
        ranks = ends - (self._groups - 1) / 2 - (self.sizes[:, None] + 1) / 2
        return _Deviations.of(np.asarray(ranks[:, self._variable.codes]), self._masked)

    @cached_property
    def centred(self) -> "_Deviations":
        """Return values minus their mean in each resample."""
        values = np.zeros(len(self._mask))
        if self._mask.any():
            # Subtract the overall mean first, so that a large mean costs no digits.
            own = self._variable.values[self._mask]
            values[self._mask] = own - own.mean()
        means = (self._masked @ values) / np.maximum(self.sizes, 1)
        return _Deviations.of(values[None, :] - means[:, None], self._masked)


@dataclass(frozen=True, eq=False)
class _Deviations:
    """Deviations from the mean of a resample (B, n), the weighted ones, and their norms (B,)."""

    values: Array
    weighed: Array
    norms: Array

    @classmethod
    def of(cls, values: Array, weights: Array) -> "_Deviations":
        weighed = weights * values
        return cls(values, weighed, np.sqrt(np.einsum("bn,bn->b", weighed, values)))

    def correlation(self, other: "_Deviations", defined: NDArray[np.bool_]) -> Array:
        """Compute the weighted correlation, (B,)."""
        product = np.einsum("bn,bn->b", self.weighed, other.values)
        return np.clip(_ratio(product, self.norms * other.norms, defined), -1.0, 1.0)


def _correlate(
    x: _Variable, y: _Variable, weights: Array, kinds: Sequence[str]
) -> dict[str, Array]:
    mask = x.present & y.present
    masked = weights if mask.all() else weights * mask
    of_x, of_y = x.weighed(masked, mask), y.weighed(masked, mask)
    fewer = np.minimum(of_x.distinct, of_y.distinct)
    defined = fewer >= 2
    found: dict[str, Array] = {}
    if "tau_b" in kinds or "tau_c" in kinds:
        scale = np.sqrt(of_x.untied * of_y.untied)
        concordance = _concordance(x, y, masked, scale, defined)
        found["tau_b"] = _ratio(concordance, scale, defined)
        most = of_x.sizes**2 * (fewer - 1) / np.maximum(fewer, 1)
        found["tau_c"] = _ratio(concordance, most, defined)
    if "spearman" in kinds:
        found["spearman"] = of_x.ranks.correlation(of_y.ranks, defined)
    if "pearson" in kinds:
        found["pearson"] = of_x.centred.correlation(of_y.centred, defined)
    return {kind: found[kind] for kind in kinds}


def _concordance(
    x: _Variable, y: _Variable, weights: Array, scale: Array, defined: NDArray[np.bool_]
) -> Array:
    """Count ordered pairs of rows in the same order minus those in opposite order, (B,)."""
    if len(x.values) > _WEIGHED:
        found = np.zeros(len(weights))
        for b in np.flatnonzero(defined):
            rows = np.repeat(np.arange(len(x.values)), weights[b].astype(np.intp))
            tau = scipy.stats.kendalltau(x.codes[rows], y.codes[rows], variant="b").statistic
            found[b] = np.rint(tau * scale[b])
        return found
    # Entries of the product are integers far below 2^24, so float32 holds them exactly.
    products = (x.signs() * y.signs()).astype(np.float32)
    summed = weights.astype(np.float32) @ products
    return np.asarray(np.einsum("bn,bn->b", summed, weights))


def _ratio(above: Array, below: Array, defined: NDArray[np.bool_]) -> Array:
    usable = defined & (below > 0)
    return np.where(usable, above / np.where(usable, below, 1.0), np.nan)
