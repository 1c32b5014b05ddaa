"""Reading of a report's statements for the rule judge."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

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
from vlscore.metrics.judge.places import BOTH_SIDES, Place
from vlscore.metrics.judge.statements import (
    DEGREE,
    ReportStatements,
    Statement,
    around,
    distinct_statements,
    each_once,
    marks_in,
    merge_explanation,
    opens_with,
)

#: Reports whose statements are remembered: several candidates share a reference.
_REMEMBERED = 2048
#: Characters between two sides that share a noun: "left and right".
_LONGEST_JOINT = 5
#: Scales of words.toml whose words are no degrees of a finding.
_NO_DEGREES = ("number", "age")
#: The scale whose levels replace the degree before them ("large, almost resolved").
_REMAINDER = "remainder"


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
            and _is_stated(finding, changed.get(finding), tables)
            for each in _split_by_side(
                found.plain,
                sentence,
                _statement(found, sentence, finding, changed.get(finding), tables),
                tables,
            )
        ]
        for statement in distinct_statements(found.plain, sentence, own, tables):
            if not merge_explanation(stated, sentence, statement, tables):
                stated.append(statement)
    return ReportStatements(report, tuple(each_once(stated, tables)), found, changes)


def _is_stated(finding: Finding, change: FindingChange | None, tables: JudgeTables) -> bool:
    if finding.polarity is Polarity.NEGATIVE:
        return False
    if _has_resolved(change):
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
            _sides_of(finding, sentence, is_device), _levels_of(finding.on(Axis.ZONE), tables)
        ),
        grades=_grades_of(finding, sentence, tables) | _remainder(sentence, change, tables),
        size=max((float(a.value) for a in finding.on(Axis.SIZE) if not is_device), default=None),
        change=change,
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


def _sides_of(finding: Finding, sentence: Sentence, is_device: bool) -> frozenset[str]:
    """Return the sides of a finding; of a device the first: a left PICC may end in a right vein."""
    sides = finding.on(Axis.SIDE)
    if is_device and len(sides) > 1:
        first, second = sides[:2]
        is_far = second.span.start - first.span.end > _LONGEST_JOINT
        if is_far or not _is_listed(sentence, first, second):
            return BOTH_SIDES if first.value == "bilateral" else frozenset((first.value,))
    return frozenset(finding.sides)


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
            if kind not in grades or is_of_today or level.scale == _REMAINDER:
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
            if level is not None and level.scale == _REMAINDER and change.span.covers(word.span):
                return {DEGREE: level}
    return {}


def _split_by_side(
    text: str, sentence: Sentence, statement: Statement, tables: JudgeTables
) -> list[Statement]:
    """Return one statement for each side, where each has its own degree or change; else the whole.

    "Large left, small right" are two. Of "the left effusion is larger, on the right it has
    cleared", only that of the left is returned.
    """
    own = [
        a
        for a in statement.finding.attributes
        if a.axis in (Axis.SIDE, Axis.SEVERITY, Axis.CHANGE)
        and not a.inherited
        and a.value != "bilateral"
    ]
    at = [k for k, a in enumerate(own) if a.axis is Axis.SIDE]
    if {own[k].value for k in at} != BOTH_SIDES:
        return [statement]
    said: dict[str, list[Attribute]] = {side: [] for side in sorted(BOTH_SIDES)}
    if all(k and _is_joined(text, sentence, own[k - 1], own[k]) for k in at[:2]):
        starts, ends = [0, *(k + 1 for k in at[:-1])], at  # "Small on the left, large on the right"
    else:
        starts, ends = [k + 1 for k in at], [*at[1:], len(own)]
    for k, start, end in zip(at, starts, ends, strict=True):
        said[own[k].value] += own[start:end]
    if not all(said.values()):
        return [statement]
    stated = [_of_side(statement, sentence, side, words, tables) for side, words in said.items()]
    return [each for each in stated if not _has_resolved(each.change)]


def _is_joined(text: str, sentence: Sentence, word: Attribute, side: Attribute) -> bool:
    """Return whether a degree before a side is of that side: "large on the left"."""
    colon = ":" in text[word.span.end : side.span.start]
    return not colon and not _is_listed(sentence, word, side)


def _is_listed(sentence: Sentence, one: Attribute, next_one: Attribute) -> bool:
    """Return whether "and" or a comma stands between two words."""
    between = Span(one.span.end, next_one.span.start)
    return not {"and", "comma"}.isdisjoint(marks_in(sentence, between, "joint"))


def _of_side(
    statement: Statement, sentence: Sentence, side: str, said: list[Attribute], tables: JudgeTables
) -> Statement:
    """Return a statement of one side, with the degree, age and number that are said of it."""
    grades = {kind: level for kind, level in statement.grades.items() if kind != DEGREE}
    grades |= _levels_said((a for a in said if a.axis is Axis.SEVERITY), sentence, tables)
    changes = [a for a in said if a.axis is Axis.CHANGE]
    change = statement.change
    if change is not None and changes:
        value = TemporalChange(changes[0].value)
        change = change._replace(change=value, span=changes[0].span)
    place = statement.place._replace(sides=frozenset((side,)))
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
    near = ([each for each in said if span.covers(each[1])] for span in own)
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
