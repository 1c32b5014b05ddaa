"""Swin-T (Liu et al. 2021): timm's model with the tensors of a transformers checkpoint."""

import re

import torch
from timm.models.swin_transformer import SwinTransformer
from torch import Tensor, nn

from vlscore.encoders.blocks.linear import by_onednn

_RENAMED = (
    (r"^embeddings\.patch_embeddings\.projection\.", "patch_embed.proj."),
    (r"^embeddings\.norm\.", "patch_embed.norm."),
    (r"^layernorm\.", "norm."),
    (r"^encoder\.", ""),
    (r"\.layernorm_before\.", ".norm1."),
    (r"\.layernorm_after\.", ".norm2."),
    (r"\.attention\.self\.relative_position_", ".attn.relative_position_"),
    (r"\.attention\.self\.", ".attn."),
    (r"\.attention\.output\.dense\.", ".attn.proj."),
    (r"\.intermediate\.dense\.", ".mlp.fc1."),
    (r"\.output\.dense\.", ".mlp.fc2."),
)


class SwinTiny(nn.Module):
    """Patch 4, window 7, 224 pixels; (n, 3, 224, 224) -> (n, 768), the mean over 49 places."""

    width = 768

    def __init__(self) -> None:
        super().__init__()
        self.swin = by_onednn(
            SwinTransformer(
                img_size=224,
                patch_size=4,
                window_size=7,
                embed_dim=96,
                depths=(2, 2, 6, 2),
                num_heads=(3, 6, 12, 24),
                num_classes=0,
            )
        )

    def forward(self, pixels: Tensor) -> Tensor:
        return self.swin.forward_features(pixels).mean(dim=(1, 2))

    @staticmethod
    def from_transformers(tensors: dict[str, Tensor], *, prefix: str) -> dict[str, Tensor]:
        """Rename what transformers' SwinModel calls its tensors; join queries, keys and values.

        Args:
            tensors: a whole checkpoint; tensors without `prefix` stay as they are.
            prefix: where the model stands in it.
        """
        converted: dict[str, Tensor] = {}
        for key, value in tensors.items():
            if key.startswith(prefix):
                converted[f"{prefix}swin.{_timm_name(key.removeprefix(prefix))}"] = value
            else:
                converted[key] = value
        for query in [key for key in converted if ".attn.query." in key]:
            parts = [query.replace(".query.", f".{part}.") for part in ("query", "key", "value")]
            if all(part in converted for part in parts):
                joined = torch.cat([converted.pop(part) for part in parts])
                converted[query.replace(".query.", ".qkv.")] = joined
        return converted


def _timm_name(name: str) -> str:
    for pattern, replacement in _RENAMED:
        name = re.sub(pattern, replacement, name)
    # transformers merges patches at the end of a stage, timm at the start of the next.
    return re.sub(
        r"^layers\.(\d)\.downsample\.",
        lambda match: f"layers.{int(match[1]) + 1}.downsample.",
        name,
    )
