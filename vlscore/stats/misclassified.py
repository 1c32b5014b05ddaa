"""Counts against a reference that is sometimes wrong, corrected for its errors.

A reference states a finding in a film, or does not. It misses a present finding with the rate
`missed`, and states an absent one with the rate `invented`. A candidate and the reference are
independent of each other given the truth; so the rate of the reference's statements among the
films where the candidate states the finding tells how many of these have it (Rogan, Gladen 1978,
Am J Epidemiol 107:71, in both groups; the matrix method of Barron 1977, Biometrics 33:414).

The estimates are linear in the counts, and not limited to possible values: sums over many findings
then have no bias from rare ones. Who shows a single one limits it.
"""

from typing import NamedTuple

import numpy as np

from vlscore.errors import InvalidSetting
from vlscore.stats.intervals import Array

# Twice the distance of a normal variable's mean from the end of its 95 % interval.
_WIDTH = 2 * 1.959963984540054
_STEPS = 60


class Rate(NamedTuple):
    """An error rate: an estimate, and the beta distribution that says how well it is known.

    `a` and `b` are nan for a rate that is known exactly.
    """

    estimate: float
    a: float = float("nan")
    b: float = float("nan")

    @classmethod
    def counted(cls, errors: float, of: float) -> "Rate":
        """Return the rate of so many errors in so many cases, with Jeffreys' distribution.

        Raises: InvalidSetting unless 0 <= errors <= of and 0 < of.

        >>> Rate.counted(12, 100).estimate
        0.12
        """
        if not (0 <= errors <= of and 0 < of < float("inf")):
            raise InvalidSetting(f"{errors:g} errors of {of:g} is no rate")
        return cls(errors / of, errors + 0.5, of - errors + 0.5)

    @classmethod
    def within(cls, estimate: float, low: float, high: float) -> "Rate":
        """Return a rate with a 95 % interval: the beta distribution of its mean and width.

        Raises: InvalidSetting unless 0 <= low <= estimate <= high < 1, low < high, 0 < estimate.
        """
        if not (0 <= low <= estimate <= high < 1 and low < high and estimate > 0):
            raise InvalidSetting(
                f"{estimate:g} [{low:g}, {high:g}] is no rate above 0 within its interval; write "
                "counts, as in 0/120"
            )
        size = estimate * (1 - estimate) / ((high - low) / _WIDTH) ** 2 - 1
        if size <= 0:
            raise InvalidSetting(f"the interval [{low:g}, {high:g}] is too wide for a rate")
        return cls(estimate, estimate * size, (1 - estimate) * size)

    def drawn(self, count: int, rng: np.random.Generator) -> Array:
        """Return (1 + count,): the estimate, then draws."""
        known = np.isnan(self.a)
        draws = np.full(count, self.estimate) if known else rng.beta(self.a, self.b, count)
        return np.concatenate([[self.estimate], draws])


def true_counts(
    hits: Array,
    extra: Array,
    stated: Array,
    films: Array,
    missed: Array,
    invented: Array,
    shared: float = 0.0,
) -> tuple[Array, Array]:
    """Estimate counts against the truth from counts against a reference.

    All arrays broadcast; where `missed + invented` is 1 or more, the result has no meaning.

    Args:
        hits, extra: films where the candidate states the finding; hits: the reference does, too.
        stated: films where the reference states it.
        films: all films.
        missed, invented: error rates of the reference: false negative, false positive.
        shared: with this probability the candidate repeats an error of the reference, besides the
            agreement by chance that independent errors have.

    Returns: the films in which the candidate's statement is true, and those that have the finding.

    >>> [float(x) for x in true_counts(30.0, 10.0, 45.0, 100.0, 0.1, 0.0)]
    [33.333333333333336, 50.0]
    """
    alone = 1 - shared
    present = (stated - invented * films) / (1 - missed - invented)
    repeated = shared * invented * (films - present)
    kept = (1 - invented) * (hits - repeated) - invented * alone * extra
    scale = (1 - missed) * (1 - invented) - missed * invented * alone**2
    return (1 - shared * missed) * kept / scale, present


def invented_of(false_discovery: Array, missed: Array, stated: Array, films: Array) -> Array:
    """Return the false positive rate of a reference from the share of its statements that is false.

    Args: as of `true_counts`; 0 where the reference states nothing.

    >>> float(invented_of(0.1, 0.2, 40.0, 100.0))
    0.07272727272727272
    """
    present = (1 - false_discovery) * stated / (1 - missed)
    return false_discovery * stated / (films - present)


def false_discovery_of(invented: Array, missed: Array, stated: Array, films: Array) -> Array:
    """Return the share of a reference's statements that is false; 0 where it states nothing.

    >>> round(float(false_discovery_of(0.0727272727, 0.2, 40.0, 100.0)), 6)
    0.1
    """
    present = (stated - invented * films) / (1 - missed - invented)
    return invented * (films - present) / np.where(stated > 0, stated, np.inf)


def rates_of_two(both: Array, one: Array, films: Array, missed_share: Array) -> tuple[Array, Array]:
    """Estimate the error rates of two reports of each film whose authors are equally good.

    Two reports do not say which is right where they differ (three unknown rates, two frequencies);
    `missed_share` says it. Their errors are independent given the truth.

    Args:
        both, one: films in which both reports, or one of them, state the finding.
        films: all films.
        missed_share: of the films where one report states it, the share in which it is present,
            so that the other report missed it.

    Returns: rate of missed findings, and share of statements that are false; nan where the reports
        agree so little that no rates explain it.

    >>> missed, false = rates_of_two(72.9, 16.2, 1000.0, 1.0)
    >>> round(float(missed), 6), round(float(false), 6)
    (0.1, 0.0)
    """
    each = both + one / 2
    omitted, added = missed_share * one / 2, (1 - missed_share) * one / 2
    invented = np.zeros_like(each + omitted)
    with np.errstate(invalid="ignore", divide="ignore"):
        for _ in range(_STEPS):
            false = added / (1 - invented)
            true = each - false
            missed = omitted / true
            invented = false / (films - true / (1 - missed))
        fits = (true > 0) & (missed < 1) & (invented >= 0) & (invented + missed < 1)
        return np.where(fits, missed, np.nan), np.where(fits, false / each, np.nan)


def first_crossing(shares: Array, differences: Array, sign: float) -> Array:
    """Return where differences first have another sign than `sign`.

    Args:
        shares: (g, d), growing along g from 0.
        differences: (g, d); a nan ends the search.

    Returns: (d,), interpolated; inf where no crossing is.

    >>> first_crossing(np.array([[0.0], [0.1], [0.2]]), np.array([[2.0], [1.0], [-1.0]]), 1.0)
    array([0.15])
    """
    signed = differences * sign
    ends = np.isnan(signed)
    other = (signed < 0) | ends
    first = other.argmax(axis=0)
    columns = np.arange(signed.shape[1])
    found = other.any(axis=0) & ~ends[first, columns]
    before = np.maximum(first - 1, 0)
    low, high = signed[before, columns], signed[first, columns]
    with np.errstate(invalid="ignore", divide="ignore"):
        part = np.where(first > 0, low / (low - high), 0.0)
    start, end = shares[before, columns], shares[first, columns]
    return np.where(found, start + part * (end - start), np.inf)


def rank_shares(values: Array, rng: np.random.Generator) -> Array:
    """Return (k, k): in which share of draws each of k systems has rank 1 (largest), 2, ...

    Equal values get their ranks at random.

    Args: values: (d, k), finite.

    >>> rank_shares(np.array([[0.5, 0.7], [0.5, 0.6]]), np.random.default_rng(0))
    array([[0., 1.],
           [1., 0.]])
    """
    order = np.lexsort((rng.random(values.shape), -values), axis=1)
    count = values.shape[1]
    return np.stack([(order == k).mean(axis=0) for k in range(count)])
