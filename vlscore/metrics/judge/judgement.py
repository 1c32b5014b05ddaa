"""What every kind of judge takes and returns: cases and judgements, with their scores.

A case is a pair of reports and the patient.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, NamedTuple

from vlscore.errors import InvalidSetting, InvalidStudy, VLScoreError
from vlscore.findings import Span
from vlscore.perturb import ErrorCategory


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
        is_age = isinstance(self.age, Real) and 0 <= float(self.age) <= 130
        if self.age is not None and not is_age:
            raise InvalidSetting(f"an age must be 0 to 130 years, not {self.age!r}")


UNKNOWN = Patient()


class JudgeCase(NamedTuple):
    """Candidate report, the reference it is judged against, and the patient."""

    candidate: str
    reference: str
    patient: Patient = UNKNOWN


# DICOM's age string (PS3.5, value representation AS), or "72 years".
_AGE = re.compile(
    r"(\d{1,3})\s*([dwmy])(?:(?<=d)ays?|(?<=w)eeks?|(?<=m)onths?|(?<=y)ears?)?(?:\s+old)?",
    re.IGNORECASE,
)
_YEARS = {"d": 1 / 365, "w": 7 / 365, "m": 1 / 12, "y": 1.0}


def patient_of(age: Any, indication: Any, column: str = "age") -> Patient:
    """Return the patient of one row; empty cells are unknown.

    Args: column: of the age, for the message.

    Raises: InvalidStudy where the age is no number of years, months, weeks or days.

    >>> patient_of("018M", "Cough.").age, patient_of("67 years", "").age
    (1.5, 67.0)
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
    if (found := _AGE.fullmatch(text)) is not None:
        return int(found[1]) * _YEARS[found[2].lower()]
    years = float(text)
    return None if math.isnan(years) else years


#: Grades of an error, after FineRadScore (Huang et al. 2024), whose four grades are 2 to 5.
SEVERITIES: Mapping[int, str] = {
    1: "of no consequence",
    2: "not actionable",
    3: "actionable, not urgent",
    4: "urgent",
    5: "emergent",
}
#: Grades of a whole report by name, as a reader would give them.
GRADES: Mapping[int, str] = {
    5: "no error",
    4: "minor errors: at most one of severity 2, the others of severity 1",
    3: "more minor errors, or much more right than wrong",
    2: "about as much wrong as right",
    1: "little is right",
}
#: The least rating of grades 3 and 2 where a clinician would act on an error.
_GRADE_3, _GRADE_2 = 0.65, 0.3
#: Errors about a comparison with an earlier examination; they count half in the rating.
_COMPARISONS = (ErrorCategory.FALSE_COMPARISON, ErrorCategory.OMITTED_COMPARISON)
#: The least severity of an error that a clinician would act on.
SIGNIFICANT = 3


@dataclass(frozen=True, slots=True)
class Quote:
    """Words of a report and their position.

    Attributes:
        words: as written in the report.
        span: characters [start, end) of the report.
    """

    words: str
    span: Span

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for json."""
        return {"words": self.words, "start": self.span.start, "end": self.span.end}


@dataclass(frozen=True, slots=True)
class ErrorItem:
    """One error of a candidate report.

    Attributes:
        category: one of the six categories of ReXVal.
        severity: 1 to 5, a key of SEVERITIES.
        finding: what the error is about, as in "pleural effusion".
        candidate: words of the candidate; None where it is silent.
        reference: words of the reference; None where it is silent.
        line: characters of the candidate that `correction` replaces; None where the correction
            is a new sentence.
        correction: corrected line; "" deletes the line.
        reason: why this is an error of this severity, one sentence.

    Raises: InvalidSetting where the severity is no grade, or neither report is quoted.
    """

    category: ErrorCategory
    severity: int
    finding: str
    candidate: Quote | None
    reference: Quote | None
    line: Span | None
    correction: str
    reason: str

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise InvalidSetting(f"a severity must be 1 to 5, not {self.severity!r}")
        if self.candidate is None and self.reference is None:
            raise InvalidSetting("an error must quote the candidate, the reference, or both")

    @property
    def is_significant(self) -> bool:
        """Return whether a clinician would act on the error: severity 3 or more."""
        return self.severity >= SIGNIFICANT

    @property
    def weight(self) -> float:
        """Weight in the rating: WEIGHTS of the severity, half of it for a comparison."""
        return WEIGHTS[self.severity] * (0.5 if self.category in _COMPARISONS else 1.0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for json."""
        return {
            "category": str(self.category),
            "severity": self.severity,
            "finding": self.finding,
            "candidate": self.candidate and self.candidate.to_dict(),
            "reference": self.reference and self.reference.to_dict(),
            "line": self.line and list(self.line),
            "correction": self.correction,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Judgement:
    """Errors of one candidate report, and the scores computed from them.

    Attributes:
        errors: in the order of the candidate; findings that it omits come last.
        found: for each finding of the reference that the candidate states correctly, the severity
            that its omission would have.
    """

    errors: tuple[ErrorItem, ...]
    found: tuple[int, ...] = ()

    @property
    def totals(self) -> dict[str, int]:
        """Number of errors of each of the six categories."""
        totals = {str(category): 0 for category in ErrorCategory}
        for error in self.errors:
            totals[str(error.category)] += 1
        return totals

    @property
    def uncompared(self) -> "Judgement":
        """Return the judgement without errors about comparisons with earlier examinations."""
        errors = tuple(e for e in self.errors if e.category not in _COMPARISONS)
        return Judgement(errors, self.found)

    @property
    def grade(self) -> int:
        """Grade of the whole report, a key of GRADES.

        Many reports share a grade; `rating` puts them in a finer order. The least ratings of grades
        3 and 2 were chosen on pairs whose errors had been read.
        """
        if not self.errors:
            return 5
        if self.significant == 0:
            return 4 if self.sum <= self.count + 1 else 3
        value = rating(self)
        return 3 if value >= _GRADE_3 else 2 if value >= _GRADE_2 else 1

    @property
    def count(self) -> int:
        """Number of errors."""
        return len(self.errors)

    @property
    def significant(self) -> int:
        """Number of errors of severity 3 or more."""
        return sum(error.is_significant for error in self.errors)

    @property
    def sum(self) -> int:
        """Sum of the severities: FineRadScore's score by sum; 0 without an error."""
        return sum(error.severity for error in self.errors)

    @property
    def maximum(self) -> int:
        """Largest severity: FineRadScore's score by maximum; 0 without an error."""
        return max((error.severity for error in self.errors), default=0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for json."""
        return {
            "errors": [error.to_dict() for error in self.errors],
            "totals": self.totals,
            "grade": self.grade,
            "count": self.count,
            "significant": self.significant,
            "sum": self.sum,
            "maximum": self.maximum,
            "found": list(self.found),
        }


@dataclass(slots=True)
class AnswerCounts:
    """Counts of a language model's answers and of their tokens.

    Attributes:
        answers: number of answers.
        tokens_in, tokens_out: tokens of their questions, and of the answers.
        uncounted: number of answers without a count of tokens.
    """

    answers: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    uncounted: int = 0

    def add(self, tokens_in: int | None, tokens_out: int | None) -> None:
        """Count one answer; None for tokens that nobody counted."""
        self.answers += 1
        self.tokens_in += tokens_in or 0
        self.tokens_out += tokens_out or 0
        self.uncounted += tokens_in is None or tokens_out is None

    def cost(self, price_in: float, price_out: float) -> float:
        """Return the price of the answers; a million tokens of either kind have these prices."""
        return (self.tokens_in * price_in + self.tokens_out * price_out) / 1e6

    def to_dict(self) -> dict[str, int]:
        """Return plain data, ready for json."""
        return asdict(self)


class Outcome(NamedTuple):
    """Judgement of one pair of reports, or why there is none.

    Attributes:
        judgement: None if there is an error.
        error: None if there is a judgement.
        counts: all answers about the pair, also those from the cache; None for the rule judge.
    """

    judgement: Judgement | None
    error: VLScoreError | None = None
    counts: AnswerCounts | None = None


def nothing_done() -> None:
    """Do nothing: a judge calls it after each pair, if its caller passes no other function."""


#: Weight in the rating of an error of each severity, and of a correct finding of that severity.
WEIGHTS: Mapping[int, float] = {1: 0.25, 2: 0.5, 3: 1.0, 4: 1.5, 5: 3.0}
#: Weight that every report has as correct: without it, one error in a normal report would score 0.
BASE = 0.75


def rating(judgement: Judgement) -> float:
    """Return the weighted share of correct statements among correct ones and errors, in (0, 1].

    It is (b + R) / (b + R + W): W sums the weights of the errors, R the WEIGHTS of the correct
    findings of the candidate, and b is 0.75. It is 1 without an error.
    """
    right = BASE + sum(WEIGHTS[severity] for severity in judgement.found)
    wrong = sum(error.weight for error in judgement.errors)
    return right / (right + wrong)


def _falling(total: float) -> float:
    return 1 / (1 + total)


#: Score by name, each in (0, 1] and 1 without an error.
SCORES: Mapping[str, Callable[[Judgement], float]] = {
    "rating": rating,
    "grade": lambda judgement: judgement.grade / 5,
    "sum": lambda judgement: _falling(judgement.sum),
    "maximum": lambda judgement: _falling(judgement.maximum),
    "count": lambda judgement: _falling(judgement.count),
    "significant": lambda judgement: _falling(judgement.significant),
}
