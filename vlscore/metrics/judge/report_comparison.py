"""Comparison of a candidate report with its reference, statement by statement."""

from collections.abc import Iterable
from dataclasses import replace

from vlscore.findings import Span
from vlscore.metrics.judge.corrected_lines import LineCorrector, Part
from vlscore.metrics.judge.judge_tables import JudgeTables
from vlscore.metrics.judge.judged_changes import (
    change_error,
    change_reason,
    change_severity,
    compared_quote,
    contradict,
    lone_change_errors,
    stated_change,
    states_beside,
)
from vlscore.metrics.judge.judgement import (
    ErrorItem,
    Judgement,
    Patient,
    Quote,
)
from vlscore.metrics.judge.lone_statements import (
    COVERS,
    MEANS_EXACTLY,
    MEANS_THE_SAME,
    STEPS,
    LoneStatements,
    quote_of,
)
from vlscore.metrics.judge.severities import (
    Severity,
    extent_severity,
    measure_alike,
    milder,
    number_conflict,
    place_severity,
    severity_of,
)
from vlscore.metrics.judge.statement_pairs import (
    Naming,
    PlaceConflict,
    StatementPair,
    is_said_there,
    match,
    place_conflict,
)
from vlscore.metrics.judge.statements import (
    BOTH_SIDES,
    DEGREE,
    ReportStatements,
    Statement,
    levels_conflict,
)
from vlscore.perturb import ErrorCategory

#: Severity of an answer without any content: it would have to be written anew.
_SILENCE = 3


class ReportComparison:
    """Comparison of one candidate with one reference."""

    def __init__(
        self,
        candidate: ReportStatements,
        reference: ReportStatements,
        patient: Patient,
        tables: JudgeTables,
    ) -> None:
        self._candidate, self._reference = candidate, reference
        self._patient, self._tables = patient, tables
        self._lines = LineCorrector(candidate, reference, tables)
        self._lone = LoneStatements(candidate, reference, patient, tables, self._lines)
        #: Words of change that are an error already: 0 or 1 (candidate, reference), and their span.
        self._compared: set[tuple[int, Span]] = set()
        #: Words of change on which both reports agree for one of the findings that share them.
        self._agreed: set[tuple[int, Span]] = set()

    def judgement(self) -> Judgement:
        """Return errors in the order of the candidate, then omissions, and correct findings."""
        tables = self._tables
        matching = match(self._candidate, self._reference, tables)
        errors: list[ErrorItem] = []
        found: list[int] = []
        for pair in matching.pairs:
            stated, true = pair.candidate.change, pair.reference.change
            if stated is not None and true is not None and change_error(stated, true) is None:
                self._agreed |= {(0, stated.span), (1, true.span)}
        for pair in matching.pairs:
            own = list(self._of_pair(pair))
            errors += own
            full = self._severity(pair.reference).level
            lost = max((e.severity for e in own), default=0)
            # What is wrong by as much as it is worth is right only in that both reports name it.
            if lost < full or (self._means_the_same(pair) and not self._is_other_elsewhere(pair)):
                found.append(max(full - lost, 1))
        false, kept = self._lone.false(matching)
        errors += false
        right = [*(p.candidate for p in matching.pairs if not self._goes_beyond(p)), *kept]
        errors += lone_change_errors(
            self._candidate, self._reference, kept, tables, self._lines.restated
        )
        errors.sort(key=lambda e: e.candidate.span if e.candidate else Span(0, 0))
        omitted, covered = self._lone.omitted(matching, right)
        omitted += lone_change_errors(self._reference, self._candidate, matching.omitted, tables)
        omitted += self._silence()
        return Judgement((*errors, *omitted), (*found, *covered))

    def _severity(self, statement: Statement) -> Severity:
        return severity_of(statement, self._patient, self._tables)

    # -- pairs ----------------------------------------------------------------------------------

    def _of_pair(self, pair: StatementPair) -> Iterable[ErrorItem]:
        candidate, reference = pair.candidate, pair.reference
        severity = self._severity(reference)
        exact = pair.naming is Naming.MORE_EXACT
        doubted = candidate.doubtful or not candidate.finding.is_likely
        if measure_alike(candidate, reference) and self._graver_by(pair) == 0:
            pass  # A lesion of the same size is the same, whatever it is called.
        elif self._goes_beyond(pair):
            yield self._beyond(pair, severity, doubted)
        elif not self._means_the_same(pair) and not (exact and doubted):
            named = self._named(pair, severity)
            # What is more exact than the reference is an error only where it would matter.
            if not exact or named.severity > 1:
                yield named
        conflict = place_conflict(candidate, reference)
        if conflict is not None and not self._is_on_both(pair):
            yield self._place(pair, severity, conflict)
        else:
            yield from self._position(pair)
        worst = max(severity.level, self._severity(candidate).level)
        if self._tables.concepts[reference.concept].device:
            extent = 1 if number_conflict(candidate, reference) else None
        else:
            extent = extent_severity(candidate, reference, worst)
        if extent is not None and pair.naming is not Naming.COARSER:
            yield self._extent(pair, extent)
        yield from self._comparison(pair)

    def _means_the_same(self, pair: StatementPair) -> bool:
        """Return whether the candidate's name means the reference's for the patient."""
        exact = pair.naming is Naming.MORE_EXACT
        return pair.credit >= (MEANS_EXACTLY if exact else MEANS_THE_SAME)

    def _goes_beyond(self, pair: StatementPair) -> bool:
        """Return whether the candidate's name is of a finding that the reference does not state.

        "Opacity in the left base" may be a pneumonia there; edema is more than interstitial
        markings somewhere, and a mass more than a nodule.
        """
        if pair.naming is not Naming.MORE_EXACT or self._means_the_same(pair):
            return False
        there = is_said_there(pair.candidate, pair.reference, self._tables)
        return not there or pair.credit < COVERS

    def _graver_by(self, pair: StatementPair) -> int:
        """Return the steps by which the candidate's name is graver than the reference's."""
        stated, true = (
            self._tables.concepts[s.concept].severity[1] for s in (pair.candidate, pair.reference)
        )
        return stated - true

    def _is_other_elsewhere(self, pair: StatementPair) -> bool:
        """Return whether the candidate has another name at another place: nearly another finding.

        "Consolidation" is no other word for an infiltrate on the other side.
        """
        conflict = place_conflict(pair.candidate, pair.reference)
        far = conflict in (PlaceConflict.SIDE, PlaceConflict.LEVEL)
        return far and self._title(pair.candidate) != self._title(pair.reference)

    def _beyond(self, pair: StatementPair, severity: Severity, doubted: bool) -> ErrorItem:
        """Return the error of a name that goes beyond: no milder than saying nothing."""
        own = self._severity(pair.candidate)
        graver = severity if doubted or own.level <= severity.level else own
        true, stated = self._title(pair.reference), self._title(pair.candidate)
        reason = f"calls {true} {stated} ({graver.reason})"
        error = self._paired(ErrorCategory.FALSE_FINDING, graver.level, pair, "name", reason)
        return replace(error, finding=stated)

    def _is_on_both(self, pair: StatementPair) -> bool:
        """Return whether both reports state the finding on both sides, at once or side by side."""
        sides = [
            frozenset(
                side for s in report.statements if s.concept == of.concept for side in s.sides
            )
            for report, of in (
                (self._candidate, pair.candidate),
                (self._reference, pair.reference),
            )
        ]
        return sides[0] == sides[1] == BOTH_SIDES and not levels_conflict(
            pair.candidate, pair.reference
        )

    def _title(self, statement: Statement) -> str:
        return self._tables.title_of(statement.concept, statement.observations)

    def _paired(
        self, category: ErrorCategory, severity: int, pair: StatementPair, part: Part, reason: str
    ) -> ErrorItem:
        line, correction = self._lines.corrected(pair, part)
        return ErrorItem(
            category,
            severity,
            self._title(pair.reference),
            quote_of(self._candidate.text, pair.candidate),
            quote_of(self._reference.text, pair.reference),
            line,
            correction,
            reason,
        )

    def _named(self, pair: StatementPair, severity: Severity) -> ErrorItem:
        true, stated = self._title(pair.reference), self._title(pair.candidate)
        category = ErrorCategory.OMITTED_FINDING
        less = milder(severity, 1, "named less exactly")
        severity = Severity(max(less.level, self._graver_by(pair)), less.reason)
        if pair.naming is Naming.MORE_EXACT:
            category = ErrorCategory.FALSE_FINDING
            severity = self._named_exactly(pair)
        reason = f"calls {true} {stated} ({severity.reason})"
        return self._paired(category, severity.level, pair, "name", reason)

    def _named_exactly(self, pair: StatementPair) -> Severity:
        """Return the severity of a more exact name: larger the more it changes what matters."""
        own = self._severity(pair.candidate)
        named = milder(own, STEPS, "the reference names it less exactly")
        return Severity(max(named.level, -self._graver_by(pair)), named.reason)

    def _place(self, pair: StatementPair, severity: Severity, conflict: PlaceConflict) -> ErrorItem:
        level = place_severity(severity, conflict)
        if self._is_other_elsewhere(pair):
            level = severity.level
        reason = f"another {conflict} than in the reference ({severity.reason})"
        category = ErrorCategory.WRONG_LOCATION
        beyond = pair.candidate.sides - pair.reference.sides
        if conflict is PlaceConflict.PART_OF_SIDES and beyond:
            (side,) = beyond
            reason = f"the reference does not state it on the {side} ({severity.reason})"
            category = ErrorCategory.FALSE_FINDING
        return self._paired(category, level, pair, "place", reason)

    def _position(self, pair: StatementPair) -> Iterable[ErrorItem]:
        stated, true = pair.candidate.position, pair.reference.position
        if true is None:
            if stated is not None and stated.level == "bad":
                severity = self._tables.position_severity["bad", "good"]
                reason = f"the reference does not say that it is {stated.name}"
                yield self._paired(ErrorCategory.FALSE_FINDING, severity, pair, "line", reason)
            return
        if stated is not None and stated.level == true.level:
            return
        if stated is None:
            if true.level == "bad":
                severity = self._tables.position_severity["bad", "good"]
                reason = f"does not say that the {self._title(pair.reference)} is {true.name}"
                category = ErrorCategory.OMITTED_FINDING
                yield self._paired(category, severity, pair, "line", reason)
            return
        severity = self._tables.position_severity[stated.level, true.level]
        if "bad" in (stated.level, true.level):
            severity = min(
                5,
                severity + self._tables.extra_severity_if_misplaced.get(pair.reference.concept, 0),
            )
        reason = f"the {self._title(pair.reference)} is {true.name}, not {stated.name}"
        yield self._paired(ErrorCategory.WRONG_LOCATION, severity, pair, "line", reason)

    def _extent(self, pair: StatementPair, severity: int) -> ErrorItem:
        candidate, reference = pair.candidate, pair.reference
        if candidate.size is not None and reference.size is not None:
            reason = f"{candidate.size:g} mm for {reference.size:g} mm"
        elif DEGREE in candidate.grades and DEGREE in reference.grades:
            reason = f"{candidate.grades[DEGREE].value} for {reference.grades[DEGREE].value}"
        else:
            reason = "another number or age than in the reference"
        return self._paired(ErrorCategory.WRONG_SEVERITY, severity, pair, "severity", reason)

    def _comparison(self, pair: StatementPair) -> Iterable[ErrorItem]:
        stated = stated_change(pair.candidate.change, self._candidate)
        true = stated_change(pair.reference.change, self._reference)
        category = change_error(stated, true)
        if category is None or self._is_counted(pair):
            return
        if stated is not None and (0, stated.span) in self._agreed:
            return
        if stated is None and true is not None and (1, true.span) in self._agreed:
            return
        if stated is None and states_beside(self._candidate, pair.candidate, true):
            return
        if true is None and states_beside(self._reference, pair.reference, stated):
            return
        wrong = stated if stated is not None and stated.is_real else true
        assert wrong is not None
        full, is_omitted = self._severity(pair.reference).level, stated is None
        opposite = contradict(stated, true)
        severity = full if opposite else change_severity(wrong, full, is_omitted)
        item = self._paired(category, severity, pair, "change", change_reason(stated, true))
        yield replace(
            item,
            candidate=compared_quote(self._candidate.text, pair.candidate),
            reference=compared_quote(self._reference.text, pair.reference),
        )

    def _is_counted(self, pair: StatementPair) -> bool:
        """Return whether the same words are an error already: "A and B have increased"."""
        changes = {
            (k, c.span)
            for k, c in enumerate((pair.candidate.change, pair.reference.change))
            if c is not None and c.is_real
        }
        known = bool(changes & self._compared)
        self._compared |= changes
        return known

    def _silence(self) -> list[ErrorItem]:
        """Return the error of a candidate that states nothing, if the reference does."""
        if _speaks(self._candidate) or not _speaks(self._reference):
            return []
        return [
            ErrorItem(
                ErrorCategory.OMITTED_FINDING,
                _SILENCE,
                "the whole report",
                None,
                Quote(self._reference.text, Span(0, len(self._reference.text))),
                None,
                "",
                "the candidate says nothing of the chest",
            )
        ]


def _speaks(report: ReportStatements) -> bool:
    """Return whether the report states anything about the chest."""
    return bool(report.changes) or report.findings.states_anything
