"""Errors of a pair of statements about one finding: its name, place, position and extent.

Changes since an earlier examination are in `judged_changes`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from vlscore.findings import Axis
from vlscore.metrics.judge.compared_reports import ComparedReports
from vlscore.metrics.judge.judgement import ErrorItem
from vlscore.metrics.judge.places import PlaceConflict
from vlscore.metrics.judge.severities import (
    Severity,
    extent_severity,
    milder,
    place_severity,
)
from vlscore.metrics.judge.statement_pairs import (
    COVERS,
    STEPS,
    Naming,
    StatementPair,
    is_said_there,
)
from vlscore.metrics.judge.statements import DEGREE
from vlscore.perturb import ErrorCategory


class PairErrors:
    """Errors of the pairs of two reports."""

    def __init__(self, case: ComparedReports) -> None:
        self._case, self._tables = case, case.tables

    def of(self, pair: StatementPair) -> Iterator[ErrorItem]:
        """Return what is wrong of the candidate's statement: its name, place, position, extent."""
        candidate, reference = pair.candidate, pair.reference
        severity = self._case.severity(reference)
        yield from self._name(pair, severity)
        conflict = candidate.place.conflict(reference.place)
        if conflict is not None:
            yield self._place(pair, severity, conflict)
        else:
            yield from self._position(pair)
        worst = max(severity.level, self._case.severity(candidate).level)
        is_device = self._tables.concepts[reference.concept].device
        extent = extent_severity(candidate, reference, worst, is_device)
        if extent is not None and (
            pair.named.how is not Naming.COARSER or pair.named.means_the_same
        ):
            yield self._extent(pair, extent)

    def goes_beyond(self, pair: StatementPair) -> bool:
        """Return whether the candidate's name is of a finding that the reference does not state.

        "Opacity in the left base" may be a pneumonia there; edema is more than interstitial
        markings somewhere, and a mass more than a nodule.
        """
        if pair.named.how is not Naming.MORE_EXACT or pair.named.means_the_same:
            return False
        there = is_said_there(pair.candidate, pair.reference, self._tables)
        return not there or pair.named.credit < COVERS

    def _is_other_elsewhere(self, pair: StatementPair) -> bool:
        """Return whether the candidate has another name at another place: nearly another finding.

        "Consolidation" is no other word for an infiltrate on the other side.
        """
        conflict = pair.candidate.place.conflict(pair.reference.place)
        far = conflict in (PlaceConflict.SIDE, PlaceConflict.LEVEL)
        return far and self._case.title(pair.candidate) != self._case.title(pair.reference)

    def is_right(self, pair: StatementPair, lost: int) -> bool:
        """Return whether the finding of the reference counts as found.

        What is wrong by as much as it is worth is right only in that both reports name it.

        Args: lost: largest severity of the pair's errors.
        """
        full = self._case.severity(pair.reference).level
        return lost < full or (pair.named.means_the_same and not self._is_other_elsewhere(pair))

    def _name(self, pair: StatementPair, true: Severity) -> Iterable[ErrorItem]:
        """Find the error of another name; one that goes beyond is no milder than saying nothing."""
        of, own = self._tables.concepts, self._case.severity(pair.candidate)
        # Steps by which the candidate's name is graver.
        graver = of[pair.candidate.concept].severity[1] - of[pair.reference.concept].severity[1]
        category = ErrorCategory.FALSE_FINDING
        if (
            graver == 0
            and pair.candidate.size is not None
            and pair.candidate.size == pair.reference.size
        ):
            return  # A lesion of the same size is the same, whatever it is called.
        if beyond := self.goes_beyond(pair):
            severity = true if own.level <= true.level else own
        elif pair.named.means_the_same:
            return
        elif pair.named.how is Naming.MORE_EXACT:
            # The larger, the more the name changes what matters.
            named = milder(own, STEPS, "the reference names it less exactly")
            severity = Severity(max(named.level, -graver), named.reason)
            if severity.level <= 1:
                return
        else:
            category, less = ErrorCategory.OMITTED_FINDING, milder(true, 1, "named less exactly")
            severity = Severity(max(less.level, graver), less.reason)
        names = self._case.title(pair.reference), self._case.title(pair.candidate)
        reason = f"calls {names[0]} {names[1]} ({severity.reason})"
        yield replace(
            self._case.error_of(pair, category, severity.level, "name", reason),
            finding=names[beyond],
        )

    def _place(self, pair: StatementPair, severity: Severity, conflict: PlaceConflict) -> ErrorItem:
        level = place_severity(severity, conflict)
        reason = f"another {conflict} than in the reference ({severity.reason})"
        category = ErrorCategory.WRONG_LOCATION
        beyond = pair.candidate.place.sides - pair.reference.place.sides
        # A device is one thing: where its words name two sides, and not "both", it is elsewhere.
        sides = {a.value for s in (pair.candidate, pair.reference) for a in s.finding.on(Axis.SIDE)}
        is_one = self._tables.concepts[pair.reference.concept].device and "bilateral" not in sides
        if conflict is PlaceConflict.PART_OF_SIDES and not is_one:
            (side,) = beyond or pair.reference.place.sides - pair.candidate.place.sides
            category = ErrorCategory.FALSE_FINDING if beyond else ErrorCategory.OMITTED_FINDING
            of = "reference" if beyond else "candidate"
            reason = f"the {of} does not state it on the {side} ({severity.reason})"
        return self._case.error_of(pair, category, level, "place", reason)

    def _position(self, pair: StatementPair) -> Iterable[ErrorItem]:
        """Find the error of another position; a bad one is an error where one report has none."""
        stated, true = pair.candidate.position, pair.reference.position
        severity = self._tables.position_severity["bad", "good"]
        category, device = ErrorCategory.WRONG_LOCATION, self._case.title(pair.reference)
        if stated is not None and true is not None:
            # "In the azygos vein" and "withdraw" both call it wrong.
            tips, others = pair.candidate.tips, pair.reference.tips
            is_one = self._tables.misplaced.name in tips | others or any(
                self._tables.positions[name].level != "good" for name in tips & others
            )
            if stated.level == true.level or (is_one and "good" not in (stated.level, true.level)):
                return
            raised = self._tables.extra_severity_if_misplaced.get(pair.reference.concept, 0)
            severity = self._tables.position_severity[stated.level, true.level]
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
        yield self._case.error_of(pair, category, severity, "line", reason)

    def _extent(self, pair: StatementPair, severity: int) -> ErrorItem:
        candidate, reference = pair.candidate, pair.reference
        if candidate.size is not None and reference.size is not None:
            reason = f"{candidate.size:g} mm for {reference.size:g} mm"
        elif DEGREE in candidate.grades and DEGREE in reference.grades:
            reason = f"{candidate.grades[DEGREE].value} for {reference.grades[DEGREE].value}"
        else:
            reason = "another number or age than in the reference"
        category = ErrorCategory.WRONG_SEVERITY
        # What the reference only doubts, and the candidate states in another degree, is invented.
        if reference.doubtful and not candidate.doubtful:
            category = ErrorCategory.FALSE_FINDING
        return self._case.error_of(pair, category, severity, "severity", reason)
