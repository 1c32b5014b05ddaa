"""Several encoders as one: the cosine of its vectors is the mean of theirs.

Each encoder's vector is scaled to length 1; the vector of the ensemble is all of them, one after
the other, scaled to length 1 (ensembles of separately trained networks: Lakshminarayanan, Pritzel
and Blundell, NeurIPS 2017). It needs no training of its own. Each member reads images in its own
size and way, and texts by its own tokenizer.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from vlscore.data import Provenance, Radiograph
from vlscore.encoders.base import JointEncoder, Tokens
from vlscore.encoders.blocks.tokenizers import read_json
from vlscore.encoders.cards import CARD, card_of
from vlscore.encoders.image_pipeline import ImagePipeline
from vlscore.encoders.registry import SHIPPED, load_encoder
from vlscore.errors import WeightsNotFound

# Before the tokens of each tokenizer; no tokenizer has it.
_MARK = -1
_HOLDS = (
    "one subfolder, or link to one, for each encoder: a folder that `vlscore train` wrote, or one "
    "with an encoder's checkpoint and the encoder's name, such as biovil-t"
)


class JoinedPipeline(ImagePipeline):
    """Pixels of several pipelines, flat, one after the other: (1, 1, all their numbers).

    Args: pipelines: distinct ones; each makes pixels of one shape from any image.
    """

    def __init__(self, pipelines: Sequence[ImagePipeline]) -> None:
        self.pipelines = list(pipelines)
        ramp = np.linspace(0, 1, 64 * 64, dtype=np.float32).reshape(64, 64)
        image = Radiograph(ramp, Provenance(format="array", bits=8, window="as given"), "ramp")
        self.shapes = [tuple(each(image).shape) for each in self.pipelines]

    def __call__(self, radiograph: Radiograph) -> Tensor:
        return torch.cat([each(radiograph).reshape(-1) for each in self.pipelines])[None, None]

    def apart(self, pixels: Tensor) -> list[Tensor]:
        """Return the pixels (n, channels, height, width) of each pipeline, from (n, 1, 1, all)."""
        sizes = [math.prod(shape) for shape in self.shapes]
        parts = pixels.flatten(1).split(sizes, dim=1)
        return [part.unflatten(1, shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def identity(self) -> str:
        return f"JoinedPipeline({', '.join(each.identity() for each in self.pipelines)})"


class EnsembleEncoder(JointEncoder):
    """Encoder of several encoders of any kind.

    A study with a lateral view is read by the members that have a tower for it; the others read the
    frontal one alone, with half the weight.

    Args: members: the encoders, at least one.
    """

    card = card_of("ensemble")
    takes_tokenizer = False

    def __init__(self, members: list[JointEncoder]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.has_lateral_tower = any(each.has_lateral_tower for each in members)
        self.takes_prior = any(each.takes_prior for each in members)
        # Members with equal pipelines share the pixels, and those with equal tokenizers the tokens.
        pipelines = {each.image_pipeline.identity(): each.image_pipeline for each in members}
        self._reads = [list(pipelines).index(each.image_pipeline.identity()) for each in members]
        first, *others = pipelines.values()
        self.image_pipeline = JoinedPipeline([first, *others]) if others else first
        digests = [each.tokenizer_digest() for each in members]
        kinds = list(dict.fromkeys(digests))
        self._kind_of = [kinds.index(digest) for digest in digests]
        self._tokenizers = [members[digests.index(kind)] for kind in kinds]
        self.card = replace(
            type(self).card,
            dim=sum(member.card.dim for member in members),
            image_size=max(member.card.image_size for member in members),
            max_tokens=sum(each.card.max_tokens + 1 for each in self._tokenizers),
        )

    @classmethod
    def load(
        cls, weights: str | Path | None = None, tokenizer: str | Path | None = None
    ) -> "EnsembleEncoder":
        """Read every encoder in the subfolders of a folder, in the order of their names.

        Args:
            weights: the folder; its subfolders may be links.
            tokenizer: not used; the subfolders have their own.

        Raises: WeightsNotFound if there is none; else as `load_encoder`.
        """
        if weights is None:
            raise WeightsNotFound(f"name the folder of the ensemble: {cls.card.name} has {_HOLDS}")
        folders = sorted(Path(weights).glob("*"))
        for path in folders:
            if path.is_symlink() and not path.exists():
                raise WeightsNotFound(
                    f"{path} is a link to nothing; remove it, or restore the encoder it leads to"
                )
        found = [(name, path) for path in folders if (name := _encoder_in(path)) is not None]
        if not found:
            raise WeightsNotFound(f"{weights} is no folder of an ensemble, which has {_HOLDS}")
        return cls([load_encoder(name, weights=path) for name, path in found]).eval()

    def _encoders(self) -> list[JointEncoder]:
        return cast(list[JointEncoder], list(self.members))

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        """Return the tokens of all tokenizers, one after the other, each behind a mark."""
        each = [member.tokenize(reports) for member in self._tokenizers]
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
        most = [member.card.max_tokens for member in self._tokenizers]
        made = [Tokens.padded(of, max_tokens=m) for of, m in zip(rows, most, strict=True)]
        return [each.to(tokens.ids.device) for each in made]

    def _pixels(self, pixels: Tensor) -> list[tuple[JointEncoder, Tensor]]:
        """Return each member with its pixels."""
        pipeline = self.image_pipeline
        parts = pipeline.apart(pixels) if isinstance(pipeline, JoinedPipeline) else [pixels]
        return [
            (each, parts[read]) for each, read in zip(self._encoders(), self._reads, strict=True)
        ]

    def embed_images(self, pixels: Tensor) -> Tensor:
        return _joined([each.embed_images(own) for each, own in self._pixels(pixels)])

    def embed_lateral_images(self, pixels: Tensor) -> Tensor:
        return _joined(
            [
                each.embed_lateral_images(own)
                if each.has_lateral_tower
                else own.new_zeros(len(own), each.card.dim)
                for each, own in self._pixels(pixels)
            ]
        )

    def embed_images_with_prior(self, pixels: Tensor, prior: Tensor) -> Tensor:
        """Embed with the members' earlier images; those that take none see the current one."""
        pairs = zip(self._pixels(pixels), self._pixels(prior), strict=True)
        return _joined(
            [
                each.embed_images_with_prior(own, earlier)
                if each.takes_prior
                else each.embed_images(own)
                for (each, own), (_, earlier) in pairs
            ]
        )

    def embed_reports(self, tokens: Tokens) -> Tensor:
        each = self._apart(tokens)
        members = zip(self._encoders(), self._kind_of, strict=True)
        return _joined([member.embed_reports(each[kind]) for member, kind in members])


def _encoder_in(folder: Path) -> str | None:
    """Return the name of the encoder whose checkpoint a subfolder has; None for anything else."""
    if not folder.is_dir():
        return None
    card = folder / CARD
    name = read_json(card, "card of an encoder").get("encoder") if card.is_file() else folder.name
    # A card must not name other code.
    return name if name in SHIPPED else None


def _joined(vectors: list[Tensor]) -> Tensor:
    each = [normalize(vector.float(), dim=1) for vector in vectors]
    return torch.cat(each, dim=1) / math.sqrt(len(each))
