"""Statements of a report for the rule judge, and the matching of two reports' statements.

A statement is a concept with side, level, grade and size.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from vlscore.findings import (
    Axis,
    Finding,
    FindingChange,
    Polarity,
    ReportFindings,
    Sentence,
    Span,
    Status,
    TemporalChange,
    changes_of,
    extract,
    severity_level,
)
from vlscore.metrics.judge.judge_tables import JudgeTables, Position

_NUMBER = re.compile(r"\d{1,4}(?:\.\d{1,4})?")
_DIMENSIONS = re.compile(
    r"(?:\d{1,4}(?:\.\d{1,4})?\s?(?:cm|mm)?\s?(?:x|by|×)\s?){1,2}$", re.IGNORECASE
)
_BOTH = frozenset(("left", "right"))
#: Levels of the lung for names of zones; other zones have no level.
_LEVELS = {
    "apex": "upper",
    "upper lobe": "upper",
    "upper zone": "upper",
    "middle lobe": "middle",
    "lingula": "middle",
    "mid zone": "middle",
    "hilum": "middle",
    "lower lobe": "lower",
    "lower zone": "lower",
    "base": "lower",
    "retrocardiac": "lower",
    "costophrenic angle": "lower",
    "cardiophrenic angle": "lower",
}
_ALL_LEVELS = frozenset(("upper", "middle", "lower"))


@dataclass(frozen=True, slots=True)
class Statement:
    """Statement of one finding in a report.

    Attributes:
        concept: a key of the tables' concepts.
        span: characters of its mention in the report.
        line: characters of its sentence.
        sides: "left", "right", both, or empty if the report names no side.
        levels: "upper", "middle", "lower"; empty if the report names no level.
        rank: rank of the severity word on its scale, 1 to 7; None without such a word.
        grade: that word's value.
        sizes: millimetres, largest first.
        change: change since an earlier examination; None without a comparison.
        doubtful: whether the report states it as uncertain.
        position: position of a device.
        old: whether its words mark it as old.
        finding: its first mention.
        observations: all observations by which the report names it.
    """

    concept: str
    span: Span
    line: Span
    sides: frozenset[str]
    levels: frozenset[str]
    rank: int | None
    grade: str | None
    sizes: tuple[float, ...]
    change: FindingChange | None
    doubtful: bool
    position: Position | None
    old: bool
    finding: Finding
    observations: frozenset[str]

    def words(self, text: str) -> str:
        """Return the words of the mention with those that qualify it."""
        return self.quote(text).of(text)

    def quote(self, text: str) -> Span:
        """Return the characters from the first to the last word about the finding."""
        own = [a.span for a in self.finding.attributes if not a.inherited]
        spans = [self.span, *(s for s in own if self.line.covers(s))]
        return Span(min(s.start for s in spans), max(s.end for s in spans))


@dataclass(frozen=True, slots=True)
class ReportStatements:
    """Statements of one report, its findings as extracted, and their changes."""

    text: str
    statements: tuple[Statement, ...]
    findings: ReportFindings
    changes: tuple[FindingChange, ...]


def statements_of(report: str, tables: JudgeTables) -> ReportStatements:
    """Return the statements of a report about this patient now, each finding and place once."""
    found = extract(report, tables.lexicon)
    changes = changes_of(found, tables.lexicon)
    changed = {change.finding: change for change in changes if change.finding is not None}
    stated: list[Statement] = []
    for sentence in found.sentences:
        own = [
            _statement(report, found, sentence, finding, changed.get(finding), tables)
            for finding in sentence.findings
            if _is_stated(finding, tables) and not _has_resolved(changed.get(finding))
        ]
        for statement in _exact_ones(own, tables):
            _add(stated, statement)
    return ReportStatements(report, tuple(stated), found, changes)


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
    concept = _concept_of(text, sentence, finding, tables)
    level = severity_level(finding.severity, tables.lexicon) if finding.severity else None
    device, old = tables.concepts[concept].device, tables.concepts[concept].old
    return Statement(
        concept=concept,
        span=finding.span,
        line=sentence.span,
        sides=_sides(finding),
        levels=_levels(finding.zones),
        rank=None if level is None else level.rank,
        grade=finding.severity,
        sizes=() if device else _sizes(text, finding),
        change=change,
        doubtful=not finding.is_likely and finding.status is Status.CURRENT,
        position=_position(text, found, sentence, tables) if device else None,
        old=old is not None and bool(old.search(text, *sentence.span)),
        finding=finding,
        observations=frozenset((finding.observation,)),
    )


def _concept_of(text: str, sentence: Sentence, finding: Finding, tables: JudgeTables) -> str:
    for refinement in tables.refined.get(finding.observation, ()):
        if refinement.pattern.search(text, finding.span.start, finding.span.end):
            return refinement.concept
    return tables.of_observation[finding.observation]


def _sizes(text: str, finding: Finding) -> tuple[float, ...]:
    """Return sizes in millimetres, largest first, with the first dimensions of "3.2 x 2.8 cm"."""
    sizes = []
    for attribute in finding.on(Axis.SIZE):
        size = float(attribute.value)
        sizes.append(size)
        last = _NUMBER.match(text, attribute.span.start)
        before = _DIMENSIONS.search(text[: attribute.span.start])
        if last is not None and before is not None and float(last[0]) > 0:
            factor = size / float(last[0])
            sizes += [float(number) * factor for number in _NUMBER.findall(before[0])]
    return tuple(sorted(sizes, reverse=True))


def _position(
    text: str, found: ReportFindings, sentence: Sentence, tables: JudgeTables
) -> Position | None:
    """Return the first position named in the sentence, or in the next one about a tip."""
    end = sentence.span.end
    if sentence.index + 1 < len(found.sentences):
        following = found.sentences[sentence.index + 1].span
        opening = text[following.start : following.start + 24].lower()
        if "tip" in opening or opening.startswith(("it ", "this ", "withdraw", "recommend")):
            end = following.end
    for position in tables.positions:
        if position.pattern.search(text, sentence.span.start, end):
            return position
    return None


def _sides(finding: Finding) -> frozenset[str]:
    side = finding.side
    if side is None:
        return frozenset()
    return _BOTH if str(side) == "bilateral" else frozenset((str(side),))


def _levels(zones: Iterable[str]) -> frozenset[str]:
    zones = list(zones)
    levels = frozenset(_LEVELS[zone] for zone in zones if zone in _LEVELS)
    return _ALL_LEVELS if not levels and "diffuse" in zones else levels


def _exact_ones(own: list[Statement], tables: JudgeTables) -> list[Statement]:
    """Return a sentence's statements; one that a more exact one includes is merged into it."""
    if len(own) < 2:
        return own
    kept: dict[int, Statement] = dict(enumerate(own))
    for number, one in enumerate(own):
        for position, other in kept.items():
            if (
                position != number
                and (one.concept, other.concept) in tables.signs
                and (other.concept, one.concept) not in tables.signs
                and _same_place(one, other)
            ):
                kept[position] = _merged(other, kept.pop(number))
                break
    return list(kept.values())


def _same_place(one: Statement, other: Statement) -> bool:
    """Return whether two statements of one report may be about the same place."""
    sides = not one.sides or not other.sides or one.sides == other.sides
    levels = not one.levels or not other.levels or not one.levels.isdisjoint(other.levels)
    return sides and levels


def _add(stated: list[Statement], new: Statement) -> None:
    """Add a statement, or merge it into the one that it repeats."""
    for position, old in enumerate(stated):
        if old.concept == new.concept and _same_place(old, new):
            levels = old.levels | new.levels if old.levels and new.levels else frozenset[str]()
            stated[position] = replace(_merged(old, new), levels=levels)
            return
    stated.append(new)


def _merged(old: Statement, new: Statement) -> Statement:
    """Return the first statement, with missing values taken from the second."""
    return replace(
        old,
        sides=old.sides or new.sides,
        levels=old.levels or new.levels,
        rank=new.rank if old.rank is None else old.rank,
        grade=old.grade or new.grade,
        sizes=old.sizes or new.sizes,
        change=max(old.change, new.change, key=_weight_of),
        doubtful=old.doubtful and new.doubtful,
        position=old.position or new.position,
        observations=old.observations | new.observations,
    )


def _weight_of(change: FindingChange | None) -> int:
    """Return which of two comparisons counts: a change before "unchanged", that before none."""
    return 0 if change is None else 1 + change.is_real


class Naming(StrEnum):
    """Kind of name that the candidate has for a finding of the reference."""

    SAME = "same"
    COARSER = "coarser"
    MORE_EXACT = "more exact"


class PlaceConflict(StrEnum):
    """Kind of difference between two places."""

    SIDE = "side"
    PART_OF_SIDES = "part of the sides"
    LEVEL = "level"
    NEXT_LEVEL = "next level"


@dataclass(frozen=True, slots=True)
class StatementPair:
    """Pair of a candidate's and a reference's statement about the same finding."""

    candidate: Statement
    reference: Statement
    naming: Naming
    credit: float


@dataclass(frozen=True, slots=True)
class Matching:
    """Result of the matching.

    Attributes:
        pairs: each statement is in one pair at most.
        false: statements of the candidate without a partner.
        omitted: statements of the reference without a partner.
    """

    pairs: tuple[StatementPair, ...]
    false: tuple[Statement, ...]
    omitted: tuple[Statement, ...]


def naming_of(
    candidate: Statement, reference: Statement, tables: JudgeTables
) -> tuple[Naming, float] | None:
    """Return how the candidate names the reference's finding, and the credit; None for another."""
    if candidate.concept == reference.concept:
        return Naming.SAME, 1.0
    if credit := tables.coarser.get((candidate.concept, reference.concept)):
        return Naming.COARSER, credit
    if credit := tables.coarser.get((reference.concept, candidate.concept)):
        return Naming.MORE_EXACT, credit
    return None


def place_conflict(candidate: Statement, reference: Statement) -> PlaceConflict | None:
    """Return how two places differ; None if they agree, or if a report does not state one."""
    if candidate.sides and reference.sides and candidate.sides != reference.sides:
        if candidate.sides.isdisjoint(reference.sides):
            return PlaceConflict.SIDE
        return PlaceConflict.PART_OF_SIDES
    if candidate.levels and reference.levels and candidate.levels.isdisjoint(reference.levels):
        apart = "middle" not in candidate.levels | reference.levels
        return PlaceConflict.LEVEL if apart else PlaceConflict.NEXT_LEVEL
    return None


_COST = {
    None: 0.0,
    PlaceConflict.NEXT_LEVEL: 0.1,
    PlaceConflict.LEVEL: 0.15,
    PlaceConflict.PART_OF_SIDES: 0.2,
    PlaceConflict.SIDE: 0.3,
}


def _closeness(candidate: Statement, reference: Statement, credit: float) -> float:
    """Return a number that is larger for statements that agree more."""
    closeness = credit - _COST[place_conflict(candidate, reference)]
    if candidate.rank is not None and reference.rank is not None:
        closeness -= 0.01 * abs(candidate.rank - reference.rank)
    if candidate.sizes and reference.sizes:
        closeness -= 0.01 * min(abs(candidate.sizes[0] - reference.sizes[0]) / 10, 5)
    closeness -= 0.05 * (candidate.doubtful != reference.doubtful)
    return closeness + 0.02 * (not candidate.observations.isdisjoint(reference.observations))


def match(
    candidate: tuple[Statement, ...], reference: tuple[Statement, ...], tables: JudgeTables
) -> Matching:
    """Return the pairs of statements that agree best, taken greedily, best first.

    Ties go to the statement that is first in the candidate, then in the reference.
    """
    possible = []
    for i, one in enumerate(candidate):
        for j, other in enumerate(reference):
            if (named := naming_of(one, other, tables)) is not None:
                possible.append((-_closeness(one, other, named[1]), i, j, named))
    possible.sort(key=lambda p: p[:3])
    pairs: list[tuple[int, StatementPair]] = []
    used: set[int] = set()
    met: set[int] = set()
    for _, i, j, (naming, credit) in possible:
        if i not in used and j not in met:
            used.add(i)
            met.add(j)
            pairs.append((i, StatementPair(candidate[i], reference[j], naming, credit)))
    pairs.sort(key=lambda p: p[0])
    return Matching(
        tuple(pair for _, pair in pairs),
        tuple(s for i, s in enumerate(candidate) if i not in used),
        tuple(s for j, s in enumerate(reference) if j not in met),
    )
