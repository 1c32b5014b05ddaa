"""The public contract of kinds, with the names that the tests of this room use."""

import json

from tests.conftest import REPOSITORY
from vlscore.perturb import (
    Kind,
    Perturbation,
    ReadReport,
    default_standard_normal,
    perturbations_of,
)
from vlscore.testing import check_description as assert_describes_itself
from vlscore.testing import check_perturbation as assert_is_sound
from vlscore.testing import check_report
from vlscore.testing import check_slips as assert_reads_well
from vlscore.testing import squeezed as squeezed

__all__ = [
    "BUILT_KINDS",
    "assert_describes_itself",
    "assert_is_sound",
    "assert_keeps_contract",
    "assert_reads_well",
    "made",
    "read",
    "squeezed",
]

_BUILT = REPOSITORY / "perturbations" / "phantom" / "run.json"
# Kinds of the bundled data set. A kind that is registered and not yet there passes the contract
# alone; once `make perturbations` has added it, it needs a law (`kinds/laws.py`), enough changes of
# phantoms and of real reports, and readers who checked a sample.
BUILT_KINDS: list[str] = json.loads(_BUILT.read_text(encoding="utf-8"))["key"]["kinds"]


def read(report: str) -> ReadReport:
    return ReadReport.read(report, default_standard_normal())


def made(
    kind: Kind, report: str | ReadReport, seed: int = 0, per_report: int = 5, study_id: str = "s"
) -> list[Perturbation]:
    """What a kind, registered or not, makes of a report."""
    source = read(report) if isinstance(report, str) else report
    return list(perturbations_of(source, kind, seed, per_report, study_id))


def assert_keeps_contract(kind: Kind, report: str, seed: int = 0) -> list[Perturbation]:
    """Raises BrokenContract where one of the kind's changes of a report breaks a promise."""
    return check_report(kind, report, seed)
