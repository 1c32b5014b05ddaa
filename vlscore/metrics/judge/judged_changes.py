"""Errors about changes since an earlier examination.

After ReXVal's two categories: a false comparison states a change that the reference does not state,
an omitted one leaves out, or contradicts, a change that the reference states. "Unchanged" is no
change: a report that says so where the other is silent has no error.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from vlscore.findings import FindingChange, Span, TemporalChange
from vlscore.metrics.judge.compared_reports import ComparedReports
from vlscore.metrics.judge.judge_tables import JudgeTables
from vlscore.metrics.judge.judgement import SIGNIFICANT, ErrorItem, Quote
from vlscore.metrics.judge.stated_changes import (
    GROWING,
    UNKNOWN,
    agree,
    concepts_of,
    is_of_presence,
    is_said,
    lone_changes,
    may_be_one,
    may_state,
    names_by_change,
    speaks_of,
    speaks_of_part,
    without_partner,
)
from vlscore.metrics.judge.statement_pairs import StatementPair
from vlscore.metrics.judge.statements import ReportStatements, Statement, around
from vlscore.perturb import ErrorCategory

#: A change that a clinician acts on, as far as the finding itself is acted on; others count less.
_MOST = {True: 3, False: 2}


class ChangeErrors:
    """Errors about the changes of two reports: of pairs, and of what has no partner."""

    def __init__(self, case: ComparedReports, pairs: Iterable[StatementPair]) -> None:
        self._case = case
        #: Words of change that are an error already: 0 or 1 (candidate, reference), and their span.
        self._charged: set[tuple[int, Span]] = set()
        #: Words of change on which both reports agree for one of the findings that share them.
        self._agreed: set[tuple[int, Span]] = set()
        for pair in pairs:
            stated, true = pair.candidate.change, pair.reference.change
            if stated is not None and true is not None and _error(stated, true) is None:
                self._agreed |= {(0, stated.span), (1, true.span)}

    def of(self, pair: StatementPair) -> Iterator[ErrorItem]:
        """Return the error about the change of a finding that both reports state."""
        candidate, reference, tables = self._case.candidate, self._case.reference, self._case.tables
        stated = _stated(pair.candidate.change, candidate)
        true = _stated(pair.reference.change, reference)
        category = _error(stated, true)
        if category is None:
            return
        if stated is not None and true is None and (0, stated.span) in self._agreed:
            return
        if stated is None and true is not None and (1, true.span) in self._agreed:
            return
        if stated is None and may_state(candidate, pair.candidate.line, true, tables):
            return
        compares = any(c.is_real for c in reference.changes)
        line, named = pair.reference.line, 0 if compares else pair.reference.finding.span.start
        if true is None and may_state(reference, line, stated, tables, named):
            return
        # "The left base is worse" is compared with what the other report says of that part.
        concept = frozenset((pair.reference.concept,))
        if stated is None and speaks_of_part(candidate, concept, tables):
            return
        if self._is_charged(pair):
            return
        wrong = stated if stated is not None and stated.is_real else true
        assert wrong is not None
        full, is_omitted = self._case.severity(pair.reference).level, stated is None
        severity = full if _contradict(stated, true) else _severity(wrong, full, is_omitted)
        yield replace(
            self._case.error_of(pair, category, severity, "change", _reason(stated, true)),
            candidate=_quote_with(candidate, pair.candidate, _span_of(pair.candidate.change)),
            reference=_quote_with(reference, pair.reference, _span_of(pair.reference.change)),
        )

    def of_device(self, pair: StatementPair) -> Iterator[ErrorItem]:
        """Return the error of a device that one report alone says has been moved."""
        stated, true = pair.candidate.moved, pair.reference.moved
        if (stated is None) == (true is None):
            return
        category, reason = ErrorCategory.FALSE_COMPARISON, "says that it was moved"
        if stated is None:
            category, reason = ErrorCategory.OMITTED_COMPARISON, "does not say that it was moved"
        severity = min(_MOST[False], self._case.severity(pair.reference).level)
        yield replace(
            self._case.error_of(pair, category, severity, "line", reason),
            candidate=_quote_with(self._case.candidate, pair.candidate, stated),
            reference=_quote_with(self._case.reference, pair.reference, true),
        )

    def _is_charged(self, pair: StatementPair) -> bool:
        """Return whether the same words are an error already: "A and B have increased"."""
        changes = {
            (k, c.span)
            for k, c in enumerate((pair.candidate.change, pair.reference.change))
            if c is not None and c.is_real
        }
        known = bool(changes & self._charged)
        self._charged |= changes
        return known

    def of_candidate(self, kept: Iterable[Statement]) -> Iterator[ErrorItem]:
        """Return the errors of changes that the candidate states alone.

        They are of parts, of what has resolved, and of `kept`: statements without a partner that
        are no false finding.
        """
        report, other, tables = self._case.candidate, self._case.reference, self._case.tables
        own = [s.change for s in kept if s.change is not None and s.change.is_real]
        lone = [*lone_changes(report), *own]
        for change, concept in without_partner(lone, report, other, tables):
            if _is_charged_as_finding(change, report, other, tables):
                continue
            # "The left base is worse" where the reference says so of a finding there.
            parts = concepts_of(change, report, tables) - {UNKNOWN}
            if concept is None and is_said(other, change, parts, tables):
                continue
            line = report.findings.sentences[change.sentence].span
            yield self._lone_error(
                ErrorCategory.FALSE_COMPARISON,
                change,
                concept,
                line,
                self._case.lines.rewritten(line),
            )

    def of_reference(self, alone: Iterable[Statement]) -> Iterator[ErrorItem]:
        """Return the errors of changes that the candidate leaves out.

        Args: alone: statements without a partner; the omission of a new finding is one error.
        """
        report, other, tables = self._case.reference, self._case.candidate, self._case.tables
        own = [
            s.change
            for s in alone
            if s.change is not None
            and s.change.is_real
            and s.change.change is not TemporalChange.NEW
            and not names_by_change(s.change)
            and not self._is_contradicted(s)
        ]
        # What the candidate states of the same part is wrong, and one error already.
        lone = [
            change
            for change in (*lone_changes(report), *own)
            if not names_by_change(change)
            or not speaks_of(
                other, concepts_of(change, report, tables, with_topics=False) - {UNKNOWN}, tables
            )
        ]
        for change, concept in without_partner(lone, report, other, tables):
            if not _is_charged_as_finding(change, report, other, tables):
                line = report.findings.sentences[change.sentence].span
                omitted = ErrorCategory.OMITTED_COMPARISON
                yield self._lone_error(omitted, change, concept, None, line.of(report.text))

    def _is_contradicted(self, statement: Statement) -> bool:
        """Return whether the candidate states the opposite change there, which is one error."""
        return any(
            _contradict(other.change, statement.change)
            and other.place.may_be_near(statement.place)
            and may_be_one(statement.concepts, other.concepts, self._case.tables)
            for other in self._case.candidate.statements
        )

    def _lone_error(
        self,
        category: ErrorCategory,
        change: FindingChange,
        concept: str | None,
        line: Span | None,
        correction: str,
    ) -> ErrorItem:
        """Return an error about a change that one report states alone."""
        is_omitted = category is ErrorCategory.OMITTED_COMPARISON
        report = self._case.reference if is_omitted else self._case.candidate
        quote = Quote(change.span.of(report.text), change.span)
        full = self._case.tables.concepts[concept].severity[1] if concept else SIGNIFICANT
        return ErrorItem(
            category,
            _severity(change, full, is_omitted),
            (concept or change.topic).replace("_", " "),
            None if is_omitted else quote,
            quote if is_omitted else None,
            line,
            correction,
            _reason(None, change) if is_omitted else _reason(change, None),
        )


def _error(stated: FindingChange | None, true: FindingChange | None) -> ErrorCategory | None:
    """Return the error of a change that a candidate states of a finding; None without one."""
    if stated is not None and stated.is_real:
        same = true is not None and agree(stated, true)
        return None if same else ErrorCategory.FALSE_COMPARISON
    if true is not None and true.is_real:
        return ErrorCategory.OMITTED_COMPARISON
    return None


def _stated(change: FindingChange | None, report: ReportStatements) -> FindingChange | None:
    """Return the change; None if its words say only that the finding is there ("residual")."""
    if change is None or change.is_real:
        return change
    return None if is_of_presence(change, report) else change


def _severity(change: FindingChange, full: int, is_omitted: bool = False) -> int:
    """Return the severity of an error about a change that one report states alone.

    A change that is left out has 2 at most, as a change for the better: RadPref's radiologists
    hardly rate a report lower for it.

    Args: full: severity of leaving out the finding itself.
    """
    return min(full, _MOST[not is_omitted and change.change in GROWING])


def _contradict(stated: FindingChange | None, true: FindingChange | None) -> bool:
    """Return whether two changes have opposite directions: "smaller" for "larger"."""
    if stated is None or true is None:
        return False
    return stated.is_real and true.is_real and not agree(stated, true)


def _reason(stated: FindingChange | None, true: FindingChange | None) -> str:
    """Return the reason of an error, a sentence."""
    if stated is None:
        return f"does not say: {true and true.change}"
    says = f"says: {true.change}" if true else "does not"
    return f"says: {stated.change}; the reference {says}"


def _span_of(change: FindingChange | None) -> Span | None:
    return None if change is None else change.span


def _quote_with(report: ReportStatements, statement: Statement, compared: Span | None) -> Quote:
    """Return the words of a finding with those that compare it, or these where they stand apart."""
    span = statement.quoted
    if compared is not None:
        span = around(span, compared) if statement.line.covers(compared) else compared
    return Quote(span.of(report.text), span)


def _is_charged_as_finding(
    change: FindingChange, report: ReportStatements, other: ReportStatements, tables: JudgeTables
) -> bool:
    """Return whether only the other report states the finding that has resolved: one error."""
    concepts = concepts_of(change, report, tables)
    is_still_there = any(s.concept in concepts and _is_at(change, s) for s in report.statements)
    is_there = (
        may_be_one(concepts, s.concepts, tables) for s in other.statements if _is_at(change, s)
    )
    return change.change is TemporalChange.RESOLVED and not is_still_there and any(is_there)


def _is_at(change: FindingChange, statement: Statement) -> bool:
    """Return whether a change may be of the side of a statement."""
    sides = () if change.finding is None else change.finding.sides
    return not sides or not statement.place.sides or not statement.place.sides.isdisjoint(sides)
