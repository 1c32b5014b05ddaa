"""Reports with one targeted change each: what a metric should notice, and what it should not.

    >>> from vlscore.perturb import perturb
    >>> report = "There is a mild right effusion. The heart is normal in size."
    >>> for p in perturb(report, ["change-severity", "change-location"], seed=1):
    ...     print(p.kind, "|", p.perturbed)
    change-location | There is a mild left effusion. The heart is normal in size.
    change-severity | There is a large right effusion. The heart is normal in size.

The words it works with are readable files under `perturbations/`.
"""

from vlscore.perturb.chance import Chance
from vlscore.perturb.contract import check_kind
from vlscore.perturb.dataset import PerturbedTable, perturb_table, standard_normal_of
from vlscore.perturb.generate import perturb
from vlscore.perturb.kind import Kind
from vlscore.perturb.perturbation import (
    Change,
    Edit,
    Effect,
    ErrorCategory,
    Expected,
    Meaning,
    Perturbation,
    apply_edits,
)
from vlscore.perturb.reading import ReadReport
from vlscore.perturb.registry import KINDS, kinds_named
from vlscore.perturb.standard import default_standard_normal

__all__ = [
    "KINDS",
    "Chance",
    "Change",
    "Edit",
    "Effect",
    "ErrorCategory",
    "Expected",
    "Kind",
    "Meaning",
    "Perturbation",
    "PerturbedTable",
    "ReadReport",
    "apply_edits",
    "check_kind",
    "default_standard_normal",
    "kinds_named",
    "perturb",
    "perturb_table",
    "standard_normal_of",
]
