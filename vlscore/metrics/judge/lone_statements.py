"""Errors of statements without a partner: findings that are invented, and those that are omitted.

What a candidate states is right, or it is an error; what is an error neither names nor covers what
the reference states.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from vlscore.findings import Finding, TemporalChange
from vlscore.metrics.judge.compared_reports import ComparedReports, quote_of
from vlscore.metrics.judge.judge_tables import JudgeTables
from vlscore.metrics.judge.judgement import ErrorItem, Quote
from vlscore.metrics.judge.places import Place
from vlscore.metrics.judge.severities import Severity, milder
from vlscore.metrics.judge.stated_changes import contradicts, is_said_of_part, names_by_change
from vlscore.metrics.judge.statement_pairs import (
    COVERS,
    STEPS,
    Matching,
    Named,
    Naming,
    StatementPair,
    bones_of,
    is_caused,
    is_implied,
    may_be_meant,
    naming_of,
)
from vlscore.metrics.judge.statements import ReportStatements, Statement, content_of
from vlscore.perturb import ErrorCategory

#: Category of an error by whether a statement is omitted, and whether it is one of change alone.
_CATEGORIES = {
    (False, False): ErrorCategory.FALSE_FINDING,
    (True, False): ErrorCategory.OMITTED_FINDING,
    (False, True): ErrorCategory.FALSE_COMPARISON,
    (True, True): ErrorCategory.OMITTED_COMPARISON,
}


class LoneStatements:
    """Statements of two reports that have no partner in the other one."""

    def __init__(self, case: ComparedReports) -> None:
        self._case, self._tables = case, case.tables
        self._candidate, self._reference = case.candidate, case.reference

    def false(self, matching: Matching) -> tuple[list[ErrorItem], list[Statement]]:
        """Return the errors of invented findings, the gravest of each, and what is no error."""
        false, kept = self._alternatives(matching), list[Statement]()
        for statement in sorted(matching.false, key=content_of):
            severity = self._severity_if_false(statement, matching)
            for pair in matching.pairs:
                if severity is not None and statement.is_instead_of(pair.candidate):
                    own, severity = severity, self._as_alternative(severity, statement, pair)
                    if severity is not None and severity.level == 1 < own.level:
                        severity = None
            if severity is None:
                kept.append(statement)
            else:
                false.append((statement, severity))
        return [self._error(*each, False) for each in _gravest(false, self._tables)], kept

    def _alternatives(self, matching: Matching) -> list[tuple[Statement, Severity]]:
        """Return what the candidate leaves open besides a finding that is there.

        Of each finding, one that is hardly graver is an honest doubt, and more are a guess.
        """
        again = (
            StatementPair(stated, true, Named(Naming.SAME, 1.0))
            for stated in matching.false
            for true in self._reference.statements
            if stated.also
            and not stated.concepts.isdisjoint(true.concepts)
            and stated.place.may_be_near(true.place)
        )
        of_finding: dict[Finding, list[tuple[Statement, Severity]]] = {}
        for pair in (*matching.pairs, *again):
            own = of_finding.setdefault(pair.reference.finding, [])
            own += self._other_names(pair, matching)
        false = []
        for named in of_finding.values():
            light = sorted(each.concept for each, severity in named if severity.level == 1)
            false += [each for each in named if each[0].concept not in light[:1]]
        return false

    def _other_names(
        self, pair: StatementPair, matching: Matching
    ) -> Iterator[tuple[Statement, Severity]]:
        """Return what the candidate calls a finding besides its right name, if it is an error."""
        of, stated = self._tables.of_observation, pair.candidate
        others = stated.concepts - pair.reference.concepts
        for concept in sorted(others) if pair.named.how is not Naming.MORE_EXACT else ():
            own = frozenset(name for name in stated.observations if of[name] == concept)
            other = replace(
                stated, concept=concept, also=frozenset(), observations=own or stated.observations
            )
            severity = self._severity_if_false(other, matching)
            if severity and (severity := self._as_alternative(severity, other, pair)):
                yield other, severity

    def _as_alternative(
        self, severity: Severity, statement: Statement, pair: StatementPair
    ) -> Severity | None:
        """Return the severity of what the candidate states instead of a finding that is there.

        None where it explains the finding, and is hardly graver.
        """
        tables, one, true = self._tables, statement.concept, pair.reference.concept
        if self._reference.denied_of(statement):
            return severity
        of = tables.concepts
        graver = of[one].severity[1] - of[true].severity[1]
        explains = (true, one) in tables.signs
        if explains and true in pair.candidate.concepts and graver < STEPS:
            return None
        if (one, true) not in tables.alternatives:
            return severity
        is_like = explains or (one, true) in tables.confusable
        severity = milder(severity, STEPS if is_like else 1, "as an alternative")
        # It is no milder than by how much it is graver than what is there.
        return replace(severity, level=max(severity.level, graver))

    def omitted(
        self, matching: Matching, right: Sequence[Statement]
    ) -> tuple[list[ErrorItem], list[int]]:
        """Return the errors of findings without a partner, and the severities of covered ones.

        Args: right: statements of the candidate that are no false finding.
        """
        covered: list[int] = []
        omitted: list[tuple[Statement, Severity]] = []
        for statement in sorted(matching.omitted, key=content_of):
            denied = self._candidate.denied_of(statement)
            others = [other for other in right if other.place.may_be_near(statement.place)]
            names = self._names(((other, statement) for other in others), denied)
            if any(
                n.means_the_same or (n.how is Naming.MORE_EXACT and n.credit >= COVERS)
                for n in names
            ):
                covered.append(self._case.severity(statement).level)
                continue
            # A more exact name for the same place leaves nothing out.
            there = ((o, statement) for o in others if o.place.overlaps(statement.place))
            if any(n.how is Naming.MORE_EXACT for n in self._names(there, denied)):
                continue
            severity = self._severity_if_omitted(statement, names)
            if severity is not None:
                omitted.append((statement, severity))
        omitted = self._without_alternatives(omitted, [p.reference for p in matching.pairs])
        return [self._error(*each, True) for each in _gravest(omitted, self._tables)], covered

    def _without_alternatives(
        self, omitted: Iterable[tuple[Statement, Severity]], found: Iterable[Statement]
    ) -> list[tuple[Statement, Severity]]:
        """Return what is omitted where the reference leaves it open: nothing if one is found."""
        left: list[tuple[Statement, Severity]] = []
        for statement, severity in sorted(omitted, key=lambda each: -each[1].level):
            known = (*found, *(other for other, _ in left))
            if not any(statement.is_instead_of(other) for other in known):
                left.append((statement, severity))
        return left

    def _severity_if_omitted(self, statement: Statement, names: list[Named]) -> Severity | None:
        """Return the severity of a statement without a partner; None where it is no error.

        Args: names: how the candidate names the finding elsewhere.
        """
        tables, candidate, reference = self._tables, self._candidate, self._reference
        change = statement.change
        if change and names_by_change(change) and contradicts(candidate, change, reference, tables):
            return None
        # A sign that the candidate names in words is stated, also where its cause is invented.
        if is_implied(statement, candidate, tables, Place.may_be_near):
            return None
        if is_said_of_part(statement, reference, candidate, tables):
            return None
        severity = self._case.severity(statement)
        if any(n.how is Naming.COARSER for n in names):
            severity = milder(severity, 1, "named less exactly")
        if statement.doubtful:
            if severity.level == 1:
                return None
            severity = milder(severity, 1, "the reference doubts it")
        return severity

    def _severity_if_false(self, statement: Statement, matching: Matching) -> Severity | None:
        """Return the severity of a statement without a partner; None where it is no error."""
        tables, reference = self._tables, self._reference
        gone = reference.denied_of(statement)
        others = [o for o in reference.statements if statement.place.may_be_near(o.place)]
        names = self._names(((statement, other) for other in others), gone)
        if any(n.how is Naming.SAME for n in names):
            return None
        # Another name repeats what the reference states only where it names no further place.
        others = [other for other in others if statement.place.adds_nothing_to(other.place)]
        names = self._names(((statement, other) for other in others), gone)
        named = [n.how for n in names]
        if Naming.COARSER in named or any(n.means_the_same for n in names):
            return None
        if is_implied(statement, reference, tables, Place.adds_nothing_to):
            return None
        if is_said_of_part(statement, self._candidate, reference, tables):
            return None
        if is_caused(statement, matching.false, tables):
            return None
        severity = self._case.severity(statement)
        if Naming.MORE_EXACT in named:
            severity = milder(severity, STEPS, "the reference names it less exactly")
        return severity

    def _names(
        self, pairs: Iterable[tuple[Statement, Statement]], denied: Collection[str]
    ) -> list[Named]:
        """Return how statements of one place name one finding, with the credits.

        Args:
            pairs: a statement of the candidate and one of the reference each.
            denied: observations that the other report denies, or calls resolved.
        """
        found = []
        for one, other in pairs:
            named = naming_of(one, other, self._tables)
            if named is not None and may_be_meant(one, other, named.how, denied):
                found.append(named)
        return found

    def _error(self, statement: Statement, severity: Severity, is_omitted: bool) -> ErrorItem:
        """Return the error of a statement of one report that the other does not state."""
        own, other = self._candidate, self._reference
        if is_omitted:
            own, other = other, own
        denial, quote = _denial(other, statement), quote_of(own, statement)
        name, says = (
            ("reference", "candidate")[is_omitted],
            "denies" if denial else "does not state",
        )
        lines = self._case.lines
        return ErrorItem(
            _CATEGORIES[is_omitted, _is_change_alone(statement)],
            severity.level,
            self._case.title(statement),
            denial if is_omitted else quote,
            quote if is_omitted else None,
            None if is_omitted else statement.line,
            lines.stating(statement) if is_omitted else lines.rewritten(statement.line, statement),
            f"the {name} {says} it ({severity.reason})",
        )


def _is_change_alone(statement: Statement) -> bool:
    """Return whether a finding is stated by a change alone: "the mediastinum has widened".

    What is new is a finding: "the patient was intubated".
    """
    change = statement.change
    is_new = change is not None and change.change is TemporalChange.NEW
    return change is not None and names_by_change(change) and not is_new


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


def _denial(report: ReportStatements, statement: Statement) -> Quote | None:
    """Return the words of the other report that deny a finding, or None.

    A normal statement about the organ is not quoted: it speaks of much else.
    """
    for finding in report.findings:
        denied = finding.observation in statement.observations and not finding.is_likely
        if denied and not finding.normal:
            return Quote(finding.span.of(report.text), finding.span)
    return None
