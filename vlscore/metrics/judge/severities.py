"""Severity of an error about a finding: by its grade, its place, its extent and the patient."""

from dataclasses import dataclass

from vlscore.metrics.judge.judge_tables import JudgeTables
from vlscore.metrics.judge.judgement import Patient
from vlscore.metrics.judge.places import PlaceConflict
from vlscore.metrics.judge.statements import DEGREE, Statement

#: Grades that compare with each other only.
_DENSITIES = frozenset(("faint", "dense"))
#: Ranks of severity words up to "small" or "mild", and from "severe" or "large".
_MILD, _SEVERE = 2, 6
#: Ranks apart: "minimal" and "mild" by one, "mild" and "severe" by four.
_SAME_GRADE, _FAR_GRADE = 1, 4
#: Rank of "single" among the words of number, and of "old" among those of age; "few" and
#: "innumerable" are so many ranks apart.
_LEAST, _FAR_NUMBER = 1, 3
#: Words of number that count.
_COUNTS = {"single": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
#: Number of devices up to which two reports count the same ones.
_MOST_DEVICES = 3
#: Ratio from which a counted number of findings is plainly another one.
_OTHER_COUNT = 2
#: Ratios of two measurements: as readers of one image differ, and far from it.
_SAME_SIZE, _FAR_SIZE = 1.25, 2.0


@dataclass(frozen=True, slots=True)
class Severity:
    """Severity of an error, 1 to 5, with its reasons."""

    level: int
    reason: str


def severity_of(statement: Statement, patient: Patient, tables: JudgeTables) -> Severity:
    """Return the severity of missing or inventing a finding."""
    concept = tables.concepts[statement.concept]
    mild, plain, severe = concept.severity
    level: int = plain
    how = ""
    if (degree := statement.grades.get(DEGREE)) is not None:
        if degree.rank <= _MILD:
            level, how = mild, f"{degree.value} "
        elif degree.rank >= _SEVERE:
            level, how = severe, f"{degree.value} "
    if statement.position is not None and statement.position.level == "bad":
        level = tables.position_severity["bad", "good"]
        how = "malpositioned "
    reasons = [f"{how}{tables.title_of(statement.concept, statement.observations)}"]
    if concept.old and statement.rank("age") == _LEAST:
        level -= 1
        reasons.append("said to be old")
    for rule in tables.patients:
        if rule.applies(statement.concept, patient.age, patient.indication):
            level += rule.raised
            reasons.append(rule.because)
    return Severity(_bounded(level), ", ".join(reasons))


def _bounded(level: int) -> int:
    return max(1, min(5, level))


def milder(severity: Severity, steps: int, because: str) -> Severity:
    """Return a severity some steps lower, with the reason added."""
    return Severity(_bounded(severity.level - steps), f"{severity.reason}, {because}")


def place_severity(severity: Severity, conflict: PlaceConflict) -> int:
    """Return the severity of a wrong place, from that of the finding."""
    less = {
        PlaceConflict.SIDE: 0,
        PlaceConflict.PART_OF_SIDES: 1,
        PlaceConflict.LEVEL: 1,
        PlaceConflict.NEXT_LEVEL: 2,
        PlaceConflict.GREATER: 1,
    }
    return _bounded(severity.level - less[conflict])


def extent_severity(
    candidate: Statement, reference: Statement, worst: int, is_device: bool = False
) -> int | None:
    """Return the severity of a wrong grade, size or number; None where they agree.

    Args:
        worst: severity of missing the finding in its graver form.
        is_device: whether the number alone counts, as of "two chest tubes".
    """
    counts = _counts_of(candidate, reference)
    if is_device:
        # More may be those of both sides: "four drains, two on each side".
        return 1 if len(set(counts)) > 1 and counts[1] <= _MOST_DEVICES else None
    if (ratio := _size_ratio(candidate, reference)) is not None:
        if ratio <= _SAME_SIZE:
            return None
        return _bounded(worst - 1 if ratio <= _FAR_SIZE else worst)
    is_other_count = bool(counts) and counts[1] >= _OTHER_COUNT * counts[0]
    if is_other_count or _number_conflict(candidate, reference):
        return _bounded(worst - 1)
    stated, true = candidate.grades.get(DEGREE), reference.grades.get(DEGREE)
    if stated is None:
        return None
    if true is None:
        # A doubt without a degree ("cannot be excluded") is no large finding.
        is_sure = reference.doubtful and not candidate.doubtful
        return worst if is_sure and stated.rank >= _SEVERE else None
    if (stated.value in _DENSITIES) != (true.value in _DENSITIES):
        return None  # "hazy" is no degree
    apart = abs(stated.rank - true.rank)
    if apart <= _SAME_GRADE:
        return None
    return _bounded(worst if apart >= _FAR_GRADE else worst - 1)


def _size_ratio(candidate: Statement, reference: Statement) -> float | None:
    """Return how many times one size is the other; None unless both state one."""
    if candidate.size is None or reference.size is None:
        return None
    smaller, larger = sorted((candidate.size, reference.size))
    return larger / smaller if smaller > 0 else float("inf")


def _counts_of(candidate: Statement, reference: Statement) -> list[int]:
    """Return the two numbers of findings that two statements count, sorted; none unless both do."""
    levels = [each.grades.get("number") for each in (candidate, reference)]
    counts = [_COUNTS[level.value] for level in levels if level and level.value in _COUNTS]
    return sorted(counts) if len(counts) == len(levels) else []


def _number_conflict(candidate: Statement, reference: Statement) -> bool:
    """Return whether two statements name another number of findings, or another age."""
    return any(
        one is not None
        and other is not None
        and ((one == _LEAST) != (other == _LEAST) or abs(one - other) >= _FAR_NUMBER)
        for one, other in ((candidate.rank(k), reference.rank(k)) for k in ("number", "age"))
    )
