"""Phrases that qualify a finding: side, zone, severity, change and size.

A change may be stated by two sizes: "9 mm, previously 4 mm".
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from vlscore.findings.lexicon import Lexicon
from vlscore.findings.tokens import Match, Token, number_before
from vlscore.findings.types import Attribute, Axis, Span, TemporalChange

#: Units of size -> millimetres.
_MILLIMETRES = {"mm": 1.0, "millimeter": 1.0, "cm": 10.0, "centimeter": 10.0}
#: Tokens in which the earlier size begins behind them, and tokens between two sizes.
_REACH_OF_EARLIER, _MOST_BETWEEN = 3, 4


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


def find_modifiers(tokens: Sequence[Token], found: dict[str, list[Match]]) -> list[Modifier]:
    """Return all qualifying phrases of a sentence, in text order."""
    modifiers = [
        Modifier(size.first, size.last, ((Axis.SIZE, f"{size.millimetres:g}"),))
        for size in _present(tokens, find_sizes(tokens), found)
    ]
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


class Size(NamedTuple):
    """Size at tokens [first, last): a number of units, each of so many millimetres."""

    first: int
    last: int
    number: float
    unit: float

    @property
    def millimetres(self) -> float:
        """Return the size in millimetres."""
        return self.number * self.unit


def _present(
    tokens: Sequence[Token], sizes: Sequence[Size], found: Mapping[str, Sequence[Match]]
) -> Iterator[Size]:
    """Find the sizes that are not of an earlier image: "12 mm, *previously 20 mm*"."""
    times = {m.last for m in found.get("earlier", ())}
    of_change: set[Match] = set()
    for size in sizes:
        own = [c for c in found.get("change", ()) if c.first <= size.first and size.last <= c.last]
        if own and own[0] not in of_change:
            of_change.add(own[0])  # Of two sizes of a change, the second is the present one.
        elif size.first not in times and (not size.first or tokens[size.first - 1].form != "from"):
            yield size


#: Between the diameters of a lesion: "3.2 x 2.8 cm".
_TIMES = frozenset(("x", "×", "by"))


def find_sizes(tokens: Sequence[Token]) -> list[Size]:
    """Return the sizes in a sentence, in text order; of several diameters the largest.

    >>> from vlscore.findings import tokenize
    >>> [s.millimetres for s in find_sizes(tokenize("A 2.8 x 3.2 cm mass, and a nodule of 4 mm."))]
    [32.0, 4.0]
    """
    found: list[Size] = []
    if _MILLIMETRES.keys().isdisjoint([token[0] for token in tokens]):
        return found
    for position in range(1, len(tokens)):
        unit = _MILLIMETRES.get(tokens[position].form)
        if unit is not None:
            first, number = number_before(tokens, position)
            if number is None:
                continue
            while first > 1 and tokens[first - 1].form in _TIMES:
                begin, other = number_before(tokens, first - 1)
                if other is None:
                    break
                first, number = begin, max(number, other)
            size = Size(first, position + 1, number, unit)
            if found and found[-1].last == first - 1 and tokens[first - 1].form in _TIMES:
                before = found.pop()
                larger = max(before, size, key=lambda each: each.millimetres)
                size = Size(before.first, position + 1, larger.number, larger.unit)
            found.append(size)
    return found


def find_size_changes(
    tokens: Sequence[Token],
    sizes: Sequence[Size],
    earlier: Sequence[Match],
    lexicon: Lexicon,
) -> Iterator[tuple[int, int, TemporalChange]]:
    """Find changes between two sizes: the first token, the last one + 1, and the change.

    Args: sizes: of the sentence.
    """
    for first, last, before, now in (
        *_previously(tokens, sizes, earlier, lexicon),
        *_from_to(tokens, sizes, lexicon),
    ):
        grown = TemporalChange.WORSE if now > before else TemporalChange.IMPROVED
        yield first, last, TemporalChange.UNCHANGED if now == before else grown


_Pair = tuple[int, int, float, float]


def _previously(
    tokens: Sequence[Token],
    sizes: Sequence[Size],
    earlier: Sequence[Match],
    lexicon: Lexicon,
) -> Iterator[_Pair]:
    """Find "now 2 cm above the carina, previously 5": tokens, the earlier size, and the present."""
    for first, last, *_ in earlier:
        now = [size for size in sizes if size.last <= first]
        if not now or tokens[first].form not in lexicon.lists["before_earlier_size"]:
            continue
        for position in range(last, min(last + _REACH_OF_EARLIER, len(tokens))):
            _, number = number_before(tokens, position + 1)
            if number is not None:
                units = [_MILLIMETRES.get(t.form) for t in tokens[position + 1 : position + 2]]
                unit = units[0] if units else None
                end = position + 1 + (unit is not None)
                yield first, end, number * (unit or now[-1].unit), now[-1].millimetres
                break


def _from_to(tokens: Sequence[Token], sizes: Sequence[Size], lexicon: Lexicon) -> Iterator[_Pair]:
    """Find "4 mm then, 9 mm now" and "from 4 mm to 9 mm"."""
    for before, now in pairwise(sizes):
        behind = tokens[before.last].form
        is_from = behind == "to" and before.first > 0 and tokens[before.first - 1].form == "from"
        is_near = now.first - before.last <= _MOST_BETWEEN
        if is_near and (is_from or behind in lexicon.lists["then"]):
            yield before.first, now.last, before.millimetres, now.millimetres
