"""Helpers of networks that read reports: batches of similar length, and BERT from a checkpoint."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from torch import Tensor

from vlscore.encoders import Bert, load_state_dict, without_initialisation
from vlscore.errors import IncompatibleCheckpoint

# Tokens of a batch, padding included. On a processor more tokens exceed its caches and gain
# nothing; a GPU needs many to be busy.
_TOKENS_AT_ONCE = {"cpu": 512}
_TOKENS_OF_OTHERS = 16384
# Largest share of a batch that may be padding.
_MOST_PADDING = 1 / 8


def groups_of_like_length(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Yield batches of positions of reports with similar length, so that little is padded.

    Args:
        lengths: number of tokens of each report.
        tokens: limit for a batch, in which each report counts with the length of the longest.

    >>> list(groups_of_like_length([8, 40, 7, 39], tokens=80))
    [[2, 0], [3, 1]]
    """
    group: list[int] = []
    held = 0
    for position in sorted(range(len(lengths)), key=lambda p: (lengths[p], p)):
        # In ascending order each report is the longest of its group so far.
        held += lengths[position]
        padded = (len(group) + 1) * lengths[position]
        if group and (padded > tokens or padded - held > _MOST_PADDING * padded):
            yield group
            group, held = [], lengths[position]
        group.append(position)
    if group:
        yield group


def tokens_at_once(device: str) -> int:
    """Return the tokens per batch for a kind of device, such as "cpu" or "cuda"."""
    return _TOKENS_AT_ONCE.get(device, _TOKENS_OF_OTHERS)


# Every BERT of Devlin et al. 2019 has attention heads of this width; no tensor shows it.
_HEAD_WIDTH = 64
_LAYER = re.compile(r"encoder\.layer\.(\d+)\.")
_UNUSED = ("pooler.*",)


def bert_of(tensors: Mapping[str, Tensor], source: Path) -> Bert:
    """Build a BERT encoder without its pooler, in float32, from transformers' tensors.

    Args: source: file of the tensors, for messages.

    Raises: IncompatibleCheckpoint if they belong to another architecture.
    """
    try:
        pieces, hidden = tensors["embeddings.word_embeddings.weight"].shape
        positions = len(tensors["embeddings.position_embeddings.weight"])
        segments = len(tensors["embeddings.token_type_embeddings.weight"])
        inner = len(tensors["encoder.layer.0.intermediate.dense.weight"])
    except (KeyError, ValueError, TypeError):
        raise IncompatibleCheckpoint(
            f"{source} has no BERT encoder: its layers or embeddings do not have the names of "
            "transformers' BertModel"
        ) from None
    if hidden % _HEAD_WIDTH:
        raise IncompatibleCheckpoint(
            f"{source}: its BERT is {hidden} wide, which is not a multiple of {_HEAD_WIDTH}"
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
    load_state_dict(bert, tensors, source=source, unused=_UNUSED)
    return bert.float().eval()


def part_of(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names begin with the prefix, under names without it."""
    return {key.removeprefix(prefix): t for key, t in tensors.items() if key.startswith(prefix)}
