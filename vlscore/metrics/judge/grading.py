"""Severity of an error, 1 to 5, with the reason; the patient's age and indication."""

import math
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from vlscore.errors import InvalidSetting, InvalidStudy
from vlscore.metrics.judge.judge_tables import JudgeTables
from vlscore.metrics.judge.statements import PlaceConflict, Statement

#: Ranks of severity words up to "small" or "mild", and from "severe" or "large".
_MILD, _SEVERE = 2, 6
#: Ranks apart: "minimal" and "mild" by one, "mild" and "severe" by four.
_SAME_GRADE, _FAR_GRADE = 1, 4
#: Ratios of two measurements: as readers of one film differ, plainly another, far from it.
_SAME_SIZE, _OTHER_SIZE, _FAR_SIZE = 1.25, 1.5, 2.0


@dataclass(frozen=True, slots=True)
class Patient:
    """Age of the patient and indication of the examination.

    Attributes:
        age: years; None if unknown.
        indication: reason for the examination; "" if unknown.

    Raises: InvalidSetting for an age below 0 or above 130.
    """

    age: float | None = None
    indication: str = ""

    def __post_init__(self) -> None:
        if self.age is not None and not 0 <= self.age <= 130:
            raise InvalidSetting(f"an age must be 0 to 130 years, not {self.age!r}")


UNKNOWN = Patient()


class JudgeCase(NamedTuple):
    """Candidate report, the reference it is judged against, and the patient."""

    candidate: str
    reference: str
    patient: Patient = UNKNOWN


@dataclass(frozen=True, slots=True)
class Grade:
    """Severity 1 to 5, with its reasons."""

    severity: int
    reason: str


def grade_of(statement: Statement, patient: Patient, tables: JudgeTables) -> Grade:
    """Return the severity of missing or inventing a finding."""
    concept = tables.concepts[statement.concept]
    mild, plain, severe = concept.severity
    severity, how = plain, ""
    if statement.rank is not None and statement.rank <= _MILD:
        severity, how = mild, f"{statement.grade} "
    elif statement.rank is not None and statement.rank >= _SEVERE:
        severity, how = severe, f"{statement.grade} "
    if statement.position is not None and statement.position.level == "bad":
        severity = tables.position_severity["bad", "good"]
        how = "malpositioned "
    reasons = [f"{how}{concept.title}"]
    if statement.old:
        severity -= 1
        reasons.append("said to be old")
    for rule in tables.patients:
        if rule.applies(statement.concept, patient.age, patient.indication):
            severity += rule.raised
            reasons.append(rule.because)
    return Grade(_bounded(severity), ", ".join(reasons))


def _bounded(severity: int) -> int:
    return max(1, min(5, severity))


def milder(grade: Grade, steps: int, because: str) -> Grade:
    """Return the grade some steps lower, with the reason added."""
    return Grade(_bounded(grade.severity - steps), f"{grade.reason}, {because}")


def place_severity(grade: Grade, conflict: PlaceConflict) -> int:
    """Return the severity of a wrong place, from that of the finding."""
    less = {
        PlaceConflict.SIDE: 0,
        PlaceConflict.PART_OF_SIDES: 1,
        PlaceConflict.LEVEL: 1,
        PlaceConflict.NEXT_LEVEL: 2,
    }
    return _bounded(grade.severity - less[conflict])


def extent_severity(candidate: Statement, reference: Statement, worst: int) -> int | None:
    """Return the severity of a wrong grade or size; None where they agree.

    Args: worst: severity of missing the finding in its graver form.
    """
    if candidate.sizes and reference.sizes:
        larger, smaller = sorted((candidate.sizes[0], reference.sizes[0]), reverse=True)
        ratio = larger / smaller if smaller > 0 else float("inf")
        if ratio <= _SAME_SIZE:
            return None
        if ratio <= _OTHER_SIZE:
            return 1
        return _bounded(worst - 1 if ratio <= _FAR_SIZE else worst)
    if candidate.rank is None or reference.rank is None:
        return None
    apart = abs(candidate.rank - reference.rank)
    if apart <= _SAME_GRADE:
        return None
    return _bounded(worst if apart >= _FAR_GRADE else worst - 1)


def comparison_severity(one: str | None, other: str | None) -> int:
    """Return the severity of a wrong comparison with a prior: 1 unless it calls for an act."""
    acted_on = {"new", "increased"}
    return 2 if not acted_on.isdisjoint({one, other}) else 1


# DICOM's age string (PS3.5, value representation AS).
_DICOM = re.compile(r"(\d{1,3})([DWMY])", re.IGNORECASE)
_YEARS = {"d": 1 / 365, "w": 7 / 365, "m": 1 / 12, "y": 1.0}


def patient_of(age: Any, indication: Any, column: str = "age") -> Patient:
    """Return the patient of one row; empty cells are unknown.

    Args: column: of the age, for the message.

    Raises: InvalidStudy where the age is neither a number of years nor a DICOM age.

    >>> patient_of("018M", "Cough.").age
    1.5
    """
    words = "" if indication is None or indication != indication else str(indication)
    try:
        return Patient(_years(age), words)
    except (ValueError, InvalidSetting):
        raise InvalidStudy(
            f'column "{column}" holds {str(age)[:20]!r}: write years (72) or a DICOM age (072Y), '
            "or leave the cell empty"
        ) from None


def _years(age: Any) -> float | None:
    if age is None or isinstance(age, bool) or not str(age).strip():
        return None
    text = str(age).strip()
    if (found := _DICOM.fullmatch(text)) is not None:
        return int(found[1]) * _YEARS[found[2].lower()]
    years = float(text)
    return None if math.isnan(years) else years
