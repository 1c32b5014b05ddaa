"""Phrases that qualify a finding: side, zone, severity, change and size."""

from collections.abc import Sequence
from typing import NamedTuple

from vlscore.findings.lexicon import Lexicon
from vlscore.findings.tokens import Match, Token
from vlscore.findings.types import Attribute, Axis, Span


class Modifier(NamedTuple):
    """Qualifying phrase at tokens [first, last), with its (axis, value) pairs."""

    first: int
    last: int
    values: tuple[tuple[Axis, str], ...]

    @property
    def is_place(self) -> bool:
        """Return whether it names a side or a zone."""
        return self.values[0][0] in (Axis.SIDE, Axis.ZONE)

    @property
    def is_change(self) -> bool:
        """Return whether it compares with a prior."""
        return self.values[0][0] is Axis.CHANGE

    def attributes(self, tokens: Sequence[Token]) -> list[Attribute]:
        """Return the phrase as attributes with character spans."""
        span = Span(tokens[self.first].start, tokens[self.last - 1].end)
        return [Attribute(axis, value, span) for axis, value in self.values]


#: What "ipsilateral" and "contralateral" mean behind each side.
_RELATIVE: dict[str | None, dict[str | None, str]] = {
    "same": {"left": "left", "right": "right"},
    "opposite": {"left": "right", "right": "left"},
}


def find_modifiers(found: dict[str, list[Match]]) -> list[Modifier]:
    """Return all qualifying phrases of a sentence, in text order."""
    modifiers = [
        Modifier(size.first, size.last, ((Axis.SIZE, f"{size.entry:g}"),))
        for size in found.get("size", ())
    ]
    before: str | None = None
    for match in found.get("place", ()):
        side = match.entry.side
        if side in _RELATIVE:
            side = _RELATIVE[side].get(before)
        before = side or before
        place = ((Axis.SIDE, side), (Axis.ZONE, match.entry.zone))
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


def find_sizes(tokens: Sequence[Token], lexicon: Lexicon) -> list[Match]:
    """Return the sizes in a sentence, in text order; `entry`: the largest diameter in mm.

    >>> from vlscore.findings import load_lexicon, tokenize
    >>> tokens = tokenize("A 2.8 x 3.2 cm mass, and a nodule of 4 mm.")
    >>> [size.entry for size in find_sizes(tokens, load_lexicon())]
    [32.0, 4.0]
    """
    found: list[Match] = []
    units, numbers = lexicon.spelt.units, lexicon.spelt.numbers
    if units.keys().isdisjoint([token[0] for token in tokens]):
        return found
    times = lexicon.lists["between_diameters"]

    def number_at(position: int) -> float | None:
        digits = numbers.get(tokens[position].form, tokens[position].form)
        return float(digits) if digits.isascii() and digits[0].isdecimal() else None

    for position in range(1, len(tokens)):
        unit = units.get(tokens[position].form)
        number = None if unit is None else number_at(position - 1)
        if unit is None or number is None:
            continue
        first = position - 1
        while first > 1 and tokens[first - 1].form in times:
            if (other := number_at(first - 2)) is None:
                break
            first, number = first - 2, max(number, other)
        millimetres = number * unit
        if found and found[-1].last == first - 1 and tokens[first - 1].form in times:
            before = found.pop()
            first, millimetres = before.first, max(before.entry, millimetres)
        found.append(Match(first, position + 1, "size", millimetres))
    return found
