"""MedCLIP (Wang, Wu, Agarwal and Sun, EMNLP 2022): pairs that state the same belong together."""

import math

import torch
from torch import Tensor, nn

from vlscore.errors import InvalidSetting
from vlscore.training.objective import Objective, PairFeatures
from vlscore.training.objectives.contrast import check_settings, no_negatives, unit

# The logarithm of the scale stays within what the authors clamp it to.
_LARGEST_LOG_SCALE = 4.6052


def medclip_loss(
    images: Tensor, reports: Tensor, same: Tensor, labels: Tensor, *, scale: Tensor
) -> dict[str, Tensor]:
    """Soft cross entropy in both directions (equations 3 to 6), each half of the loss.

    What an image's report should be is no single one, but a softmax over the products of the two
    rows of labels.

    Args:
        images, reports: (n, d), of any length.
        same: (n, n) bool; see PairFeatures. Such rows are left out of targets and predictions.
        labels: (n, L), 1 present, 0 absent or not mentioned, -1 uncertain.
        scale: what cosines are multiplied by.
    """
    logits = unit(images) @ unit(reports).T * scale
    labels = labels.to(logits)
    alike, left_out = labels @ labels.T, no_negatives(same)
    return {
        "image_to_report": 0.5 * _soft_cross_entropy(logits, alike, left_out),
        "report_to_image": 0.5 * _soft_cross_entropy(logits.T, alike.T, left_out.T),
    }


def _soft_cross_entropy(logits: Tensor, alike: Tensor, left_out: Tensor) -> Tensor:
    targets = alike.masked_fill(left_out, -torch.inf).softmax(1)
    found = logits.masked_fill(left_out, -torch.inf).log_softmax(1)
    # Zero times minus infinity is not a number.
    return -(targets * found.masked_fill(left_out, 0)).sum() / len(logits)


class Medclip(Objective):
    """`medclip_loss`; the scale is learned, from 1 / 0.07, and stays between 1 and 100.

    The authors' code takes products of labels where the paper has cosines, and so does this. Two
    things of theirs are not here, for they are no part of the loss: a sentence drawn from each
    report stands for it, with labels of its own, and a second copy of it with words swapped or
    deleted. Here the report's labels stand for both sides of its pair.
    """

    name = "medclip"
    citation = (
        "Wang et al.: MedCLIP: Contrastive Learning from Unpaired Medical Images and Text. EMNLP "
        "2022; github.com/RyanWangZf/MedCLIP, medclip/losses.py at 9c3396f"
    )
    needs_labels = True

    def __init__(self, *, temperature: float = 0.07) -> None:
        super().__init__()
        check_settings(self.name, above_zero={"temperature": temperature})
        self.log_scale = nn.Parameter(torch.tensor(math.log(1 / temperature)))

    def forward(self, pairs: PairFeatures) -> dict[str, Tensor]:
        if pairs.labels is None:
            raise InvalidSetting(
                "the objective medclip needs the reports' finding labels: "
                "vlscore.training.labels.labels_of(reports)"
            )
        with torch.no_grad():
            self.log_scale.clamp_(0, _LARGEST_LOG_SCALE)
        return medclip_loss(
            pairs.images, pairs.reports, pairs.same, pairs.labels, scale=self.log_scale.exp()
        )
