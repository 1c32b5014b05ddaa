"""MGCA (Wang et al., NeurIPS 2022) and the ConVIRT baseline that its repository trains."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import torch
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from torch.nn import functional

from vlscore.encoders.blocks.bert_tower import CLINICAL_BERT_VOCABULARY, bert_base, last_layer
from vlscore.encoders.blocks.pad_crop import CROP, PadCropPipeline
from vlscore.encoders.blocks.resnet_trunk import (
    POOLED_WIDTH,
    enlarge_to_299,
    feature_maps,
    pool,
    resnet50_trunk,
)
from vlscore.encoders.blocks.wordpiece import WordPieceTokenizer
from vlscore.encoders.card import EncoderCard
from vlscore.encoders.published import PublishedEncoder
from vlscore.encoders.tokens import Tokens
from vlscore.reports.cleaning import clean_mgca

DIM = 128
MAX_TOKENS = 112
_HIDDEN = 2048
_BERT_WIDTH = 768
_RAW = "raw"
_SEGMENTS = "text_encoder.model.embeddings.token_type_embeddings.weight"

_REPORT_NOTES = (
    "Sentences of one word are dropped and numbers before a full stop deleted by the authors' "
    'cleaning: "Normal." is embedded as an empty report, [CLS] [SEP].',
    "The authors' code gives every token the same position: reports of the same words in another "
    "order have the same embedding.",
    "The authors leave out reports of fewer than three words; here they are embedded.",
)


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
        return self.head(x)


class ResNetTower(nn.Module):
    """ResNet-50 on pixels enlarged to 299."""

    def __init__(self) -> None:
        super().__init__()
        self.model = resnet50_trunk()
        self.global_embed = ProjectionHead(POOLED_WIDTH)

    def forward(self, pixels: Tensor) -> Tensor:
        return self.global_embed(pool(feature_maps(self.model, enlarge_to_299(pixels))[1]))


class VisionTransformerTower(nn.Module):
    """ViT-B/16 and its class token."""

    def __init__(self) -> None:
        super().__init__()
        self.model = VisionTransformer(num_classes=0)
        self.global_embed = ProjectionHead(self.model.num_features)

    def forward(self, pixels: Tensor) -> Tensor:
        return self.global_embed(self.model.forward_features(pixels)[:, 0])


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
        return self.global_embed(self.bert_states(tokens)[:, 0])

    def bert_states(self, tokens: Tokens) -> Tensor:
        """(n, L, 768): the last layer's state at each token."""
        return last_layer(self.model, tokens, position_ids=torch.zeros_like(tokens.ids))


class _MgcaFamily(PublishedEncoder):
    """Both towers, 128 dimensions; unit length unless the variant is "raw"."""

    variants: ClassVar[tuple[str, ...]] = (_RAW,)
    unused = (
        "*_encoder*.local_embed.*",
        "text_encoder*.model.encoder.layer.*.crossattention.*",
        "patch_local_atten_layer.*",
        "word_local_atten_layer.*",
        "prototype_layer.*",
    )
    image_tower: ClassVar[type[nn.Module]]
    tower_suffix: ClassVar[str] = "_q"
    raw_C: ClassVar[float | None] = None
    raw_C_source: ClassVar[str] = "the paper does not use MGCA"

    def __init__(self, tokenizer: WordPieceTokenizer, variant: str | None = None) -> None:
        super().__init__(tokenizer)
        self.image_pipeline = PadCropPipeline()
        self.img_encoder = self.image_tower()
        self.text_encoder = ReportTower()
        if variant == _RAW:
            self.card = replace(
                self.card,
                name=f"{self.card.name}:{_RAW}",
                normalised=False,
                C=self.raw_C,
                C_source=self.raw_C_source,
            )

    @classmethod
    def complete(cls, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return tensors | {cls.key_of(_SEGMENTS): torch.zeros(1, _BERT_WIDTH)}

    @classmethod
    def key_of(cls, name: str) -> str:
        return name.replace("_encoder.", f"_encoder{cls.tower_suffix}.", 1)

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        clean = [clean_mgca(report) for report in reports]
        return self.tokenizer(clean, max_tokens=MAX_TOKENS, pad_to=MAX_TOKENS)

    def embed_images(self, pixels: Tensor) -> Tensor:
        return self._finish(self.img_encoder(pixels))

    def embed_reports(self, tokens: Tokens) -> Tensor:
        return self._finish(self.text_encoder(tokens))

    def _finish(self, raw: Tensor) -> Tensor:
        return functional.normalize(raw.float(), dim=-1) if self.card.normalised else raw


_MGCA = EncoderCard(
    name="mgca-resnet50",
    title="MGCA (ResNet-50)",
    dim=DIM,
    normalised=True,
    C=None,
    C_source="the paper does not use MGCA",
    image_size=CROP,
    max_tokens=MAX_TOKENS,
    licence="not stated",
    citation=(
        "Wang, Zhou, Wang, Vardhanabhuti, Yu: Multi-Granularity Cross-modal Alignment for "
        "Generalized Medical Visual Representation Learning. NeurIPS 2022"
    ),
    reference_code="github.com/HKU-MedAI/MGCA at 680fe4a",
    notes=(
        *_REPORT_NOTES,
        'The variant "raw" returns the vectors before their length is made 1.',
    ),
)


class MgcaResNetEncoder(_MgcaFamily):
    """MGCA with ResNet-50."""

    card = _MGCA
    checkpoint_names = ("mgca_resnet_50.ckpt",)
    image_tower = ResNetTower


class MgcaVisionTransformerEncoder(_MgcaFamily):
    """MGCA with ViT-B/16."""

    card = replace(_MGCA, name="mgca-vit", title="MGCA (ViT-B/16)")
    checkpoint_names = ("mgca_vit_base.ckpt", "vit_base.ckpt")
    image_tower = VisionTransformerTower


class ConvirtMgcaEncoder(_MgcaFamily):
    """ConVIRT as the repository of MGCA trains it, with ResNet-50."""

    card = replace(
        _MGCA,
        name="convirt-mgca",
        title="ConVIRT (MGCA repository)",
        C_source=(
            "the paper's 124 is out of reach of unit vectors, whose triangles have at most 1.299; "
            'it stands on the variant "raw"'
        ),
        citation=(
            "Zhang, Jiang, Miura, Manning, Langlotz: Contrastive Learning of Medical Visual "
            "Representations from Paired Images and Text. MLHC 2022"
        ),
        reference_code="github.com/HKU-MedAI/MGCA at 680fe4a, mgca/models/convirt",
    )
    checkpoint_names = ("convirt.ckpt", "last.ckpt")
    image_tower = ResNetTower
    tower_suffix = ""
    raw_C = 124
    raw_C_source = (
        "largest triangle area over ReXVal (Dawidowicz et al. 2024), who do not say which "
        "implementation of ConVIRT they used: the areas of this one before normalisation have "
        "that magnitude"
    )
