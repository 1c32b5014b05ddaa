"""Shares of counts, for metrics that count what agrees."""

import numpy as np

from vlscore.metrics.batch import Values


def share(part: Values, whole: Values, of_nothing: float = 1.0) -> Values:
    """part / whole, and `of_nothing` where both are 0: nothing was to be said, and nothing was."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), of_nothing)
