"""Reading of a report's statements for the rule judge."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from vlscore.findings import (
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
    changes_of,
    extract,
    severity_level,
)
from vlscore.metrics.judge.judge_tables import JudgeTables, Position
from vlscore.metrics.judge.merged_statements import distinct_statements, each_once, refers_back
from vlscore.metrics.judge.places import BOTH_SIDES, Place
from vlscore.metrics.judge.statement_parts import (
    has_resolved,
    levels_of,
    levels_said,
    sides_in,
    split_by_place,
)
from vlscore.metrics.judge.statements import (
    DEGREE,
    REMAINDER,
    ReportStatements,
    Statement,
    around,
    marks_in,
    opens_with,
)

#: Reports whose statements are remembered: several candidates share a reference.
_REMEMBERED = 2048
_Said = TypeVar("_Said")


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
            if not refers_back(stated, sentence, statement, tables):
                stated.append(statement)
    moved = [s.finding for s in stated if s.moved is not None]
    changes = tuple(c for c in changes if not has_resolved(c) or c.finding not in moved)
    return ReportStatements(report, tuple(each_once(stated, tables)), found, changes)


def _statements(
    found: ReportFindings,
    sentence: Sentence,
    finding: Finding,
    change: FindingChange | None,
    tables: JudgeTables,
) -> list[Statement]:
    """Return the statements of a finding, one for each place of which something else is said."""
    is_denied = finding.polarity is Polarity.NEGATIVE
    whole = _statement(found, sentence, finding, change, tables)
    if whole.moved and whole.position:
        # "Withdrawn, ends above the carina": it is there.
        change = None if has_resolved(change) else whole.change
        return [replace(whole, change=change, doubtful=whole.doubtful and not is_denied)]
    parts = split_by_place(sentence, whole, tables)
    # "Cleared on the right, larger on the left": what has gone denies the finding of one place.
    is_split = parts != [whole] and finding.status is Status.CURRENT
    if is_split and (not is_denied or has_resolved(change)):
        return parts
    return parts if _is_stated(finding, change, tables) else []


def _is_stated(finding: Finding, change: FindingChange | None, tables: JudgeTables) -> bool:
    if finding.polarity is Polarity.NEGATIVE or has_resolved(change):
        return False
    if finding.status is Status.CURRENT:
        return True
    concept = tables.concepts[tables.of_observation[finding.observation]]
    return finding.status is Status.HISTORICAL and concept.after_treatment


def _statement(
    found: ReportFindings,
    sentence: Sentence,
    finding: Finding,
    change: FindingChange | None,
    tables: JudgeTables,
) -> Statement:
    concept = concept_of(finding.observation, finding.span, sentence, tables)
    is_device = tables.concepts[concept].device
    positions: list[tuple[Position, Span]] = []
    moved: list[tuple[str, Span]] = []
    if is_device:
        positions = _said_of(
            found, sentence, finding, tables, lambda marks: _positions_in(marks, concept, tables)
        )
        moved = _said_of(found, sentence, finding, tables, _movements_in)
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
            _sides_of(found, finding, sentence),
            levels_of(finding.on(Axis.ZONE), tables),
        ),
        grades=_grades_of(finding, sentence, tables) | _remainder(sentence, change, tables),
        size=max((float(a.value) for a in finding.on(Axis.SIZE) if not is_device), default=None),
        change=None if tables.concepts[concept].after_treatment else change,
        doubtful=finding.status is Status.CURRENT and (not finding.is_likely or bool(considered)),
        position=min((position for position, _ in positions), default=None),
        observations=frozenset((finding.observation,)),
        tips=frozenset(position.name for position, _ in positions),
        moved=min((span for _, span in moved), default=None),
    )


def concept_of(observation: str, words: Span, sentence: Sentence, tables: JudgeTables) -> str:
    """Return the concept of an observation, as some words of a sentence name it."""
    if (refined := tables.refined.get(observation)) is not None:
        named = {m.name for m in sentence.marks if m.layer == "concept" and words.covers(m.span)}
        for concept in refined:
            if concept.name in named:
                return concept.name
    return tables.of_observation[observation]


def _sides_of(found: ReportFindings, finding: Finding, sentence: Sentence) -> frozenset[str]:
    """Return the sides of a finding, also of one that is named in relation to one before.

    "On this side" and "ipsilateral" are the same side, "contralateral" the other one.
    """
    is_named = not all(side.inherited for side in finding.on(Axis.SIDE))
    for mark in () if is_named else sentence.marks:
        if mark.layer != "side":
            continue
        own = around(mark.span, finding.span)
        others = (f.span for f in sentence.findings if not f.span.overlaps(finding.span))
        if not any(map(own.overlaps, others)):
            before = (frozenset(f.sides) for f in found if f.span.end <= own.start)
            for sides in [sides for sides in before if len(sides) == 1][-1:]:
                return BOTH_SIDES - sides if mark.name == "other" else sides
    sides = sides_in(finding.on(Axis.SIDE))
    return sides if len(sides) == 1 and sides < BOTH_SIDES else frozenset(finding.sides)


def _grades_of(
    finding: Finding, sentence: Sentence, tables: JudgeTables
) -> dict[str, SeverityLevel]:
    """Return the levels of a finding by kind; a nodule that is named in the singular is one."""
    grades = levels_said(finding.on(Axis.SEVERITY), sentence, tables)
    for mark in sentence.marks:
        is_its_name = mark.layer == "number" and mark.span.end == finding.span.end
        if is_its_name and (level := severity_level(mark.name, tables.lexicon)) is not None:
            grades.setdefault("number", level)
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


def _said_of(
    found: ReportFindings,
    sentence: Sentence,
    device: Finding,
    tables: JudgeTables,
    asked: Callable[[Iterable[MarkedSpan]], Iterator[tuple[_Said, Span]]],
) -> list[tuple[_Said, Span]]:
    """Return what is said of a device: its positions, or that it has moved.

    It is said between the device and the next finding. Without an answer there, all words of the
    sentence count, and the next sentence if that is about a tip; several devices then share them.

    Args: asked: returns what the marks of a sentence say, with the words.
    """
    marks, end = list(sentence.marks), sentence.span.end
    for following in found.sentences[sentence.index + 1 : sentence.index + 2]:
        if opens_with(following, "device") and not any(
            _is_device(f, tables) for f in following.findings
        ):
            marks, end = [*marks, *following.marks], following.span.end
    first = sentence.findings[0]
    # "Right mainstem intubation": words before the first finding are its own.
    begin = sentence.span.start if device is first else device.span.start
    later = (f.span.start for f in sentence.findings if f.span.start > device.span.end)
    own = Span(begin, min(later, default=end))
    said = list(asked(marks))
    near = [each for each in said if own.covers(each[1]) or each[1].overlaps(device.span)]
    return near or [each for each in said if each[1].start >= begin]


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


def _movements_in(marks: Iterable[MarkedSpan]) -> Iterator[tuple[str, Span]]:
    moved = (mark for mark in marks if mark.layer == "movement" and mark.is_stated)
    return ((mark.name, mark.span) for mark in moved)


def _is_device(finding: Finding, tables: JudgeTables) -> bool:
    return tables.concepts[tables.of_observation[finding.observation]].device
