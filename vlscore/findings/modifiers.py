"""Words that qualify a finding: side, zone, severity, change and size."""

from collections.abc import Sequence
from typing import NamedTuple

from vlscore.findings.phrases import Match
from vlscore.findings.tokens import Token
from vlscore.findings.types import Attribute, Axis, Span

_MILLIMETRES = {"mm": 1.0, "millimeter": 1.0, "cm": 10.0, "centimeter": 10.0}


class Modifier(NamedTuple):
    """A qualifying phrase at tokens [first, last): (axis, value) pairs it stands for."""

    first: int
    last: int
    values: tuple[tuple[Axis, str], ...]

    @property
    def is_place(self) -> bool:
        """Whether it names a side or a zone."""
        return self.values[0][0] in (Axis.SIDE, Axis.ZONE)

    @property
    def is_change(self) -> bool:
        """Whether it compares with a prior."""
        return self.values[0][0] is Axis.CHANGE

    def attributes(self, tokens: Sequence[Token]) -> list[Attribute]:
        """The phrase as attributes with character spans."""
        span = Span(tokens[self.first].start, tokens[self.last - 1].end)
        return [Attribute(axis, value, span) for axis, value in self.values]


def find_modifiers(tokens: Sequence[Token], found: dict[str, list[Match]]) -> list[Modifier]:
    """All qualifying phrases of a sentence, in text order."""
    modifiers = _sizes(tokens)
    for match in found.get("place", ()):
        place = ((Axis.SIDE, match.entry.side), (Axis.ZONE, match.entry.zone))
        values = tuple((axis, value) for axis, value in place if value is not None)
        if values:
            modifiers.append(Modifier(match.first, match.last, values))
    for match in found.get("severity", ()):
        if match.entry is not None:
            value = (Axis.SEVERITY, match.entry.value)
            modifiers.append(Modifier(match.first, match.last, (value,)))
    for match in found.get("change", ()):
        if match.entry is not None:
            modifiers.append(Modifier(match.first, match.last, ((Axis.CHANGE, match.entry),)))
    modifiers.sort()
    return modifiers


def _sizes(tokens: Sequence[Token]) -> list[Modifier]:
    sizes = []
    for i in range(1, len(tokens)):
        factor = _MILLIMETRES.get(tokens[i].form)
        if factor is None:
            continue
        number = tokens[i - 1].form
        if number.isascii() and number[0].isdecimal():
            value = (Axis.SIZE, f"{float(number) * factor:g}")
            sizes.append(Modifier(i - 1, i + 1, (value,)))
    return sizes
