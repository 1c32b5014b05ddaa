"""Contrastive losses over global vectors: ConVIRT, BioViL, SigLIP, MedCLIP, and what they share.

- `cosines` and `contrast` (InfoNCE in both directions) are shared by other objectives too.
- `Convirt` (Zhang, Jiang, Miura, Manning and Langlotz, MLHC 2022): bidirectional InfoNCE.
- `Biovil` (Boecking et al., ECCV 2022): bidirectional InfoNCE, and nothing of the text model.
- `Siglip` (Zhai, Mustafa, Kolesnikov and Beyer, ICCV 2023): a log loss of every pair by itself.
- `Medclip` (Wang, Wu, Agarwal and Sun, EMNLP 2022): soft targets from the finding labels.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn import functional

from vlscore.errors import InvalidSetting
from vlscore.training.objective import Objective, PairFeatures

# Lower limit for the product of two lengths, so that a zero vector has cosine 0.
_SHORTEST = 1e-8
_NONE: Mapping[str, float] = MappingProxyType({})


def cosines(rows: Tensor, columns: Tensor) -> Tensor:
    """Compute (n, m) cosines of each row of (n, d) with each row of (m, d)."""
    lengths = torch.outer(_lengths(rows), _lengths(columns)).clamp(min=_SHORTEST)
    return rows @ columns.T / lengths


def pairwise_cosines(one: Tensor, other: Tensor) -> Tensor:
    """Compute (...) cosines of each vector of (..., d) with its partner in another (..., d)."""
    lengths = (_lengths(one) * _lengths(other)).clamp(min=_SHORTEST)
    return (one * other).sum(-1) / lengths


def unit(vectors: Tensor) -> Tensor:
    """Normalise vectors (..., d) to length 1; a zero vector stays zero."""
    return functional.normalize(vectors, dim=-1)


def no_negatives(same: Tensor) -> Tensor:
    """Return (n, n) bool, True for different rows that are the same: neither pair nor negative."""
    return same & ~torch.eye(len(same), dtype=torch.bool, device=same.device)


def contrast(scores: Tensor, same: Tensor) -> Tensor:
    """Compute InfoNCE (van den Oord et al. 2018) in both directions.

    Args:
        scores: (n, n), images in rows and reports in columns, divided by the temperature.
        same: (n, n) bool, as in PairFeatures.

    Returns: (2,), the mean cross entropy of finding an image's report among the reports, and of
        finding a report's image among the images.
    """
    scores = scores.masked_fill(no_negatives(same), -torch.inf)
    own = scores.diagonal()
    return torch.stack([(scores.logsumexp(way) - own).mean() for way in (1, 0)])


def check_ranges(
    objective: str, *, above_zero: Mapping[str, float], at_least_zero: Mapping[str, float] = _NONE
) -> None:
    """Raise InvalidSetting for a temperature or weight out of range."""
    for key, value in above_zero.items():
        if not 0 < value < float("inf"):
            raise InvalidSetting(f"{objective}'s {key} must be above 0, not {value}")
    for key, value in at_least_zero.items():
        if not 0 <= value < float("inf"):
            raise InvalidSetting(f"{objective}'s {key} must be at least 0, not {value}")


def _lengths(vectors: Tensor) -> Tensor:
    # Its gradient for a zero vector is 0; that of the root of a sum would be nan.
    found: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
    return found


class Convirt(Objective):
    """InfoNCE of cosines over tau in both directions (equations 2 to 4).

    Lambda is the weight of finding the report of an image, 1 - lambda that of the other direction.
    Defaults are from section 3.4. The authors' repository has no training code. That of edreisMD,
    whose layout the encoder "convirt" has, gives the same numbers.
    """

    name = "convirt"
    citation = (
        "Zhang et al.: Contrastive Learning of Medical Visual Representations from Paired Images "
        "and Text. MLHC 2022; github.com/edreisMD/ConVIRT-pytorch, loss/nt_xent.py at c99ca5f"
    )

    def __init__(self, *, temperature: float = 0.1, image_weight: float = 0.75) -> None:
        super().__init__()
        check_ranges(self.name, above_zero={"temperature": temperature})
        if not 0 <= image_weight <= 1:
            raise InvalidSetting(f"convirt's image_weight must be 0 to 1, not {image_weight}")
        self.temperature, self.image_weight = temperature, image_weight

    def forward(self, pairs: PairFeatures) -> dict[str, Tensor]:
        scores = cosines(pairs.images, pairs.reports) / self.temperature
        of_images, of_reports = contrast(scores, pairs.same)
        return {
            "image_to_report": self.image_weight * of_images,
            "report_to_image": (1 - self.image_weight) * of_reports,
        }


class Biovil(Objective):
    """InfoNCE of cosines, the mean of both directions (section 3.2 of the paper).

    The authors publish their encoders but no training code, so this follows the paper alone. Left
    out are the losses of the text model (masked language modelling, which continues during joint
    training, and the matching of a report's sections, which trains CXR-BERT before it), the
    augmentation that shuffles sentences, the local loss of BioViL-L and BioViL-T, and BioViL-T's
    additions for a previous image.
    """

    name = "biovil"
    citation = (
        "Boecking et al.: Making the Most of Text Semantics to Improve Biomedical Vision-Language "
        "Processing. ECCV 2022; encoders, but no losses, in github.com/microsoft/hi-ml "
        "(hi-ml-multimodal) at b67c1d27"
    )

    def __init__(self, *, temperature: float = 0.5) -> None:
        super().__init__()
        check_ranges(self.name, above_zero={"temperature": temperature})
        self.temperature = temperature

    def forward(self, pairs: PairFeatures) -> dict[str, Tensor]:
        scores = cosines(pairs.images, pairs.reports) / self.temperature
        return {"global": contrast(scores, pairs.same).mean()}


class Siglip(Objective):
    """Log losses of all cells, in sum over reports and as mean over images (algorithm 1).

    Cosines times `scale` plus `bias`; both are learned, from 10 and -10 (section 3.2).
    """

    name = "siglip"
    citation = (
        "Zhai et al.: Sigmoid Loss for Language Image Pre-Training. ICCV 2023; "
        "github.com/google-research/big_vision, trainers/proj/image_text/siglip.py at 179d020"
    )

    def __init__(self, *, scale: float = 10.0, bias: float = -10.0) -> None:
        super().__init__()
        check_ranges(self.name, above_zero={"scale": scale})
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale)))
        self.bias = nn.Parameter(torch.tensor(float(bias)))

    def forward(self, pairs: PairFeatures) -> dict[str, Tensor]:
        logits = unit(pairs.images) @ unit(pairs.reports).T * self.log_scale.exp() + self.bias
        signs = 2 * torch.eye(len(logits), dtype=logits.dtype, device=logits.device) - 1
        losses = -functional.logsigmoid(signs * logits)
        return {"sigmoid": losses.masked_fill(no_negatives(pairs.same), 0).sum() / len(logits)}


# Limits for the logarithm of the scale, as in the authors' code.
_LARGEST_LOG_SCALE = 4.6052


def _soft_cross_entropy(logits: Tensor, alike: Tensor, left_out: Tensor) -> Tensor:
    targets = alike.masked_fill(left_out, -torch.inf).softmax(1)
    found = logits.masked_fill(left_out, -torch.inf).log_softmax(1)
    # 0 * -inf would be nan.
    return -(targets * found.masked_fill(left_out, 0)).sum() / len(logits)


class Medclip(Objective):
    """Soft cross entropy in both directions (equations 3 to 6), each half of the loss.

    The target is a softmax over the products of the label rows, not a single report. Rows that are
    the same are left out of targets and predictions. The scale of cosines is learned, from
    1 / 0.07, and clamped to 1 to 100.

    As in the authors' code, targets are products of labels where the paper has cosines. Two steps
    of their code are left out, because they do not belong to the loss: it represents each report by
    a random sentence with labels of its own, and adds a copy of it with words swapped or deleted.
    Here the report's labels are used for both sides of its pair.
    """

    name = "medclip"
    citation = (
        "Wang et al.: MedCLIP: Contrastive Learning from Unpaired Medical Images and Text. EMNLP "
        "2022; github.com/RyanWangZf/MedCLIP, medclip/losses.py at 9c3396f"
    )
    needs_labels = True

    def __init__(self, *, temperature: float = 0.07) -> None:
        super().__init__()
        check_ranges(self.name, above_zero={"temperature": temperature})
        self.log_scale = nn.Parameter(torch.tensor(math.log(1 / temperature)))

    def forward(self, pairs: PairFeatures) -> dict[str, Tensor]:
        if pairs.labels is None:
            raise InvalidSetting(
                "the objective medclip needs the reports' finding labels: "
                "vlscore.training.objectives.finding_labels.finding_labels(reports)"
            )
        with torch.no_grad():
            self.log_scale.clamp_(0, _LARGEST_LOG_SCALE)
        logits = unit(pairs.images) @ unit(pairs.reports).T * self.log_scale.exp()
        labels, left_out = pairs.labels.to(logits), no_negatives(pairs.same)
        alike = labels @ labels.T
        return {
            "image_to_report": 0.5 * _soft_cross_entropy(logits, alike, left_out),
            "report_to_image": 0.5 * _soft_cross_entropy(logits.T, alike.T, left_out.T),
        }
