"""The texts that a kind makes of a report."""

from tests.perturb.contract import check_report, read
from tests.perturb.kinds.laws import LAWS
from vlscore.perturb import KINDS, perturbations_of

_MANY = 20
_SEEDS = range(16)


def changed(name: str, report: str) -> set[str]:
    """All that the kind makes of the report with several seeds; each keeps contract and law."""
    kind = KINDS[name]
    check_report(kind, report)
    source = read(report)
    found = [p for seed in _SEEDS for p in perturbations_of(source, kind, seed, _MANY, "")]
    for perturbation in found:
        assert LAWS[name](perturbation), perturbation
    return {perturbation.perturbed for perturbation in found}
