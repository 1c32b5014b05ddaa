"""BERT (Devlin et al., NAACL 2019) under the names that transformers gives its tensors.

The library's own model takes three seconds to import, most of the time of a short run. This is the
encoder alone, without pooler, decoder or cache. Its numbers equal those of the library to the last
digit if MKL computes both, which the tests compare. Sizes are written here and never come from a
hub.

`Linear` is a linear map that oneDNN computes if MKL does not use the processor's units. PyTorch
multiplies matrices in float32 by Intel's MKL, which leaves the 512-bit units of other makers'
processors idle: on an AMD EPYC it reaches 100 Gflop/s on one core, and oneDNN, which PyTorch uses
for convolutions, reaches 230. Both round as float32 does: each is as far from the product in
float64 as the other, and they differ by at most 2e-6 of the largest value.
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

# Rows are multiplied in blocks: oneDNN stores a program and a buffer for every number of rows, a
# megabyte and more each.
_ROWS_A_THREAD = 256
_MOST_ROWS = 4096
# A block is padded to a multiple of this, so that few numbers of rows occur.
_MULTIPLE = 32


class Linear(nn.Linear):
    """nn.Linear, in half the time if `uses_onednn` holds and no gradient is needed.

    A row's result then does not depend on the other rows. Weights in bfloat16 are multiplied in
    bfloat16 for any input type. Under autocast the numbers are PyTorch's; the weights become 16-bit
    once for all batches of `unchanging_weights`, not once for each.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Map (..., in) -> (..., out)."""
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
        # Under torch.compile: the operation that replaces nn.Linear.
        found: Tensor = torch.ops.mkldnn._linear_pointwise(
            rows, self.weight, self.bias, "none", [], ""
        )
        return found


def by_onednn(model: Model) -> Model:
    """Replace the linear maps of a library's model by `Linear`; return the model."""
    for module in model.modules():
        if type(module) is nn.Linear:
            module.__class__ = Linear
    return model


def in_bfloat16(model: Model) -> Model:
    """Convert the weights of all `Linear` maps to bfloat16, and nothing else; return the model.

    The numbers are those of PyTorch's autocast, which turns the same weights into bfloat16 again
    for every batch.
    """
    for module in model.modules():
        if isinstance(module, Linear):
            module.to(torch.bfloat16)
    return model


@cache
def uses_onednn() -> bool:
    """Return True if this processor has 512-bit units that MKL leaves idle, and oneDNN exists."""
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
    """Return True for autocast of float32 weights without gradients."""
    return (
        torch.is_autocast_enabled(input.device.type)
        and weight.dtype is torch.float32
        and not torch.is_grad_enabled()
    )


def _is_for_onednn(input: Tensor, weight: Tensor) -> bool:
    """Return True for float32 on a CPU without gradients, compilation, autocast or a subclass."""
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

    def forward(self, ids: Tensor, mask: Tensor, positions: Tensor | None = None) -> Tensor:
        """Return the last layer's states (n, L, hidden); the arguments are those of `states`."""
        for state in self.states(ids, mask, positions):
            last = state
        return last

    def states(
        self, ids: Tensor, mask: Tensor, positions: Tensor | None = None
    ) -> Iterator[Tensor]:
        """Return (n, L, hidden) of the embeddings, then of each layer.

        Args:
            ids: (n, L), the word pieces.
            mask: (n, L), not 0 at tokens, 0 at padding.
            positions: (n, L), position of each token; default: in their order.
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
        self.attention.self = _BertAttention(hidden, heads)
        self.attention.output = _ResidualOutput(hidden, hidden)
        self.intermediate = nn.Module()
        self.intermediate.dense = Linear(hidden, inner)
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


class _ResidualOutput(nn.Module):
    """A linear map, added to the input of its part of the layer, then normalised."""

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


def last_layer(bert: Bert, tokens: Tokens, positions: Tensor | None = None) -> Tensor:
    """Return the last layer's state at each token, (n, L, hidden) float32.

    Args:
        positions: (n, L), position of each token; default: in their order.
    """
    found: Tensor = bert(tokens.ids, tokens.mask, positions).float()
    return found


def all_layers(bert: Bert, tokens: Tokens, positions: Tensor | None = None) -> tuple[Tensor, ...]:
    """Return (n, L, hidden) for the embedding layer and for each transformer layer after it.

    Args:
        positions: as of `last_layer`.
    """
    return tuple(bert.states(tokens.ids, tokens.mask, positions))


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
