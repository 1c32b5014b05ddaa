"""GLoRIA (Huang, Shen, Lungren and Yeung, ICCV 2021): whole vectors, and words with places."""

import torch
from torch import Tensor

from vlscore.training.objective import Objective, PairFeatures
from vlscore.training.objectives.contrast import (
    check_settings,
    contrast,
    cosines,
    pairwise_cosines,
)
from vlscore.training.objectives.local import LocalFeatures, attend


def gloria_global_loss(
    images: Tensor, reports: Tensor, same: Tensor, *, temp3: float = 10.0
) -> Tensor:
    """Equations 3 and 4: the sum of both directions, of cosines times `temp3`.

    Args:
        images, reports: (n, d), of any length.
        same: (n, n) bool; see PairFeatures.
    """
    return torch.stack(contrast(cosines(images, reports) * temp3, same)).sum()


def gloria_local_loss(
    local: LocalFeatures, *, temp1: float = 4.0, temp2: float = 5.0, temp3: float = 10.0
) -> Tensor:
    """Equations 5 to 9: the sum of both directions, of how well a report's words find themselves
    in an image's places.

    Args:
        temp1: sharpness of the attention of words to places.
        temp2: how much the best words of a report count more than the others.
        temp3: what a report's similarity with an image is multiplied by.
    """
    if not len(local):
        return local.nothing()
    scores = gloria_similarities(local, temp1=temp1, temp2=temp2) * temp3
    return torch.stack(contrast(scores, local.same)).sum()


def gloria_similarities(local: LocalFeatures, *, temp1: float, temp2: float) -> Tensor:
    """(m, m), images in rows: log of the sum over a report's words of exp(temp2 * cosine)."""

    def column(words: Tensor) -> Tensor:
        seen = attend(words[None], local.patches, temperature=temp1, is_context=local.is_patch)
        return (pairwise_cosines(words[None], seen) * temp2).logsumexp(1)

    return torch.stack(local.by_report(column), dim=1)


class Gloria(Objective):
    """The global and the local loss with the temperatures and weights of the authors' config.

    The authors' code takes [CLS] and the words of a report, without [SEP]; and one word less for
    each that is written with a bracket, such as [UNK], so that the last words go. Here the words
    are those that the encoder gives, all of them.
    """

    name = "gloria"
    citation = (
        "Huang et al.: GLoRIA: A Multimodal Global-Local Representation Learning Framework for "
        "Label-efficient Medical Image Recognition. ICCV 2021; github.com/marshuang80/gloria, "
        "gloria/loss/gloria_loss.py at 416466a"
    )
    local = True

    def __init__(
        self,
        *,
        temp1: float = 4.0,
        temp2: float = 5.0,
        temp3: float = 10.0,
        local_weight: float = 1.0,
        global_weight: float = 1.0,
    ) -> None:
        super().__init__()
        check_settings(
            self.name,
            above_zero={"temp1": temp1, "temp2": temp2, "temp3": temp3},
            at_least_zero={"local_weight": local_weight, "global_weight": global_weight},
        )
        self.temp1, self.temp2, self.temp3 = temp1, temp2, temp3
        self.local_weight, self.global_weight = local_weight, global_weight

    def forward(self, pairs: PairFeatures) -> dict[str, Tensor]:
        local = gloria_local_loss(
            LocalFeatures.of(pairs, self.name),
            temp1=self.temp1,
            temp2=self.temp2,
            temp3=self.temp3,
        )
        whole = gloria_global_loss(pairs.images, pairs.reports, pairs.same, temp3=self.temp3)
        return {"global": self.global_weight * whole, "local": self.local_weight * local}
