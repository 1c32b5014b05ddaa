"""BERT (Devlin et al., NAACL 2019) under the names that transformers gives its tensors.

The library's own model takes three seconds to import, most of what a short run would need. This is
the encoder alone, without pooler, decoder or cache; its numbers are those of the library to the
last digit where MKL computes both, which the tests compare.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from vlscore.encoders.blocks.linear import Linear

_EPSILON = 1e-12
_DROPOUT = 0.1
_SPREAD = 0.02


class Bert(nn.Module):
    """Word pieces in, a vector for each of them out.

    Args:
        pieces: size of the vocabulary.
        hidden: width of the vectors.
        layers, heads: of the transformer.
        inner: width between the two linear maps of a layer.
        positions, segments: how many embeddings there are of each.
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

    def forward(self, ids: Tensor, mask: Tensor, positions: Tensor | None = None) -> Tensor:
        """(n, L, hidden): what the last layer gives; the arguments are those of `states`."""
        for state in self.states(ids, mask, positions):
            last = state
        return last

    def states(
        self, ids: Tensor, mask: Tensor, positions: Tensor | None = None
    ) -> Iterator[Tensor]:
        """(n, L, hidden) of the embeddings, then of each layer.

        Args:
            ids: (n, L), the word pieces.
            mask: (n, L), not 0 at tokens, 0 at padding.
            positions: (n, L), where each token stands; default: in their order.
        """
        attended = None
        if not bool(mask.all()):
            attended = mask.bool()[:, None, None, :].expand(-1, -1, ids.shape[1], -1)
        state = self.embeddings(ids, positions)
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
        self.attention.self = _Attention(hidden, heads)
        self.attention.output = _AddedUp(hidden, hidden)
        self.intermediate = nn.Module()
        self.intermediate.dense = Linear(hidden, inner)
        self.output = _AddedUp(inner, hidden)

    def forward(self, state: Tensor, attended: Tensor | None) -> Tensor:
        seen = self.attention.output(self.attention.self(state, attended), state)  # type: ignore[operator]
        wide = functional.gelu(self.intermediate.dense(seen))  # type: ignore[operator]
        found: Tensor = self.output(wide, seen)
        return found


class _Attention(nn.Module):
    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = Linear(hidden, hidden)
        self.key = Linear(hidden, hidden)
        self.value = Linear(hidden, hidden)

    def forward(self, state: Tensor, attended: Tensor | None) -> Tensor:
        query, key, value = (
            linear(state).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )
        found = functional.scaled_dot_product_attention(
            query, key, value, attended, dropout_p=_DROPOUT if self.training else 0.0
        )
        return found.transpose(1, 2).flatten(-2)


class _AddedUp(nn.Module):
    """A linear map, added to what went into the part of the layer that it ends, normalised."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.dense = Linear(width, hidden)
        self.LayerNorm = nn.LayerNorm(hidden, eps=_EPSILON)
        self.dropout = nn.Dropout(_DROPOUT)

    def forward(self, state: Tensor, before: Tensor) -> Tensor:
        found: Tensor = self.LayerNorm(self.dropout(self.dense(state)) + before)
        return found
