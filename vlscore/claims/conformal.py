"""Conformal p values and the claims that they decide at a false discovery rate."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vlscore.errors import InvalidSetting
from vlscore.stats import benjamini_hochberg

Values = NDArray[np.float64]


def conformal_p_values(scores: ArrayLike, null_scores: ArrayLike) -> Values:
    """Return (n,) p values: how rare so large a score is among calibration cases of the null.

    (1 + #{null score >= score}) / (m + 1), with m calibration cases for which the null hypothesis
    holds. If a case for which it holds is exchangeable with them, its p value is at most a with
    probability a or less (Vovk et al. 2005; Jin and Candès 2023, section 2). It is the conditional
    form: calibration and test may have different shares of true claims.

    Args: scores: (n,); nan has the p value 1.

    >>> conformal_p_values([9.0, 2.0], [1.0, 2.0, 3.0]).tolist()
    [0.25, 0.75]
    """
    wanted, null = np.asarray(scores, np.float64), np.sort(np.asarray(null_scores, np.float64))
    as_large = len(null) - np.searchsorted(null, wanted, side="left")
    found: Values = (1 + as_large) / (len(null) + 1)
    return np.where(np.isnan(wanted), 1.0, found)


def decided(p_values: ArrayLike, families: Sequence[Hashable], rate: float) -> NDArray[np.bool_]:
    """Return (n,) whether each claim is decided, by Benjamini and Hochberg in each family.

    A claim without a p value (nan) is in no family, and is not decided.

    The expected share of wrong ones among the decided is at most `rate` where the p values of
    false claims depend on the others positively (Benjamini and Yekutieli 2001). That is proved for
    claims of independent images about one finding, whose p values share the calibration cases
    (Bates et al. 2023, theorem 2). For several findings on one image it is what
    benchmarks/results/claim_rates.md shows by simulation.

    Raises: InvalidSetting unless 0 < rate < 1.
    """
    check_rate(rate)
    p = np.asarray(p_values, np.float64)
    found = np.zeros(len(p), bool)
    for rows in rows_by_family(families).values():
        found[rows] = benjamini_hochberg(p[rows]) <= rate
    return found


def rows_by_family(families: Sequence[Hashable]) -> dict[Hashable, NDArray[np.int64]]:
    """Return family -> numbers of its claims."""
    number = {family: k for k, family in enumerate(dict.fromkeys(families))}
    codes = np.fromiter(map(number.__getitem__, families), int, len(families))
    return {family: np.flatnonzero(codes == k) for family, k in number.items()}


def check_rate(rate: float) -> None:
    """Raise InvalidSetting unless 0 < rate < 1."""
    if not 0 < rate < 1:
        raise InvalidSetting(f"a false discovery rate must be between 0 and 1, not {rate!r}")
