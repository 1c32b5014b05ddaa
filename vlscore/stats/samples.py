"""Checking samples before any statistic is made of them."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vlscore.errors import InvalidSetting


def checked(values: ArrayLike) -> NDArray[np.float64]:
    """A sample as (n,) float64, n at least 1, finite.

    Raises: InvalidSetting where it is not.
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or not len(sample):
        raise InvalidSetting(f"a sample is a list of values; this has shape {sample.shape}")
    if not np.isfinite(sample).all():
        where = int(np.flatnonzero(~np.isfinite(sample))[0])
        raise InvalidSetting(
            f"a sample holds finite values; value {where} is {sample[where]}; leave failed "
            "studies out"
        )
    return sample


def checked_pairs(*samples: ArrayLike) -> tuple[NDArray[np.float64], ...]:
    """Samples whose values belong together, each as `checked` gives it.

    Raises: InvalidSetting where their lengths differ.
    """
    arrays = tuple(checked(sample) for sample in samples)
    lengths = [len(array) for array in arrays]
    if len(set(lengths)) > 1:
        raise InvalidSetting(f"paired samples must have one length; these have {lengths}")
    return arrays
