"""BioViL-T's transformer over the places of a current and a previous image."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

_HEADS = 8
_BLOCKS = 3
_EPSILON = 1e-6
_TEMPERATURE = 10_000


class TemporalPooler(nn.Module):
    """What changed, at each place, between two images (Bannur et al. 2023, section 3.1).

    Args:
        width: channels of both feature maps.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(_Block(width) for _ in range(_BLOCKS))
        self.norm_post = nn.LayerNorm(width, eps=_EPSILON)
        self.type_embed = nn.Parameter(torch.zeros(2, 1, width))

    def forward(self, current: Tensor, previous: Tensor) -> Tensor:
        """(n, width, h, w) twice -> (n, width, h, w)."""
        _, width, height, columns = current.shape
        tokens = torch.cat([_as_tokens(current), _as_tokens(previous)], dim=1)
        places = sine_positions(height, columns, width).to(tokens)
        offsets = torch.cat([places + kind for kind in self.type_embed])
        for block in self.blocks:
            tokens = block(tokens, offsets)
        changed = self.norm_post(tokens)[:, : height * columns]
        found: Tensor = changed.transpose(1, 2).unflatten(2, (height, columns))
        return found


class _Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.proj_q, self.proj_k, self.proj_v = (
            nn.Linear(width, width, bias=False) for _ in range(3)
        )
        self.proj = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        q, k, v = (
            projection(tokens).unflatten(2, (_HEADS, -1)).transpose(1, 2)
            for projection in (self.proj_q, self.proj_k, self.proj_v)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v)
        found: Tensor = self.proj(mixed.transpose(1, 2).flatten(2))
        return found


class _Mlp(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, width)
        self.fc2 = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        found: Tensor = self.fc2(functional.gelu(self.fc1(tokens)))
        return found


class _Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=_EPSILON)
        self.attn = _Attention(width)
        self.norm2 = nn.LayerNorm(width, eps=_EPSILON)
        self.mlp = _Mlp(width)

    def forward(self, tokens: Tensor, offsets: Tensor) -> Tensor:
        # Positions enter queries, keys and values alike, in every block.
        tokens = tokens + self.attn(self.norm1(tokens) + offsets)
        found: Tensor = tokens + self.mlp(self.norm2(tokens))
        return found


def sine_positions(height: int, width: int, channels: int) -> Tensor:
    """(height * width, channels): DETR's sine embedding of places, rows in the first half."""
    half = channels // 2
    powers = _TEMPERATURE ** (2 * torch.div(torch.arange(half), 2, rounding_mode="floor") / half)
    rows = _waves(height, powers)[:, None].expand(-1, width, -1)
    columns = _waves(width, powers)[None].expand(height, -1, -1)
    return torch.cat([rows, columns], dim=-1).flatten(0, 1)


def _waves(count: int, powers: Tensor) -> Tensor:
    steps = torch.arange(1, count + 1, dtype=torch.float32)
    angles = (steps / (steps[-1] + 1e-6) * (2 * math.pi))[:, None] / powers
    return torch.stack([angles[:, 0::2].sin(), angles[:, 1::2].cos()], dim=-1).flatten(1)


def _as_tokens(feature_map: Tensor) -> Tensor:
    return feature_map.flatten(2).transpose(1, 2)
