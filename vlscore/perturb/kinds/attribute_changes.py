"""Kinds of perturbation that move a positive finding to another side or zone, or regrade it."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache

from vlscore.findings import Attribute, Axis, Category, Finding, Polarity, Sentence, Side, Span
from vlscore.perturb.changed_sentences import (
    affirmed_elsewhere,
    denied_elsewhere,
    names_side_elsewhere,
    names_zone_elsewhere,
)
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
from vlscore.perturb.lexicons import location_moves, matching_form, severity_changes
from vlscore.perturb.parsed_report import ReadReport, topic_of
from vlscore.perturb.plaintext import heights_in
from vlscore.perturb.registry import Kind

_SIDES = re.compile(r"\b(left|right)\b", re.IGNORECASE)
_OTHER = {"left": "right", "right": "left"}


def _present(source: ReadReport) -> Iterator[Finding]:
    """Yield the positive findings of clinical sentences."""
    for sentence in source.sentences:
        if sentence.category is Category.CLINICAL:
            yield from (finding for finding in sentence.findings if finding.is_present)


def _distinct(
    found: Iterable[tuple[Finding, Attribute]], chance: Chance
) -> Iterator[tuple[Finding, Attribute]]:
    """Yield findings with an attribute in random order, each topic with each value once."""
    tried = set()
    for finding, attribute in chance.shuffled(found):
        key = topic_of(finding), attribute.axis, attribute.value
        if key not in tried:
            tried.add(key)
            yield finding, attribute


def _places(sentence: Sentence, axis: Axis, value: str) -> set[Span]:
    """Return the words in a sentence that give its findings this side or zone."""
    return {
        place.span
        for finding in sentence.findings
        for place in finding.on(axis)
        if not place.inherited and place.value == value
    }


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
            for finding in _present(source)
            for attribute in finding.attributes
            if not attribute.inherited and attribute.axis in (Axis.SIDE, Axis.ZONE)
        ]
        for finding, attribute in _distinct(places, chance):
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
    if (
        names_side_elsewhere(source, side, stated)
        or _is_placed_again(source, stated)
        or _moves_others_too(source, side, stated)
    ):
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
    return source.is_bilateral_elsewhere(finding) or side in source.sides[finding.observation]


def _is_normal(source: ReadReport, side: str) -> bool:
    """Return whether the report calls something on that side normal ("Right lung is clear")."""
    return any(
        sentence.normal
        and re.search(rf"\b{side}\b", source.words_of(sentence))
        and (not sentence.findings or any(finding.normal for finding in sentence.findings))
        for sentence in source.sentences
    )


def _moves_others_too(source: ReadReport, side: str, stated: Collection[int]) -> bool:
    """Return whether a finding that would also move is mentioned elsewhere, or on both sides."""
    present = (f for index in stated for f in source.sentences[index].findings if f.is_present)
    # One finding of each topic: the conditions below depend on its topic alone.
    moved = {topic_of(finding): finding for finding in present if finding.side == side}.values()
    return any(
        not source.sentences_stating(finding) <= set(stated)
        or _is_on_side(source, finding, _OTHER[side])
        for finding in moved
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
    places = _places(source.sentences[index], Axis.SIDE, side)
    edits: set[Edit] = set()
    for place in places:
        old = place.of(text)
        new = location_moves().sides.get(matching_form(old))
        if new is None:
            return None
        edits.update(replaced(text, *place, in_case_of(new, old)))
    if all(word.group().lower() == side for word in named):
        # Sides of no finding change too, such as that of the rib that a nodule projects over.
        loose = [w for w in named if not any(place.covers(Span(*w.span())) for place in places)]
        for word in loose:
            new = in_case_of(_OTHER[side], word.group())
            edits.update(replaced(text, *word.span(), new))
    return edits


@cache
def _one_side_only() -> re.Pattern[str]:
    names = "|".join(re.escape(words) for words in location_moves().only_one_side)
    return re.compile(rf"[- ]+(?:sided +)?(?:\w+ )?(?:{names}|middle|lingula\w*)\b", re.IGNORECASE)


def _other_zone(
    source: ReadReport, finding: Finding, attribute: Attribute, chance: Chance
) -> Change | None:
    words = matching_form(attribute.span.of(source.text))
    moves = location_moves()
    # The moves for this finding, or for its interpretation in the same sentence.
    named = source.sentences[finding.sentence].findings
    tables = (moves.zones_of.get(other.observation, {}) for other in named)
    own = {old: options for table in tables for old, options in table.items()}
    zones = {**moves.zones, **own}
    if words not in zones or finding.observation not in moves.movable:
        return None
    # A finding at the base may be named with one that occurs only there.
    is_tied = attribute.value == "base" and any(
        f.observation in moves.basal and f.polarity is not Polarity.NEGATIVE for f in named
    )
    if words not in own and is_tied:
        return None
    stated = source.sentences_stating(finding)
    if names_zone_elsewhere(source, finding, attribute, stated) or _is_placed_again(source, stated):
        return None
    new = chance.pick(zones[words])
    # Each at the height of the new place, so that the finding has only one place.
    level = heights_in(new)
    alike = {
        old: tuple(option for option in options if heights_in(option) == level) or options
        for old, options in zones.items()
    }
    edits: set[Edit] = set()
    for index in stated:
        moved = _moved_zones(source, index, attribute.value, {**alike, words: (new,)})
        if moved is None:
            return None
        edits.update(moved)
    meaning = Meaning(Effect.MOVED, (finding.observation,), attribute.value, new)
    return change_of(edits, f"zone:{words}->{new} {finding.observation}", meaning)


def _is_placed_again(source: ReadReport, stated: Collection[int]) -> bool:
    """Return whether a sentence that refers to the finding without its name gives its place."""
    return any(
        _SIDES.search(said) or _zone_words().search(said)
        for index in stated
        for follower in source.followers(index)
        if follower not in stated
        for said in [source.words_of(source.sentences[follower])]
    )


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
    places = _places(source.sentences[index], Axis.ZONE, zone)
    edits: set[Edit] = set()
    for place in places:
        old = matching_form(place.of(text))
        if old not in zones:
            return None
        new = zones[old][0]
        edits.update(replaced(text, *place, in_case_of(new, place.of(text))))
    for word in _zone_words().finditer(text, *source.sentences[index].span):
        if not any(place.covers(Span(*word.span())) for place in places):
            return None
    return edits


@cache
def _zone_words() -> re.Pattern[str]:
    words = "|".join(sorted(location_moves().zones, key=len, reverse=True))
    return re.compile(
        rf"\b(?:{words}|upper|lower|middle|lingula\w*|hil\w+|retrocardiac)\b", re.IGNORECASE
    )


_NEXT_WORD = re.compile(r"\s+([^\W\d_]+)")
_RANKED = re.compile(r"\b(?:left|right)\b.{,12}\b(?:greater|larger|more|worse|less|smaller)\b")
_INTERPRETS = re.compile(r"\b(?:represent|suggest|consistent|compatible|reflect|due to|likely)")
_SIZE = re.compile(r"\d\s*(?:mm|cm|millimet|centimet)")


class ChangeSeverity(Kind):
    """Kind that changes the severity of a finding wherever the report states it."""

    name = "change-severity"
    description = "Change a word that grades a positive finding: small to large, mild to severe."
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.WRONG_SEVERITY
    origin = "VLScore paper, section 4.2, kind 4 (95 of 979)"
    nothing = "no positive finding has a severity that can be changed"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        # A device's size word belongs to its name ("large-bore catheter").
        grades = [
            (finding, attribute)
            for finding in _present(source)
            if not finding.on(Axis.SIZE) and finding.chexpert != "Support Devices"
            for attribute in _own_grades(finding)
        ]
        for finding, attribute in _distinct(grades, chance):
            change = _regraded(source, finding, attribute, chance)
            if change is not None:
                yield change


def _grades(finding: Finding) -> list[Attribute]:
    return [grade for grade in finding.on(Axis.SEVERITY) if not grade.inherited]


def _own_grades(finding: Finding) -> list[Attribute]:
    """Return words that grade the finding but do not state it ("borderline heart size" does)."""
    return [grade for grade in _grades(finding) if not grade.span.covers(finding.cue)]


def _regraded(
    source: ReadReport, finding: Finding, attribute: Attribute, chance: Chance
) -> Change | None:
    if not _can_be_regraded(source, finding, attribute) or _is_belied(source, finding):
        return None
    choice = chance.below(2)
    edits: set[Edit] = set()
    for mention in (finding, *source.restatements(finding)):
        for grade in _grades(mention):
            is_own = grade in _own_grades(mention) and grade.value == attribute.value
            if not (is_own and _can_be_regraded(source, mention, grade)):
                return None
            new = in_case_of(
                _other_grade(source, mention, grade, choice), grade.span.of(source.text)
            )
            edits.update(replaced(source.text, *grade.span, new))
    old = matching_form(attribute.span.of(source.text))
    new = _other_grade(source, finding, attribute, choice)
    meaning = Meaning(Effect.REGRADED, (finding.observation,), old, new)
    return change_of(edits, f"severity:{old}->{new} {finding.observation}", meaning)


def _can_be_regraded(source: ReadReport, finding: Finding, grade: Attribute) -> bool:
    """Return whether the word can be replaced by another grade, and grades only this finding."""
    table, text = severity_changes(), source.text
    words = matching_form(grade.span.of(text))
    if words not in table.changes:
        return False
    following = matching_form(text[grade.span.end : grade.span.end + 30])
    preceding = matching_form(text[max(0, grade.span.start - 30) : grade.span.start])
    observation, is_degree = finding.observation, words in table.degrees
    if (
        (words in table.opacity_words and observation not in table.opaque)
        or (is_degree and observation in table.no_degree)
        or (is_degree and following.startswith(table.degrees_not_before))
        or following.startswith(table.not_before)
        or preceding.endswith(table.not_after)
    ):
        return False
    if grade.span.end <= finding.cue.start:
        between = text[grade.span.end : finding.cue.start]
        return "," not in between and table.apart.isdisjoint(between.lower().split())
    between = text[finding.cue.end : grade.span.start]
    return table.copulas.issuperset(between.lower().split())


def _is_belied(source: ReadReport, finding: Finding) -> bool:
    """Return whether the report also expresses the size or grade of the finding differently."""
    table = severity_changes()
    signs = table.signs.get(finding.observation, ())
    stated = source.sentences_stating(finding)
    said = [source.words_of(source.sentences[index]) for index in stated]
    return (
        _is_measured(source, finding)
        or _is_doubted_too(source, finding)
        or _is_graded_by_side(source, finding)
        or any(
            f.observation in signs and f.polarity is not Polarity.NEGATIVE for f in source.findings
        )
        or any(words in sentence for words in table.not_beside for sentence in said)
        or denied_elsewhere(source, finding, stated)
        or affirmed_elsewhere(source, finding, stated)
    )


def _is_graded_by_side(source: ReadReport, finding: Finding) -> bool:
    """Return whether left and right are compared, or named both apart and together."""
    if finding.side is Side.BILATERAL:
        return any(
            other.observation == finding.observation and other.side in (Side.LEFT, Side.RIGHT)
            for other in source.findings
        )
    together = any(other.side is Side.BILATERAL for other in source.restatements(finding))
    return together or _RANKED.search(source.text.lower()) is not None


def _other_grade(source: ReadReport, finding: Finding, grade: Attribute, choice: int) -> str:
    table = severity_changes()
    words = matching_form(grade.span.of(source.text))
    change = table.changes[words]
    following = _NEXT_WORD.match(source.text, grade.span.end)
    if following is not None and following.group(1).lower() in table.adjectives:
        return change.before_adjective[choice % len(change.before_adjective)]
    if finding.observation in table.has_amount and words in table.amounts:
        return table.amounts[words]
    return change.words[choice % len(change.words)]


def _is_doubted_too(source: ReadReport, finding: Finding) -> bool:
    """Return whether the sentence also interprets the finding as one that it grades too."""
    sentence = source.sentences[finding.sentence]
    interprets = _INTERPRETS.search(source.words_of(sentence)) is not None
    return any(
        (interprets or other.polarity is Polarity.UNCERTAIN)
        and other is not finding
        and other.polarity is not Polarity.NEGATIVE
        and _grades(other)
        for other in sentence.findings
    )


def _is_measured(source: ReadReport, finding: Finding) -> bool:
    """Return whether a sentence that states it, or one of nothing else, gives a size."""
    stated = source.sentences_stating(finding)
    return any(
        _SIZE.search(source.words_of(sentence))
        for sentence in source.sentences
        if sentence.index in stated or not sentence.findings
    )
