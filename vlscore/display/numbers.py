"""Numbers as tables show them."""

import math

from vlscore.stats import Interval

NOTHING = "-"


def number(value: float | None, digits: int = 3) -> str:
    """A number; "-" where it is not defined.

    >>> number(0.12345), number(float("nan"))
    ('0.123', '-')
    """
    if value is None or math.isnan(value):
        return NOTHING
    return f"{value:.{digits}f}"


def interval(value: Interval | None, digits: int = 3) -> str:
    """An estimate with its interval, where that is defined.

    >>> interval(Interval(0.5, 0.4, 0.6))
    '0.500 [0.400, 0.600]'
    """
    if value is None:
        return NOTHING
    estimate = number(value.estimate, digits)
    if math.isnan(value.low):
        return estimate
    return f"{estimate} [{value.low:.{digits}f}, {value.high:.{digits}f}]"


def p_value(value: float) -> str:
    """A p value, never shown as 0."""
    return "< 0.001" if value < 0.001 else number(value)
