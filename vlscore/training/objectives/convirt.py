"""ConVIRT (Zhang, Jiang, Miura, Manning and Langlotz, MLHC 2022): bidirectional InfoNCE."""

from torch import Tensor

from vlscore.errors import InvalidSetting
from vlscore.training.objective import Objective, PairFeatures
from vlscore.training.objectives.contrast import check_settings, contrast, cosines


def convirt_loss(
    images: Tensor,
    reports: Tensor,
    same: Tensor,
    *,
    temperature: float = 0.1,
    image_weight: float = 0.75,
) -> dict[str, Tensor]:
    """Equations 2 to 4 of the paper, on vectors of any length.

    Args:
        images, reports: (n, d).
        same: (n, n) bool; see PairFeatures.
        temperature: tau.
        image_weight: lambda, the share of finding an image's report; the rest is finding a
            report's image.
    """
    of_images, of_reports = contrast(cosines(images, reports) / temperature, same)
    return {
        "image_to_report": image_weight * of_images,
        "report_to_image": (1 - image_weight) * of_reports,
    }


class Convirt(Objective):
    """`convirt_loss` with lambda 0.75 and tau 0.1, as printed in the paper's section 3.4.

    The authors' repository has no training code. That of edreisMD, whose layout our encoder
    "convirt" has, gives the same numbers.
    """

    name = "convirt"
    citation = (
        "Zhang et al.: Contrastive Learning of Medical Visual Representations from Paired Images "
        "and Text. MLHC 2022; github.com/edreisMD/ConVIRT-pytorch, loss/nt_xent.py at c99ca5f"
    )

    def __init__(self, *, temperature: float = 0.1, image_weight: float = 0.75) -> None:
        super().__init__()
        check_settings(self.name, above_zero={"temperature": temperature})
        if not 0 <= image_weight <= 1:
            raise InvalidSetting(f"convirt's image_weight must be 0 to 1, not {image_weight}")
        self.temperature, self.image_weight = temperature, image_weight

    def forward(self, pairs: PairFeatures) -> dict[str, Tensor]:
        return convirt_loss(
            pairs.images,
            pairs.reports,
            pairs.same,
            temperature=self.temperature,
            image_weight=self.image_weight,
        )
