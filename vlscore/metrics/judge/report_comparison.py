"""Comparison of a candidate report with its reference: the steps, in their order."""

from collections.abc import Iterable

from vlscore.findings import Span
from vlscore.metrics.judge.compared_reports import ComparedReports
from vlscore.metrics.judge.corrected_lines import LineCorrector
from vlscore.metrics.judge.judge_tables import JudgeTables
from vlscore.metrics.judge.judged_changes import ChangeErrors
from vlscore.metrics.judge.judgement import ErrorItem, Judgement, Patient, Quote
from vlscore.metrics.judge.lone_statements import LoneStatements
from vlscore.metrics.judge.merged_statements import split_like
from vlscore.metrics.judge.pair_errors import PairErrors
from vlscore.metrics.judge.statement_pairs import match
from vlscore.metrics.judge.statements import ReportStatements
from vlscore.perturb import ErrorCategory

#: Severity of an answer without any content: it would have to be written anew.
_SILENCE = 3


def compare_reports(
    candidate: ReportStatements, reference: ReportStatements, patient: Patient, tables: JudgeTables
) -> Judgement:
    """Return errors in the order of the candidate, then omissions, and correct findings."""
    candidate = split_like(candidate, reference)
    reference = split_like(reference, candidate)
    lines = LineCorrector(candidate, reference, tables)
    case = ComparedReports(candidate, reference, patient, tables, lines)
    # 1. Statements of both reports about one finding are pairs; each differs, or is right.
    matching = match(candidate, reference, tables)
    paired, changes = PairErrors(case), ChangeErrors(case, matching.pairs)
    errors: list[ErrorItem] = []
    found: list[int] = []
    for pair in matching.pairs:
        own = [*paired.of(pair), *changes.of(pair)]
        # Where a device lies says whether it was moved.
        own = own or list(changes.of_device(pair))
        errors += own
        lost = max((e.severity for e in own), default=0)
        if paired.is_right(pair, lost):
            found.append(max(case.severity(pair.reference).level - lost, 1))
    errors = _each_once(errors)
    # 2. What is left of the candidate is invented, unless the reference says it in other words.
    lone = LoneStatements(case)
    false, kept = lone.false(matching)
    errors += [*false, *changes.of_candidate(kept)]
    errors.sort(key=lambda e: e.candidate.span if e.candidate else Span(0, 0))
    # 3. What is left of the reference is omitted, unless something right in the candidate says it.
    right = [*(p.candidate for p in matching.pairs), *kept]
    omitted, covered = lone.omitted(matching, right)
    omitted += [*changes.of_reference(matching.omitted), *_silence(candidate, reference)]
    return Judgement((*errors, *omitted), (*found, *covered))


def _each_once(errors: Iterable[ErrorItem]) -> list[ErrorItem]:
    """Return the errors, of several of one kind in the same words the gravest."""
    once: dict[tuple[ErrorCategory, str, Quote | None], ErrorItem] = {}
    for error in errors:
        key = error.category, error.finding, error.candidate
        if key not in once or once[key].severity < error.severity:
            once[key] = error
    return list(once.values())


def _silence(candidate: ReportStatements, reference: ReportStatements) -> list[ErrorItem]:
    """Return the error of a candidate that states nothing of the chest, if the reference does."""

    def speaks(report: ReportStatements) -> bool:
        return bool(report.changes) or report.findings.states_anything

    if speaks(candidate) or not speaks(reference):
        return []
    whole = Quote(reference.text, Span(0, len(reference.text)))
    reason = "the candidate says nothing of the chest"
    omitted = ErrorCategory.OMITTED_FINDING
    return [ErrorItem(omitted, _SILENCE, "the whole report", None, whole, None, "", reason)]
