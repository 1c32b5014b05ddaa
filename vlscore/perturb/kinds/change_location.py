"""Kind of perturbation that moves a positive finding to another side or zone."""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache

from vlscore.findings import Attribute, Axis, Category, Finding, Polarity, Span
from vlscore.perturb.changed_sentences import names_side_elsewhere, names_zone_elsewhere
from vlscore.perturb.edits import (
    Chance,
    Change,
    Edit,
    Effect,
    ErrorCategory,
    Expected,
    Meaning,
    change_of,
    in_case_of,
    replaced,
)
from vlscore.perturb.lexicons import location_moves, matching_form
from vlscore.perturb.parsed_report import ReadReport, topic_of
from vlscore.perturb.plaintext import heights_in
from vlscore.perturb.registry import Kind

_SIDES = re.compile(r"\b(left|right)\b", re.IGNORECASE)
_OTHER = {"left": "right", "right": "left"}


class ChangeLocation(Kind):
    """Kind that moves a finding: every mention of its place in the report changes.

    So the changed report does not contradict itself. Sides of organs that exist on one side only
    do not change, and a finding does not move to an implausible place.
    """

    name = "change-location"
    description = "Change a word that locates a positive finding: side or zone."
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.WRONG_LOCATION
    origin = "VLScore paper, section 4.2, kind 3 (187 of 979)"
    nothing = "no positive finding has a side or zone that can be changed"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        if source.has_labels:
            return
        places = [
            (finding, attribute)
            for sentence in source.sentences
            if sentence.category is Category.CLINICAL
            for finding in sentence.findings
            if finding.is_present
            for attribute in finding.attributes
            if not attribute.inherited and attribute.axis in (Axis.SIDE, Axis.ZONE)
        ]
        tried = set()
        for finding, attribute in chance.shuffled(places):
            place = topic_of(finding), attribute.axis, attribute.value
            if place in tried:
                continue
            tried.add(place)
            if attribute.axis is Axis.SIDE:
                change = _other_side(source, finding, attribute)
            else:
                change = _other_zone(source, finding, attribute, chance)
            if change is not None:
                yield change


def _other_side(source: ReadReport, finding: Finding, attribute: Attribute) -> Change | None:
    words = matching_form(attribute.span.of(source.text))
    side, moves = attribute.value, location_moves()
    if side not in _OTHER or words not in moves.sides or finding.observation in moves.one_sided:
        return None
    if _is_on_side(source, finding, _OTHER[side]) or _is_normal(source, _OTHER[side]):
        return None
    stated = source.sentences_stating(finding)
    if names_side_elsewhere(source, side, stated) or _is_placed_again(source, stated):
        return None
    if _takes_along(source, side, stated):
        return None
    edits: set[Edit] = set()
    for index in stated:
        moved = _moved_sides(source, index, side)
        if moved is None:
            return None
        edits.update(moved)
    meaning = Meaning(Effect.MOVED, (finding.observation,), side, _OTHER[side])
    return change_of(edits, f"side:{words}->{moves.sides[words]} {finding.observation}", meaning)


def _is_on_side(source: ReadReport, finding: Finding, side: str) -> bool:
    """Return whether the report names the finding, or a related one, on that side or on both."""
    return source.is_bilateral_elsewhere(finding) or side in source.sides_of(finding.observation)


def _is_normal(source: ReadReport, side: str) -> bool:
    """Return whether the report calls something on that side normal ("Right lung is clear")."""
    return any(
        sentence.normal
        and re.search(rf"\b{side}\b", source.words_of(sentence))
        and (not sentence.findings or any(finding.normal for finding in sentence.findings))
        for sentence in source.sentences
    )


def _takes_along(source: ReadReport, side: str, stated: Collection[int]) -> bool:
    """Return whether a finding that would also move is mentioned elsewhere, or on both sides."""
    told = (f for index in stated for f in source.sentences[index].findings if f.is_present)
    # One of each topic: what is asked of them has the same answer.
    along = {topic_of(finding): finding for finding in told if finding.side == side}.values()
    return any(
        not source.sentences_stating(finding) <= set(stated)
        or _is_on_side(source, finding, _OTHER[side])
        for finding in along
    )


def _moved_sides(source: ReadReport, index: int, side: str) -> set[Edit] | None:
    """Return edits that move all findings of a sentence to the other side; None if impossible."""
    span, text = source.sentences[index].span, source.text
    named = list(_SIDES.finditer(text, *span))
    if any(
        word.group().lower() == side and _one_side_only().match(text, word.end(), span.end)
        for word in named
    ):
        return None
    places = {
        place.span
        for finding in source.sentences[index].findings
        for place in finding.on(Axis.SIDE)
        if not place.inherited and place.value == side
    }
    edits: set[Edit] = set()
    for place in places:
        old = place.of(text)
        new = location_moves().sides.get(matching_form(old))
        if new is None:
            return None
        edits.update(replaced(text, *place, in_case_of(new, old)))
    if all(word.group().lower() == side for word in named):
        # What no finding claims goes along, as the rib that a nodule projects over.
        loose = [word for word in named if not any(place.covers(_span(word)) for place in places)]
        for word in loose:
            new = in_case_of(_OTHER[side], word.group())
            edits.update(replaced(text, *word.span(), new))
    return edits


def _span(word: re.Match[str]) -> Span:
    return Span(*word.span())


@cache
def _one_side_only() -> re.Pattern[str]:
    names = "|".join(re.escape(words) for words in location_moves().only_one_side)
    return re.compile(rf"[- ]+(?:sided +)?(?:\w+ )?(?:{names}|middle|lingula\w*)\b", re.IGNORECASE)


def _other_zone(
    source: ReadReport, finding: Finding, attribute: Attribute, chance: Chance
) -> Change | None:
    words = matching_form(attribute.span.of(source.text))
    moves = location_moves()
    own = _own_moves(source, finding)
    zones = {**moves.zones, **own}
    if words not in zones or finding.observation not in moves.movable:
        return None
    if words not in own and _is_tied_to_the_base(source, finding, attribute.value):
        return None
    stated = source.sentences_stating(finding)
    if names_zone_elsewhere(source, finding, attribute, stated):
        return None
    if _is_placed_again(source, stated):
        return None
    new = chance.pick(zones[words])
    edits: set[Edit] = set()
    for index in stated:
        alike = {old: _at_one_height(options, new) for old, options in zones.items()}
        moved = _moved_zones(source, index, attribute.value, {**alike, words: (new,)})
        if moved is None:
            return None
        edits.update(moved)
    meaning = Meaning(Effect.MOVED, (finding.observation,), attribute.value, new)
    return change_of(edits, f"zone:{words}->{new} {finding.observation}", meaning)


def _at_one_height(options: tuple[str, ...], new: str) -> tuple[str, ...]:
    """Return the options at the height of the new place, so that a finding has only one place."""
    return tuple(option for option in options if heights_in(option) == heights_in(new)) or options


def _own_moves(source: ReadReport, finding: Finding) -> dict[str, tuple[str, ...]]:
    """Return the moves of zones for this finding, or for its interpretation in the sentence."""
    beside = source.sentences[finding.sentence].findings
    tables = (location_moves().zones_of.get(other.observation, {}) for other in beside)
    return {words: options for table in tables for words, options in table.items()}


def _is_placed_again(source: ReadReport, stated: Collection[int]) -> bool:
    """Return whether a sentence that refers to the finding without its name gives its place."""
    return any(
        _SIDES.search(said) or _zone_words().search(said)
        for index in stated
        for follower in source.followers(index)
        if follower not in stated
        for said in [source.words_of(source.sentences[follower])]
    )


def _is_tied_to_the_base(source: ReadReport, finding: Finding, zone: str) -> bool:
    """Return whether a finding at the base is named with one that occurs only there."""
    beside = source.sentences[finding.sentence].findings
    basal = [other for other in beside if other.observation in location_moves().basal]
    return zone == "base" and any(other.polarity is not Polarity.NEGATIVE for other in basal)


def _moved_zones(
    source: ReadReport, index: int, zone: str, zones: Mapping[str, tuple[str, ...]]
) -> set[Edit] | None:
    """Return edits that move all findings of a sentence from one zone to another.

    None if the sentence also names other zones, so that only half of a list or a description
    would change.
    """
    text = source.text
    said = source.words_of(source.sentences[index])
    if any(bound in said for bound in location_moves().zone_bound):
        return None
    places = {
        place.span
        for finding in source.sentences[index].findings
        for place in finding.on(Axis.ZONE)
        if not place.inherited and place.value == zone
    }
    edits: set[Edit] = set()
    for place in places:
        old = matching_form(place.of(text))
        if old not in zones:
            return None
        new = zones[old][0]
        edits.update(replaced(text, *place, in_case_of(new, place.of(text))))
    for word in _zone_words().finditer(text, *source.sentences[index].span):
        if not any(place.covers(_span(word)) for place in places):
            return None
    return edits


@cache
def _zone_words() -> re.Pattern[str]:
    words = "|".join(sorted(location_moves().zones, key=len, reverse=True))
    return re.compile(
        rf"\b(?:{words}|upper|lower|middle|lingula\w*|hil\w+|retrocardiac)\b", re.IGNORECASE
    )
