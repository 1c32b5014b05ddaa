"""Errors about changes since an earlier examination.

After ReXVal's two categories: a false comparison states a change that the reference does not state,
an omitted one leaves out, or contradicts, a change that the reference states. "Unchanged" is no
change: a report that says so where the other is silent has no error.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from vlscore.findings import FindingChange, Polarity, Span, TemporalChange
from vlscore.metrics.judge.compared_reports import ComparedReports
from vlscore.metrics.judge.judgement import SIGNIFICANT, ErrorItem, Quote
from vlscore.metrics.judge.stated_changes import (
    GROWING,
    agree,
    are_opposite,
    concept_of_change,
    concepts_of,
    contradicts,
    is_of_presence,
    may_be_one,
    may_compare,
    may_share,
    may_state,
    names_by_change,
    sides_of,
    states_of_part,
)
from vlscore.metrics.judge.statement_pairs import StatementPair
from vlscore.metrics.judge.statements import ReportStatements, Statement, around
from vlscore.perturb import ErrorCategory

#: A change that a clinician acts on, as far as the finding itself is acted on; others count less.
_MOST = {True: 3, False: 2}
_FALSE, _OMITTED = ErrorCategory.FALSE_COMPARISON, ErrorCategory.OMITTED_COMPARISON


class ChangeErrors:
    """Errors about the changes of two reports: of pairs, and of what has no partner."""

    def __init__(self, case: ComparedReports, pairs: Iterable[StatementPair]) -> None:
        self._case, self._tables = case, case.tables
        self._candidate, self._reference = case.candidate, case.reference
        #: Words of change on which both reports agree for one of the findings that share them.
        self._agreed = {
            words
            for pair in pairs
            if (stated := pair.candidate.change) and (true := pair.reference.change)
            for words in ((0, stated.span), (1, true.span))
            if agree(stated, true)
        }
        #: Words of change that are an error already: 0 or 1 (candidate, reference), and their span.
        self._charged: set[tuple[int, Span]] = set()

    def of(self, pair: StatementPair) -> Iterator[ErrorItem]:
        """Return the error about the change of a finding that both reports state."""
        stated = _stated(pair.candidate.change, self._candidate)
        true = _stated(pair.reference.change, self._reference)
        category = _error(stated, true)
        if category is None or self._may_be_said(pair, stated, true) or self._is_charged(pair):
            return
        wrong = stated if stated is not None and stated.is_real else true
        assert wrong is not None
        full, is_omitted = self._case.severity(pair.reference).level, stated is None
        severity = full if are_opposite(stated, true) else _severity(wrong, full, is_omitted)
        reason = _reason(stated, true)
        spans = [
            None if c is None else c.span for c in (pair.candidate.change, pair.reference.change)
        ]
        yield self._error_of(pair, category, severity, reason, *spans)

    def of_device(self, pair: StatementPair) -> Iterator[ErrorItem]:
        """Return the error of a device that one report alone says has been moved."""
        stated, true = pair.candidate.moved, pair.reference.moved
        if (stated is None) == (true is None):
            return
        category, says = (_OMITTED, "does not say") if stated is None else (_FALSE, "says")
        severity = min(_MOST[False], self._case.severity(pair.reference).level)
        yield self._error_of(pair, category, severity, f"{says} that it was moved", stated, true)

    def _error_of(
        self,
        pair: StatementPair,
        category: ErrorCategory,
        severity: int,
        reason: str,
        stated: Span | None,
        true: Span | None,
    ) -> ErrorItem:
        """Return an error that quotes of both reports the words that compare, too."""
        return replace(
            self._case.error_of(pair, category, severity, "change", reason),
            candidate=_quote_with(self._candidate, pair.candidate, stated),
            reference=_quote_with(self._reference, pair.reference, true),
        )

    def _may_be_said(
        self, pair: StatementPair, stated: FindingChange | None, true: FindingChange | None
    ) -> bool:
        """Return whether the report that states no change has words that may state that of a pair.

        A change of the part in which the finding is ("the left base is worse") is compared by
        itself.
        """
        if stated is not None:
            compares = any(c.is_real for c in self._reference.changes)
            return true is None and (
                (0, stated.span) in self._agreed
                or may_compare(self._reference, pair.reference.line, stated, self._tables, compares)
            )
        assert true is not None
        return (
            (1, true.span) in self._agreed
            or may_compare(self._candidate, pair.candidate.line, true, self._tables)
            or states_of_part(self._candidate, pair.reference.concept, self._tables)
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
        own = (s.change for s in kept if s.change is not None)
        for change in self._without_partner(own, self._candidate, self._reference):
            line = self._candidate.findings.sentences[change.sentence].span
            yield self._lone_error(_FALSE, change, line, self._case.lines.rewritten(line))

    def of_reference(self, alone: Iterable[Statement]) -> Iterator[ErrorItem]:
        """Return the errors of changes that the candidate leaves out.

        What the candidate contradicts is one error already.

        Args: alone: statements without a partner; the omission of a new finding is one error.
        """
        own = (
            s.change
            for s in alone
            if s.change is not None
            and s.change.change is not TemporalChange.NEW
            and not names_by_change(s.change)
        )
        for change in self._without_partner(own, self._reference, self._candidate):
            if not contradicts(self._candidate, change, self._reference, self._tables):
                line = self._reference.findings.sentences[change.sentence].span
                yield self._lone_error(_OMITTED, change, None, line.of(self._reference.text))

    def _without_partner(
        self, own: Iterable[FindingChange], report: ReportStatements, other: ReportStatements
    ) -> Iterable[FindingChange]:
        """Return the changes of one report that the other one does not state, of each finding one.

        Where the other one alone still states the finding that has resolved, that is the error.

        Args: own: changes of findings, besides those of parts and of what has resolved.
        """
        once: dict[tuple[str, bool], FindingChange] = {}
        for change in (*_without_statement(report), *own):
            concepts = concepts_of(change, report, self._tables)
            is_there = any(
                may_be_one(concepts, s.concepts, self._tables)
                and may_share(sides_of(change), s.place.sides)
                for s in other.statements
            )
            is_still_there = any(s.concept in concepts for s in report.statements)
            has_gone = change.change is TemporalChange.RESOLVED and not is_still_there
            if (
                change.is_real
                and not (has_gone and is_there)
                and not may_state(other, change, report, self._tables, report is self._candidate)
            ):
                concept = concept_of_change(change, report, self._tables)
                once.setdefault((concept or change.topic, change.change in GROWING), change)
        return once.values()

    def _lone_error(
        self, category: ErrorCategory, change: FindingChange, line: Span | None, correction: str
    ) -> ErrorItem:
        """Return an error about a change that one report states alone."""
        is_omitted = category is _OMITTED
        report = self._reference if is_omitted else self._candidate
        concept = concept_of_change(change, report, self._tables)
        quote = Quote(change.span.of(report.text), change.span)
        full = self._tables.concepts[concept].severity[1] if concept else SIGNIFICANT
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
        return None if same else _FALSE
    return _OMITTED if true is not None and true.is_real else None


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


def _reason(stated: FindingChange | None, true: FindingChange | None) -> str:
    """Return the reason of an error, a sentence."""
    if stated is None:
        return f"does not say: {true and true.change}"
    says = f"says: {true.change}" if true else "does not"
    return f"says: {stated.change}; the reference {says}"


def _quote_with(report: ReportStatements, statement: Statement, compared: Span | None) -> Quote:
    """Return the words of a finding with those that compare it, or these where they stand apart."""
    span = statement.quoted
    if compared is not None:
        span = around(span, compared) if statement.line.covers(compared) else compared
    return Quote(span.of(report.text), span)


def _without_statement(report: ReportStatements) -> list[FindingChange]:
    """Return the changes of what a report does not state as a finding: parts, what has resolved.

    "No residual effusion" denies it, and states no change.
    """
    return [
        c
        for c in report.changes
        if c.finding is None
        or (c.finding.polarity is Polarity.NEGATIVE and not is_of_presence(c, report))
    ]
