"""MGCA (Wang, Zhou, Wang, Vardhanabhuti and Yu, NeurIPS 2022): instances, tokens, prototypes."""

import torch
from torch import Tensor, nn

from vlscore.training.objective import Objective, PairFeatures
from vlscore.training.objectives.contrastive import check_ranges, contrast, unit
from vlscore.training.objectives.local_losses import LocalFeatures, find_own, shares

_CLIPPED = (0.1, 0.9)
# Sharpness of the assignment to prototypes, and iterations of Sinkhorn and Knopp's algorithm.
_EPSILON, _ITERATIONS = 0.05, 3


def mgca_token_loss(local: LocalFeatures, *, temperature: float) -> Tensor:
    """Compute equations 4 to 7: the loss over words and places within each pair.

    Each word must match its attended image context among the contexts of its report's words, and
    each place its attended report context among those of its image's places; both are added.

    Words are weighted by the tower's attention, clipped between its lowest and highest tenth. So
    are places if the tower has attention to places (ViT); else (ResNet) all weights are equal.
    """
    if not len(local):
        return local.nothing()
    words, patches = unit(local.words), unit(local.patches)
    products = words @ patches.transpose(1, 2) / temperature
    attended = products.masked_fill(~local.is_patch.unsqueeze(1), -torch.inf).softmax(2) @ patches
    word_weights = attended_shares(local.word_weights, local.is_word, words)
    of_words = find_own(words, unit(attended), word_weights, local.is_word, temperature=temperature)

    masked = products.transpose(1, 2).masked_fill(~local.is_word.unsqueeze(1), -torch.inf)
    attended = masked.softmax(2) @ words
    # The authors' code normalises the contexts of places for ResNet, but not for ViT.
    if local.patch_weights is None:
        attended = unit(attended)
    patch_weights = attended_shares(local.patch_weights, local.is_patch, patches)
    of_patches = find_own(patches, attended, patch_weights, local.is_patch, temperature=temperature)
    return of_words + of_patches


def attended_shares(weights: Tensor | None, is_there: Tensor, like: Tensor) -> Tensor:
    """Clip a tower's attention to the 10 % and 90 % quantiles of each row, and normalise to sum 1.

    Args:
        weights: (m, L) at least 0, or None for the same weight everywhere.
        is_there: (m, L) bool.
    """
    if weights is None:
        return shares(is_there, like)
    clipped = torch.zeros_like(like[..., 0])
    for row, (attention, mask) in enumerate(zip(weights.detach().to(like), is_there, strict=True)):
        found = attention[mask]
        low, high = torch.quantile(found, found.new_tensor(_CLIPPED))
        clipped[row, mask] = found.clamp(low, high)
    return clipped / clipped.sum(1, keepdim=True).clamp(min=torch.finfo(like.dtype).tiny)


def mgca_prototype_loss(
    images: Tensor, reports: Tensor, prototypes: Tensor, *, temperature: float
) -> Tensor:
    """Compute equations 8 to 11: the cross entropy with the partner's assignment to prototypes.

    An image should be near the prototypes to which its report is assigned, and a report near those
    of its image.

    Args:
        images, reports: (n, d), of any length.
        prototypes: (K, d), of length 1.
    """
    by_image, by_report = unit(images) @ prototypes.T, unit(reports) @ prototypes.T
    image_codes, report_codes = (
        assign(scores, epsilon=_EPSILON, iterations=_ITERATIONS) for scores in (by_image, by_report)
    )
    of_reports = (image_codes * (by_report / temperature).log_softmax(1)).sum(1).mean()
    of_images = (report_codes * (by_image / temperature).log_softmax(1)).sum(1).mean()
    return -(of_reports + of_images) / 2


@torch.no_grad()
def assign(scores: Tensor, *, epsilon: float, iterations: int) -> Tensor:
    """Assign rows to prototypes: (n, K) cosines -> (n, K) shares of each row.

    Each prototype has nearly the same share of the batch (Caron et al. 2020). No gradient flows
    through the assignment.
    """
    codes = (scores / epsilon).exp().T
    codes = codes / codes.sum()
    for _ in range(iterations):
        codes = codes / codes.sum(1, keepdim=True) / codes.shape[0]
        codes = codes / codes.sum(0, keepdim=True) / codes.shape[1]
    return (codes / codes.sum(0, keepdim=True)).T


class Mgca(Objective):
    """Sum of the three losses with the settings of the authors' code; prototypes are learned.

    There are three differences to their code. Padding is left out of the losses within a pair;
    theirs counts it among the negatives of a word, so that the loss depends on it. The word weights
    are those of the words themselves; theirs are shifted by one token. And their prototypes stay
    fixed during the first epoch, which is left to the training loop here.
    """

    name = "mgca"
    citation = (
        "Wang et al.: Multi-Granularity Cross-modal Alignment for Generalized Medical Visual "
        "Representation Learning. NeurIPS 2022; github.com/HKU-MedAI/MGCA, "
        "mgca/models/mgca/mgca_module.py at 680fe4a"
    )
    local = True

    def __init__(
        self,
        *,
        dim: int,
        temperature: float = 0.07,
        local_temperature: float = 0.1,
        prototype_temperature: float = 0.2,
        prototypes: int = 500,
        instance_weight: float = 1.0,
        token_weight: float = 1.0,
        prototype_weight: float = 1.0,
    ) -> None:
        super().__init__()
        self.temperatures = {
            "temperature": temperature,
            "local_temperature": local_temperature,
            "prototype_temperature": prototype_temperature,
        }
        self.weights = {
            "instance": instance_weight,
            "token": token_weight,
            "prototype": prototype_weight,
        }
        check_ranges(
            self.name,
            above_zero=self.temperatures | {"prototypes": prototypes},
            at_least_zero={f"{part}_weight": weight for part, weight in self.weights.items()},
        )
        self.prototypes = nn.Linear(dim, prototypes, bias=False)

    def forward(self, pairs: PairFeatures) -> dict[str, Tensor]:
        with torch.no_grad():
            # As in the authors' code, the prototypes themselves are normalised to length 1.
            self.prototypes.weight.copy_(unit(self.prototypes.weight))
        scores = unit(pairs.images) @ unit(pairs.reports).T / self.temperatures["temperature"]
        parts = {
            # Equations 1 to 3: the sum of both directions.
            "instance": contrast(scores, pairs.same).sum(),
            "token": mgca_token_loss(
                LocalFeatures.of(pairs, self.name),
                temperature=self.temperatures["local_temperature"],
            ),
            "prototype": mgca_prototype_loss(
                pairs.images,
                pairs.reports,
                self.prototypes.weight,
                temperature=self.temperatures["prototype_temperature"],
            ),
        }
        return {part: self.weights[part] * loss for part, loss in parts.items()}
