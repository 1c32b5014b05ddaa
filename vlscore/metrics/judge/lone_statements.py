"""Errors of statements without a partner: findings that are invented, and those that are omitted.

What a candidate states is right, or it is an error; what is an error neither names nor covers what
the reference states.
"""

from collections.abc import Collection, Iterable, Sequence

from vlscore.metrics.judge.corrected_lines import LineCorrector
from vlscore.metrics.judge.judge_tables import JudgeTables
from vlscore.metrics.judge.judgement import ErrorItem, Patient, Quote
from vlscore.metrics.judge.places import Place
from vlscore.metrics.judge.severities import Severity, milder, severity_of
from vlscore.metrics.judge.statement_pairs import (
    Matching,
    Name,
    Naming,
    identity_for_pairing,
    is_caused,
    is_implied,
    may_be_meant,
    naming_of,
)
from vlscore.metrics.judge.statements import ReportStatements, Statement, content_of
from vlscore.perturb import ErrorCategory

#: Steps by which a more exact name is a milder error than an invented finding.
STEPS = 2


class LoneStatements:
    """Statements of two reports that have no partner in the other one."""

    def __init__(
        self,
        candidate: ReportStatements,
        reference: ReportStatements,
        patient: Patient,
        tables: JudgeTables,
        lines: LineCorrector,
    ) -> None:
        self._candidate, self._reference = candidate, reference
        self._patient, self._tables, self._lines = patient, tables, lines

    def false(self, matching: Matching) -> tuple[list[ErrorItem], list[Statement]]:
        """Return the errors of invented findings, the gravest of each, and what is no error."""
        wrong, kept = [], []
        for statement in sorted(matching.false, key=content_of):
            severity = self._severity_if_false(statement, matching)
            if severity is None:
                kept.append(statement)
            else:
                wrong.append((statement, severity))
        return [self._invented(*each) for each in _gravest(wrong, self._tables)], kept

    def omitted(
        self, matching: Matching, right: Sequence[Statement]
    ) -> tuple[list[ErrorItem], list[int]]:
        """Return the errors of findings without a partner, and the severities of covered ones.

        Args: right: statements of the candidate that are no false finding.
        """
        covered, missed = [], []
        # A sign that the candidate names in words is stated, also where its cause is invented.
        candidate, stated = self._candidate, self._candidate.statements
        for statement in sorted(matching.omitted, key=content_of):
            severity = severity_of(statement, self._patient, self._tables)
            denied = statement.observations & candidate.denied
            others = [other for other in right if other.place.may_be_near(statement.place)]
            names = self._names(((other, statement) for other in others), denied)
            if any(name.covers for name in names):
                covered.append(severity.level)
            elif not is_implied(
                statement, candidate, stated, self._tables, Place.may_be_near
            ) and not is_caused(statement, matching.omitted, self._tables):
                if any(name.naming is Naming.COARSER for name in names):
                    severity = milder(severity, 1, "named less exactly")
                if not statement.doubtful:
                    missed.append((statement, severity))
                elif severity.level > 1:
                    missed.append((statement, milder(severity, 1, "the reference doubts it")))
        return [self._missed(*each) for each in _gravest(missed, self._tables)], covered

    def _severity_if_false(self, statement: Statement, matching: Matching) -> Severity | None:
        """Return the severity of a statement without a partner; None where it is no error."""
        tables, reference = self._tables, self._reference
        gone = statement.observations & (reference.denied | reference.resolved)
        others = [o for o in reference.statements if statement.place.may_be_near(o.place)]
        names = self._names(((statement, other) for other in others), gone)
        if any(name.naming is Naming.SAME for name in names):
            return None
        # Another name repeats what the reference states only where it names no further place.
        others = [other for other in others if statement.place.adds_nothing_to(other.place)]
        names = self._names(((statement, other) for other in others), gone)
        exact = any(name.naming is Naming.MORE_EXACT for name in names)
        if any(name.naming is Naming.COARSER or name.says_the_same for name in names):
            return None
        if statement.doubtful and names:
            return None
        stated = reference.statements
        if not gone and is_implied(statement, reference, stated, tables, Place.adds_nothing_to):
            return None
        if is_caused(statement, matching.false, tables):
            return None
        severity = severity_of(statement, self._patient, tables)
        if exact:
            severity = milder(severity, STEPS, "the reference names it less exactly")
        return severity

    def _names(
        self, pairs: Iterable[tuple[Statement, Statement]], denied: Collection[str]
    ) -> list[Name]:
        """Return how statements of one place name one finding.

        Args:
            pairs: a statement of the candidate and one of the reference each.
            denied: observations that the other report denies, or calls resolved.
        """
        return [
            name
            for one, other in pairs
            if (name := naming_of(one, other, self._tables)) is not None
            and may_be_meant(one, other, name.naming, denied)
        ]

    def _invented(self, statement: Statement, severity: Severity) -> ErrorItem:
        change, cue = statement.change, statement.finding.cue
        # "The mediastinum has widened" states a finding by a change alone.
        alone = change is not None and change.is_real and change.span.overlaps(cue)
        says = "does not state" if _denial(self._reference, statement) is None else "denies"
        return ErrorItem(
            ErrorCategory.FALSE_COMPARISON if alone else ErrorCategory.FALSE_FINDING,
            severity.level,
            self._tables.title_of(statement.concept, statement.observations),
            quote_of(self._candidate, statement),
            None,
            statement.line,
            self._lines.rewritten(statement.line, statement),
            f"the reference {says} it ({severity.reason})",
        )

    def _missed(self, statement: Statement, severity: Severity) -> ErrorItem:
        denial = _denial(self._candidate, statement)
        says = "does not state" if denial is None else "denies"
        return ErrorItem(
            ErrorCategory.OMITTED_FINDING,
            severity.level,
            self._tables.title_of(statement.concept, statement.observations),
            denial,
            quote_of(self._reference, statement),
            None,
            self._lines.stating(statement),
            f"the candidate {says} it ({severity.reason})",
        )


def _gravest(
    found: Iterable[tuple[Statement, Severity]], tables: JudgeTables
) -> list[tuple[Statement, Severity]]:
    """Return the gravest statement of each finding, of equals the first, in the report's order.

    A finding in several sentences is one error.
    """
    gravest: dict[tuple[str, frozenset[str]], tuple[Statement, Severity]] = {}
    for statement, severity in found:
        own = identity_for_pairing(statement, tables)
        if own not in gravest or gravest[own][1].level < severity.level:
            gravest[own] = statement, severity
    return sorted(gravest.values(), key=lambda each: each[0].finding.span)


def quote_of(report: ReportStatements, statement: Statement) -> Quote:
    """Return the words of a statement and their position."""
    return Quote(statement.quoted.of(report.text), statement.quoted)


def _denial(report: ReportStatements, statement: Statement) -> Quote | None:
    """Return the words of the other report that deny a finding, or None.

    A normal statement about the organ is not quoted: it speaks of much else.
    """
    for finding in report.findings:
        denied = finding.observation in statement.observations and not finding.is_likely
        if denied and not finding.normal:
            return Quote(finding.span.of(report.text), finding.span)
    return None
