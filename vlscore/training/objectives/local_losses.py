"""What the losses over places and words have in common: their features, and GLoRIA's attention.

GLoRIA (Huang, Shen, Lungren and Yeung, ICCV 2021): whole vectors, and words with places.

BioViL (Boecking et al., ECCV 2022), and with a local loss BioViL-L and BioViL-T.
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
    check_settings,
    contrast,
    cosines,
    pairwise_cosines,
)

Found = TypeVar("Found", Tensor, tuple[Tensor, Tensor])

# Numbers in a table of every report with every place of every image (256 MiB, and a loss makes
# several such tables); beyond it they are not kept.
_MOST_KEPT = 1 << 26


@dataclass(frozen=True, eq=False)
class LocalFeatures:
    """Places and words of the m pairs that have both.

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
        """Those of `pairs`; a report without words has no local loss and is left out.

        Args:
            objective: the name that messages give.

        Raises: InvalidSetting where the pairs have no local features.
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
        """0, for a batch in which no report has words; training may ask for its gradient."""
        return self.patches.sum() * 0 + self.words.sum() * 0

    def by_report(self, compare: Callable[[Tensor], Found]) -> list[Found]:
        """What `compare` gives for the words of each report, (its words, k).

        A large batch would keep too much for the gradient; what is needed is computed once more
        then, with the same result.
        """
        lengths: list[int] = self.is_word.sum(1).tolist()
        reports = [words[:count] for words, count in zip(self.words, lengths, strict=True)]
        if len(self) * self.patches.numel() <= _MOST_KEPT:
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
    """GLoRIA's attention (Huang et al. 2021, equations 5 and 6): what each query looks at.

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
    vectors: Tensor, seen: Tensor, weights: Tensor, is_there: Tensor, *, temperature: float
) -> Tensor:
    """How well, within one pair, each vector finds what it saw among what all of them saw.

    Both directions of InfoNCE within each pair, their mean (MGCA's equations 5 and 6, which LIMITR
    kept). What is not there is neither asked nor found.

    Args:
        vectors: (m, L, k), words or places.
        seen: (m, L, k), what each of them saw in the other modality.
        weights: (m, L), of each in the loss of its pair; 0 for what is not there.
        is_there: (m, L) bool.
    """
    scores = vectors @ seen.transpose(1, 2) / temperature
    own = scores.diagonal(dim1=1, dim2=2)
    of_vectors = scores.masked_fill(~is_there.unsqueeze(1), -torch.inf).logsumexp(2) - own
    of_seen = scores.masked_fill(~is_there.unsqueeze(2), -torch.inf).logsumexp(1) - own
    return ((of_vectors + of_seen) / 2 * weights).sum() / len(vectors)


def shares(is_there: Tensor, like: Tensor) -> Tensor:
    """(m, L) bool -> the same weight for all that is there, of sum 1 in each row."""
    flags = is_there.to(like.dtype)
    return flags / flags.sum(1, keepdim=True)


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
