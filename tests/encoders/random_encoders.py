"""Published encoders with random weights and few layers, which are made in a moment."""

import contextlib
import string
from collections.abc import Iterator
from functools import cache
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from vlscore.encoders import JointEncoder, WordPieceTokenizer, find_encoder

# Their report vectors read layers besides the last; two layers are enough for others.
READ_MORE_LAYERS = ("gloria", "limitr", "medclip-resnet", "medclip-vit")
EQUAL_LAYERS = {"_Bottleneck", "Block", "SwinTransformerBlock", "ResidualAttentionBlock"}
_BERT_VOCABULARIES, _PIECES = (28_996, 30_522), 1_024
# A prime: rows of a weight then begin at different numbers.
_COUNT = 65_521


def word_pieces(*words: str) -> WordPieceTokenizer:
    """A small vocabulary that can spell everything."""
    letters = string.ascii_lowercase + string.digits + string.punctuation
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *(f"##{x}" for x in letters)]
    return WordPieceTokenizer({piece: number for number, piece in enumerate([*pieces, *words])})


def random_encoder(name: str, tokenizer: Any) -> JointEncoder:
    """Make an encoder by its name, in eval mode."""
    with quick_weights():
        encoder: JointEncoder = find_encoder(name)[0](tokenizer)  # type: ignore[operator]
    shorten(encoder)
    leave_pieces(encoder)
    return encoder.eval()


def leave_pieces(encoder: JointEncoder) -> None:
    """Leave of BERT's vocabularies more than the pieces that `word_pieces` makes."""
    for module in encoder.modules():
        if isinstance(module, nn.Embedding) and module.num_embeddings in _BERT_VOCABULARIES:
            module.weight = nn.Parameter(module.weight[:_PIECES].detach().clone())
            module.num_embeddings = _PIECES


def shorten(encoder: JointEncoder) -> None:
    """Leave some of many equal layers: each does what the others do.

    Two blocks of a ResNet's stage are left, because the first differs from the others, and two of
    Swin's long stage, because every second one shifts its windows. Tests of parity compute with
    all layers.
    """
    reports = 4 if encoder.card.name in READ_MORE_LAYERS else 2
    for module in encoder.modules():
        if isinstance(module, nn.ModuleList | nn.Sequential) and len(module) >= 3:
            kinds = {type(layer).__name__ for layer in module}
            if kinds == {"_Layer"}:
                del module[reports:]
            elif kinds < EQUAL_LAYERS and len(kinds) == 1:
                del module[2:]


@contextlib.contextmanager
def quick_weights() -> Iterator[None]:
    """Have random tensors filled with numbers drawn once: drawing 10^8 of them takes seconds."""

    def normal(tensor: Tensor, mean: float = 0.0, std: float = 1.0, **_: Any) -> Tensor:
        return _filled(tensor, "normal").mul_(std).add_(mean)

    def uniform(tensor: Tensor, low: float = 0.0, high: float = 1.0, **_: Any) -> Tensor:
        return _filled(tensor, "uniform").mul_(high - low).add_(low)

    with (
        mock.patch.object(Tensor, "normal_", normal),
        mock.patch.object(Tensor, "uniform_", uniform),
    ):
        yield


def _filled(tensor: Tensor, distribution: str) -> Tensor:
    count = tensor.numel()
    whole, rest = divmod(count, _COUNT)
    flat, numbers = tensor.view(-1), _numbers(distribution)
    flat[: whole * _COUNT].view(whole, _COUNT).copy_(numbers.expand(whole, _COUNT))
    flat[whole * _COUNT :].copy_(numbers[:rest])
    return tensor


@cache
def _numbers(distribution: str) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    if distribution == "normal":
        return torch.randn(_COUNT, generator=generator)
    return torch.rand(_COUNT, generator=generator)
