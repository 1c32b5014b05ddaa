"""Reports with one targeted change each: what a metric should notice, and what it should not.

    >>> from vlscore.perturb import perturb
    >>> report = "There is a mild right effusion. The heart is normal in size."
    >>> for p in perturb(report, ["change-severity", "change-location"], seed=1):
    ...     print(p.kind, "|", p.perturbed)
    change-location | There is a mild left effusion. The heart is normal in size.
    change-severity | There is a large right effusion. The heart is normal in size.

The words it works with are readable files under `perturbations/`.
"""

from vlscore.perturb.dataset import PerturbedTable, perturb_table, standard_normal_of
from vlscore.perturb.generate import perturb
from vlscore.perturb.kind import Kind
from vlscore.perturb.perturbation import (
    Change,
    Edit,
    ErrorCategory,
    Expected,
    Perturbation,
    apply_edits,
)
from vlscore.perturb.registry import KINDS, kinds_named
from vlscore.perturb.standard import default_standard_normal

__all__ = [
    "KINDS",
    "Change",
    "Edit",
    "ErrorCategory",
    "Expected",
    "Kind",
    "Perturbation",
    "PerturbedTable",
    "apply_edits",
    "default_standard_normal",
    "kinds_named",
    "perturb",
    "perturb_table",
    "standard_normal_of",
]
