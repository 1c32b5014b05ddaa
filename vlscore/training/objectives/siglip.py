"""SigLIP (Zhai, Mustafa, Kolesnikov and Beyer, ICCV 2023): every pair is judged by itself."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from vlscore.training.objective import Objective, PairFeatures
from vlscore.training.objectives.contrast import check_settings, no_negatives, unit


def siglip_loss(
    images: Tensor, reports: Tensor, same: Tensor, *, scale: Tensor, bias: Tensor
) -> dict[str, Tensor]:
    """Algorithm 1 of the paper: the log loss of each cell of the table, summed over reports and
    averaged over images.

    Args:
        images, reports: (n, d), of any length.
        same: (n, n) bool; see PairFeatures.
        scale: t, what cosines are multiplied by.
        bias: b, what is added then.
    """
    logits = unit(images) @ unit(reports).T * scale + bias
    signs = 2 * torch.eye(len(logits), dtype=logits.dtype, device=logits.device) - 1
    losses = -functional.logsigmoid(signs * logits)
    return {"sigmoid": losses.masked_fill(no_negatives(same), 0).sum() / len(logits)}


class Siglip(Objective):
    """`siglip_loss`; scale and bias are learned, from 10 and -10 (section 3.2)."""

    name = "siglip"
    citation = (
        "Zhai et al.: Sigmoid Loss for Language Image Pre-Training. ICCV 2023; "
        "github.com/google-research/big_vision, trainers/proj/image_text/siglip.py at 179d020"
    )

    def __init__(self, *, scale: float = 10.0, bias: float = -10.0) -> None:
        super().__init__()
        check_settings(self.name, above_zero={"scale": scale})
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale)))
        self.bias = nn.Parameter(torch.tensor(float(bias)))

    def forward(self, pairs: PairFeatures) -> dict[str, Tensor]:
        return siglip_loss(
            pairs.images,
            pairs.reports,
            pairs.same,
            scale=self.log_scale.exp(),
            bias=self.bias,
        )
