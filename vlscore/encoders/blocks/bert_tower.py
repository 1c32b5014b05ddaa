"""BERT report towers, built from sizes written here and never from a hub."""

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


def all_layers(bert: Bert, tokens: Tokens) -> tuple[Tensor, ...]:
    """(n, L, hidden) for the embedding layer and for each transformer layer after it."""
    return tuple(bert.states(tokens.ids, tokens.mask))


def sum_over_tokens(states: Tensor, mask: Tensor) -> Tensor:
    """(n, L, hidden) -> (n, hidden) float32, padding left out."""
    # Under autocast the product would be taken in bfloat16, which cannot hold such sums.
    with torch.autocast(states.device.type, enabled=False):
        return torch.bmm(mask.float().unsqueeze(1), states.float()).squeeze(1)


def mean_over_tokens(states: Tensor, mask: Tensor) -> Tensor:
    """(n, L, hidden) -> (n, hidden) float32, padding left out."""
    return sum_over_tokens(states, mask) / mask.sum(dim=1, keepdim=True).clamp(min=1)
