"""Exact errors between the findings of two reports, in ReXVal's six categories.

Source of the categories: Yu et al. 2023, "Evaluating progress in automatic chest X-ray radiology
report generation", the error scheme of the ReXVal study.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import numpy as np

from vlscore.data.phantom.scene import CHANGES, KINDS, PhantomFinding, compatible, sample_finding


@dataclass(frozen=True)
class ErrorCounts:
    """Number of a candidate's errors in each category, against a reference.

    Attributes:
        false_finding: a finding that the reference does not have.
        omitted_finding: a finding of the reference that the candidate leaves out.
        wrong_location: same finding on another side or in another zone.
        wrong_severity: same finding of another severity.
        false_comparison: a change that the reference does not have, or has otherwise.
        omitted_comparison: a change of the reference that the candidate leaves out.
    """

    false_finding: int = 0
    omitted_finding: int = 0
    wrong_location: int = 0
    wrong_severity: int = 0
    false_comparison: int = 0
    omitted_comparison: int = 0

    @property
    def total(self) -> int:
        return sum(asdict(self).values())

    def to_dict(self) -> dict[str, int]:
        return asdict(self)


def count_errors(
    candidate: Iterable[PhantomFinding], reference: Iterable[PhantomFinding]
) -> ErrorCounts:
    """Count the errors of a candidate's findings against those of the reference.

    A finding that only one of them has is one error, whatever its attributes.

    >>> left = PhantomFinding("effusion", "left", None, 1)
    >>> right = PhantomFinding("effusion", "right", None, 3)
    >>> count_errors([left], [right]).wrong_location, count_errors([left], [right]).total
    (1, 2)
    """
    stated = {finding.kind: finding for finding in candidate}
    true = {finding.kind: finding for finding in reference}
    pairs = [(stated[kind], true[kind]) for kind in stated.keys() & true.keys()]
    return ErrorCounts(
        false_finding=len(stated.keys() - true.keys()),
        omitted_finding=len(true.keys() - stated.keys()),
        wrong_location=sum((c.side, c.zone) != (r.side, r.zone) for c, r in pairs),
        wrong_severity=sum(c.severity != r.severity for c, r in pairs),
        false_comparison=sum(c.change not in (None, r.change) for c, r in pairs),
        omitted_comparison=sum(c.change is None and r.change is not None for c, r in pairs),
    )


def corrupt(
    rng: np.random.Generator, reference: Iterable[PhantomFinding], errors: int
) -> tuple[PhantomFinding, ...]:
    """Return findings that differ from the reference by exactly `errors` random errors.

    Raises: ValueError if the reference is too small for that many errors.
    """
    true = tuple(reference)
    for _ in range(1000):
        findings = true
        for _ in range(20 * errors + 1):
            count = count_errors(findings, true).total
            if count == errors:
                return findings
            if count > errors:
                break
            findings = _edit(rng, findings)
    raise ValueError(f"cannot make {errors} errors from {len(true)} findings")


def _edit(
    rng: np.random.Generator, findings: tuple[PhantomFinding, ...]
) -> tuple[PhantomFinding, ...]:
    """Make one random change to a set of findings: add, drop, or alter an attribute of one."""
    action = rng.choice(["add", "drop", "location", "severity", "change"])
    if action == "add" or not findings:
        return add_finding(rng, findings)
    position = int(rng.integers(len(findings)))
    rest = findings[:position] + findings[position + 1 :]
    if action == "drop":
        return rest
    return tuple(sorted((*rest, _alter(rng, findings[position], action)), key=lambda f: f.kind))


def add_finding(
    rng: np.random.Generator, findings: tuple[PhantomFinding, ...]
) -> tuple[PhantomFinding, ...]:
    """Add a finding of another kind; return the same findings if one image can show no more."""
    present = {finding.kind for finding in findings}
    absent = [kind for kind in KINDS if kind not in present and compatible(present | {kind})]
    if not absent:
        return findings
    added = sample_finding(rng, absent[int(rng.integers(len(absent)))])
    return tuple(sorted((*findings, added), key=lambda f: f.kind))


def _alter(rng: np.random.Generator, finding: PhantomFinding, attribute: str) -> PhantomFinding:
    other = sample_finding(rng, finding.kind)
    side, zone, severity, change = finding.side, finding.zone, finding.severity, finding.change
    if attribute == "location":
        side, zone = other.side, other.zone
    elif attribute == "severity":
        severity = other.severity
    elif not KINDS[finding.kind].device:
        changes = (None, *CHANGES)
        change = changes[int(rng.integers(len(changes)))]
    return PhantomFinding(finding.kind, side, zone, severity, change)
