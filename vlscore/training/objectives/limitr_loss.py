"""LIMITR (Dawidowicz, Hirsch and Tal, ICCV 2023): global and local losses of pairs."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from vlscore.errors import InvalidSetting
from vlscore.training.objective import Objective, PairFeatures
from vlscore.training.objectives.contrastive import check_ranges, contrast
from vlscore.training.objectives.local_losses import (
    LocalFeatures,
    attend,
    find_own,
    gloria_global_loss,
    shares,
)

# Added to a length before a division by it.
_NOTHING = 1e-8
# Divisor of the loss within a pair in the authors' code.
_INTERNAL_SCALE = 10.0


class Significance(nn.Module):
    """Weights of local similarities, from each by itself and from their mean (the authors' SAF).

    Args:
        dim: length of the vectors.
        dropout: probability, in training mode.
    """

    def __init__(self, dim: int, dropout: float = 0.4) -> None:
        super().__init__()
        self.embedding_local, self.embedding_global = (
            nn.Sequential(nn.Linear(dim, dim), nn.Tanh(), nn.Dropout(dropout)) for _ in range(2)
        )
        self.embedding_common = nn.Linear(dim, 1)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                bound = math.sqrt(6 / (module.in_features + module.out_features))
                nn.init.uniform_(module.weight, -bound, bound)
                nn.init.zeros_(module.bias)

    def forward(self, similarities: Tensor, is_there: Tensor | None = None) -> Tensor:
        """Compute (m, L) weights with sum 1 in each row from (m, L, k).

        Args:
            is_there: (m, L) bool; default: all are.
        """
        mean = similarities.mean(1)
        if is_there is not None:
            mean = _weighted(shares(is_there, similarities), similarities)
        # Matrix products, because the table of all coordinates would be large.
        by_coordinate = self.embedding_global(mean) * self.embedding_common.weight
        local = self.embedding_local(similarities)
        scores = (local @ by_coordinate.unsqueeze(2)).squeeze(2) + self.embedding_common.bias
        if is_there is not None:
            scores = scores.masked_fill(~is_there, -torch.inf)
        found: Tensor = scores.softmax(1)
        return found


class Limitr(Objective):
    """Sum of the three losses with temperatures and weights of the paper.

    The weights of words and regions are learned.

    The loss between pairs compares a report's words with an image's places, and the places with the
    words. Each word's similarity is a vector, the product of the word and its attended context; a
    learned weighting of these gives one number for image and report. The loss within a pair makes
    each word and each place match its attended context. The authors' published configuration has an
    `internal_weight` of 0; the paper's full method has 1.

    If a study has a lateral view, its places follow those of the frontal one, and
    `PairFeatures.is_patch` marks missing places (`LimitrEncoder.study_features`). Differences to
    the authors' code:

    - For a missing lateral view it has vectors near zero, which still take attention from words,
      and it counts padding among the words in the loss within a pair. Here both are left out.
    - For a study with both views it uses the mean similarity of the lateral view's places for all
      places. Here it is the mean of all places.
    - Its loss between pairs uses [CLS] and the words but not [SEP], its loss within a pair also
      [SEP]. Here both use the words that the encoder returns.
    """

    name = "limitr"
    citation = (
        "Dawidowicz, Hirsch, Tal: LIMITR: Leveraging Local Information for Medical Image-Text "
        "Representation. ICCV 2023; github.com/gefend/LIMITR, LIMITR/loss/LIMITR_loss.py and "
        "LIMITR/models/LIMITR_model.py at bd53a77"
    )
    local = True

    def __init__(
        self,
        *,
        local_dim: int,
        temp1: float = 4.0,
        temp3: float = 10.0,
        local_temperature: float = 0.1,
        dropout: float = 0.4,
        global_weight: float = 1.0,
        external_weight: float = 1.0,
        internal_weight: float = 1.0,
    ) -> None:
        super().__init__()
        self.weights = {
            "global": global_weight,
            "external": external_weight,
            "internal": internal_weight,
        }
        check_ranges(
            self.name,
            above_zero={"temp1": temp1, "temp3": temp3, "local_temperature": local_temperature},
            at_least_zero={f"{part}_weight": weight for part, weight in self.weights.items()},
        )
        if not 0 <= dropout < 1:
            raise InvalidSetting(f"limitr's dropout must be at least 0 and below 1, not {dropout}")
        self.temp1, self.temp3 = temp1, temp3
        self.local_temperature = local_temperature
        self.significance = Significance(local_dim, dropout)
        self.judge_words = nn.Linear(local_dim, 1)
        self.judge_places = nn.Linear(local_dim, 1)

    def forward(self, pairs: PairFeatures) -> dict[str, Tensor]:
        local = LocalFeatures.of(pairs, self.name)
        whole = gloria_global_loss(pairs.images, pairs.reports, pairs.same, temp3=self.temp3)
        return {
            "global": self.weights["global"] * whole,
            "local_external": self.weights["external"] * self.external_loss(local),
            "local_internal": self.weights["internal"] * self.internal_loss(local),
        }

    def external_loss(self, local: LocalFeatures) -> Tensor:
        """Compute the loss between pairs: both directions, the mean over words and places."""
        if not len(local):
            return local.nothing()
        losses = [
            contrast(similarities * self.temp3, local.same).sum()
            for similarities in self.similarities(local)
        ]
        return torch.stack(losses).mean()

    def similarities(self, local: LocalFeatures) -> tuple[Tensor, Tensor]:
        """Return (m, m) in 0 to 1, images in rows: by report's words, and by image's places."""

        def columns(words: Tensor) -> tuple[Tensor, Tensor]:
            attended = attend(
                words[None], local.patches, temperature=self.temp1, is_context=local.is_patch
            )
            by_words = self.judge_words(self._summary(attended * words))
            attended = attend(
                local.patches, words[None], temperature=self.temp1, is_query=local.is_patch
            )
            summary = self._summary(attended * local.patches, local.is_patch)
            return by_words, self.judge_places(summary)

        by_words, by_places = zip(*local.by_report(columns), strict=True)
        return torch.cat(by_words, 1).sigmoid(), torch.cat(by_places, 1).sigmoid()

    def _summary(self, products: Tensor, is_there: Tensor | None = None) -> Tensor:
        """Return (m, k) of length 1 from (m, L, k): the weighted sum of products' directions."""
        directions = _scaled(products, dim=2)
        return _scaled(_weighted(self.significance(directions, is_there), directions), dim=1)

    def internal_loss(self, local: LocalFeatures) -> Tensor:
        """Compute the loss within each pair: the mean over words and places, divided by 10."""
        if not len(local):
            return local.nothing()
        words, patches = (local.words, local.is_word), (local.patches, local.is_patch)
        of_words = self._own_loss(*words, *patches, shares)

        def of_regions(is_patch: Tensor, attended: Tensor) -> Tensor:
            # As in the authors' code, coordinates are scaled over all places, not each vector.
            products = (attended * local.patches).masked_fill(~is_patch.unsqueeze(2), 0)
            found: Tensor = self.significance(_scaled(products, dim=1), is_patch)
            return found

        of_places = self._own_loss(*patches, *words, of_regions)
        return (of_words + of_places) / 2 / _INTERNAL_SCALE

    def _own_loss(
        self,
        queries: Tensor,
        is_query: Tensor,
        context: Tensor,
        is_context: Tensor,
        weights: Callable[[Tensor, Tensor], Tensor],
    ) -> Tensor:
        """Compute `find_own` of queries and their attended context.

        Args: weights: function of `is_query` and the attended context that returns weights.
        """
        attended = attend(
            queries, context, temperature=self.temp1, is_query=is_query, is_context=is_context
        )
        temperature = self.local_temperature
        found = weights(is_query, attended)
        return find_own(queries, attended, found, is_query, temperature=temperature)


def _scaled(vectors: Tensor, *, dim: int) -> Tensor:
    lengths: Tensor = torch.linalg.vector_norm(vectors, dim=dim, keepdim=True)
    return vectors / (lengths + _NOTHING)


def _weighted(weights: Tensor, vectors: Tensor) -> Tensor:
    """Return the weighted sum (m, k) from (m, L) and (m, L, k)."""
    return (weights.unsqueeze(1) @ vectors).squeeze(1)
