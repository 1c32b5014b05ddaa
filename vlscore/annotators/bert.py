"""BERT of the size that a checkpoint's tensors have, filled with them."""

import re
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor

from vlscore.encoders.blocks.bert import Bert
from vlscore.encoders.blocks.building import fill, without_initialisation
from vlscore.errors import IncompatibleCheckpoint

# Every BERT of Devlin et al. 2019 has attention heads of this width; no tensor shows it.
_HEAD_WIDTH = 64
_LAYER = re.compile(r"encoder\.layer\.(\d+)\.")
_UNUSED = ("pooler.*",)


def bert_of(tensors: Mapping[str, Tensor], source: Path) -> Bert:
    """A BERT encoder without its pooler, in float32, from tensors under transformers' names.

    Args:
        source: where they come from, for messages.

    Raises: IncompatibleCheckpoint where they are of another architecture.
    """
    try:
        pieces, hidden = tensors["embeddings.word_embeddings.weight"].shape
        positions = len(tensors["embeddings.position_embeddings.weight"])
        segments = len(tensors["embeddings.token_type_embeddings.weight"])
        inner = len(tensors["encoder.layer.0.intermediate.dense.weight"])
    except (KeyError, ValueError, TypeError):
        raise IncompatibleCheckpoint(
            f"{source} holds no BERT encoder: its layers or embeddings are not named as "
            "transformers names those of BertModel"
        ) from None
    if hidden % _HEAD_WIDTH:
        raise IncompatibleCheckpoint(
            f"{source}: its BERT is {hidden} wide, which is no multiple of {_HEAD_WIDTH}"
        )
    layers = {int(found[1]) for key in tensors if (found := _LAYER.match(key))}
    with without_initialisation():
        bert = Bert(
            pieces,
            hidden=hidden,
            layers=len(layers),
            heads=hidden // _HEAD_WIDTH,
            inner=inner,
            positions=positions,
            segments=segments,
        )
    fill(bert, tensors, source=source, unused=_UNUSED)
    # Checkpoints of any precision are read in float32.
    return bert.float().eval()


def part_of(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin so, without the beginning."""
    return {key.removeprefix(prefix): t for key, t in tensors.items() if key.startswith(prefix)}
