"""Checks of the values that a metric returned."""

import numpy as np

from vlscore.metrics.batch import EmbeddingTriples, Values
from vlscore.metrics.metric import Output

# By so much may rounding exceed the bounds of a metric.
_ROUNDING = 1e-6


def embedded(triples: EmbeddingTriples | None, row: int) -> bool:
    """Return whether all embeddings of a study are finite."""
    parts = () if triples is None else (triples.images, triples.candidates, triples.references)
    return all(np.isfinite(np.asarray(part[row])).all() for part in parts if part is not None)


def out_of_bounds(output: Output, values: Values) -> dict[int, str]:
    """Return row -> what is wrong with it, for values beyond the bounds that a metric states.

    A bound may be exceeded by rounding.

    >>> out_of_bounds(Output("overlap", "shared words", bounds=(0.0, None)), np.array([1.0, -0.5]))
    {1: 'overlap -0.5, but states the bounds 0 to infinity'}
    """
    low, high = output.bounds
    least, most = -np.inf if low is None else low, np.inf if high is None else high
    is_beyond = (values < least - _ROUNDING) | (values > most + _ROUNDING)
    stated = f"{least:g} to {most:g}".replace("inf", "infinity")
    return {
        row: f"{output.name} {values[row]:g}, but states the bounds {stated}"
        for row in np.flatnonzero(is_beyond).tolist()
    }
