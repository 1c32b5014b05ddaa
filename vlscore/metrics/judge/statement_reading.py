"""Reading of a report's statements for the rule judge."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, groupby, pairwise
from typing import Any

from vlscore.findings import (
    Attribute,
    Axis,
    Category,
    Finding,
    FindingChange,
    MarkedSpan,
    Polarity,
    ReportFindings,
    Sentence,
    SeverityLevel,
    Span,
    Status,
    TemporalChange,
    changes_of,
    extract,
    severity_level,
)
from vlscore.metrics.judge.judge_tables import JudgeTables, Position
from vlscore.metrics.judge.places import BOTH_SIDES, GREATER, Place
from vlscore.metrics.judge.statements import (
    DEGREE,
    REMAINDER,
    ReportStatements,
    Statement,
    around,
    distinct_statements,
    each_once,
    marks_in,
    merge_device,
    merge_explanation,
    opens_with,
)

#: Reports whose statements are remembered: several candidates share a reference.
_REMEMBERED = 2048
#: Characters between two sides that share a noun: "left and right".
_LONGEST_JOINT = 5
#: Scales of words.toml whose words are no degrees of a finding.
_NO_DEGREES = ("number", "age")


@lru_cache(_REMEMBERED)
def statements_of(report: str, tables: JudgeTables) -> ReportStatements:
    """Return the statements of a report about this patient now, each finding and place once."""
    found = extract(report, tables.lexicon)
    changes = changes_of(found)
    changed = {change.finding: change for change in changes if change.finding is not None}
    stated: list[Statement] = []
    for sentence in found.sentences:
        own = [
            each
            for finding in sentence.findings
            # What stands in the indication is no finding of the report.
            if sentence.category is not Category.HISTORY
            for each in _statements(found, sentence, finding, changed.get(finding), tables)
        ]
        for statement in distinct_statements(found.plain, sentence, own, tables):
            if not (
                merge_explanation(stated, sentence, statement, tables)
                or merge_device(stated, sentence, statement, tables)
            ):
                stated.append(statement)
    return ReportStatements(report, tuple(each_once(stated, tables)), found, changes)


def _statements(
    found: ReportFindings,
    sentence: Sentence,
    finding: Finding,
    change: FindingChange | None,
    tables: JudgeTables,
) -> list[Statement]:
    """Return the statements of a finding, one for each place of which something else is said."""
    if finding.polarity is Polarity.NEGATIVE and not finding.on(Axis.CHANGE):
        return []
    whole = _statement(found, sentence, finding, change, tables)
    parts = _split_by_place(sentence, whole, tables)
    # "Cleared on the right, larger on the left": what has gone denies the finding of one place.
    is_split = parts != [whole] and finding.status is Status.CURRENT
    if is_split and (finding.polarity is not Polarity.NEGATIVE or _has_resolved(change)):
        return parts
    return parts if _is_stated(finding, change, tables) else []


def _is_stated(finding: Finding, change: FindingChange | None, tables: JudgeTables) -> bool:
    if finding.polarity is Polarity.NEGATIVE or _has_resolved(change):
        return False
    if finding.status is Status.CURRENT:
        return True
    concept = tables.concepts[tables.of_observation[finding.observation]]
    return finding.status is Status.HISTORICAL and concept.after_treatment


def _has_resolved(change: FindingChange | None) -> bool:
    return change is not None and change.change is TemporalChange.RESOLVED


def _statement(
    found: ReportFindings,
    sentence: Sentence,
    finding: Finding,
    change: FindingChange | None,
    tables: JudgeTables,
) -> Statement:
    concept = concept_of(finding.observation, finding.span, sentence, tables)
    is_device = tables.concepts[concept].device
    positions = _positions_of(found, sentence, finding, concept, tables) if is_device else []
    considered = marks_in(sentence, Span(sentence.span.start, finding.span.start), "differential")
    return Statement(
        concept=concept,
        finding=finding,
        line=sentence.span,
        quoted=around(
            finding.span,
            *(span for _, span in positions),
            *(
                a.span
                for a in finding.attributes
                # Words of change are quoted by the errors of comparison.
                if a.axis is not Axis.CHANGE and not a.inherited and sentence.span.covers(a.span)
            ),
        ),
        place=Place(
            _sides_of(found, finding, sentence, is_device),
            _levels_of(finding.on(Axis.ZONE), tables),
        ),
        grades=_grades_of(finding, sentence, tables) | _remainder(sentence, change, tables),
        size=max((float(a.value) for a in finding.on(Axis.SIZE) if not is_device), default=None),
        change=None if tables.concepts[concept].after_treatment else change,
        doubtful=finding.status is Status.CURRENT and (not finding.is_likely or bool(considered)),
        position=min((position for position, _ in positions), default=None),
        observations=frozenset((finding.observation,)),
        tips=frozenset(position.name for position, _ in positions),
    )


def concept_of(observation: str, words: Span, sentence: Sentence, tables: JudgeTables) -> str:
    """Return the concept of an observation, as some words of a sentence name it."""
    if (refined := tables.refined.get(observation)) is not None:
        named = {m.name for m in sentence.marks if m.layer == "concept" and words.covers(m.span)}
        for concept in refined:
            if concept.name in named:
                return concept.name
    return tables.of_observation[observation]


def _levels_of(zones: Iterable[Attribute], tables: JudgeTables) -> dict[str, frozenset[str]]:
    levels: dict[str, frozenset[str]] = {}
    for zone in zones:
        for family, own in tables.levels.get(zone.value, ()):
            levels[family] = levels.get(family, frozenset()) | {own}
    return levels


def _sides_of(
    found: ReportFindings, finding: Finding, sentence: Sentence, is_device: bool
) -> frozenset[str]:
    """Return the sides of a finding; of a device the first: a left PICC may end in a right vein."""
    sides = finding.on(Axis.SIDE)
    if all(side.inherited for side in sides) and (side := _relative_side(found, finding, sentence)):
        return side
    if is_device and len(sides) > 1:
        first, second = sides[:2]
        is_far = second.span.start - first.span.end > _LONGEST_JOINT
        if is_far or not _is_listed(sentence, first, second):
            return BOTH_SIDES if first.value == "bilateral" else frozenset((first.value,))
    return frozenset(finding.sides)


def _relative_side(found: ReportFindings, finding: Finding, sentence: Sentence) -> frozenset[str]:
    """Return the side that a finding has in relation to that of a finding before.

    "On this side" and "ipsilateral" are the same one, "contralateral" the other one.
    """
    others = [f.span for f in sentence.findings if not f.span.overlaps(finding.span)]
    for mark in sentence.marks:
        own = around(mark.span, finding.span)
        if mark.layer == "side" and not any(map(own.overlaps, others)):
            before = (frozenset(f.sides) for f in found if f.span.end <= own.start)
            named = [sides for sides in before if len(sides) == 1][-1:]
            return frozenset().union(
                *(BOTH_SIDES - s if mark.name == "other" else s for s in named)
            )
    return frozenset()


def _grades_of(
    finding: Finding, sentence: Sentence, tables: JudgeTables
) -> dict[str, SeverityLevel]:
    """Return the levels of a finding by kind; a nodule that is named in the singular is one."""
    grades = _levels_said(finding.on(Axis.SEVERITY), sentence, tables)
    for mark in sentence.marks:
        is_its_name = mark.layer == "number" and mark.span.end == finding.span.end
        if is_its_name and (level := severity_level(mark.name, tables.lexicon)) is not None:
            grades.setdefault("number", level)
    return grades


def _levels_said(
    words: Iterable[Attribute], sentence: Sentence, tables: JudgeTables
) -> dict[str, SeverityLevel]:
    """Return the levels that words of severity state by kind, of each kind the first.

    In "mild edema has progressed to moderate" the last degree is that of today.
    """
    grades: dict[str, SeverityLevel] = {}
    for word in words:
        level = severity_level(word.value, tables.lexicon)
        if level is not None:
            kind = level.scale if level.scale in _NO_DEGREES else DEGREE
            is_of_today = kind in grades and any(
                m.name == "today" and 0 <= word.span.start - m.span.end <= 1 for m in sentence.marks
            )
            if kind not in grades or is_of_today or level.scale == REMAINDER:
                grades[kind] = level
    return grades


def _remainder(
    sentence: Sentence, change: FindingChange | None, tables: JudgeTables
) -> dict[str, SeverityLevel]:
    """Return the degree that the words of change state, which may stand at another finding.

    "Severe edema and an effusion have nearly resolved" leaves little of both.
    """
    if change is not None:
        words = (a for f in sentence.findings for a in f.on(Axis.SEVERITY))
        for word in words:
            level = severity_level(word.value, tables.lexicon)
            if level is not None and level.scale == REMAINDER and change.span.covers(word.span):
                return {DEGREE: level}
    return {}


def _split_by_place(
    sentence: Sentence, statement: Statement, tables: JudgeTables
) -> list[Statement]:
    """Return one statement for each place, where each has its own degree or change; else the whole.

    "Large left, small right" are two, and so is "worse in the upper lobe, better in the lower
    lobe". Of "the left effusion is larger, on the right it has cleared", only that of the left is
    returned.
    """
    places, shared, stated = _said_of_places(sentence, statement, tables)
    whole = Place()
    is_of_both = places[:1] == [Place(BOTH_SIDES)]
    if len(places) > 1 and (not stated[0] or is_of_both):
        # "Bilateral, larger on the right, smaller on the left"
        shared += stated[0]
        whole, places, stated = places[0], places[1:], stated[1:]
    apart = all(
        (one.sides and other.sides and one.sides.isdisjoint(other.sides))
        or one.differs_in_levels(other)
        for one, other in combinations(places, 2)
    )
    if len(places) < 2 or not all(stated) or not apart:
        return [statement]
    if not places[-1].sides:  # "The right lower lobe, now also the middle lobe"
        whole = Place(whole.sides or places[0].sides, whole.levels)
    parts = (
        _of_place(statement, sentence, place.with_missing(whole), [*own, *shared], tables)
        for place, own in zip(places, stated, strict=True)
    )
    return [each for each in parts if not _has_resolved(each.change)]


def _said_of_places(
    sentence: Sentence, statement: Statement, tables: JudgeTables
) -> tuple[list[Place], list[Attribute], list[list[Attribute]]]:
    """Return the places that a statement names one by one, what is said of all, and of each."""
    words = [
        a
        for a in statement.finding.attributes
        if a.axis in (Axis.SIDE, Axis.ZONE, Axis.SEVERITY, Axis.CHANGE) and not a.inherited
    ]
    more = {a.span: _greater_side(a, tables) for a in words if _greater_side(a, tables)}
    changes = [a.span for a in words if a.axis is Axis.CHANGE]
    # "Larger on the left" compares two sides, or names a side where it states a change.
    own = [
        a._replace(value=more[a.span]) if a.span in more else a
        for a in words
        if a.span not in more or (a.axis is Axis.SIDE and any(map(a.span.overlaps, changes)))
    ]
    runs = [
        (is_place, list(run))
        for is_place, run in groupby(own, key=lambda a: a.axis in (Axis.SIDE, Axis.ZONE))
    ]
    runs = [
        (is_place, part)
        for is_place, run in runs
        for part in (_in_clauses(sentence, run) if is_place else [run])
    ]
    named = [run for is_place, run in runs if is_place]
    shared: list[Attribute] = []
    stated: list[list[Attribute]] = [[] for _ in named]
    behind = -1
    for is_place, run in runs if len(named) > 1 else ():
        if is_place:
            behind += 1
            continue
        for word in run:
            before = behind >= 0 and not _is_listed(sentence, named[behind][-1], word)
            ahead = behind + 1 < len(named) and not _is_listed(sentence, word, named[behind + 1][0])
            if before == ahead:
                ahead = behind + 1 < len(named) and (runs[-1][0] or behind < 0)
            if ahead:
                stated[behind + 1].append(word)
            elif behind >= 0:
                stated[behind].append(word)
            else:
                shared.append(word)
    of_place: dict[tuple[Any, ...], tuple[Place, list[Attribute]]] = {}
    for run, own in zip(named, stated, strict=True):
        place = Place(_sides_in(run), _levels_of((a for a in run if a.axis is Axis.ZONE), tables))
        key = place.sides, frozenset(place.levels.items())
        of_place.setdefault(key, (place, []))[1].extend(own)
    return [p for p, _ in of_place.values()], shared, [own for _, own in of_place.values()]


def _in_clauses(sentence: Sentence, words: list[Attribute]) -> list[list[Attribute]]:
    """Return words of place in runs without a comma: "left and right" is one of them."""
    runs = [words[:1]]
    for one, other in pairwise(words):
        between = Span(one.span.end, other.span.start)
        if "comma" in marks_in(sentence, between, "joint"):
            runs.append([])
        runs[-1].append(other)
    return runs


def _greater_side(zone: Attribute, tables: JudgeTables) -> str:
    """Return the side that has more, as a zone says; "" for other words."""
    levels = tables.levels.get(zone.value, ()) if zone.axis is Axis.ZONE else ()
    return next((level for family, level in levels if family == GREATER), "")


def _sides_in(words: Iterable[Attribute]) -> frozenset[str]:
    sides = {a.value for a in words if a.axis is Axis.SIDE}
    return BOTH_SIDES if "bilateral" in sides else frozenset(sides)


def _is_listed(sentence: Sentence, one: Attribute, next_one: Attribute) -> bool:
    """Return whether "and" or a comma stands between two words, in the order of the text."""
    between = Span(one.span.end, next_one.span.start)
    return not {"and", "comma"}.isdisjoint(marks_in(sentence, between, "joint"))


def _of_place(
    statement: Statement,
    sentence: Sentence,
    place: Place,
    said: list[Attribute],
    tables: JudgeTables,
) -> Statement:
    """Return a statement of one place, with the degree, age and number that are said of it."""
    grades = {kind: level for kind, level in statement.grades.items() if kind != DEGREE}
    grades |= _levels_said((a for a in said if a.axis is Axis.SEVERITY), sentence, tables)
    changes = [a for a in said if a.axis is Axis.CHANGE]
    change = statement.change
    if change is not None and changes:
        value = TemporalChange(changes[0].value)
        change = change._replace(change=value, span=changes[0].span)
    elif any(a.axis is Axis.CHANGE and not a.inherited for a in statement.finding.attributes):
        change = None  # It is of another place.
    return replace(statement, place=place, grades=grades, change=change)


def _positions_of(
    found: ReportFindings, sentence: Sentence, device: Finding, concept: str, tables: JudgeTables
) -> list[tuple[Position, Span]]:
    """Return the positions that are said of a device.

    The words from the device to the next finding are searched first, for the last device with the
    next sentence, if that is about its tip. Without a position there, all of the sentence's are,
    which several devices then share.
    """
    marks, end = list(sentence.marks), sentence.span.end
    later = [f.span.start for f in sentence.findings if f.span.start > device.span.end]
    devices = [f for f in sentence.findings if _is_device(f, tables)]
    is_last = device is devices[-1]
    following = next(iter(found.sentences[sentence.index + 1 : sentence.index + 2]), None)
    if (
        is_last
        and following is not None
        and opens_with(following, "device")
        and not any(_is_device(f, tables) for f in following.findings)
    ):
        marks, end = [*marks, *following.marks], following.span.end
    # "Right mainstem intubation": words before the first finding are its own.
    begin = sentence.span.start if device is sentence.findings[0] else device.span.start
    said = list(_positions_in(marks, concept, tables))
    own = Span(begin, min(later, default=end)), Span(begin, end if is_last else begin)
    near = (
        [each for each in said if span.covers(each[1]) or each[1].overlaps(device.span)]
        for span in own
    )
    shared = [each for each in said if each[1].start >= min(begin, devices[0].span.start)]
    return next(filter(None, near), shared)


def _positions_in(
    marks: Iterable[MarkedSpan], device: str, tables: JudgeTables
) -> Iterator[tuple[Position, Span]]:
    right = tables.concepts[device].distance
    for mark in marks:
        position = tables.positions.get(mark.name) if mark.layer == "position" else None
        if mark.layer == "distance" and mark.name == device and right and mark.size is not None:
            low, high = right.good
            position = None if low <= mark.size < high else tables.misplaced
        if position is not None and mark.is_stated and device not in position.excepted:
            yield position, mark.span


def _is_device(finding: Finding, tables: JudgeTables) -> bool:
    return tables.concepts[tables.of_observation[finding.observation]].device
