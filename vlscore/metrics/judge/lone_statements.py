"""Errors of statements without a partner: findings that are invented, and those that are omitted.

What a candidate states is right, or it is an error; what is an error neither names nor covers what
the reference states.
"""

from collections.abc import Collection, Iterable, Sequence

from vlscore.metrics.judge.corrected_lines import LineCorrector
from vlscore.metrics.judge.judge_tables import JudgeTables
from vlscore.metrics.judge.judged_changes import is_judged_by_change, is_said_of_part
from vlscore.metrics.judge.judgement import ErrorItem, Patient, Quote
from vlscore.metrics.judge.places import Place
from vlscore.metrics.judge.severities import Severity, milder, severity_of
from vlscore.metrics.judge.statement_pairs import (
    Matching,
    Naming,
    bones_of,
    is_caused,
    is_implied,
    may_be_meant,
    naming_of,
)
from vlscore.metrics.judge.statements import ReportStatements, Statement, content_of
from vlscore.perturb import ErrorCategory

#: Credit from which a more exact name elsewhere in the candidate covers a finding.
COVERS = 0.6
#: Credit from which another name means the same for the patient: no error.
MEANS_THE_SAME = 0.7
#: The same of a more exact name, which says more than the reference does.
MEANS_EXACTLY = 0.8
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
        false: list[tuple[Statement, Severity]] = []
        kept = []
        for statement in sorted(matching.false, key=content_of):
            severity = self._severity_if_false(statement, matching)
            if severity is None:
                kept.append(statement)
            else:
                false.append((statement, severity))
        return [self._invented(*each) for each in _gravest(false, self._tables)], kept

    def omitted(
        self, matching: Matching, right: Sequence[Statement]
    ) -> tuple[list[ErrorItem], list[int]]:
        """Return the errors of findings without a partner, and the severities of covered ones.

        Args: right: statements of the candidate that are no false finding.
        """
        covered: list[int] = []
        omitted: list[tuple[Statement, Severity]] = []
        for statement in sorted(matching.omitted, key=content_of):
            severity = severity_of(statement, self._patient, self._tables)
            denied = statement.observations & self._candidate.denied
            others = [other for other in right if other.place.may_be_near(statement.place)]
            names = self._names(((other, statement) for other in others), denied)
            if any(
                c >= MEANS_THE_SAME or (n is Naming.MORE_EXACT and c >= COVERS) for n, c in names
            ):
                covered.append(severity.level)
                continue
            if is_judged_by_change(statement, self._candidate, self._tables):
                continue
            # A sign that the candidate names in words is stated, also where its cause is invented.
            if is_implied(statement, self._candidate, self._tables, Place.may_be_near):
                continue
            if is_said_of_part(
                statement, self._reference, self._candidate, self._tables
            ) or is_caused(statement, matching.omitted, self._tables):
                continue
            if any(naming is Naming.COARSER for naming, _ in names):
                severity = milder(severity, 1, "named less exactly")
            if statement.doubtful:
                if severity.level == 1:
                    continue
                severity = milder(severity, 1, "the reference doubts it")
            omitted.append((statement, severity))
        return [self._missed(*each) for each in _gravest(omitted, self._tables)], covered

    def _severity_if_false(self, statement: Statement, matching: Matching) -> Severity | None:
        """Return the severity of a statement without a partner; None where it is no error."""
        tables, reference = self._tables, self._reference
        gone = statement.observations & (reference.denied | reference.resolved)
        others = [o for o in reference.statements if statement.place.may_be_near(o.place)]
        names = self._names(((statement, other) for other in others), gone)
        if any(naming is Naming.SAME for naming, _ in names):
            return None
        # Another name repeats what the reference states only where it names no further place.
        others = [other for other in others if statement.place.adds_nothing_to(other.place)]
        names = self._names(((statement, other) for other in others), gone)
        named = [naming for naming, _ in names]
        if Naming.COARSER in named or any(credit >= MEANS_EXACTLY for _, credit in names):
            return None
        if statement.doubtful and named:
            return None
        if not gone and is_implied(statement, reference, tables, Place.adds_nothing_to):
            return None
        if is_said_of_part(statement, self._candidate, reference, tables):
            return None
        if is_caused(statement, matching.false, tables):
            return None
        severity = severity_of(statement, self._patient, tables)
        if Naming.MORE_EXACT in named:
            severity = milder(severity, STEPS, "the reference names it less exactly")
        return severity

    def _names(
        self, pairs: Iterable[tuple[Statement, Statement]], denied: Collection[str]
    ) -> list[tuple[Naming, float]]:
        """Return how statements of one place name one finding, with the credits.

        Args:
            pairs: a statement of the candidate and one of the reference each.
            denied: observations that the other report denies, or calls resolved.
        """
        found = []
        for one, other in pairs:
            named = naming_of(one, other, self._tables)
            if named is not None and may_be_meant(one, other, named[0], denied):
                found.append(named)
        return found

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
    """Return the gravest statement of each finding, in the order of the report.

    A finding in several sentences is one error; a fracture is another one in other bones. Of equals
    the first counts.
    """
    gravest: dict[tuple[str, frozenset[str]], tuple[Statement, Severity]] = {}
    for statement, severity in found:
        key = statement.concept, bones_of(statement, tables)
        if key not in gravest or gravest[key][1].level < severity.level:
            gravest[key] = statement, severity
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
