"""Contract and laws on real reports."""

import hashlib
from collections import defaultdict
from pathlib import Path

import pytest

from tests.perturb.contract import BUILT_KINDS, check_perturbation, check_slips, made, read
from tests.perturb.kinds.laws import broken
from vlscore.data import Report, open_reports
from vlscore.perturb import KINDS, Perturbation

# Another reading of the changed reports errs as well.
_MOST_BROKEN = 0.05


@pytest.fixture(scope="module")
def reports(shared: Path) -> list[Report]:
    """Every 14th report, 192 in all."""
    rows = open_reports(shared / "data" / "iu_reports.jsonl")
    return [row for row in rows if isinstance(row, Report)][::14]


@pytest.fixture(scope="module")
def perturbations(reports: list[Report]) -> dict[str, list[Perturbation]]:
    """At most two changes of each kind of each report, all sound."""
    found = defaultdict(list)
    for report in reports:
        source = read(report.text)
        for name, kind in KINDS.items():
            for perturbation in made(kind, source, per_report=2, study_id=report.id):
                check_perturbation(perturbation, kind, report.text)
                found[name].append(perturbation)
    return found


def test_the_changes_are_those_that_were_read(perturbations):
    """Another rule needs another reading: benchmarks/perturbation_reading.py."""
    digest = hashlib.sha256()
    for name in sorted(BUILT_KINDS):
        for each in perturbations[name]:
            digest.update(f"{each.study_id} {each.kind} {each.rule} {each.perturbed}\n".encode())
    assert digest.hexdigest()[:16] == "6f9219c165344ad6"


def test_every_kind_finds_something_to_change(reports, perturbations):
    assert len(reports) == 192
    assert {name for name, made in perturbations.items() if len(made) >= 9} >= set(BUILT_KINDS)


@pytest.mark.parametrize("name", KINDS)
def test_no_change_brings_a_slip(name, perturbations):
    for perturbation in perturbations[name]:
        check_slips(perturbation)


@pytest.mark.parametrize("name", KINDS)
def test_laws(name, perturbations):
    found = broken(perturbations[name])
    assert len(found) <= _MOST_BROKEN * len(perturbations[name]), found
