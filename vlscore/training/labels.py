"""Finding labels of reports, for objectives that compare what two reports state."""

from collections.abc import Sequence

import torch
from torch import Tensor

from vlscore.findings import CHEXPERT_LABELS, chexpert_labels

LABELS = CHEXPERT_LABELS


def labels_of(reports: Sequence[str]) -> Tensor:
    """(n, 14) float32: 1 stated, -1 uncertain, 0 denied or not mentioned, in the order of LABELS.

    They are read by `vlscore.findings`, which needs no network; MedCLIP's authors take CheXpert's
    labels, in the same code.

    >>> labels_of(["Possible pneumonia. No effusion."])[0, LABELS.index("Pneumonia")]
    tensor(-1.)
    """
    rows = [[label or 0 for label in chexpert_labels(report).values()] for report in reports]
    return torch.tensor(rows, dtype=torch.float32).reshape(len(rows), len(LABELS))
