"""Statements of a report for the rule judge: each is a concept with side, level, grade and size."""

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from vlscore.findings import (
    Axis,
    Finding,
    FindingChange,
    Polarity,
    ReportFindings,
    Sentence,
    SeverityLevel,
    Span,
)
from vlscore.metrics.judge.judge_tables import Position
from vlscore.metrics.judge.places import Place

#: The kind of levels that say how much of a finding there is; the others are "number" and "age".
DEGREE = "degree"
#: The scale whose levels replace the degree before them ("large, almost resolved").
REMAINDER = "remainder"


@dataclass(frozen=True, slots=True)
class Statement:
    """Statement of one finding in a report, in one or several of its sentences.

    Attributes:
        concept: a key of the tables' concepts.
        finding: its first mention.
        line: characters of the sentence of this mention.
        quoted: characters in it from the first to the last word about the finding.
        place: sides and levels.
        grades: levels of severity by kind: "degree", "number" ("single"), "age" ("old").
        size: millimetres; None without one.
        change: change since an earlier examination; None without a comparison.
        doubtful: whether the report states it as uncertain.
        position: position of a device.
        observations: all observations by which the report names it.
        also: concepts that it may be instead ("atelectasis or pneumonia").
        instead: concepts of the statements before it of which one is there ("hernia or fracture").
        tips: names of all positions that the report states of a device.
        moved: words that say that a device has been moved; None where it has not.
    """

    concept: str
    finding: Finding
    line: Span
    quoted: Span
    place: Place
    grades: Mapping[str, SeverityLevel]
    size: float | None
    change: FindingChange | None
    doubtful: bool
    position: Position | None
    observations: frozenset[str]
    also: frozenset[str] = frozenset()
    instead: frozenset[str] = frozenset()
    tips: frozenset[str] = frozenset()
    moved: Span | None = None

    @property
    def concepts(self) -> frozenset[str]:
        """Return every concept that it may be."""
        return self.also | {self.concept}

    def is_instead_of(self, other: "Statement") -> bool:
        """Return whether a report leaves open which of two findings is there."""
        return not (
            self.instead.isdisjoint(other.concepts) and other.instead.isdisjoint(self.concepts)
        )

    def rank(self, kind: str = DEGREE) -> int | None:
        """Return the rank of its level of a kind on the level's scale; None without one."""
        level = self.grades.get(kind)
        return None if level is None else level.rank


@dataclass(frozen=True)
class ReportStatements:
    """Statements of one report, its findings as extracted, and their changes."""

    text: str
    statements: tuple[Statement, ...]
    findings: ReportFindings
    changes: tuple[FindingChange, ...]

    @cached_property
    def by_content(self) -> list[Statement]:
        """Return the statements in an order that does not depend on that of the sentences."""
        return sorted(self.statements, key=content_of)

    @cached_property
    def _denied(self) -> list[tuple[str, frozenset[str]]]:
        """Return the observations that the report denies by name, and the sides that it names."""
        return [
            (
                f.observation,
                frozenset(f.sides if any(not a.inherited for a in f.on(Axis.SIDE)) else ()),
            )
            for f in self.findings
            if f.polarity is Polarity.NEGATIVE and not f.normal
        ]

    def denied_of(self, statement: Statement) -> frozenset[str]:
        """Return the observations of a statement that the report denies by name at its sides."""
        return frozenset(
            name
            for name, sides in self._denied
            if name in statement.observations
            and (not sides or sides >= statement.place.sides > frozenset())
        )


def around(*spans: Span) -> Span:
    """Return the characters from the first to the last of several spans."""
    return Span(min(s.start for s in spans), max(s.end for s in spans))


def marks_in(sentence: Sentence, span: Span, layer: str) -> set[str]:
    """Return the names of the marks of a layer within some characters of a sentence."""
    return {m.name for m in sentence.marks if m.layer == layer and span.covers(m.span)}


class Joints:
    """Words of a sentence that join two findings: marks of the layer "joint"."""

    def __init__(self, sentence: Sentence) -> None:
        self._spans: dict[str, list[Span]] = {}
        for mark in sentence.marks:
            if mark.layer == "joint":
                self._spans.setdefault(mark.name, []).append(mark.span)
        for spans in self._spans.values():
            spans.sort()

    def within(self, span: Span) -> set[str]:
        """Return the names of those within some characters."""
        return {
            name
            for name, spans in self._spans.items()
            # Words of one name do not overlap: the first one behind the start ends first.
            if span.covers(spans[min(bisect_left(spans, Span(span.start, 0)), len(spans) - 1)])
        }


def opens_with(sentence: Sentence, name: str) -> bool:
    """Return whether a sentence begins with a mark of the layer "opening"."""
    start = sentence.span.start
    return any(
        m.span.start == start and m.layer == "opening" and m.name == name for m in sentence.marks
    )


def content_of(statement: Statement) -> tuple[Any, ...]:
    """Return what a statement says, in an order that puts the more exact one first.

    Statements that are sorted by it have the same order wherever their sentences stand.
    """
    change = statement.change
    return (
        not statement.place.sides,
        not statement.place.levels,
        statement.concept,
        sorted(statement.place.sides),
        sorted((family, sorted(own)) for family, own in statement.place.levels.items()),
        -(statement.size or 0),
        -(statement.rank() or 0),
        sorted((kind, level.value) for kind, level in statement.grades.items()),
        "" if change is None else str(change.change),
        statement.doubtful,
        -1 if statement.position is None else statement.position.order,
        sorted(statement.observations),
        sorted(statement.also),
        sorted(statement.instead),
    )
