"""Rule judge: errors of a candidate report, finding by finding, without a model."""

from collections.abc import Callable, Iterable

from vlscore.core import __version__, check_word
from vlscore.errors import InvalidReport
from vlscore.findings import extraction_name
from vlscore.metrics.judge.judge_tables import JudgeTables, load_tables
from vlscore.metrics.judge.judgement import (
    UNKNOWN,
    JudgeCase,
    Judgement,
    Outcome,
    Patient,
    nothing_done,
)
from vlscore.metrics.judge.report_comparison import compare_reports
from vlscore.metrics.judge.stated_changes import uncompared
from vlscore.metrics.judge.statement_reading import statements_of
from vlscore.metrics.judge.statements import ReportStatements


class RuleJudge:
    """Judge that compares the statements of two reports by rules, and names each difference.

    Args:
        tables: significance, relations and words; default: the shipped ones.
        comparisons: "ignored": comparisons with earlier examinations are no errors.

    Raises: InvalidSetting for another word.

    >>> judgement = RuleJudge().judge("Small left effusion.", "Large left effusion. Edema.")
    >>> [(str(e.category), e.severity, e.finding) for e in judgement.errors]
    [('wrong_severity', 4, 'pleural effusion'), ('omitted_finding', 3, 'edema')]
    """

    def __init__(self, tables: JudgeTables | None = None, comparisons: str | None = None) -> None:
        if comparisons is not None:
            check_word("comparisons", comparisons, ("ignored",))
        self.tables = tables or load_tables()
        self.comparisons = comparisons

    @property
    def name(self) -> str:
        """Return what the numbers depend on: "rules", version, extraction, digest of the tables."""
        name = f"rules@{__version__}+{extraction_name()}+{self.tables.digest}"
        return name if self.comparisons is None else f"{name}+comparisons:{self.comparisons}"

    def judge(self, candidate: str, reference: str, patient: Patient = UNKNOWN) -> Judgement:
        """Return the errors of a candidate report against its reference.

        Raises: InvalidReport where one of them is not a str.
        """
        for role, text in (("candidate", candidate), ("reference", reference)):
            if not isinstance(text, str):
                raise InvalidReport(f"the {role} must be a text, not a {type(text).__name__}")
        stated = statements_of(candidate, self.tables)
        true = statements_of(reference, self.tables)
        return self.compare(stated, true, patient)

    def judge_all(
        self, cases: Iterable[JudgeCase], on_done: Callable[[], None] = nothing_done
    ) -> list[Outcome]:
        """Judge many pairs; a pair that cannot be judged has an error as its outcome.

        Args: on_done: called after each pair.
        """
        outcomes: list[Outcome] = []
        for case in cases:
            try:
                outcomes.append(Outcome(self.judge(*case)))
            except InvalidReport as error:
                outcomes.append(Outcome(None, error))
            on_done()
        return outcomes

    def compare(
        self, candidate: ReportStatements, reference: ReportStatements, patient: Patient = UNKNOWN
    ) -> Judgement:
        """Return the errors of a candidate from the statements of both reports."""
        if self.comparisons is not None:
            candidate, reference = uncompared(candidate), uncompared(reference)
        return compare_reports(candidate, reference, patient, self.tables)
