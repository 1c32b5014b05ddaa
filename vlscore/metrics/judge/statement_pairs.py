"""Matching of the statements of two reports: how each names and places the other's finding."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from vlscore.metrics.judge.judge_tables import JudgeTables
from vlscore.metrics.judge.statements import ReportStatements, Statement, levels_conflict

#: Words of a size that is still normal.
_UPPER = re.compile(r"\b(?:upper|top|high)\b", re.IGNORECASE)


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


def _of_other_bones(one: Statement, other: Statement, tables: JudgeTables) -> bool:
    """Return whether two statements, as of fractures, are about different bones."""
    by_bone = tables.concepts[one.concept].by_bone and tables.concepts[other.concept].by_bone
    return by_bone and bool(one.bones and other.bones) and one.bones.isdisjoint(other.bones)


def naming_of(
    candidate: Statement, reference: Statement, tables: JudgeTables
) -> tuple[Naming, float] | None:
    """Return how the candidate names the reference's finding, and the credit; None for another."""
    if _of_other_bones(candidate, reference, tables):
        return None
    if candidate.concept == reference.concept:
        return Naming.SAME, 1.0
    if not candidate.concepts.isdisjoint(reference.concepts):
        return Naming.SAME, 0.8
    pairs = [(own, true) for own in candidate.concepts for true in reference.concepts]
    coarser = [tables.coarser[pair] for pair in pairs if pair in tables.coarser]
    if coarser:
        return Naming.COARSER, max(coarser)
    exact = [tables.coarser[true, own] for own, true in pairs if (true, own) in tables.coarser]
    return (Naming.MORE_EXACT, max(exact)) if exact else None


def place_conflict(candidate: Statement, reference: Statement) -> PlaceConflict | None:
    """Return how two places differ; None if they agree, or if a report does not state one."""
    if candidate.sides and reference.sides and candidate.sides != reference.sides:
        if candidate.sides.isdisjoint(reference.sides):
            return PlaceConflict.SIDE
        return PlaceConflict.PART_OF_SIDES
    if levels_conflict(candidate, reference):
        near = "level middle" in candidate.levels | reference.levels
        return PlaceConflict.NEXT_LEVEL if near else PlaceConflict.LEVEL
    # "Upper and middle lobes" for "upper and lower lobes": each report has a lobe of its own.
    one, other = (
        {level for level in s.levels if level.startswith("level")} for s in (candidate, reference)
    )
    if one - other and other - one:
        return PlaceConflict.NEXT_LEVEL
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
    candidate: ReportStatements, reference: ReportStatements, tables: JudgeTables
) -> Matching:
    """Return the pairs of statements that agree best, taken greedily, best first.

    Ties go to the statement that is first in the candidate, then in the reference. A finding that
    the other report denies is never meant by one of its statements of another name.
    """
    possible = []
    denied = candidate.denied, reference.denied
    for i, one in enumerate(candidate.statements):
        for j, other in enumerate(reference.statements):
            if (named := naming_of(one, other, tables)) is None:
                continue
            is_denied = other.observations & denied[0] or one.observations & denied[1]
            if named[0] is Naming.SAME or not is_denied:
                possible.append((-_closeness(one, other, named[1]), i, j, named))
    possible.sort(key=lambda p: p[:3])
    pairs: list[tuple[int, StatementPair]] = []
    used: set[int] = set()
    met: set[int] = set()
    for _, i, j, (naming, credit) in possible:
        if i not in used and j not in met:
            used.add(i)
            met.add(j)
            pair = candidate.statements[i], reference.statements[j]
            pairs.append((i, StatementPair(*pair, naming, credit)))
    pairs.sort(key=lambda p: p[0])
    return Matching(
        tuple(pair for _, pair in pairs),
        tuple(s for i, s in enumerate(candidate.statements) if i not in used),
        tuple(s for j, s in enumerate(reference.statements) if j not in met),
    )


def key_of_error(statement: Statement, tables: JudgeTables) -> tuple[str, frozenset[str]]:
    """Return the key of one error: the finding, wherever it is; of a fracture its bones, too."""
    by_bone = tables.concepts[statement.concept].by_bone
    return statement.concept, statement.bones if by_bone else frozenset()


def is_implied(statement: Statement, report: ReportStatements, tables: JudgeTables) -> bool:
    """Return whether a report says the same without naming the finding."""
    return _is_sign_of(statement, report, tables) or _is_borderline(statement, report)


def is_caused(statement: Statement, alone: Iterable[Statement], tables: JudgeTables) -> bool:
    """Return whether another unmatched statement of the same sentence is its cause."""
    return any(
        (statement.concept, other.concept) in tables.consequences and statement.line == other.line
        for other in alone
    )


def _is_borderline(statement: Statement, other: ReportStatements) -> bool:
    """Return whether "borderline" stands for the other report's "upper limit of normal"."""
    return statement.grade == "borderline" and any(
        f.normal and f.observation in statement.observations and _UPPER.search(other.text, *f.cue)
        for f in other.findings
    )


def may_share_place(candidate: Statement, reference: Statement) -> bool:
    """Return whether two statements may share a place: sides overlap, levels are not far apart."""
    allowed = (None, PlaceConflict.PART_OF_SIDES, PlaceConflict.NEXT_LEVEL)
    return place_conflict(candidate, reference) in allowed


def _is_sign_of(statement: Statement, report: ReportStatements, tables: JudgeTables) -> bool:
    """Return whether a finding of the report includes it as a sign: "effusion with shift"."""
    observation = statement.finding.observation
    return not tables.concepts[statement.concept].device and any(
        other.concept != statement.concept
        and (
            observation in other.observations
            or statement.concept in {tables.of_observation[each] for each in other.observations}
        )
        and (observation in tables.lexicon.midline or may_share_place(statement, other))
        for other in report.statements
    )
