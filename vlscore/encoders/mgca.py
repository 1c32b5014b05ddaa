"""MGCA (Wang et al., NeurIPS 2022) and the ConVIRT baseline that its repository trains."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from torch.nn import functional

from vlscore.encoders.blocks.bert_tower import CLINICAL_BERT_VOCABULARY, bert_base, last_layer
from vlscore.encoders.blocks.pad_crop import PadCropPipeline
from vlscore.encoders.blocks.resnet_trunk import (
    POOLED_WIDTH,
    enlarge_to_299,
    feature_maps,
    pool,
    resnet50_trunk,
)
from vlscore.encoders.blocks.wordpiece import WordPieceTokenizer
from vlscore.encoders.published import Part, PublishedEncoder
from vlscore.encoders.tokens import Tokens
from vlscore.reports.cleaning import clean_mgca

DIM = 128
MAX_TOKENS = 112
_HIDDEN = 2048
_BERT_WIDTH = 768
_SEGMENTS = "text_encoder.model.embeddings.token_type_embeddings.weight"


class ProjectionHead(nn.Module):
    """Linear, batch normalisation, ReLU, linear, batch normalisation without weights."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.head = nn.Sequential(
            nn.Linear(width, _HIDDEN),
            nn.BatchNorm1d(_HIDDEN),
            nn.ReLU(),
            nn.Linear(_HIDDEN, DIM),
            nn.BatchNorm1d(DIM, affine=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.head(x)
        return found


class ResNetTower(nn.Module):
    """ResNet-50 on pixels enlarged to 299."""

    def __init__(self) -> None:
        super().__init__()
        self.model = resnet50_trunk()
        self.global_embed = ProjectionHead(POOLED_WIDTH)

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.global_embed(pool(feature_maps(self.model, enlarge_to_299(pixels))[1]))
        return found


class VisionTransformerTower(nn.Module):
    """ViT-B/16 and its class token."""

    def __init__(self) -> None:
        super().__init__()
        self.model = VisionTransformer(num_classes=0)
        self.global_embed = ProjectionHead(self.model.num_features)

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.global_embed(self.model.forward_features(pixels)[:, 0])
        return found


class ReportTower(nn.Module):
    """Six BERT layers and the last state of [CLS]; there are no segment embeddings.

    The authors' call passes the (all zero) segment ids where their BERT takes position ids, so
    every token stands at position 0 and the order of the words is not seen.
    """

    def __init__(self) -> None:
        super().__init__()
        self.model = bert_base(CLINICAL_BERT_VOCABULARY, layers=6, segments=1)
        self.global_embed = ProjectionHead(_BERT_WIDTH)

    def forward(self, tokens: Tokens) -> Tensor:
        found: Tensor = self.global_embed(self.bert_states(tokens)[:, 0])
        return found

    def bert_states(self, tokens: Tokens) -> Tensor:
        """(n, L, 768): the last layer's state at each token."""
        return last_layer(self.model, tokens, positions=torch.zeros_like(tokens.ids))


class _MgcaFamily(PublishedEncoder):
    """Both towers, 128 dimensions; unit length unless the variant is "raw"."""

    parts = (
        Part(
            unused=(
                "*_encoder*.local_embed.*",
                "text_encoder*.model.encoder.layer.*.crossattention.*",
                "patch_local_atten_layer.*",
                "word_local_atten_layer.*",
                "prototype_layer.*",
            )
        ),
    )
    image_tower: ClassVar[type[nn.Module]]
    tower_suffix: ClassVar[str] = "_q"

    def __init__(self, tokenizer: WordPieceTokenizer, variant: str | None = None) -> None:
        super().__init__(tokenizer, variant)
        self.image_pipeline = PadCropPipeline()
        self.img_encoder = self.image_tower()
        self.text_encoder = ReportTower()

    @classmethod
    def complete(cls, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return tensors | {cls.key_of(_SEGMENTS): torch.zeros(1, _BERT_WIDTH)}

    @classmethod
    def key_of(cls, name: str) -> str:
        return name.replace("_encoder.", f"_encoder{cls.tower_suffix}.", 1)

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        clean = [clean_mgca(report) for report in reports]
        found: Tokens = self.tokenizer(clean, max_tokens=MAX_TOKENS, pad_to=MAX_TOKENS)
        return found

    def embed_images(self, pixels: Tensor) -> Tensor:
        return self._finish(self.img_encoder(pixels))

    def embed_reports(self, tokens: Tokens) -> Tensor:
        return self._finish(self.text_encoder(tokens))

    def _finish(self, raw: Tensor) -> Tensor:
        return functional.normalize(raw.float(), dim=-1) if self.card.normalised else raw


class MgcaResNetEncoder(_MgcaFamily):
    """MGCA with ResNet-50."""

    name = "mgca-resnet50"
    image_tower = ResNetTower


class MgcaVisionTransformerEncoder(_MgcaFamily):
    """MGCA with ViT-B/16."""

    name = "mgca-vit"
    image_tower = VisionTransformerTower


class ConvirtMgcaEncoder(_MgcaFamily):
    """ConVIRT as the repository of MGCA trains it, with ResNet-50."""

    name = "convirt-mgca"
    image_tower = ResNetTower
    tower_suffix = ""
