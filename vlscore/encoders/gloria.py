"""GLoRIA (Huang, Shen, Lungren and Yeung, ICCV 2021)."""

from collections.abc import Sequence

from torch import Tensor

from vlscore.encoders.blocks.gloria_towers import (
    DIM,
    POSITIONS,
    EnlargedResNet,
    LastFourLayers,
    Words,
)
from vlscore.encoders.blocks.pad_crop import CROP, PadCropPipeline
from vlscore.encoders.blocks.wordpiece import WordPieceTokenizer
from vlscore.encoders.card import EncoderCard
from vlscore.encoders.published import PublishedEncoder
from vlscore.encoders.tokens import Tokens
from vlscore.reports.cleaning import clean_gloria


class GloriaEncoder(PublishedEncoder):
    """ResNet-50 and Bio_ClinicalBERT, 768 dimensions, not normalised."""

    card = EncoderCard(
        name="gloria",
        title="GLoRIA",
        dim=DIM,
        normalised=False,
        C=1155,
        C_source="largest triangle area over ReXVal (Dawidowicz et al. 2024)",
        image_size=CROP,
        max_tokens=POSITIONS,
        licence="not stated (code: Apache-2.0)",
        citation=(
            "Huang, Shen, Lungren, Yeung: GLoRIA: A Multimodal Global-Local Representation "
            "Learning Framework for Label-Efficient Medical Image Recognition. ICCV 2021"
        ),
        reference_code="github.com/marshuang80/gloria at 416466a",
        notes=(
            "A report's embedding is its token sum divided by 97, so its norm, and with it the "
            "triangle's area, grows with the report's length.",
            "Sentences of one word are dropped and numbers before a full stop deleted by the "
            'authors\' cleaning: "Normal." is embedded as an empty report.',
            "An empty report is embedded as [CLS] [SEP], as the authors' code does.",
            "The checkpoint of ResNet-18 does not fit the authors' own code, nor this.",
        ),
    )
    checkpoint_names = ("chexpert_resnet50.ckpt",)
    prefix = "gloria."
    unused = ("*text_encoder.model.pooler.*",)

    def __init__(self, tokenizer: WordPieceTokenizer, variant: str | None = None) -> None:
        super().__init__(tokenizer)
        self.image_pipeline = PadCropPipeline()
        self.text_encoder = LastFourLayers()
        self.img_encoder = EnlargedResNet()

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        clean = [clean_gloria(report) for report in reports]
        return self.tokenizer(clean, max_tokens=POSITIONS, pad_to=POSITIONS)

    def embed_images(self, pixels: Tensor) -> Tensor:
        return self.img_encoder(pixels)

    def embed_reports(self, tokens: Tokens) -> Tensor:
        return self.text_encoder(tokens)

    def embed_patches(self, pixels: Tensor) -> Tensor:
        """(n, 3, 224, 224) -> (n, 768, 19, 19), one vector for each place."""
        return self.img_encoder.embed_patches(pixels)

    def embed_words(self, tokens: Tokens) -> Words:
        """One vector for each word of each report, in the space of `embed_patches`."""
        return self.text_encoder.embed_words(tokens, self.tokenizer)
