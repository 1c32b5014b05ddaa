"""How far printed numbers of two right results may lie apart.

In which order a processor sums products, and with how many threads, changes the last bits of an
embedding. A value near the middle of two printed numbers may be printed as either, so a printed
number may differ by one in its last place.
"""

import re
from collections.abc import Sequence

# With three decimals or more, and no part of a version.
_NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d{3,}(?![\w.])")


def same_print(found: Sequence[str], expected: Sequence[str]) -> bool:
    """Return whether lines are equal but for numbers that differ by one in their last place.

    >>> same_print(["mean  0.4888"], ["mean  0.4887"]), same_print(["0.4888"], ["0.4886"])
    (True, False)
    >>> same_print(["0.4888 a"], ["0.4888 b"]), same_print(["0.488"], ["0.4888"])
    (False, False)
    """
    if [_NUMBER.sub("0", line) for line in found] != [_NUMBER.sub("0", line) for line in expected]:
        return False
    shown = (_NUMBER.findall("\n".join(lines)) for lines in (found, expected))
    return all(
        _places(one) == _places(other) and abs(_units(one) - _units(other)) <= 1
        for one, other in zip(*shown, strict=True)
    )


def _places(number: str) -> int:
    return len(number.partition(".")[2])


def _units(number: str) -> int:
    """The number in units of its last place."""
    return int(number.replace(".", ""))
