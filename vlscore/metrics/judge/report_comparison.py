"""Comparison of a candidate report with its reference, statement by statement."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations

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
    may_state,
    stated_change,
)
from vlscore.metrics.judge.judgement import SIGNIFICANT, ErrorItem, Judgement, Patient, Quote
from vlscore.metrics.judge.lone_statements import (
    COVERS,
    MEANS_EXACTLY,
    MEANS_THE_SAME,
    STEPS,
    LoneStatements,
    quote_of,
)
from vlscore.metrics.judge.places import BOTH_SIDES, PlaceConflict
from vlscore.metrics.judge.severities import (
    Severity,
    count_conflict,
    extent_severity,
    is_severe_and_sure,
    measure_alike,
    milder,
    place_severity,
    severity_of,
)
from vlscore.metrics.judge.statement_pairs import (
    Naming,
    StatementPair,
    is_said_there,
    match,
)
from vlscore.metrics.judge.statements import (
    DEGREE,
    ReportStatements,
    Statement,
    split_like,
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
        candidate = split_like(candidate, reference)
        reference = split_like(reference, candidate)
        self._candidate, self._reference = candidate, reference
        self._patient, self._tables = patient, tables
        self._lines = LineCorrector(candidate, reference, tables)
        self._lone = LoneStatements(candidate, reference, patient, tables, self._lines)
        #: Words of change that are an error already: 0 or 1 (candidate, reference), and their span.
        self._compared: set[tuple[int, Span]] = set()
        #: Words of change on which both reports agree for one of the findings that share them.
        self._agreed: set[tuple[int, Span]] = set()
        #: Statements of the candidate of one side, with the degree that the other side has.
        self._swapped: list[Statement] = []

    def judgement(self) -> Judgement:
        """Return errors in the order of the candidate, then omissions, and correct findings."""
        tables = self._tables
        matching = match(self._candidate, self._reference, tables)
        errors: list[ErrorItem] = []
        found: list[int] = []
        self._swapped = _swapped(matching.pairs)
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
        errors = _each_once(errors)
        false, kept = self._lone.false(matching)
        errors += false
        right = [*(p.candidate for p in matching.pairs if not self._goes_beyond(p)), *kept]
        errors += lone_change_errors(self._candidate, self._reference, kept, tables, self._lines)
        errors.sort(key=lambda e: e.candidate.span if e.candidate else Span(0, 0))
        omitted, covered = self._lone.omitted(matching, right)
        # What is wrong of a finding counts once, also where the reference says it twice.
        wrong = {e.finding for e in errors if e.category is ErrorCategory.FALSE_COMPARISON}
        alone = (s for s in matching.omitted if self._title(s) not in wrong)
        omitted += lone_change_errors(self._reference, self._candidate, alone, tables)
        omitted += self._silence()
        return Judgement((*errors, *omitted), (*found, *covered))

    def _severity(self, statement: Statement) -> Severity:
        return severity_of(statement, self._patient, self._tables)

    def _title(self, statement: Statement) -> str:
        return self._tables.title_of(statement.concept, statement.observations)

    # -- pairs ----------------------------------------------------------------------------------

    def _of_pair(self, pair: StatementPair) -> Iterable[ErrorItem]:
        candidate, reference = pair.candidate, pair.reference
        severity = self._severity(reference)
        yield from self._name(pair, severity)
        conflict = candidate.place.conflict(reference.place)
        is_on_both = conflict is not PlaceConflict.GREATER and self._is_on_both(pair)
        if conflict is not None and not is_on_both:
            yield self._place(pair, severity, conflict)
        else:
            yield from self._position(pair)
        worst = max(severity.level, self._severity(candidate).level)
        if self._tables.concepts[reference.concept].device:
            extent = 1 if count_conflict(candidate, reference) else None
        else:
            extent = extent_severity(candidate, reference, worst)
            # A doubt without a degree ("cannot be excluded") is no large finding.
            is_overstated = reference.doubtful and reference.rank() is None
            if extent is None and is_overstated and is_severe_and_sure(candidate):
                extent = worst
        if candidate in self._swapped:
            if candidate == self._swapped[0]:  # Both sides are one error.
                yield self._place(pair, severity, PlaceConflict.GREATER)
        elif extent is not None and pair.naming is not Naming.COARSER:
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
        of = self._tables.concepts
        return of[pair.candidate.concept].severity[1] - of[pair.reference.concept].severity[1]

    def _is_other_elsewhere(self, pair: StatementPair) -> bool:
        """Return whether the candidate has another name at another place: nearly another finding.

        "Consolidation" is no other word for an infiltrate on the other side.
        """
        conflict = pair.candidate.place.conflict(pair.reference.place)
        far = conflict in (PlaceConflict.SIDE, PlaceConflict.LEVEL)
        return far and self._title(pair.candidate) != self._title(pair.reference)

    def _is_on_both(self, pair: StatementPair) -> bool:
        """Return whether both reports state the finding on both sides, at once or side by side."""
        stated = (self._candidate, pair.candidate), (self._reference, pair.reference)
        return not pair.candidate.place.differs_in_levels(pair.reference.place) and all(
            {side for s in report.statements if s.concept == of.concept for side in s.place.sides}
            == BOTH_SIDES
            for report, of in stated
        )

    def _paired(
        self, category: ErrorCategory, severity: int, pair: StatementPair, part: Part, reason: str
    ) -> ErrorItem:
        return ErrorItem(
            category,
            severity,
            self._title(pair.reference),
            quote_of(self._candidate, pair.candidate),
            quote_of(self._reference, pair.reference),
            pair.candidate.line,
            self._lines.corrected(pair, part),
            reason,
        )

    def _name(self, pair: StatementPair, true: Severity) -> Iterable[ErrorItem]:
        """Find the error of another name; one that goes beyond is no milder than saying nothing."""
        graver, own = self._graver_by(pair), self._severity(pair.candidate)
        category = ErrorCategory.FALSE_FINDING
        doubted = pair.candidate.doubtful or not pair.candidate.finding.is_likely
        if graver == 0 and measure_alike(pair.candidate, pair.reference):
            return  # A lesion of the same size is the same, whatever it is called.
        if beyond := self._goes_beyond(pair):
            severity = true if doubted or own.level <= true.level else own
        elif self._means_the_same(pair):
            return
        elif pair.naming is Naming.MORE_EXACT:
            # The larger, the more the name changes what matters.
            named = milder(own, STEPS, "the reference names it less exactly")
            severity = Severity(max(named.level, -graver), named.reason)
            if doubted or severity.level <= 1:
                return
        else:
            category, less = ErrorCategory.OMITTED_FINDING, milder(true, 1, "named less exactly")
            severity = Severity(max(less.level, graver), less.reason)
        names = self._title(pair.reference), self._title(pair.candidate)
        reason = f"calls {names[0]} {names[1]} ({severity.reason})"
        yield replace(
            self._paired(category, severity.level, pair, "name", reason), finding=names[beyond]
        )

    def _place(self, pair: StatementPair, severity: Severity, conflict: PlaceConflict) -> ErrorItem:
        level = place_severity(severity, conflict)
        if self._is_other_elsewhere(pair):
            level = severity.level
        reason = f"another {conflict} than in the reference ({severity.reason})"
        category = ErrorCategory.WRONG_LOCATION
        beyond = pair.candidate.place.sides - pair.reference.place.sides
        if conflict is PlaceConflict.PART_OF_SIDES and beyond:
            (side,) = beyond
            reason = f"the reference does not state it on the {side} ({severity.reason})"
            category = ErrorCategory.FALSE_FINDING
        return self._paired(category, level, pair, "place", reason)

    def _position(self, pair: StatementPair) -> Iterable[ErrorItem]:
        """Find the error of another position; a bad one is an error where one report has none."""
        stated, true = pair.candidate.position, pair.reference.position
        severity = self._tables.position_severity["bad", "good"]
        category, device = ErrorCategory.WRONG_LOCATION, self._title(pair.reference)
        if stated is not None and true is not None:
            if stated.level == true.level or self._is_one_place(pair):
                return
            severity = self._tables.position_severity[stated.level, true.level]
            if "bad" in (stated.level, true.level):
                raised = self._tables.extra_severity_if_misplaced.get(pair.reference.concept, 0)
                severity = min(5, severity + raised)
            reason = f"the {device} is {true.name}, not {stated.name}"
        elif stated is not None and stated.level == "bad":
            category = ErrorCategory.FALSE_FINDING
            reason = f"the reference does not say that it is {stated.name}"
        elif true is not None and true.level == "bad":
            category = ErrorCategory.OMITTED_FINDING
            reason = f"does not say that the {device} is {true.name}"
        else:
            return
        yield self._paired(category, severity, pair, "line", reason)

    def _is_one_place(self, pair: StatementPair) -> bool:
        """Return whether both reports call one position wrong: "in the azygos vein, withdraw"."""
        positions = pair.candidate.position, pair.reference.position
        if any(p is None or p.level == "good" for p in positions):
            return False
        wrong = {name for name, p in self._tables.positions.items() if p.level != "good"}
        both = pair.candidate.tips & pair.reference.tips & wrong
        moved = self._tables.misplaced.name
        return bool(both) or moved in pair.candidate.tips | pair.reference.tips

    def _extent(self, pair: StatementPair, severity: int) -> ErrorItem:
        candidate, reference = pair.candidate, pair.reference
        if candidate.size is not None and reference.size is not None:
            reason = f"{candidate.size:g} mm for {reference.size:g} mm"
        elif DEGREE in candidate.grades and DEGREE in reference.grades:
            reason = f"{candidate.grades[DEGREE].value} for {reference.grades[DEGREE].value}"
        else:
            reason = "another number or age than in the reference"
        category = ErrorCategory.WRONG_SEVERITY
        # What the reference only doubts, and the candidate states in a graver degree, is invented.
        doubted = reference.doubtful and not candidate.doubtful
        if doubted and (candidate.rank() or 0) > (reference.rank() or 0):
            category = ErrorCategory.FALSE_FINDING
        return self._paired(category, severity, pair, "severity", reason)

    def _comparison(self, pair: StatementPair) -> Iterable[ErrorItem]:
        stated = stated_change(pair.candidate.change, self._candidate)
        true = stated_change(pair.reference.change, self._reference)
        category = change_error(stated, true)
        if category is None:
            return
        if stated is not None and true is None and (0, stated.span) in self._agreed:
            return
        if stated is None and true is not None and (1, true.span) in self._agreed:
            return
        if stated is None and may_state(self._candidate, pair.candidate.line, true, self._tables):
            return
        compares = any(c.is_real for c in self._reference.changes)
        line, named = pair.reference.line, 0 if compares else pair.reference.finding.span.start
        if true is None and may_state(self._reference, line, stated, self._tables, named):
            return
        if self._is_counted(pair):
            return
        wrong = stated if stated is not None and stated.is_real else true
        assert wrong is not None
        full, is_omitted = self._severity(pair.reference).level, stated is None
        opposite = contradict(stated, true)
        severity = full if opposite else change_severity(wrong, full, is_omitted)
        yield replace(
            self._paired(category, severity, pair, "change", change_reason(stated, true)),
            candidate=compared_quote(self._candidate, pair.candidate),
            reference=compared_quote(self._reference, pair.reference),
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
        whole = Quote(self._reference.text, Span(0, len(self._reference.text)))
        reason = "the candidate says nothing of the chest"
        omitted = ErrorCategory.OMITTED_FINDING
        return [ErrorItem(omitted, _SILENCE, "the whole report", None, whole, None, "", reason)]


def _swapped(pairs: Iterable[StatementPair]) -> list[Statement]:
    """Return the candidate's statements of two sides whose degrees it has exchanged.

    "Moderate left, small right" for "moderate right, small left".
    """

    def degrees(pair: StatementPair) -> tuple[int | None, int | None]:
        return pair.candidate.rank(), pair.reference.rank()

    return [
        each.candidate
        for one, other in combinations(pairs, 2)
        if one.candidate.concept == other.candidate.concept
        and one.candidate.place.sides | other.candidate.place.sides == BOTH_SIDES
        and one.candidate.place.sides.isdisjoint(other.candidate.place.sides)
        and degrees(one) == degrees(other)[::-1]
        and extent_severity(one.candidate, one.reference, SIGNIFICANT) is not None
        for each in (one, other)
    ]


def _each_once(errors: Iterable[ErrorItem]) -> list[ErrorItem]:
    """Return the errors, of several of one kind in the same words the gravest."""
    once: dict[tuple[ErrorCategory, str, Quote | None], ErrorItem] = {}
    for error in errors:
        key = error.category, error.finding, error.candidate
        if key not in once or once[key].severity < error.severity:
            once[key] = error
    return list(once.values())


def _speaks(report: ReportStatements) -> bool:
    """Return whether the report states anything about the chest."""
    return bool(report.changes) or report.findings.states_anything
