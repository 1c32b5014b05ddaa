"""BERT (Devlin et al., NAACL 2019) under the names that transformers gives its tensors.

The library's own model takes three seconds to import, most of the time of a short run. This is the
encoder alone, without pooler, decoder or cache. The tests compare its numbers with the library's.
Sizes are written here and never come from a hub.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from vlscore.encoders.base import Tokens

_EPSILON = 1e-12
_DROPOUT = 0.1
_SPREAD = 0.02


class Bert(nn.Module):
    """BERT encoder: a vector for each word piece; by default of the size BERT-base.

    Args:
        pieces: size of the vocabulary.
        hidden: width of the vectors.
        layers, heads: numbers of layers and of attention heads.
        inner: width between the two linear maps of a layer.
        positions, segments: number of embeddings of each.
    """

    def __init__(
        self,
        pieces: int,
        *,
        hidden: int = 768,
        layers: int = 12,
        heads: int = 12,
        inner: int = 3072,
        positions: int = 512,
        segments: int = 2,
    ) -> None:
        super().__init__()
        self.pieces, self.hidden, self.positions = pieces, hidden, positions
        self.embeddings = _Embeddings(pieces, hidden, positions, segments)
        self.encoder = nn.Module()
        self.encoder.layer = nn.ModuleList(_Layer(hidden, heads, inner) for _ in range(layers))
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=_SPREAD)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, tokens: Tokens, positions: Tensor | None = None) -> Tensor:
        """Return the last layer's state at each token, (n, L, hidden) float32."""
        for state in self.states(tokens, positions):
            last = state
        return last.float()

    def states(self, tokens: Tokens, positions: Tensor | None = None) -> Iterator[Tensor]:
        """Return (n, L, hidden) of the embeddings, then of each layer.

        Args: positions: (n, L), position of each token; default: in their order.
        """
        attended = None
        if not bool(tokens.mask.all()):
            attended = tokens.mask.bool()[:, None, None].expand(-1, -1, tokens.mask.shape[1], -1)
        state = self.embeddings(tokens.ids, positions)
        yield state
        for layer in self.encoder.layer:  # type: ignore[union-attr]
            state = layer(state, attended)
            yield state


class _Embeddings(nn.Module):
    def __init__(self, pieces: int, hidden: int, positions: int, segments: int) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(pieces, hidden)
        self.position_embeddings = nn.Embedding(positions, hidden)
        self.token_type_embeddings = nn.Embedding(segments, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, eps=_EPSILON)
        self.dropout = nn.Dropout(_DROPOUT)

    def forward(self, ids: Tensor, positions: Tensor | None) -> Tensor:
        if positions is None:
            positions = torch.arange(ids.shape[1], device=ids.device)[None]
        # One text is one segment, the first.
        found = self.word_embeddings(ids) + self.token_type_embeddings(torch.zeros_like(ids))
        found = found + self.position_embeddings(positions)
        normalised: Tensor = self.dropout(self.LayerNorm(found))
        return normalised


class _Layer(nn.Module):
    def __init__(self, hidden: int, heads: int, inner: int) -> None:
        super().__init__()
        self.attention = nn.Module()
        self.attention.self = _BertAttention(hidden, heads)
        self.attention.output = _ResidualOutput(hidden, hidden)
        self.intermediate = nn.Module()
        self.intermediate.dense = nn.Linear(hidden, inner)
        self.output = _ResidualOutput(inner, hidden)

    def forward(self, state: Tensor, attended: Tensor | None) -> Tensor:
        seen = self.attention.output(self.attention.self(state, attended), state)  # type: ignore[operator]
        wide = functional.gelu(self.intermediate.dense(seen))  # type: ignore[operator]
        found: Tensor = self.output(wide, seen)
        return found


class _BertAttention(nn.Module):
    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)

    def forward(self, state: Tensor, attended: Tensor | None) -> Tensor:
        query, key, value = (
            linear(state).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )
        found = functional.scaled_dot_product_attention(
            query, key, value, attended, dropout_p=_DROPOUT if self.training else 0.0
        )
        return found.transpose(1, 2).flatten(-2)


class _ResidualOutput(nn.Module):
    """A linear map, added to the input of its part of the layer, then normalised."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, eps=_EPSILON)
        self.dropout = nn.Dropout(_DROPOUT)

    def forward(self, state: Tensor, before: Tensor) -> Tensor:
        found: Tensor = self.LayerNorm(self.dropout(self.dense(state)) + before)
        return found


CLINICAL_BERT_VOCABULARY = 28996
CXR_BERT_VOCABULARY = 30522


@torch.no_grad()
def attention_of_first(bert: Bert, states: Tensor, mask: Tensor) -> Tensor:
    """Return the first token's attention in the last layer, (n, L), the mean over heads.

    The model does not store its attention; that of one token is quick to compute again.

    Args:
        states: (n, L, hidden), input of the last layer.
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
    """Add (n, L, hidden) over tokens -> (n, hidden) float32, without padding."""
    # Under autocast the product would be taken in bfloat16, which cannot hold such sums.
    with torch.autocast(states.device.type, enabled=False):
        return torch.bmm(mask.float().unsqueeze(1), states.float()).squeeze(1)


def mean_over_tokens(states: Tensor, mask: Tensor) -> Tensor:
    """Average (n, L, hidden) over tokens -> (n, hidden) float32, without padding."""
    return sum_over_tokens(states, mask) / mask.sum(dim=1, keepdim=True).clamp(min=1)
