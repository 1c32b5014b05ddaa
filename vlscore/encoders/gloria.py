"""GLoRIA (Huang, Shen, Lungren and Yeung, ICCV 2021)."""

from collections.abc import Sequence

from torch import Tensor

from vlscore.encoders.blocks.gloria_towers import (
    POSITIONS,
    EnlargedResNet,
    LastFourLayers,
    Words,
)
from vlscore.encoders.blocks.pad_crop import PadCropPipeline
from vlscore.encoders.blocks.wordpiece import WordPieceTokenizer
from vlscore.encoders.features import ImageFeatures, ReportFeatures
from vlscore.encoders.published import Part, PublishedEncoder
from vlscore.encoders.tokens import Tokens
from vlscore.reports.cleaning import clean_gloria


class GloriaEncoder(PublishedEncoder):
    """ResNet-50 and Bio_ClinicalBERT, 768 dimensions, not normalised."""

    stable_name = "vlscore.encoders.gloria:GloriaEncoder"
    name = "gloria"
    prefix = "gloria."
    parts = (Part(unused=("*text_encoder.model.pooler.*",)),)

    def __init__(self, tokenizer: WordPieceTokenizer, variant: str | None = None) -> None:
        super().__init__(tokenizer, variant)
        self.image_pipeline = PadCropPipeline()
        self.text_encoder = LastFourLayers()
        self.img_encoder = EnlargedResNet()

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        clean = [clean_gloria(report) for report in reports]
        found: Tokens = self.tokenizer(clean, max_tokens=POSITIONS, pad_to=POSITIONS)
        return found

    def embed_images(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.img_encoder(pixels)
        return found

    def embed_reports(self, tokens: Tokens) -> Tensor:
        found: Tensor = self.text_encoder(tokens)
        return found

    def image_features(self, pixels: Tensor) -> ImageFeatures:
        return self.img_encoder.features(pixels)

    def report_features(self, tokens: Tokens) -> ReportFeatures:
        return self.text_encoder.features(tokens, self.tokenizer)

    def embed_patches(self, pixels: Tensor) -> Tensor:
        """(n, 3, 224, 224) -> (n, 768, 19, 19), one vector for each place."""
        return self.img_encoder.embed_patches(pixels)

    def embed_words(self, tokens: Tokens) -> Words:
        """One vector for each word of each report, in the space of `embed_patches`."""
        return self.text_encoder.embed_words(tokens, self.tokenizer)
