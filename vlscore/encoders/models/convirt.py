"""ConVIRT (Zhang et al., MLHC 2022) in the layout of edreisMD/ConVIRT-pytorch."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from vlscore.data import Radiograph
from vlscore.encoders.base import Tokens
from vlscore.encoders.blocks.bert import (
    CLINICAL_BERT_VOCABULARY,
    Bert,
    last_layer,
    mean_over_tokens,
)
from vlscore.encoders.blocks.convolutional import POOLED_WIDTH, ResNet50
from vlscore.encoders.blocks.pixels import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Grey,
    LevelsPipeline,
    normalise,
    read_with_pillow,
    to_unit_range,
)
from vlscore.encoders.blocks.tokenizers import WordPieceTokenizer
from vlscore.encoders.published import Part, PublishedEncoder

DIM = 512
MAX_TOKENS = 512
SIDE = 224
_BERT_WIDTH = 768


class StretchPipeline(LevelsPipeline):
    """Stretch to 224 by 224 pixels without proportions, and normalise as for ImageNet."""

    stable_name = "vlscore.encoders.convirt:StretchPipeline"

    def levels(self, radiograph: Radiograph) -> Grey:
        # One channel is enough: three equal channels would stay equal.
        return self._resized(Image.fromarray(radiograph.to_uint8()))[np.newaxis]

    def levels_as_authors(self, path: Path) -> Grey:
        return self._resized(read_with_pillow(path).convert("RGB")).transpose(2, 0, 1).copy()

    def from_stored(self, stored: Tensor) -> Tensor:
        return normalise(to_unit_range(stored), IMAGENET_MEAN, IMAGENET_STD)

    @staticmethod
    def _resized(image: Image.Image) -> Grey:
        return np.array(image.resize((SIDE, SIDE), Image.Resampling.BILINEAR))


class ConvirtEncoder(PublishedEncoder):
    """ResNet-50 and Bio_ClinicalBERT (mean over tokens), 512 dimensions, not normalised."""

    stable_name = "vlscore.encoders.convirt:ConvirtEncoder"
    name = "convirt"
    parts = (Part(unused=("bert_model.pooler.*",)),)

    def __init__(self, tokenizer: WordPieceTokenizer, variant: str | None = None) -> None:
        super().__init__(tokenizer, variant)
        self.image_pipeline = StretchPipeline()
        self.bert_model = Bert(CLINICAL_BERT_VOCABULARY)
        self.bert_l1 = nn.Linear(_BERT_WIDTH, _BERT_WIDTH)
        self.bert_l2 = nn.Linear(_BERT_WIDTH, DIM)
        self.res_features = nn.Sequential(*list(ResNet50().children())[:-1])
        self.res_l1 = nn.Linear(POOLED_WIDTH, POOLED_WIDTH)
        self.res_l2 = nn.Linear(POOLED_WIDTH, DIM)

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        texts = [report.replace("\n", "") for report in reports]
        found: Tokens = self.tokenizer(texts, max_tokens=MAX_TOKENS)
        return found

    def embed_images(self, pixels: Tensor) -> Tensor:
        pooled = self.res_features(pixels).flatten(1)
        found: Tensor = self.res_l2(functional.relu(self.res_l1(pooled)))
        return found

    def embed_reports(self, tokens: Tokens) -> Tensor:
        pooled = mean_over_tokens(last_layer(self.bert_model, tokens), tokens.mask)
        found: Tensor = self.bert_l2(functional.relu(self.bert_l1(pooled)))
        return found
