"""Several small encoders as one: the cosine of its vectors is the mean of theirs.

Each encoder's vector is scaled to length 1; the vector of the ensemble is all of them, one after
the other, scaled to length 1 (ensembles of separately trained networks: Lakshminarayanan, Pritzel
and Blundell, NeurIPS 2017). It needs no training of its own.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from vlscore.encoders.base import JointEncoder, Tokens
from vlscore.encoders.blocks.word_tokenizers import MAX_TOKENS
from vlscore.encoders.cards import CARD, card_of
from vlscore.encoders.models.small import SmallEncoder
from vlscore.errors import InvalidSetting, WeightsNotFound

# Before the tokens of each tokenizer; no tokenizer has it.
_MARK = -1
_HOLDS = "one subfolder, or link to one, for each encoder that `vlscore train` wrote"
_DIFFER = "the encoders of an ensemble differ in --{0}: train all of them with the same"


class EnsembleEncoder(JointEncoder):
    """Encoder of several small encoders with the same image size and views.

    Args: members: the encoders, at least one.

    Raises: InvalidSetting if image sizes or views differ.
    """

    card = card_of("ensemble")
    takes_tokenizer = False

    def __init__(self, members: list[SmallEncoder]) -> None:
        super().__init__()
        first = members[0]
        for member in members[1:]:
            if member.has_lateral_tower != first.has_lateral_tower:
                raise InvalidSetting(_DIFFER.format("views"))
            if member.settings.side != first.settings.side:
                raise InvalidSetting(_DIFFER.format("side"))
        self.members = nn.ModuleList(members)
        self.has_lateral_tower = first.has_lateral_tower
        self.image_pipeline = first.image_pipeline
        # Members with equal tokenizers share the tokens.
        kinds: list[tuple[type, list[str]]] = []
        self._kind_of = []
        for member in members:
            kind = (type(member.tokenizer), member.tokenizer.words)
            if kind not in kinds:
                kinds.append(kind)
            self._kind_of.append(kinds.index(kind))
        self._tokenizers = [kind(words) for kind, words in kinds]
        self.card = replace(
            type(self).card,
            dim=sum(member.card.dim for member in members),
            image_size=first.card.image_size,
            max_tokens=len(self._tokenizers) * (MAX_TOKENS + 1),
        )

    @classmethod
    def load(
        cls, weights: str | Path | None = None, tokenizer: str | Path | None = None
    ) -> "EnsembleEncoder":
        """Read every encoder in the subfolders of a folder, in the order of their names.

        Args:
            weights: the folder; its subfolders may be links.
            tokenizer: not used; the subfolders have their own.

        Raises: WeightsNotFound if there is none; else as `SmallEncoder.load`.
        """
        if weights is None:
            raise WeightsNotFound(f"name the folder of the ensemble: {cls.card.name} has {_HOLDS}")
        folder = Path(weights)
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            if path.is_symlink() and not path.exists():
                raise WeightsNotFound(
                    f"{path} is a link to nothing; remove it, or restore the encoder it leads to"
                )
        found = sorted(folder.glob(f"*/{CARD}"))
        if not found:
            raise WeightsNotFound(f"{weights} is no folder of an ensemble, which has {_HOLDS}")
        return cls([SmallEncoder.load(path.parent) for path in found]).eval()

    def _encoders(self) -> list[SmallEncoder]:
        return cast(list[SmallEncoder], list(self.members))

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        """Return the tokens of all tokenizers, one after the other, each behind a mark."""
        each = [tokenizer(reports) for tokenizer in self._tokenizers]
        rows = [
            [id for tokens in each for id in (_MARK, *tokens.ids[k, : tokens.lengths[k]].tolist())]
            for k in range(len(reports))
        ]
        found = Tokens.padded(rows, max_tokens=self.card.max_tokens)
        cut = torch.stack([tokens.full_lengths - tokens.lengths for tokens in each]).sum(0)
        return replace(found, full_lengths=found.full_lengths + cut)

    def _apart(self, tokens: Tokens) -> list[Tokens]:
        """Return the tokens of each tokenizer."""
        rows: list[list[list[int]]] = [[] for _ in self._tokenizers]
        for ids, length in zip(tokens.ids.tolist(), tokens.lengths.tolist(), strict=True):
            marks = [k for k in range(length) if ids[k] == _MARK] + [length]
            for of, (first, last) in zip(rows, pairwise(marks), strict=True):
                of.append(ids[first + 1 : last])
        device = tokens.ids.device
        return [Tokens.padded(of, max_tokens=MAX_TOKENS).to(device) for of in rows]

    def embed_images(self, pixels: Tensor) -> Tensor:
        return _joined([each.embed_images(pixels) for each in self._encoders()])

    def embed_lateral_images(self, pixels: Tensor) -> Tensor:
        return _joined([each.embed_lateral_images(pixels) for each in self._encoders()])

    def embed_reports(self, tokens: Tokens) -> Tensor:
        each = self._apart(tokens)
        members = zip(self._encoders(), self._kind_of, strict=True)
        return _joined([member.embed_reports(each[kind]) for member, kind in members])


def _joined(vectors: list[Tensor]) -> Tensor:
    each = [normalize(vector.float(), dim=1) for vector in vectors]
    return torch.cat(each, dim=1) / math.sqrt(len(each))
