"""Two reports that are compared, with what all errors of the comparison need."""

from dataclasses import dataclass

from vlscore.metrics.judge.corrected_lines import LineCorrector, Part
from vlscore.metrics.judge.judge_tables import JudgeTables
from vlscore.metrics.judge.judgement import ErrorItem, Patient, Quote
from vlscore.metrics.judge.severities import Severity, severity_of
from vlscore.metrics.judge.statement_pairs import StatementPair
from vlscore.metrics.judge.statements import ReportStatements, Statement
from vlscore.perturb import ErrorCategory


@dataclass(frozen=True, slots=True)
class ComparedReports:
    """Statements of a candidate and of its reference, the patient, tables and correction."""

    candidate: ReportStatements
    reference: ReportStatements
    patient: Patient
    tables: JudgeTables
    lines: LineCorrector

    def severity(self, statement: Statement) -> Severity:
        """Return the severity of missing or inventing a finding."""
        return severity_of(statement, self.patient, self.tables)

    def title(self, statement: Statement) -> str:
        """Return what errors call a finding."""
        return self.tables.title_of(statement.concept, statement.observations)

    def error_of(
        self, pair: StatementPair, category: ErrorCategory, severity: int, part: Part, reason: str
    ) -> ErrorItem:
        """Return an error that quotes both reports, and corrects a part of the candidate's line."""
        return ErrorItem(
            category,
            severity,
            self.title(pair.reference),
            quote_of(self.candidate, pair.candidate),
            quote_of(self.reference, pair.reference),
            pair.candidate.line,
            self.lines.corrected(pair, part),
            reason,
        )


def quote_of(report: ReportStatements, statement: Statement) -> Quote:
    """Return the words of a statement and their position."""
    return Quote(statement.quoted.of(report.text), statement.quoted)
