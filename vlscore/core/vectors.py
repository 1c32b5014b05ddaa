"""Numbers as arrays: samples, vectors as rows, random numbers."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vlscore.errors import InvalidSetting


def without_mask(values: Any) -> Any:
    """Return values as they are, those of a masked array as float64, nan where they are masked.

    numpy and torch drop the mask: the numbers behind it would count.

    >>> without_mask(np.ma.array([1, 9], mask=[False, True])).tolist()
    [1.0, nan]
    """
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(np.float64), np.nan)
    return values


def as_floats(values: ArrayLike) -> NDArray[np.float64]:
    """Return numbers as float64; a masked one is nan.

    Raises: InvalidSetting for anything but numbers.
    """
    try:
        return np.asarray(without_mask(values), dtype=np.float64)
    except (TypeError, ValueError):
        kind = type(values).__name__
        raise InvalidSetting(
            f"a sample must be an array or list of numbers, not a {kind}"
        ) from None


def generator(seed: Any) -> np.random.Generator:
    """Return the random numbers of a seed. Raises: InvalidSetting for one that numpy refuses."""
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InvalidSetting(f"seed is a whole number, at least 0, not {seed!r}") from None


def unit_rows(vectors: NDArray[Any]) -> NDArray[Any]:
    """Return rows (n, d) divided by their Euclidean lengths; a row of zeros stays one.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1))
