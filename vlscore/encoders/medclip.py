"""MedCLIP (Wang, Wu, Agarwal and Sun, EMNLP 2022), with ResNet-50 and with Swin-T."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from vlscore.encoders.blocks.bert_tower import (
    CLINICAL_BERT_VOCABULARY,
    all_layers,
    bert_base,
    mean_over_tokens,
)
from vlscore.encoders.blocks.levels import LevelsPipeline
from vlscore.encoders.blocks.pixels import Grey, check_square, read_with_pillow
from vlscore.encoders.blocks.resnet_trunk import POOLED_WIDTH, resnet50_trunk
from vlscore.encoders.blocks.swin import SwinTiny
from vlscore.encoders.blocks.wordpiece import WordPieceTokenizer
from vlscore.encoders.published import Part, PublishedEncoder
from vlscore.encoders.tokens import Tokens
from vlscore.images import Radiograph

DIM = 512
MAX_TOKENS = 77
SIDE = 224
_BERT_WIDTH = 768
# The authors compute in float32, so that these are rounded to it.
_MEAN, _STD = float(np.float32(0.5862785803043838)), float(np.float32(0.27950088968644304))
_SCALE = float(np.float32(1 / 255))


class SquareCanvasPipeline(LevelsPipeline):
    """Centred on a black square of at least 224 pixels, then reduced to 224 bicubically.

    One channel; an image smaller than 224 pixels is framed, not enlarged.
    """

    stable_name = "vlscore.encoders.medclip:SquareCanvasPipeline"

    def levels(self, radiograph: Radiograph) -> Grey:
        return self._levels(Image.fromarray(radiograph.to_uint8()), radiograph.name)

    def levels_as_authors(self, path: Path) -> Grey:
        return self._levels(read_with_pillow(path).convert("L"), str(path))

    def from_stored(self, stored: Tensor) -> Tensor:
        return stored.float().mul(_SCALE).sub(_MEAN).div(_STD)

    def _levels(self, image: Image.Image, name: str) -> Grey:
        check_square(image.height, image.width, name)
        side = max(SIDE, *image.size)
        canvas = Image.new("L", (side, side), 0)
        left, top = (int((side - length) / 2) for length in image.size)
        canvas.paste(image, (left, top))
        return np.array(canvas.resize((SIDE, SIDE), Image.Resampling.BICUBIC))[np.newaxis]


class ResNetTower(nn.Module):
    """ResNet-50 whose last layer projects to 512 dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.model = resnet50_trunk()
        self.model.fc = nn.Linear(POOLED_WIDTH, DIM, bias=False)

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.model(pixels)
        return found


class SwinTower(nn.Module):
    """Swin-T, its mean over places, and a projection to 512 dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.model = SwinTiny()
        self.projection_head = nn.Linear(self.model.width, DIM, bias=False)

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.projection_head(self.model(pixels))
        return found


class ReportTower(nn.Module):
    """Bio_ClinicalBERT: mean over tokens of its layers 1, 2 and 12, projected.

    The authors' mean runs over padding too, so that their embedding depends on the longest report
    of the batch. The mean over the report's own tokens is what they give for a report alone.
    """

    def __init__(self) -> None:
        super().__init__()
        self.model = bert_base(CLINICAL_BERT_VOCABULARY)
        self.projection_head = nn.Linear(_BERT_WIDTH, DIM, bias=False)

    def forward(self, tokens: Tokens) -> Tensor:
        layers = all_layers(self.model, tokens)
        means = [mean_over_tokens(layers[number], tokens.mask) for number in (1, 2, -1)]
        found: Tensor = self.projection_head(torch.stack(means).mean(dim=0))
        return found


class _MedclipFamily(PublishedEncoder):
    """Both towers, 512 dimensions, unit length."""

    stable_name = "vlscore.encoders.medclip:_MedclipFamily"
    parts = (Part(unused=("text_model.model.pooler.*", "logit_scale")),)
    image_tower: ClassVar[type[nn.Module]]

    def __init__(self, tokenizer: WordPieceTokenizer, variant: str | None = None) -> None:
        super().__init__(tokenizer, variant)
        self.image_pipeline = SquareCanvasPipeline()
        self.vision_model = self.image_tower()
        self.text_model = ReportTower()

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        found: Tokens = self.tokenizer(reports, max_tokens=MAX_TOKENS)
        return found

    def embed_images(self, pixels: Tensor) -> Tensor:
        return functional.normalize(self.vision_model(pixels.expand(-1, 3, -1, -1)).float(), dim=-1)

    def embed_reports(self, tokens: Tokens) -> Tensor:
        return functional.normalize(self.text_model(tokens).float(), dim=-1)


class MedclipResNetEncoder(_MedclipFamily):
    """MedCLIP with ResNet-50."""

    stable_name = "vlscore.encoders.medclip:MedclipResNetEncoder"
    name = "medclip-resnet"
    image_tower = ResNetTower


class MedclipSwinEncoder(_MedclipFamily):
    """MedCLIP with Swin-T."""

    stable_name = "vlscore.encoders.medclip:MedclipSwinEncoder"
    name = "medclip-vit"
    image_tower = SwinTower

    @classmethod
    def complete(cls, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        prefix = "vision_model.model."
        # A checkpoint of our own has our names already.
        if any(key.startswith(f"{prefix}swin.") for key in tensors):
            return tensors
        return SwinTiny.from_transformers(tensors, prefix=prefix)
