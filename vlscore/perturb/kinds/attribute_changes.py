"""Kinds of perturbation that move a positive finding to another side or zone, or regrade it."""

from collections.abc import Iterable, Iterator, Mapping

from vlscore.findings import (
    Attribute,
    Axis,
    Category,
    Finding,
    Polarity,
    Side,
    load_lexicon,
    tokenize,
)
from vlscore.perturb.edits import (
    Chance,
    Change,
    Edit,
    Effect,
    ErrorCategory,
    Expected,
    Meaning,
    in_case_of,
    replaced,
)
from vlscore.perturb.lexicons import location_moves, matching_form, severity_changes
from vlscore.perturb.parsed_report import ParsedReport, topic_of
from vlscore.perturb.registry import Kind


def _present(source: ParsedReport) -> Iterator[Finding]:
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

    def changes(self, source: ParsedReport, chance: Chance) -> Iterator[Change]:
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


def _other_side(source: ParsedReport, finding: Finding, attribute: Attribute) -> Change | None:
    words = matching_form(attribute.span.of(source.text))
    moves = location_moves()
    if words not in moves.sides or load_lexicon().observations[finding.observation].one_sided:
        return None
    options = {old: (new,) for old, new in moves.sides.items()}
    other = Side.RIGHT if attribute.value == Side.LEFT else Side.LEFT
    return _moved(source, finding, attribute, options, 0, other)


def _other_zone(
    source: ParsedReport, finding: Finding, attribute: Attribute, chance: Chance
) -> Change | None:
    words = matching_form(attribute.span.of(source.text))
    moves, known = location_moves(), load_lexicon().observations
    # The moves for this finding, or for its interpretation in the same sentence.
    named = source.sentences[finding.sentence].findings
    own = {old: to for other in named for old, to in known[other.observation].zones.items()}
    zones = {**moves.zones, **own}
    if words not in zones or not _may_be_anywhere(finding):
        return None
    # A finding at the base may be named with one that occurs only there.
    is_tied = attribute.value == "base" and any(
        known[f.observation].basal and f.polarity is not Polarity.NEGATIVE for f in named
    )
    if words not in own and is_tied:
        return None
    choice = chance.below(len(zones[words]))
    return _moved(source, finding, attribute, zones, choice, zones[words][choice])


def _may_be_anywhere(finding: Finding) -> bool:
    """Return whether a finding may be in any zone: its entry says so, or it is in the lungs."""
    own = load_lexicon().observations[finding.observation]
    return own.region == "lungs" if own.moves is None else own.moves


def _moved(
    source: ParsedReport,
    finding: Finding,
    attribute: Attribute,
    options: Mapping[str, tuple[str, ...]],
    choice: int,
    new: str,
) -> Change | None:
    """Return the change that moves a finding to a new place wherever the report states it."""
    edits: set[Edit] = set()
    for index in source.sentences_stating(finding):
        moved = _moved_in(source, index, attribute, options, choice)
        if moved is None:
            return None
        edits.update(moved)
    old, name = matching_form(attribute.span.of(source.text)), finding.observation
    meaning = Meaning(Effect.MOVED, (name,), attribute.value, new)
    return Change(tuple(edits), f"{attribute.axis}:{old}->{options[old][choice]} {name}", meaning)


def _moved_in(
    source: ParsedReport,
    index: int,
    attribute: Attribute,
    options: Mapping[str, tuple[str, ...]],
    choice: int,
) -> set[Edit] | None:
    """Return edits that move all findings of a sentence from one side or zone to another.

    The side of anything else moves too, such as that of the rib that a nodule projects over, if the
    sentence names no other side. None if a word cannot be replaced, or the sentence also names
    another zone, so that only half of a list or a description would change.
    """
    axis, text = attribute.axis, source.text
    # "Diffuse" is at no height.
    named = [
        (place.span, value)
        for place in source.places(index)
        for value in (place.side if axis is Axis.SIDE else place.zone,)
        if value is not None and (axis is Axis.SIDE or location_moves().height([value]))
    ]
    spans = {
        place.span
        for finding in source.sentences[index].findings
        for place in finding.on(axis)
        if not place.inherited and place.value == attribute.value
    }
    loose = [span for span, _ in named if not any(own.overlaps(span) for own in spans)]
    if axis is Axis.SIDE and all(value == attribute.value for _, value in named):
        spans.update(loose)
    elif axis is Axis.ZONE and loose:
        return None
    edits: set[Edit] = set()
    for span in spans:
        old = span.of(text)
        new = options.get(matching_form(old), ())
        if choice >= len(new):
            return None
        edits.update(replaced(text, *span, in_case_of(new[choice], old)))
    return edits


class ChangeSeverity(Kind):
    """Kind that changes the severity of a finding wherever the report states it."""

    name = "change-severity"
    description = "Change a word that grades a positive finding: small to large, mild to severe."
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.WRONG_SEVERITY
    origin = "VLScore paper, section 4.2, kind 4 (95 of 979)"
    nothing = "no positive finding has a severity that can be changed"

    def changes(self, source: ParsedReport, chance: Chance) -> Iterator[Change]:
        # A device's size word belongs to its name ("large-bore catheter").
        grades = [
            (finding, attribute)
            for finding in _present(source)
            if finding.chexpert != "Support Devices"
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
    source: ParsedReport, finding: Finding, attribute: Attribute, chance: Chance
) -> Change | None:
    if not _can_be_regraded(source, finding, attribute):
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
    return Change(tuple(edits), f"severity:{old}->{new} {finding.observation}", meaning)


def _can_be_regraded(source: ParsedReport, finding: Finding, grade: Attribute) -> bool:
    """Return whether the word alone grades the finding, and no other, and can be replaced."""
    table, text = severity_changes(), source.text
    words = matching_form(grade.span.of(text))
    if table.of(words) is None or finding.on(Axis.SIZE):
        return False
    following = matching_form(text[grade.span.end : grade.span.end + 30])
    preceding = matching_form(text[max(0, grade.span.start - 30) : grade.span.start])
    own, is_degree = load_lexicon().observations[finding.observation], words in table.degrees
    if (
        (words in table.opacity_words and not own.opaque)
        or (is_degree and not own.degree)
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


def _other_grade(source: ParsedReport, finding: Finding, grade: Attribute, choice: int) -> str:
    table = severity_changes()
    words = matching_form(grade.span.of(source.text))
    change = table.of(words)
    following = tokenize(source.text[grade.span.end : grade.span.end + 30])
    is_adverb = bool(following) and following[0].form in table.adjectives
    has_amount = load_lexicon().observations[finding.observation].amount
    if not is_adverb and has_amount and words in table.amounts:
        return table.amounts[words]
    options = (is_adverb and change.before_adjective) or change.to if change else (words,)
    return options[choice % len(options)]
