"""Reading of a report's statements for the rule judge."""

import re
from dataclasses import replace
from functools import lru_cache

from vlscore.findings import (
    Axis,
    Finding,
    FindingChange,
    Polarity,
    ReportFindings,
    Sentence,
    Status,
    TemporalChange,
    changes_of,
    extract,
)
from vlscore.metrics.judge.judge_tables import JudgeTables
from vlscore.metrics.judge.statement_words import (
    grades_of,
    greater_side,
    level_of,
    position_of,
    ribs_of,
    sizes_of,
)
from vlscore.metrics.judge.statements import (
    BOTH_SIDES,
    LINK,
    ReportStatements,
    Statement,
    distinct_statements,
    each_once,
    merge_explanation,
)

#: Reports whose statements are remembered: several candidates share a reference.
_REMEMBERED = 2048
#: Words before several findings of which any may be there.
_DIFFERENTIAL = re.compile(r"\b(?:differential|considerations? include|ddx)\b", re.IGNORECASE)
#: Concept of shadows that are no finding of the patient.
_HARMLESS = "shadow"
#: Between two sides that share a noun: "left and right".
_JOINED = re.compile(r"\s*(?:,|and|&|/)\s*", re.IGNORECASE)


@lru_cache(_REMEMBERED)
def statements_of(report: str, tables: JudgeTables) -> ReportStatements:
    """Return the statements of a report about this patient now, each finding and place once."""
    found = extract(report, tables.lexicon)
    read = found.plain
    changes = changes_of(found, tables.lexicon)
    changed = {change.finding: change for change in changes if change.finding is not None}
    stated: list[Statement] = []
    for sentence in found.sentences:
        own = [
            each
            for finding in sentence.findings
            if _is_stated(finding, tables)
            and not _has_resolved(changed.get(finding))
            and not _explains_away(read, sentence, finding, tables)
            for each in _sided(
                _statement(read, found, sentence, finding, changed.get(finding), tables), tables
            )
        ]
        before = found.sentences[sentence.index - 1].span if sentence.index else None
        for statement in distinct_statements(read, own, tables):
            if not merge_explanation(read, stated, before, statement, tables):
                stated.append(statement)
    return ReportStatements(report, tuple(each_once(stated, tables)), found, changes)


def _is_of_differential(text: str, sentence: Sentence, finding: Finding) -> bool:
    """Return whether a finding is one of several that are considered."""
    return bool(_DIFFERENTIAL.search(text, sentence.span.start, finding.span.start))


def _explains_away(text: str, sentence: Sentence, finding: Finding, tables: JudgeTables) -> bool:
    """Return whether a harmless shadow explains a density: "it represents a skin fold"."""
    return tables.of_observation[finding.observation] == _HARMLESS and bool(
        LINK.search(text, sentence.span.start, finding.span.start)
    )


def _has_resolved(change: FindingChange | None) -> bool:
    return change is not None and change.change is TemporalChange.RESOLVED


def _is_stated(finding: Finding, tables: JudgeTables) -> bool:
    if finding.polarity is Polarity.NEGATIVE:
        return False
    if finding.status is Status.CURRENT:
        return True
    concept = tables.concepts[tables.of_observation[finding.observation]]
    return finding.status is Status.HISTORICAL and concept.after_treatment


def _statement(
    text: str,
    found: ReportFindings,
    sentence: Sentence,
    finding: Finding,
    change: FindingChange | None,
    tables: JudgeTables,
) -> Statement:
    concept = concept_of(finding.span.of(text), finding.observation, tables)
    grade, number, age = grades_of(text, finding, tables)
    device, old = tables.concepts[concept].device, tables.concepts[concept].old
    placed = position_of(text, found, sentence, finding, concept, tables) if device else None
    return Statement(
        concept=concept,
        span=finding.span,
        line=sentence.span,
        last_line=sentence.span,
        sides=_sides_of(text, finding, device),
        levels=frozenset(level for zone in finding.zones for level in tables.levels.get(zone, ()))
        | ribs_of(text, sentence.span, finding)
        | greater_side(text, sentence.span, finding),
        rank=None if grade is None else grade.rank,
        grade=None if grade is None else grade.value,
        number=number,
        age=age,
        sizes=() if device else sizes_of(text, finding),
        change=change,
        doubtful=finding.status is Status.CURRENT
        and (not finding.is_likely or _is_of_differential(text, sentence, finding)),
        position=None if placed is None else placed[0],
        old=old is not None and bool(old.search(text, *sentence.span)),
        finding=finding,
        observations=frozenset((finding.observation,)),
        marks=(
            finding.span,
            *(() if placed is None else placed[1]),
            *(
                a.span
                for a in finding.attributes
                # Words of change are quoted by the errors of comparison.
                if a.axis is not Axis.CHANGE and not a.inherited and sentence.span.covers(a.span)
            ),
        ),
    )


def _sides_of(text: str, finding: Finding, device: bool) -> frozenset[str]:
    """Return the sides of a finding; of a device the first: a left PICC may end in a right vein."""
    if device and len(sides := finding.on(Axis.SIDE)) > 1:
        first, second = sides[:2]
        if not _JOINED.fullmatch(text[first.span.end : second.span.start]):
            return frozenset((first.value,)) if first.value != "bilateral" else BOTH_SIDES
    return frozenset(finding.sides)


def _sided(statement: Statement, tables: JudgeTables) -> list[Statement]:
    """Return the statement; one for each side with a grade ("large left, small right")."""
    own = [
        a
        for a in statement.finding.attributes
        if a.axis in (Axis.SIDE, Axis.SEVERITY) and not a.inherited and a.value != "bilateral"
    ]
    sides = [a for a in own if a.axis is Axis.SIDE]
    grades = [level for a in own if a.axis is Axis.SEVERITY and (level := level_of(a, tables))]
    if (
        [a.value for a in sides] not in (["left", "right"], ["right", "left"])
        or len(grades) != 2
        or [own[0].axis, own[1].axis] != [own[2].axis, own[3].axis]
    ):
        return [statement]
    return [
        replace(statement, sides=frozenset((side.value,)), rank=level.rank, grade=level.value)
        for side, level in zip(sides, grades, strict=True)
    ]


@lru_cache(_REMEMBERED)
def concept_of(words: str, observation: str, tables: JudgeTables) -> str:
    """Return the concept of a mention by its words and its observation."""
    for refined in tables.refined.get(observation, ()):
        if refined.words and refined.words.search(words):
            return refined.name
    return tables.of_observation[observation]
