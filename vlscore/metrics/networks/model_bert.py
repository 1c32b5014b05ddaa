"""Helpers of networks that read reports: batches of similar length, and BERT from a checkpoint."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from vlscore.encoders import Bert, load_state_dict, without_initialisation
from vlscore.errors import IncompatibleCheckpoint, InvalidSetting

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

Precision = Literal["fp32", "bf16"]


class BertInBfloat16(Bert):
    """A BERT that computes as under autocast; the weights of its linear maps are bfloat16."""

    def forward(self, ids: Tensor, mask: Tensor, positions: Tensor | None = None) -> Tensor:
        with torch.autocast(ids.device.type, dtype=torch.bfloat16):
            return super().forward(ids, mask, positions).float()


def bert_of(tensors: Mapping[str, Tensor], source: Path, precision: Precision = "fp32") -> Bert:
    """Build a BERT encoder without its pooler from tensors under transformers' names.

    Args:
        source: file of the tensors, for messages.
        precision: of the linear maps and of attention; all else is in float32.

    Raises: IncompatibleCheckpoint if they belong to another architecture; InvalidSetting.
    """
    if precision not in get_args(Precision):
        raise InvalidSetting(f'precision must be "fp32" or "bf16" here, not {precision!r}')
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
        bert = (Bert if precision == "fp32" else BertInBfloat16)(
            pieces,
            hidden=hidden,
            layers=len(layers),
            heads=hidden // _HEAD_WIDTH,
            inner=inner,
            positions=positions,
            segments=segments,
        )
    load_state_dict(bert, tensors, source=source, unused=_UNUSED)
    # Checkpoints of any precision are read in float32.
    bert = bert.float().eval()
    if precision == "bf16":
        for module in bert.modules():
            if isinstance(module, nn.Linear):
                module.to(torch.bfloat16)
    return bert


def check_heads(bert: Bert, source: Path, folders: Iterable[Path]) -> None:
    """Compare the number of attention heads with a transformers config.json, if there is one.

    No tensor shows it, and a wrong number would change every result without an error.

    Args: folders: where config.json may be: the folders of weights and vocabulary.
    Raises: IncompatibleCheckpoint if it has another number for a BERT of this width.
    """
    for path in dict.fromkeys(folder / "config.json" for folder in folders):
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
            hidden, heads = config["hidden_size"], config["num_attention_heads"]
        except (OSError, ValueError, KeyError, TypeError):
            # This is RadGraph's own configuration, which has the same file name.
            continue
        if hidden == bert.hidden and heads != bert.hidden // _HEAD_WIDTH:
            raise IncompatibleCheckpoint(
                f"{path} has {heads} attention heads for a BERT that is {hidden} wide; {source} "
                f"can only be read with heads that are {_HEAD_WIDTH} wide, as in every published "
                "one"
            )


def part_of(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Return the tensors whose names begin with the prefix, under names without it."""
    return {key.removeprefix(prefix): t for key, t in tensors.items() if key.startswith(prefix)}
