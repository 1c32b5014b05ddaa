"""GLoRIA (Huang, Shen, Lungren and Yeung, ICCV 2021), and the towers that LIMITR shares with it."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from vlscore.data import clean_gloria
from vlscore.encoders.base import ImageFeatures, ReportFeatures, Tokens
from vlscore.encoders.blocks.bert import (
    CLINICAL_BERT_VOCABULARY,
    Bert,
    sum_over_tokens,
)
from vlscore.encoders.blocks.convolutional import (
    PATCH_WIDTH,
    POOLED_WIDTH,
    ResNet50,
    as_places,
    enlarge_to_299,
    feature_maps,
    pool,
)
from vlscore.encoders.blocks.pixels import PadCropPipeline
from vlscore.encoders.blocks.tokenizers import WordPieceTokenizer
from vlscore.encoders.published import Part, PublishedEncoder

DIM = 768
POSITIONS = 97
_LAYERS = 4


class LastFourLayers(nn.Module):
    """Bio_ClinicalBERT whose report vector sums the last four layers.

    The authors add up the pieces of each word, average the words over all 97 positions, padding
    included, and add the four layers. Words are sums of pieces, so the result is the sum over all
    tokens divided by 97: it grows with the report's length.
    """

    def __init__(self) -> None:
        super().__init__()
        self.model = Bert(CLINICAL_BERT_VOCABULARY)

    def last_layers(self, tokens: Tokens) -> tuple[Tensor, ...]:
        """Return (n, L, 768) for each of the last four layers."""
        return tuple(self.model.states(tokens))[-_LAYERS:]

    def forward(self, tokens: Tokens) -> Tensor:
        """Embed reports -> (n, 768) float32."""
        return pool_report(self.last_layers(tokens), tokens.mask)

    def features(self, tokens: Tokens, tokenizer: WordPieceTokenizer) -> ReportFeatures:
        """Return (n, 768), and the words that the authors' losses take: [CLS] and all but [SEP]."""
        layers = self.last_layers(tokens)
        states = torch.stack([layer.float() for layer in layers]).sum(dim=0)
        mask = tokens.mask.scatter(1, tokens.lengths.unsqueeze(1) - 1, 0)
        words_only = replace(tokens, mask=mask)
        words, is_word = words_of(states, words_only, tokenizer.continues_word)
        return ReportFeatures(pool_report(layers, tokens.mask), words, is_word)


class EnlargedResNet(nn.Module):
    """ResNet-50 on pixels enlarged to 299, with a global and a local projection to 768."""

    def __init__(self) -> None:
        super().__init__()
        self.model = ResNet50()
        self.global_embedder = nn.Linear(POOLED_WIDTH, DIM)
        self.local_embedder = nn.Conv2d(PATCH_WIDTH, DIM, kernel_size=1, bias=False)

    def forward(self, pixels: Tensor) -> Tensor:
        """Embed (n, 3, 224, 224) -> (n, 768), not normalised."""
        found: Tensor = self.global_embedder(
            pool(feature_maps(self.model, enlarge_to_299(pixels))[1])
        )
        return found

    def features(self, pixels: Tensor) -> ImageFeatures:
        """Return (n, 768), and (n, 361, 768), one vector for each place, from one pass."""
        middle, last = feature_maps(self.model, enlarge_to_299(pixels))
        return ImageFeatures(
            self.global_embedder(pool(last)), as_places(self.local_embedder(middle))
        )


def pool_report(layers: Sequence[Tensor], mask: Tensor) -> Tensor:
    """Sum over a report's tokens and over layers, divided by 97 for every length.

    Args:
        layers: (n, L, d) each.
        mask: (n, L), 1 at tokens.

    Returns: (n, d) float32.
    """
    return torch.stack([sum_over_tokens(layer, mask) for layer in layers]).sum(0) / POSITIONS


def words_of(states: Tensor, tokens: Tokens, continues_word: Tensor) -> tuple[Tensor, Tensor]:
    """Sum token states over each word's pieces.

    Args:
        states: (n, L, d).
        continues_word: (vocabulary,) bool, True for pieces that continue the word before.

    Returns: (n, W, d) for the most words W of a report, words first, then zeros; and their mask.
    """
    starts = ~continues_word.to(tokens.ids.device)[tokens.ids]
    word = (starts.cumsum(dim=1) - 1).clamp(min=0).unsqueeze(-1).expand_as(states)
    masked = states * tokens.mask.unsqueeze(-1)
    words = torch.zeros_like(states).scatter_add_(1, word, masked)
    counts = (starts & (tokens.mask == 1)).sum(1)
    widest = int(counts.max()) if len(counts) else 0
    return words[:, :widest], torch.arange(widest, device=counts.device) < counts.unsqueeze(1)


class GloriaFamily(PublishedEncoder):
    """Report tower of GLoRIA and LIMITR, which differ in their image towers and their cleaning."""

    pipeline = PadCropPipeline
    pads_to_longest = True

    def __init__(self, tokenizer: WordPieceTokenizer, variant: str | None = None) -> None:
        super().__init__(tokenizer, variant)
        self.text_encoder = LastFourLayers()

    def embed_reports(self, tokens: Tokens) -> Tensor:
        found: Tensor = self.text_encoder(tokens)
        return found

    def report_features(self, tokens: Tokens) -> ReportFeatures:
        return self.text_encoder.features(tokens, self.tokenizer)


class GloriaEncoder(GloriaFamily):
    """ResNet-50 and Bio_ClinicalBERT, 768 dimensions, not normalised."""

    name = "gloria"
    clean = staticmethod(clean_gloria)
    prefix = "gloria."
    parts = (Part(unused=("*text_encoder.model.pooler.*",)),)

    def __init__(self, tokenizer: WordPieceTokenizer, variant: str | None = None) -> None:
        super().__init__(tokenizer, variant)
        self.img_encoder = EnlargedResNet()

    def embed_images(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.img_encoder(pixels)
        return found

    def image_features(self, pixels: Tensor) -> ImageFeatures:
        return self.img_encoder.features(pixels)
