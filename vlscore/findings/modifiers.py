"""Phrases that qualify a finding: side, zone, severity, change and size.

A change may be stated by two sizes, or two degrees: "9 mm, previously 4 mm", "was large, is small".
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from vlscore.findings.lexicon import Lexicon
from vlscore.findings.tokens import Match, Token
from vlscore.findings.types import Attribute, Axis, Span, TemporalChange

#: Tokens in which the earlier size begins behind them, and tokens between two sizes.
_REACH_OF_EARLIER, _MOST_BETWEEN = 3, 4
#: Tokens between two degrees of one finding.
_MOST_BETWEEN_DEGREES = 7


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


class Size(NamedTuple):
    """Size at tokens [first, last)."""

    first: int
    last: int
    millimetres: float


def find_modifiers(
    tokens: Sequence[Token],
    found: dict[str, list[Match]],
    sizes: Sequence[Size],
    lexicon: Lexicon,
) -> list[Modifier]:
    """Return all qualifying phrases of a sentence, in text order."""
    modifiers = [
        Modifier(size.first, size.last, ((Axis.SIZE, f"{size.millimetres:g}"),))
        for size in _present(tokens, sizes, found, lexicon)
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


def _present(
    tokens: Sequence[Token],
    sizes: Sequence[Size],
    found: Mapping[str, Sequence[Match]],
    lexicon: Lexicon,
) -> Iterator[Size]:
    """Find the sizes that are not of an earlier image: "12 mm, *previously 20 mm*"."""
    times = {m.last for m in found.get("earlier", ())}
    of_change: set[Match] = set()
    for size in sizes:
        own = [c for c in found.get("change", ()) if c.first <= size.first and size.last <= c.last]
        if own and own[0] not in of_change:
            of_change.add(own[0])  # Of two sizes of a change, the second is the present one.
        elif size.first not in times and not (
            size.first and tokens[size.first - 1].form in lexicon.lists["from"]
        ):
            yield size


def find_sizes(tokens: Sequence[Token], lexicon: Lexicon) -> list[Size]:
    """Return the sizes in a sentence, in text order; of several diameters the largest.

    >>> from vlscore.findings import load_lexicon, tokenize
    >>> tokens = tokenize("A 2.8 x 3.2 cm mass, and a nodule of 4 mm.")
    >>> [s.millimetres for s in find_sizes(tokens, load_lexicon())]
    [32.0, 4.0]
    """
    found: list[Size] = []
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
            first, millimetres = before.first, max(before.millimetres, millimetres)
        found.append(Size(first, position + 1, millimetres))
    return found


def find_size_changes(
    tokens: Sequence[Token],
    sizes: Sequence[Size],
    earlier: Sequence[Match],
    lexicon: Lexicon,
) -> Iterator[tuple[int, int, TemporalChange]]:
    """Find changes between two sizes: the first token, the last one + 1, and the change.

    "9 mm, previously 4 mm", "4 mm then, 9 mm now" and "from 4 mm to 9 mm" say the same.
    """
    lists = lexicon.lists
    for one, other in pairwise(sizes):
        between = tokens[one.last : other.first]
        follows = between[0].form if between else ""
        is_from = one.first > 0 and tokens[one.first - 1].form in lists["from"]
        times = [
            time.first
            for time in earlier
            if one.last <= time.first
            and 0 <= other.first - time.last < _REACH_OF_EARLIER
            and tokens[time.first].form in lists["before_earlier_size"]
        ]
        is_then = follows in lists["then"] or (is_from and follows in lists["to"])
        first, before, now = (times[0], other, one) if times else (one.first, one, other)
        if times or (is_then and len(between) <= _MOST_BETWEEN):
            change = now.millimetres - before.millimetres
            grown = TemporalChange.WORSE if change > 0 else TemporalChange.IMPROVED
            yield first, other.last, grown if change else TemporalChange.UNCHANGED


def find_degree_changes(
    tokens: Sequence[Token],
    found: Mapping[str, Sequence[Match]],
    earlier: Sequence[Match],
    lexicon: Lexicon,
) -> Iterator[tuple[int, int, TemporalChange, Match]]:
    """Find changes between two degrees: the first token, the last one + 1, and the change.

    The last value is the earlier degree; that of today is not among the tokens. "Now small,
    previously large", "large before, is now small" and "the large effusion is now small" say the
    same.
    """
    lists = lexicon.lists
    words, now = lists["before_earlier_size"], lists["now"]
    mentions = found.get("mention", ())
    degrees = [m for m in found.get("severity", ()) if m.entry and m.entry.scale in lists["graded"]]
    for one, other in pairwise(degrees if now else ()):
        between = [token.form for token in tokens[one.last : other.first]]
        named = [m for m in mentions if one.last <= m.first < other.first]
        joined = not lists["finding_joints"].isdisjoint(between)
        if len(between) > _MOST_BETWEEN_DEGREES or len(named) > 1:
            continue
        was, is_earlier = (
            tokens[each.first - 1].form in words or any(t.last == each.first for t in earlier)
            for each in (one, other)
        )
        was = was or any(t.first == one.last for t in earlier)
        was = (
            was
            or tokens[one.first - 1].form in lists["from"]
            or not lists["then"].isdisjoint(between[:1])
        )
        is_now = not now.isdisjoint(between[-1:] if named else between)
        is_now = is_now or (was and not lists["copulas"].isdisjoint(between[-1:]))
        if is_now and (was or named) and not (named and joined):
            first = other.first - 1 if named else one.first
            yield first, other.first, _between(one, other), one
        elif (is_earlier and not was) and not any(
            0 <= m.first - other.last < _REACH_OF_EARLIER for m in mentions
        ):
            yield other.first - 1, other.last, _between(other, one), other


def _between(before: Match, now: Match) -> TemporalChange:
    """Return the change from an earlier degree to that of today."""
    steps = now.entry.rank - before.entry.rank
    grown = TemporalChange.WORSE if steps > 0 else TemporalChange.IMPROVED
    return grown if steps else TemporalChange.UNCHANGED
