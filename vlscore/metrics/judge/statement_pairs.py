"""Matching of the statements of two reports: how each names and places the other's finding."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import NamedTuple

from vlscore.metrics.judge.judge_tables import JudgeTables
from vlscore.metrics.judge.places import Place, PlaceConflict
from vlscore.metrics.judge.statements import DEGREE, ReportStatements, Statement


class Naming(StrEnum):
    """Kind of name that the candidate has for a finding of the reference."""

    SAME = "same"
    COARSER = "coarser"
    MORE_EXACT = "more exact"


#: Credit from which a more exact name at the same place covers a finding.
COVERS = 0.6
#: Credit from which another name means the same for the patient: no error.
_MEANS_THE_SAME = 0.7
#: The same of a more exact name, which says more than the reference does.
_MEANS_EXACTLY = 0.8
#: Steps by which a more exact name is a milder error than an invented finding.
STEPS = 2


class Named(NamedTuple):
    """How a candidate names a finding of the reference, and the part of it that it so has found."""

    how: Naming
    credit: float

    @property
    def means_the_same(self) -> bool:
        """Return whether the candidate's name means the reference's for the patient."""
        exact = self.how is Naming.MORE_EXACT
        return self.credit >= (_MEANS_EXACTLY if exact else _MEANS_THE_SAME)


@dataclass(frozen=True, slots=True)
class StatementPair:
    """Pair of a candidate's and a reference's statement about the same finding."""

    candidate: Statement
    reference: Statement
    named: Named


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


def bones_of(statement: Statement, tables: JudgeTables) -> frozenset[str]:
    """Return the bones of a fracture, by its place or by its name; none of other findings."""
    concept = tables.concepts[statement.concept]
    if not concept.by_bone:
        return frozenset()
    own = frozenset((concept.bone,)) if concept.bone else frozenset[str]()
    return statement.place.levels.get("bone", own)


def _of_other_bones(one: Statement, other: Statement, tables: JudgeTables) -> bool:
    """Return whether two statements, as of fractures, are about different bones."""
    own, true = bones_of(one, tables), bones_of(other, tables)
    return bool(own and true) and own.isdisjoint(true)


def naming_of(candidate: Statement, reference: Statement, tables: JudgeTables) -> Named | None:
    """Return how the candidate names the reference's finding, and the credit; None for another."""
    if _of_other_bones(candidate, reference, tables):
        return None
    if candidate.concept == reference.concept:
        return Named(Naming.SAME, 1.0)
    if not candidate.concepts.isdisjoint(reference.concepts):
        return Named(Naming.SAME, 0.8)
    pairs = [*product(candidate.concepts, reference.concepts)]
    is_there = is_said_there(candidate, reference, tables)
    for how, named in ((Naming.COARSER, pairs), (Naming.MORE_EXACT, [(b, a) for a, b in pairs])):
        related = (tables.coarser.get(pair) for pair in named)
        credits = [r.credit for r in related if r and (is_there or not r.same_if_placed)]
        if credits:
            return Named(how, max(credits))
    # "Air-fluid level" for an effusion with an air-fluid level.
    is_sign = not tables.signs.isdisjoint(pairs)
    if is_sign and not candidate.observations.isdisjoint(reference.observations):
        return Named(Naming.COARSER, _MEANS_THE_SAME)
    return None


_COST = {
    None: 0.0,
    PlaceConflict.NEXT_LEVEL: 0.1,
    PlaceConflict.GREATER: 0.1,
    PlaceConflict.LEVEL: 0.15,
    PlaceConflict.PART_OF_SIDES: 0.2,
    PlaceConflict.SIDE: 0.3,
}


def _closeness(candidate: Statement, reference: Statement, credit: float) -> float:
    """Return a number that is larger for statements that agree more."""
    closeness = credit - _COST[candidate.place.conflict(reference.place)]
    ranks = candidate.rank(), reference.rank()
    if ranks[0] is not None and ranks[1] is not None:
        closeness -= 0.01 * abs(ranks[0] - ranks[1])
    if candidate.size is not None and reference.size is not None:
        closeness -= 0.01 * min(abs(candidate.size - reference.size) / 10, 5)
    return closeness


def match(
    candidate: ReportStatements, reference: ReportStatements, tables: JudgeTables
) -> Matching:
    """Return the pairs of statements that agree best, taken greedily, best first.

    Ties go to the statement whose content comes first, wherever it stands in its report. A
    statement does not match a differently named one if the other report denies its finding, or if
    the two name different places.
    """
    ones, others = candidate.by_content, reference.by_content
    possible = []
    for i, one in enumerate(ones):
        denied = reference.denied_of(one)
        for j, other in enumerate(others):
            named = naming_of(one, other, tables)
            own = denied | candidate.denied_of(other)
            if named is None or not may_be_meant(one, other, named.how, own):
                continue
            if named.how is Naming.SAME or one.place.may_hold(other.place):
                possible.append((-_closeness(one, other, named.credit), i, j, named))
    possible.sort(key=lambda p: p[:3])
    pairs: list[StatementPair] = []
    used: set[int] = set()
    met: set[int] = set()
    for _, i, j, named in possible:
        if i not in used and j not in met:
            used.add(i)
            met.add(j)
            pairs.append(StatementPair(ones[i], others[j], named))
    false = (s for i, s in enumerate(ones) if i not in used)
    omitted = (s for j, s in enumerate(others) if j not in met)
    return Matching(
        tuple(sorted(pairs, key=lambda p: p.candidate.finding.span)),
        tuple(sorted(false, key=lambda s: s.finding.span)),
        tuple(sorted(omitted, key=lambda s: s.finding.span)),
    )


def may_be_meant(one: Statement, other: Statement, naming: Naming, denied: Collection[str]) -> bool:
    """Return whether a statement may mean the finding of another, of which a report denies some.

    Args: denied: observations that one of the reports denies, or calls resolved.
    """
    if (one.observations | other.observations).isdisjoint(denied):
        return True
    return naming is Naming.SAME and not one.observations.isdisjoint(other.observations)


def is_implied(
    statement: Statement,
    other: ReportStatements,
    tables: JudgeTables,
    may_share: Callable[[Place, Place], bool],
) -> bool:
    """Return whether another report includes a finding as a sign: "effusion with shift".

    Args: may_share: whether two places may be one.
    """
    degree = statement.grades.get(DEGREE)
    if degree is not None and degree.value == "borderline":
        # "Heart at the upper limit of normal."
        marks = (mark for sentence in other.findings.sentences for mark in sentence.marks)
        return any(mark.name == "upper limit" for mark in marks)
    of = tables.of_observation
    own = {n for n in statement.observations if of[n] == statement.concept}
    own = own or set(statement.observations)
    return not tables.concepts[statement.concept].device and any(
        each.concept != statement.concept
        and (
            not own.isdisjoint(each.observations)
            or statement.concept in {of[name] for name in each.observations}
        )
        and may_share(statement.place, each.place)
        for each in other.statements
    )


def is_caused(statement: Statement, stated: Iterable[Statement], tables: JudgeTables) -> bool:
    """Return whether one of some statements names its cause in the same sentence."""
    return any(
        (statement.concept, other.concept) in tables.consequences and statement.line == other.line
        for other in stated
    )


def is_said_there(candidate: Statement, reference: Statement, tables: JudgeTables) -> bool:
    """Return whether a more exact name is said of the place where the reference has the finding.

    Without a place in both reports it is not, unless such findings have none ("fibrosis").
    """
    related = tables.coarser.get((reference.concept, candidate.concept))
    if related is not None and related.same_without_place:
        return True
    place, true = candidate.place, reference.place
    return place.overlaps(true) and place.may_hold(true)
