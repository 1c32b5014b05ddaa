"""What the contrastive losses have in common: cosines, and the two directions of InfoNCE.

ConVIRT (Zhang, Jiang, Miura, Manning and Langlotz, MLHC 2022): bidirectional InfoNCE.

SigLIP (Zhai, Mustafa, Kolesnikov and Beyer, ICCV 2023): every pair is judged by itself.

MedCLIP (Wang, Wu, Agarwal and Sun, EMNLP 2022): pairs that state the same belong together.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType

import torch
from torch import Tensor, nn
from torch.nn import functional

from vlscore.errors import InvalidSetting
from vlscore.training.objective import Objective, PairFeatures

# Below this, a product of two lengths counts as this, so that a zero vector has cosine 0.
_SHORTEST = 1e-8
_NONE: Mapping[str, float] = MappingProxyType({})


def cosines(rows: Tensor, columns: Tensor) -> Tensor:
    """(n, d) and (m, d) -> (n, m), the cosine of each row with each column's vector."""
    lengths = torch.outer(_lengths(rows), _lengths(columns)).clamp(min=_SHORTEST)
    return rows @ columns.T / lengths


def pairwise_cosines(one: Tensor, other: Tensor) -> Tensor:
    """(..., d) twice -> (...), the cosine of each vector with its partner."""
    lengths = (_lengths(one) * _lengths(other)).clamp(min=_SHORTEST)
    return (one * other).sum(-1) / lengths


def unit(vectors: Tensor) -> Tensor:
    """(..., d) -> the same directions of length 1; a zero vector stays zero."""
    return functional.normalize(vectors, dim=-1)


def no_negatives(same: Tensor) -> Tensor:
    """(n, n) bool, True for rows that are the same but not one row: neither pair nor negative."""
    return same & ~torch.eye(len(same), dtype=torch.bool, device=same.device)


def contrast(scores: Tensor, same: Tensor) -> tuple[Tensor, Tensor]:
    """InfoNCE (van den Oord et al. 2018) in both directions.

    Args:
        scores: (n, n), images in rows and reports in columns, divided by the temperature.
        same: (n, n) bool, as in PairFeatures.

    Returns: the mean cross entropy of finding an image's report among the reports, and of finding
        a report's image among the images.
    """
    scores = scores.masked_fill(no_negatives(same), -torch.inf)
    own = scores.diagonal()
    return (scores.logsumexp(1) - own).mean(), (scores.logsumexp(0) - own).mean()


def check_settings(
    objective: str, *, above_zero: Mapping[str, float], at_least_zero: Mapping[str, float] = _NONE
) -> None:
    """Refuse a temperature or weight that makes no loss. Raises InvalidSetting."""
    for key, value in above_zero.items():
        if not 0 < value < float("inf"):
            raise InvalidSetting(f"{objective}'s {key} must be above 0, not {value}")
    for key, value in at_least_zero.items():
        if not 0 <= value < float("inf"):
            raise InvalidSetting(f"{objective}'s {key} must be at least 0, not {value}")


def _lengths(vectors: Tensor) -> Tensor:
    # Of a zero vector it has the gradient 0, where that of a root of a sum is not a number.
    found: Tensor = torch.linalg.vector_norm(vectors, dim=-1)
    return found


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
