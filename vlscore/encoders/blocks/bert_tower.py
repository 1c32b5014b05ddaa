"""BERT report towers, built from sizes written here and never from a hub."""

from typing import Any

import torch
from torch import Tensor

from vlscore.encoders.blocks.bert import Bert
from vlscore.encoders.tokens import Tokens

CLINICAL_BERT_VOCABULARY = 28996
CXR_BERT_VOCABULARY = 30522


def bert_base(vocabulary: int, *, layers: int = 12, segments: int = 2) -> Bert:
    """A BERT-base encoder without its pooler (Devlin et al. 2019).

    Args:
        vocabulary: number of word pieces.
        layers: number of transformer layers.
        segments: number of segment (token type) embeddings.
    """
    return Bert(vocabulary, layers=layers, segments=segments)


def last_layer(bert: Bert, tokens: Tokens, positions: Tensor | None = None) -> Tensor:
    """(n, L, hidden) float32: what the last layer gives at each token.

    Args:
        positions: (n, L), where each token stands; default: in their order.
    """
    found: Tensor = bert(tokens.ids, tokens.mask, positions).float()
    return found


def all_layers(bert: Bert, tokens: Tokens, positions: Tensor | None = None) -> tuple[Tensor, ...]:
    """(n, L, hidden) for the embedding layer and for each transformer layer after it.

    Args:
        positions: as of `last_layer`.
    """
    return tuple(bert.states(tokens.ids, tokens.mask, positions))


@torch.no_grad()
def attention_of_first(bert: Bert, states: Tensor, mask: Tensor) -> Tensor:
    """(n, L), what the first token attends to in the last layer, the mean over heads.

    The model does not keep its attention; that of one token is quickly found again.

    Args:
        states: (n, L, hidden), what enters the last layer.
        mask: (n, L), 1 at tokens.
    """
    layers: Any = bert.encoder.layer
    attention = layers[-1].attention.self
    query = attention.query(states[:, :1]).unflatten(2, (attention.heads, -1))
    keys = attention.key(states).unflatten(2, (attention.heads, -1))
    products = torch.einsum("nqhd,nkhd->nhk", query.float(), keys.float()) / keys.shape[-1] ** 0.5
    found: Tensor = products.masked_fill(mask[:, None] == 0, -torch.inf).softmax(2).mean(1)
    return found


def sum_over_tokens(states: Tensor, mask: Tensor) -> Tensor:
    """(n, L, hidden) -> (n, hidden) float32, padding left out."""
    # Under autocast the product would be taken in bfloat16, which cannot hold such sums.
    with torch.autocast(states.device.type, enabled=False):
        return torch.bmm(mask.float().unsqueeze(1), states.float()).squeeze(1)


def mean_over_tokens(states: Tensor, mask: Tensor) -> Tensor:
    """(n, L, hidden) -> (n, hidden) float32, padding left out."""
    return sum_over_tokens(states, mask) / mask.sum(dim=1, keepdim=True).clamp(min=1)
