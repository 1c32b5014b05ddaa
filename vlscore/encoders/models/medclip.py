"""MedCLIP (Wang, Wu, Agarwal and Sun, EMNLP 2022), with ResNet-50 and with Swin-T.

Swin-T (Liu et al. 2021) is timm's model, filled with the tensors of a transformers checkpoint.
"""

import re
from typing import ClassVar

import numpy as np
import torch
from PIL import Image
from timm.models.swin_transformer import SwinTransformer
from torch import Tensor, nn
from torch.nn import functional

from vlscore.encoders.base import Tokens
from vlscore.encoders.blocks.bert import (
    CLINICAL_BERT_VOCABULARY,
    Bert,
    mean_over_tokens,
)
from vlscore.encoders.blocks.convolutional import POOLED_WIDTH, ResNet50
from vlscore.encoders.blocks.pixels import Grey, Uint8Pipeline, check_square, read_grey_with_pillow
from vlscore.encoders.blocks.tokenizers import WordPieceTokenizer
from vlscore.encoders.published import Part, PublishedEncoder

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


def timm_names_of_swin(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Rename the tensors of transformers' SwinModel for timm; join queries, keys and values.

    Args:
        tensors: a whole checkpoint; tensors without `prefix` do not change.
        prefix: prefix of the model's keys in it.
    """
    converted: dict[str, Tensor] = {}
    for key, value in tensors.items():
        is_swin = key.startswith(prefix)
        converted[prefix + _timm_name(key.removeprefix(prefix)) if is_swin else key] = value
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


DIM = 512
SIDE = 224
_BERT_WIDTH = 768
# Rounded to float32, because the authors compute in it.
_MEAN, _STD = float(np.float32(0.5862785803043838)), float(np.float32(0.27950088968644304))
_SCALE = float(np.float32(1 / 255))


class SquareCanvasPipeline(Uint8Pipeline):
    """Centre on a black square of at least 224 pixels, then reduce to 224 bicubically.

    One channel; an image smaller than 224 pixels gets a border and is not enlarged.
    """

    read_as_authors = staticmethod(read_grey_with_pillow)

    def uint8_pixels(self, picture: Grey, name: str) -> Grey:
        height, width = picture.shape
        check_square(height, width, name)
        side = max(SIDE, height, width)
        canvas = Image.new("L", (side, side), 0)
        canvas.paste(Image.fromarray(picture), (int((side - width) / 2), int((side - height) / 2)))
        return np.array(canvas.resize((SIDE, SIDE), Image.Resampling.BICUBIC))[np.newaxis]

    def from_stored(self, stored: Tensor) -> Tensor:
        return stored.float().mul(_SCALE).sub(_MEAN).div(_STD)


class MedclipResNetTower(nn.Module):
    """ResNet-50 whose last layer projects to 512 dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.model = ResNet50()
        self.model.fc = nn.Linear(POOLED_WIDTH, DIM, bias=False)

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.model(pixels)
        return found


class SwinTower(nn.Module):
    """Swin-T (Liu et al. 2021), its mean over 49 places, and a projection to 512 dimensions."""

    def __init__(self) -> None:
        super().__init__()
        # Patch 4, window 7, 224 pixels, width 96, 2, 2, 6 and 2 blocks: the defaults.
        self.model = SwinTransformer(num_classes=0)
        self.projection_head = nn.Linear(self.model.num_features, DIM, bias=False)

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.projection_head(self.model.forward_features(pixels).mean(dim=(1, 2)))
        return found


class MedclipReportTower(nn.Module):
    """Bio_ClinicalBERT: mean over tokens of its layers 1, 2 and 12, projected.

    The authors' mean includes padding, so their embedding depends on the longest report of the
    batch. This mean over the report's own tokens equals theirs for a report that is alone.
    """

    def __init__(self) -> None:
        super().__init__()
        self.model = Bert(CLINICAL_BERT_VOCABULARY)
        self.projection_head = nn.Linear(_BERT_WIDTH, DIM, bias=False)

    def forward(self, tokens: Tokens) -> Tensor:
        layers = tuple(self.model.states(tokens))
        means = [mean_over_tokens(layers[number], tokens.mask) for number in (1, 2, -1)]
        found: Tensor = self.projection_head(torch.stack(means).mean(dim=0))
        return found


class _MedclipFamily(PublishedEncoder):
    """Both towers, 512 dimensions, unit length."""

    parts = (Part(unused=("text_model.model.pooler.*", "logit_scale")),)
    pipeline = SquareCanvasPipeline
    image_tower: ClassVar[type[nn.Module]]

    def __init__(self, tokenizer: WordPieceTokenizer, variant: str | None = None) -> None:
        super().__init__(tokenizer, variant)
        self.vision_model = self.image_tower()
        self.text_model = MedclipReportTower()

    def embed_images(self, pixels: Tensor) -> Tensor:
        return functional.normalize(self.vision_model(pixels.expand(-1, 3, -1, -1)).float(), dim=-1)

    def embed_reports(self, tokens: Tokens) -> Tensor:
        return functional.normalize(self.text_model(tokens).float(), dim=-1)


class MedclipResNetEncoder(_MedclipFamily):
    """MedCLIP with ResNet-50."""

    name = "medclip-resnet"
    image_tower = MedclipResNetTower


class MedclipSwinEncoder(_MedclipFamily):
    """MedCLIP with Swin-T."""

    name = "medclip-vit"
    image_tower = SwinTower

    @classmethod
    def complete(cls, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        prefix = "vision_model.model."
        # A checkpoint that `save` wrote already has timm's names.
        if f"{prefix}patch_embed.proj.weight" in tensors:
            return tensors
        return timm_names_of_swin(tensors, prefix)
