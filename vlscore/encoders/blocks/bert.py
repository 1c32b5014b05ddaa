"""A linear map that is computed by oneDNN where MKL does not use the processor's units.

PyTorch multiplies matrices in float32 by Intel's MKL, which leaves the 512-bit units of other
makers' processors idle: on an AMD EPYC it reaches 100 of the 230 Gflop/s that oneDNN, the library
that PyTorch convolves with, reaches on one core. Both round as float32 does: either is as far from
the product in float64 as the other, and from each other within 2e-6 of the largest value.

BERT (Devlin et al., NAACL 2019) under the names that transformers gives its tensors.

The library's own model takes three seconds to import, most of what a short run would need. This is
the encoder alone, without pooler, decoder or cache; its numbers are those of the library to the
last digit where MKL computes both, which the tests compare.

BERT report towers, built from sizes written here and never from a hub.
"""

import platform
from collections.abc import Iterator
from functools import cache, partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from vlscore.encoders.base import Tokens
from vlscore.encoders.devices import of_weights_alone, processor_facts

Model = TypeVar("Model", bound=nn.Module)

# Rows are handed over in blocks: oneDNN keeps a program and a buffer for every number of rows that
# it has met, a megabyte and more each.
_ROWS_A_THREAD = 256
_MOST_ROWS = 4096
# A block is filled up to a multiple of this, so that few numbers of rows occur.
_MULTIPLE = 32


class Linear(nn.Linear):
    """nn.Linear, in half the time where `uses_onednn` holds and no gradient is wanted.

    A row's result is then the same whatever rows stand beside it. Weights in bfloat16 are
    multiplied in bfloat16, whatever comes in. Under autocast the numbers are PyTorch's; the weights
    become 16-bit ones once for all batches of `unchanging_weights`, not once for each.
    """

    def forward(self, input: Tensor) -> Tensor:
        """(..., in) -> (..., out)."""
        if self.weight.dtype is torch.bfloat16:
            return super().forward(input.to(torch.bfloat16))
        if _is_autocast_alone(input, self.weight):
            half = torch.get_autocast_dtype(input.device.type)
            weight, bias = of_weights_alone(self, partial(_cast, self, half))
            if weight.dtype is half:
                return nn.functional.linear(input.to(half), weight, bias)
        if not _is_for_onednn(input, self.weight):
            return super().forward(input)
        rows = input.reshape(-1, self.in_features)
        count = len(rows)
        block = min(_ROWS_A_THREAD * torch.get_num_threads(), _MOST_ROWS)
        if 0 < count <= block and count % _MULTIPLE == 0:
            found = self._product(rows)
        else:
            found = rows.new_empty(count, self.out_features)
            for start in range(0, count, block):
                part = rows[start : start + block]
                lacking = -len(part) % _MULTIPLE
                whole = nn.functional.pad(part, (0, 0, 0, lacking)) if lacking else part
                found[start : start + block] = self._product(whole)[: len(part)]
        return found.view(*input.shape[:-1], self.out_features)

    def _product(self, rows: Tensor) -> Tensor:
        # What torch.compile puts in the place of nn.Linear.
        found: Tensor = torch.ops.mkldnn._linear_pointwise(
            rows, self.weight, self.bias, "none", [], ""
        )
        return found


def by_onednn(model: Model) -> Model:
    """Let the linear maps of a library's model be computed as `Linear` does; returns the model."""
    for module in model.modules():
        if type(module) is nn.Linear:
            module.__class__ = Linear
    return model


def in_bfloat16(model: Model) -> Model:
    """Keep the weights of all `Linear` maps in bfloat16, and the rest as it is; returns the model.

    The numbers are those of PyTorch's autocast, which turns the same weights into bfloat16 again
    for every batch.
    """
    for module in model.modules():
        if isinstance(module, Linear):
            module.to(torch.bfloat16)
    return model


@cache
def uses_onednn() -> bool:
    """Whether this processor has 512-bit units that MKL leaves idle, and PyTorch has oneDNN."""
    facts = processor_facts()
    return (
        platform.machine() in ("x86_64", "AMD64")
        and "avx512f" in facts.flags
        and facts.maker not in ("", "GenuineIntel")
        and torch.backends.mkl.is_available()
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


def _cast(layer: nn.Linear, half: torch.dtype) -> tuple[Tensor, Tensor | None]:
    return layer.weight.to(half), None if layer.bias is None else layer.bias.to(half)


def _is_autocast_alone(input: Tensor, weight: Tensor) -> bool:
    """Autocast of float32 weights, nothing recorded."""
    return (
        torch.is_autocast_enabled(input.device.type)
        and weight.dtype is torch.float32
        and not torch.is_grad_enabled()
    )


def _is_for_onednn(input: Tensor, weight: Tensor) -> bool:
    """Plain float32 on a CPU, nothing recorded, compiled, cast or pretended."""
    return (
        not torch.compiler.is_compiling()
        and uses_onednn()
        and not torch.is_grad_enabled()
        and type(input) is Tensor
        and input.device.type == weight.device.type == "cpu"
        and input.dtype == weight.dtype == torch.float32
        and not torch.is_autocast_enabled("cpu")
        and bool(torch.backends.mkldnn.enabled)
    )


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
