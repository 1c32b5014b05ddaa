"""BioViL (Boecking et al., ECCV 2022), and with a local loss BioViL-L and BioViL-T."""

import torch
from torch import Tensor

from vlscore.training.objective import Objective, PairFeatures
from vlscore.training.objectives.contrast import check_settings, contrast, cosines
from vlscore.training.objectives.gloria import gloria_local_loss
from vlscore.training.objectives.local import LocalFeatures


def biovil_global_loss(
    images: Tensor, reports: Tensor, same: Tensor, *, temperature: float = 0.5
) -> Tensor:
    """InfoNCE, the mean of both directions (section 3.2 of the paper).

    Args:
        images, reports: (n, d), of any length.
        same: (n, n) bool; see PairFeatures.
    """
    return torch.stack(contrast(cosines(images, reports) / temperature, same)).mean()


class Biovil(Objective):
    """The global loss of BioViL; with a `local_weight` above 0, GLoRIA's local loss beside it.

    The authors publish their encoders but no training code, so this is after the paper alone. Left
    out are the losses of the text model: masked language modelling, which goes on during joint
    training, and the matching of a report's sections, with which CXR-BERT was trained before; and
    the augmentation that shuffles sentences. So is what BioViL-T adds for a previous image. Of the
    local loss of BioViL-L and BioViL-T the papers say that it is GLoRIA's; what weight and
    temperatures they gave it is in no code, so those of GLoRIA's config stand here.
    """

    name = "biovil"
    citation = (
        "Boecking et al.: Making the Most of Text Semantics to Improve Biomedical Vision-Language "
        "Processing. ECCV 2022; encoders, but no losses, in github.com/microsoft/hi-ml "
        "(hi-ml-multimodal) at b67c1d27"
    )

    def __init__(
        self,
        *,
        temperature: float = 0.5,
        local_weight: float = 0.0,
        temp1: float = 4.0,
        temp2: float = 5.0,
        temp3: float = 10.0,
    ) -> None:
        super().__init__()
        check_settings(
            self.name,
            above_zero={
                "temperature": temperature,
                "temp1": temp1,
                "temp2": temp2,
                "temp3": temp3,
            },
            at_least_zero={"local_weight": local_weight},
        )
        self.temperature, self.local_weight = temperature, local_weight
        self.temp1, self.temp2, self.temp3 = temp1, temp2, temp3
        self.local = local_weight > 0

    def forward(self, pairs: PairFeatures) -> dict[str, Tensor]:
        parts = {
            "global": biovil_global_loss(
                pairs.images, pairs.reports, pairs.same, temperature=self.temperature
            )
        }
        if self.local:
            parts["local"] = self.local_weight * gloria_local_loss(
                LocalFeatures.of(pairs, self.name),
                temp1=self.temp1,
                temp2=self.temp2,
                temp3=self.temp3,
            )
        return parts
