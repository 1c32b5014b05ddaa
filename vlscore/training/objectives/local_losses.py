"""Losses over places of images and words of reports: GLoRIA, and what local losses share.

- `LocalFeatures`, `attend` and `find_own` are shared by all local losses, also LIMITR and MGCA.
- `Gloria` (Huang, Shen, Lungren and Yeung, ICCV 2021) has a global and a local loss.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from vlscore.errors import InvalidSetting
from vlscore.training.objective import Objective, PairFeatures
from vlscore.training.objectives.contrastive import (
    check_ranges,
    contrast,
    cosines,
    pairwise_cosines,
)

Found = TypeVar("Found", Tensor, tuple[Tensor, Tensor])

# Largest size of a table of every report with every place of every image (256 MiB; a loss makes
# several such tables). Larger tables are recomputed instead of stored.
_MOST_STORED = 1 << 26


@dataclass(frozen=True, eq=False)
class LocalFeatures:
    """Vectors of places and words for the m pairs that have both.

    Attributes:
        patches: (m, P, k).
        words: (m, W, k).
        is_patch: (m, P) bool.
        is_word: (m, W) bool.
        same: (m, m) bool, as in PairFeatures.
        patch_weights: (m, P), or None.
        word_weights: (m, W), or None.
    """

    patches: Tensor
    words: Tensor
    is_patch: Tensor
    is_word: Tensor
    same: Tensor
    patch_weights: Tensor | None = None
    word_weights: Tensor | None = None

    @classmethod
    def of(cls, pairs: PairFeatures, objective: str) -> "LocalFeatures":
        """Select the local features of `pairs`; leave out reports without words.

        Args:
            objective: the objective's name, for messages.

        Raises: InvalidSetting if the pairs have no local features.
        """
        patches, words, is_word = pairs.patches, pairs.words, pairs.is_word
        if patches is None or words is None or is_word is None:
            raise InvalidSetting(
                f"the objective {objective} compares places with words, but the encoder gives "
                "none: choose an encoder that does, or convirt, siglip, medclip or biovil"
            )
        if patches.shape[2] != words.shape[2]:
            raise InvalidSetting(
                f"the objective {objective} compares places with words, but vectors of places have "
                f"{patches.shape[2]} numbers and those of words {words.shape[2]}"
            )
        is_patch = pairs.is_patch
        if is_patch is None:
            is_patch = patches.new_ones(patches.shape[:2], dtype=torch.bool)
        rows = is_word.any(1) & is_patch.any(1)
        return cls(
            patches[rows],
            words[rows],
            is_patch[rows],
            is_word[rows],
            pairs.same[rows][:, rows],
            None if pairs.patch_weights is None else pairs.patch_weights[rows],
            None if pairs.word_weights is None else pairs.word_weights[rows],
        )

    def __len__(self) -> int:
        return len(self.patches)

    def nothing(self) -> Tensor:
        """Return 0 with a gradient, for a batch in which no report has words."""
        return self.patches.sum() * 0 + self.words.sum() * 0

    def by_report(self, compare: Callable[[Tensor], Found]) -> list[Found]:
        """Return the results of `compare` for the words of each report, (its words, k).

        For a large batch the intermediate results would need too much memory until the gradient;
        they are computed a second time then, with the same result.
        """
        lengths: list[int] = self.is_word.sum(1).tolist()
        reports = [words[:count] for words, count in zip(self.words, lengths, strict=True)]
        if len(self) * self.patches.numel() <= _MOST_STORED:
            return [compare(words) for words in reports]
        return [checkpoint(compare, words, use_reentrant=False) for words in reports]


def attend(
    queries: Tensor,
    context: Tensor,
    *,
    temperature: float,
    is_query: Tensor | None = None,
    is_context: Tensor | None = None,
) -> Tensor:
    """Compute GLoRIA's attention (Huang et al. 2021, equations 5 and 6).

    The authors' code takes a softmax of the products over the queries first and then, of
    `temperature` times that, another one over the context.

    Args:
        queries: (n or 1, Q, k).
        context: (n or 1, S, k).
        is_query: (n or 1, Q) bool; default: all are.
        is_context: (n or 1, S) bool; default: all are.

    Returns: (n, Q, k), for each query the weighted mean of the context.
    """
    products = context @ queries.transpose(1, 2)
    if is_query is not None:
        products = products.masked_fill(~is_query.unsqueeze(1), -torch.inf)
    weights = products.softmax(2) * temperature
    if is_context is not None:
        weights = weights.masked_fill(~is_context.unsqueeze(2), -torch.inf)
    return weights.softmax(1).transpose(1, 2) @ context


def find_own(
    vectors: Tensor, attended: Tensor, weights: Tensor, is_there: Tensor, *, temperature: float
) -> Tensor:
    """Compute InfoNCE within each pair between vectors and their attended contexts.

    The result is the mean of both directions (MGCA's equations 5 and 6, also used by LIMITR).
    Padding is left out on both sides.

    Args:
        vectors: (m, L, k), words or places.
        attended: (m, L, k), the context that each of them attends to in the other modality.
        weights: (m, L), weight of each in the loss of its pair; 0 for padding.
        is_there: (m, L) bool.
    """
    scores = vectors @ attended.transpose(1, 2) / temperature
    own = scores.diagonal(dim1=1, dim2=2)
    of_vectors = scores.masked_fill(~is_there.unsqueeze(1), -torch.inf).logsumexp(2) - own
    of_attended = scores.masked_fill(~is_there.unsqueeze(2), -torch.inf).logsumexp(1) - own
    return ((of_vectors + of_attended) / 2 * weights).sum() / len(vectors)


def shares(is_there: Tensor, like: Tensor) -> Tensor:
    """Return equal weights with sum 1 for the True entries of each row, (m, L)."""
    flags = is_there.to(like.dtype)
    return flags / flags.sum(1, keepdim=True)


def gloria_global_loss(
    images: Tensor, reports: Tensor, same: Tensor, *, temp3: float = 10.0
) -> Tensor:
    """Compute equations 3 and 4: the sum of both directions, with cosines times `temp3`.

    Args:
        images, reports: (n, d), of any length.
        same: (n, n) bool; see PairFeatures.
    """
    return contrast(cosines(images, reports) * temp3, same).sum()


def gloria_local_loss(
    local: LocalFeatures, *, temp1: float = 4.0, temp2: float = 5.0, temp3: float = 10.0
) -> Tensor:
    """Compute equations 5 to 9: InfoNCE of the local similarities, the sum of both directions.

    Args:
        temp1: sharpness of the attention of words to places.
        temp2: how much more the best words of a report count than the others.
        temp3: factor of a report's similarity with an image.
    """
    if not len(local):
        return local.nothing()
    scores = gloria_similarities(local, temp1=temp1, temp2=temp2) * temp3
    return contrast(scores, local.same).sum()


def gloria_similarities(local: LocalFeatures, *, temp1: float, temp2: float) -> Tensor:
    """Return (m, m), images in rows: log of the sum over words of exp(temp2 * cosine)."""

    def column(words: Tensor) -> Tensor:
        attended = attend(words[None], local.patches, temperature=temp1, is_context=local.is_patch)
        return (pairwise_cosines(words[None], attended) * temp2).logsumexp(1)

    return torch.stack(local.by_report(column), dim=1)


class Gloria(Objective):
    """Sum of the global and the local loss with temperatures and weights of the authors' config.

    The authors' code uses [CLS] and the words of a report, without [SEP]. For each word with a
    bracket, such as [UNK], it drops one word at the end. Here all words of the encoder are used.
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
        self.temperatures = {"temp1": temp1, "temp2": temp2, "temp3": temp3}
        self.local_weight, self.global_weight = local_weight, global_weight
        check_ranges(
            self.name,
            above_zero=self.temperatures,
            at_least_zero={"local_weight": local_weight, "global_weight": global_weight},
        )

    def forward(self, pairs: PairFeatures) -> dict[str, Tensor]:
        local = gloria_local_loss(LocalFeatures.of(pairs, self.name), **self.temperatures)
        temp3 = self.temperatures["temp3"]
        whole = gloria_global_loss(pairs.images, pairs.reports, pairs.same, temp3=temp3)
        return {"global": self.global_weight * whole, "local": self.local_weight * local}
