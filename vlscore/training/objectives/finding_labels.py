"""Findings of the reports as a second aim of training, in addition to any objective.

A few thousand pairs are too few to learn from reports alone which parts of an image matter. The
findings that `vlscore.findings` extracts from the training reports name them directly, and need no
further data.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from vlscore.errors import InvalidSetting
from vlscore.findings import CHEXPERT_LABELS, Finding, Polarity, Status, chexpert_labels, extract
from vlscore.training.objective import Objective, PairFeatures

# An observation that fewer training reports state is not learned.
_LEAST_REPORTS = 15
# Start values: most findings are absent from most reports.
_SCALE, _BIAS = 8.0, -3.0


def common_observations(reports: Sequence[str]) -> list[str]:
    """Return the observations that at least 15 reports state, in alphabetical order.

    Raises: InvalidSetting if there is none.

    >>> common_observations(["Large heart."] * 15 + ["No edema."] * 15)
    ['cardiomegaly']
    """
    count = Counter(
        name
        for text, times in Counter(reports).items()
        for name in {finding.observation for finding in extract(text).present}
        for _ in range(times)
    )
    found = sorted(name for name, reports_with in count.items() if reports_with >= _LEAST_REPORTS)
    if not found:
        raise InvalidSetting(
            "findings_weight (--findings-weight) needs training reports that state findings: no "
            f"observation is stated by {_LEAST_REPORTS} of them"
        )
    return found


def finding_labels(reports: Sequence[str], observations: Sequence[str] = ()) -> Tensor:
    """Return (n, 14 + L) float32 labels: CheXpert's, then one of each observation.

    1 is present, -1 uncertain, 0 denied or not mentioned. CheXpert's labels are in the order of
    `CHEXPERT_LABELS`; MedCLIP's authors use the same coding.

    >>> finding_labels(["Possible pneumonia. Left scar."], ["scar", "edema"])[0, 14:]
    tensor([1., 0.])
    """
    known: dict[str, list[float]] = {}
    for text in reports:
        if text not in known:
            found = extract(text)
            labels = [float(label or 0) for label in chexpert_labels(found).values()]
            known[text] = labels + [_label(found.of(name)) for name in observations]
    width = len(CHEXPERT_LABELS) + len(observations)
    rows = [known[text] for text in reports]
    return torch.tensor(rows, dtype=torch.float32).reshape(len(rows), width)


def _label(findings: Sequence[Finding]) -> float:
    """Return the label of one observation from all its mentions in a report."""
    polarities = {each.polarity for each in findings if each.status is Status.CURRENT}
    if Polarity.POSITIVE in polarities:
        return 1.0
    return -1.0 if Polarity.UNCERTAIN in polarities else 0.0


class WithFindings(Objective):
    """Loss of an objective, and the cross entropy of the findings that each vector predicts.

    One direction of the space stands for each observation, for images and reports alike: its
    probability is sigmoid(s cos(v, w) + b), with a learned scale s, direction w, and a bias b for
    images and one for reports. So a finding moves image and report in the same direction. Uncertain
    labels do not count. One more direction stands for reports that state none of them.

    Args:
        objective: the objective; medclip gets the first 14 labels.
        observations: number of labels after the first 14, at least one.
        dim: length of the vectors.
        weight: weight of the cross entropy, which is summed over observations.
    """

    needs_labels = True

    def __init__(self, objective: Objective, *, observations: int, dim: int, weight: float) -> None:
        super().__init__()
        self.objective, self.weight = objective, weight
        # Instance attributes, because the class has the names that the base class declares.
        self.local, self.copies, self.left_out = (
            objective.local,
            objective.copies,
            objective.left_out,
        )
        self.directions = nn.Parameter(torch.randn(observations + 1, dim))
        self.log_scale = nn.Parameter(torch.tensor(_SCALE).log())
        self.biases = nn.Parameter(torch.full((2, observations + 1), _BIAS))

    def forward(self, pairs: PairFeatures) -> dict[str, Tensor]:
        assert pairs.labels is not None
        first, labels = pairs.labels.tensor_split([len(CHEXPERT_LABELS)], dim=1)
        nothing = (labels <= 0).all(1, keepdim=True)
        labels = torch.cat([labels, nothing.to(labels)], 1)
        parts: dict[str, Tensor] = self.objective(replace(pairs, labels=first))
        directions = functional.normalize(self.directions, dim=1)
        known = (labels >= 0).to(pairs.images)
        both = {"images": pairs.images, "reports": pairs.reports}
        for bias, (name, vectors) in zip(self.biases, both.items(), strict=True):
            cosines = functional.normalize(vectors, dim=1) @ directions.T
            losses = functional.binary_cross_entropy_with_logits(
                self.log_scale.exp() * cosines + bias,
                labels.clamp(min=0).to(vectors),
                reduction="none",
            )
            parts[f"findings_of_{name}"] = self.weight * (losses * known).sum(1).mean()
        return parts
