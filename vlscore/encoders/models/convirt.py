"""ConVIRT (Zhang et al., MLHC 2022) in the layout of edreisMD/ConVIRT-pytorch."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from vlscore.encoders.base import Tokens
from vlscore.encoders.blocks.bert import (
    CLINICAL_BERT_VOCABULARY,
    Bert,
    mean_over_tokens,
)
from vlscore.encoders.blocks.convolutional import POOLED_WIDTH, ResNet50
from vlscore.encoders.blocks.pixels import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Grey,
    Uint8Pipeline,
    normalise,
    read_with_pillow,
    to_unit_range,
)
from vlscore.encoders.blocks.tokenizers import WordPieceTokenizer
from vlscore.encoders.published import Part, PublishedEncoder

DIM = 512
SIDE = 224
_BERT_WIDTH = 768


class StretchPipeline(Uint8Pipeline):
    """Stretch to 224 by 224 pixels without proportions, and normalise as for ImageNet."""

    @staticmethod
    def read_as_authors(path: Path) -> NDArray[np.uint8]:
        return np.asarray(read_with_pillow(path).convert("RGB"))

    def uint8_pixels(self, picture: NDArray[np.uint8], name: str) -> Grey:
        # Of a radiograph one channel is enough: three equal channels would stay equal.
        image = Image.fromarray(picture).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        return np.atleast_3d(np.asarray(image)).transpose(2, 0, 1).copy()

    def from_stored(self, stored: Tensor) -> Tensor:
        return normalise(to_unit_range(stored), IMAGENET_MEAN, IMAGENET_STD)


class ConvirtEncoder(PublishedEncoder):
    """ResNet-50 and Bio_ClinicalBERT (mean over tokens), 512 dimensions, not normalised."""

    name = "convirt"
    pipeline = StretchPipeline
    parts = (Part(unused=("bert_model.pooler.*",)),)

    def __init__(self, tokenizer: WordPieceTokenizer, variant: str | None = None) -> None:
        super().__init__(tokenizer, variant)
        self.bert_model = Bert(CLINICAL_BERT_VOCABULARY)
        self.bert_l1 = nn.Linear(_BERT_WIDTH, _BERT_WIDTH)
        self.bert_l2 = nn.Linear(_BERT_WIDTH, DIM)
        self.res_features = nn.Sequential(*list(ResNet50().children())[:-1])
        self.res_l1 = nn.Linear(POOLED_WIDTH, POOLED_WIDTH)
        self.res_l2 = nn.Linear(POOLED_WIDTH, DIM)

    @staticmethod
    def clean(report: str) -> str:
        return report.replace("\n", "")

    def embed_images(self, pixels: Tensor) -> Tensor:
        pooled = self.res_features(pixels).flatten(1)
        found: Tensor = self.res_l2(functional.relu(self.res_l1(pooled)))
        return found

    def embed_reports(self, tokens: Tokens) -> Tensor:
        pooled = mean_over_tokens(self.bert_model(tokens), tokens.mask)
        found: Tensor = self.bert_l2(functional.relu(self.bert_l1(pooled)))
        return found
