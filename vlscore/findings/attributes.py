"""Which side, zone, severity, change and size words belong to which mention.

Words inside a mention are its own. Between two mentions, the last joint (comma, "and", a trigger)
parts the words of the earlier one from those of the later one. Places are then shared along a
plain enumeration ("left effusion and atelectasis", "atelectasis or scarring in the left base").
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vlscore.findings.mentions import Mention
from vlscore.findings.phrases import Match
from vlscore.findings.tokens import Token
from vlscore.findings.types import Attribute, Axis, Side, Span

_JOINTS = frozenset(", ; : and or with without but no nor versus vs plus not which also by".split())
_PREPOSITIONS = frozenset(
    """in at of within along over overlying involving projecting projected throughout seen noted
    near is are was were on to from about around adjacent , ( has have appears appear
    measuring""".split()
)
_CHAIN = frozenset(
    """, and or with associated the a an some superimposed underlying to be versus vs either of
    also adjacent & secondary due related areas area component in at within lung xxxx most
    represent representing reflect reflecting compatible consistent combination part
    accompanied adjoining field zone lobe space lateral medial posterior anterior""".split()
)
_PREDICATE = frozenset(
    """is are was were seen noted identified present visualized demonstrated projecting over
    overlying on frontal projection view appear appears which""".split()
)
_PAIRED = re.compile(
    r"(?:bases|apices|lobes|zones|fields|hila|lungs|angles|sulci|diaphragms)\b", re.IGNORECASE
)
_MILLIMETRES = {"mm": 1.0, "millimeter": 1.0, "cm": 10.0, "centimeter": 10.0}


class Modifier(NamedTuple):
    """A qualifying phrase at tokens [first, last): (axis, value) pairs it stands for."""

    first: int
    last: int
    values: tuple[tuple[Axis, str], ...]


def find_modifiers(tokens: Sequence[Token], found: dict[str, list[Match]]) -> list[Modifier]:
    """All qualifying phrases of a sentence, in text order."""
    modifiers = []
    for match in found.get("place", ()):
        values = []
        if match.entry.side is not None:
            values.append((Axis.SIDE, match.entry.side))
        if match.entry.zone is not None:
            values.append((Axis.ZONE, match.entry.zone))
        if values:
            modifiers.append(Modifier(match.first, match.last, tuple(values)))
    for match in found.get("severity", ()):
        if match.entry is not None:
            value = (Axis.SEVERITY, match.entry.value)
            modifiers.append(Modifier(match.first, match.last, (value,)))
    for match in found.get("change", ()):
        if match.entry is not None:
            modifiers.append(Modifier(match.first, match.last, ((Axis.CHANGE, match.entry),)))
    modifiers.extend(_sizes(tokens))
    modifiers.sort()
    return modifiers


def _sizes(tokens: Sequence[Token]) -> list[Modifier]:
    sizes = []
    for i in range(1, len(tokens)):
        factor = _MILLIMETRES.get(tokens[i].form)
        number = tokens[i - 1].form
        if factor is not None and number[0].isdecimal() and number.isascii():
            value = (Axis.SIZE, f"{float(number) * factor:g}")
            sizes.append(Modifier(i - 1, i + 1, (value,)))
    return sizes


def to_attributes(
    tokens: Sequence[Token], modifier: Modifier, *, inherited: bool = False
) -> list[Attribute]:
    """The modifier's words as attributes with character spans."""
    span = Span(tokens[modifier.first].start, tokens[modifier.last - 1].end)
    return [Attribute(axis, value, span, inherited) for axis, value in modifier.values]


def _implied_side(text: str, mention: Span, attributes: Sequence[Attribute]) -> list[Attribute]:
    """Both sides, where a paired place stands in the plural without a side: "in the bases"."""
    if any(a.axis is Axis.SIDE for a in attributes):
        return []
    for words in (*(a.span for a in attributes if a.axis is Axis.ZONE), mention):
        if _PAIRED.search(text, words.start, words.end):
            return [Attribute(Axis.SIDE, str(Side.BILATERAL), words, inherited=True)]
    return []


def attach(
    text: str,
    tokens: Sequence[Token],
    mentions: Sequence[Mention],
    modifiers: Sequence[Modifier],
    in_trigger: Mapping[int, bool],
    midline: frozenset[str],
) -> list[list[Attribute]]:
    """Attributes of each mention; `mentions` in text order, `in_trigger` maps the token
    positions inside ConText triggers to whether a trigger starts there.
    """
    own: list[list[Modifier]] = [[] for _ in mentions]
    if not mentions:
        return []
    groups = _same_place(mentions)
    leaders = [group[0] for group in groups]
    places = _places(modifiers)
    splits = [
        _split(tokens, mentions, left, right[0], in_trigger, places)
        for left, right in zip(groups, groups[1:], strict=False)
    ]
    position = 0
    for modifier in modifiers:
        while position < len(splits) and modifier.first >= splits[position]:
            position += 1
        for member in groups[position]:
            own[member].append(modifier)
    result = [[a for modifier in mine for a in to_attributes(tokens, modifier)] for mine in own]
    for mention, attributes in zip(mentions, result, strict=True):
        words = Span(tokens[mention.first].start, tokens[mention.last - 1].end)
        attributes.extend(_implied_side(text, words, attributes))
    _share_places(tokens, mentions, groups, leaders, own, result, in_trigger, midline)
    return result


def _same_place(mentions: Sequence[Mention]) -> list[list[int]]:
    """Indices of mentions, those whose words overlap together."""
    groups: list[list[int]] = []
    end = -1
    for index, mention in enumerate(mentions):
        if groups and mention.first < end:
            groups[-1].append(index)
        else:
            groups.append([index])
        end = max(end, mention.last)
    return groups


def _end(mentions: Sequence[Mention], group: Sequence[int]) -> int:
    return max(mentions[i].last for i in group)


def _split(
    tokens: Sequence[Token],
    mentions: Sequence[Mention],
    left: Sequence[int],
    right: int,
    in_trigger: Mapping[int, bool],
    places: Sequence[Modifier],
) -> int:
    """The token at which the words of the right mention begin."""
    start, end = _end(mentions, left), mentions[right].first
    joints = [
        position
        for position in range(start, end)
        if tokens[position].form in _JOINTS or in_trigger.get(position)
    ]
    if len(joints) > 1 and tokens[joints[-1]].form == "and" and _joins_places(joints[-1], places):
        return joints[-2] + 1
    if joints:
        return joints[-1] + 1
    if start < end and tokens[start].form in _PREPOSITIONS:
        return end
    return start


def _joins_places(position: int, places: Sequence[Modifier]) -> bool:
    """Whether the "and" at `position` stands between two places: "left apical and right basilar"."""
    return any(m.last == position for m in places) and any(m.first == position + 1 for m in places)


def _share_places(
    tokens: Sequence[Token],
    mentions: Sequence[Mention],
    groups: Sequence[Sequence[int]],
    leaders: Sequence[int],
    own: Sequence[Sequence[Modifier]],
    result: list[list[Attribute]],
    in_trigger: Mapping[int, bool],
    midline: frozenset[str],
) -> None:
    linked = [
        _enumerated(tokens, mentions, left, right[0], own, in_trigger)
        for left, right in zip(groups, groups[1:], strict=False)
    ]
    for i, link in enumerate(linked):
        if link and not _places(own[leaders[i + 1]]):
            _inherit(tokens, groups[i + 1], _shared(result[leaders[i]]), mentions, result, midline)
    for i in range(len(linked) - 1, -1, -1):
        after = _end(mentions, groups[i + 1])
        if linked[i] and not _shared(result[leaders[i]]):
            following = [m for m in own[leaders[i + 1]] if m.first >= after]
            places = [a for m in _places(following) for a in to_attributes(tokens, m)]
            if not places:
                places = [
                    a
                    for a in _shared(result[leaders[i + 1]])
                    if a.inherited and a.span.start >= tokens[after - 1].end
                ]
            _inherit(tokens, groups[i], places, mentions, result, midline)


def _places(modifiers: Sequence[Modifier]) -> list[Modifier]:
    return [m for m in modifiers if m.values[0][0] in (Axis.SIDE, Axis.ZONE)]


def _shared(attributes: Sequence[Attribute]) -> list[Attribute]:
    return [a for a in attributes if a.axis in (Axis.SIDE, Axis.ZONE)]


def _inherit(
    tokens: Sequence[Token],
    group: Sequence[int],
    places: Sequence[Attribute],
    mentions: Sequence[Mention],
    result: list[list[Attribute]],
    midline: frozenset[str],
) -> None:
    for index in group:
        if mentions[index].observation not in midline:
            result[index].extend(a._replace(inherited=True) for a in places)


def _enumerated(
    tokens: Sequence[Token],
    mentions: Sequence[Mention],
    left: Sequence[int],
    right: int,
    own: Sequence[Sequence[Modifier]],
    in_trigger: Mapping[int, bool],
) -> bool:
    """Whether no new statement begins between two mentions.

    Joints, triggers and qualifying words may stand there, and one predicate ("opacities are noted
    in the bases, compatible with atelectasis") unless a joint precedes it.
    """
    qualified = {
        position
        for index in (left[0], right)
        for modifier in own[index]
        for position in range(modifier.first, modifier.last)
    }
    joined = False
    for position in range(_end(mentions, left), mentions[right].first):
        form = tokens[position].form
        if position in qualified or position in in_trigger:
            continue
        if form in _PREDICATE and not joined:
            continue
        if form not in _CHAIN:
            return False
        joined = joined or form in (",", "and")
    return True
