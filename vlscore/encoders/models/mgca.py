"""MGCA (Wang et al., NeurIPS 2022) and the ConVIRT baseline that its repository trains."""

from dataclasses import replace
from typing import Any, ClassVar

import torch
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn
from torch.nn import functional

from vlscore.data import clean_mgca
from vlscore.encoders.base import ImageFeatures, ReportFeatures, Tokens
from vlscore.encoders.blocks.bert import (
    CLINICAL_BERT_VOCABULARY,
    Bert,
    attention_of_first,
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
from vlscore.encoders.models.gloria import words_of
from vlscore.encoders.published import Part, PublishedEncoder

DIM = 128
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


class LocalHead(nn.Module):
    """Projection head that is applied to each place or word."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.head = nn.Sequential(
            nn.Conv1d(width, _HIDDEN, kernel_size=1),
            nn.BatchNorm1d(_HIDDEN),
            nn.ReLU(),
            nn.Conv1d(_HIDDEN, DIM, kernel_size=1),
            nn.BatchNorm1d(DIM, affine=False),
        )

    def forward(self, states: Tensor, is_there: Tensor | None = None) -> Tensor:
        """(n, L, width) -> (n, L, 128).

        Args:
            is_there: (n, L) bool; other positions become zeros and do not enter batch statistics.
        """
        if is_there is None:
            found: Tensor = self.head(states.transpose(1, 2)).transpose(1, 2)
            return found
        rows: Tensor = self.head(states[is_there].T.unsqueeze(0))[0].T.float()
        return rows.new_zeros(*states.shape[:2], DIM).masked_scatter(is_there.unsqueeze(2), rows)


class MgcaResNetTower(nn.Module):
    """ResNet-50 on pixels enlarged to 299."""

    # None where the checkpoint holds no local head.
    local_embed: LocalHead | None

    def __init__(self) -> None:
        super().__init__()
        self.model = ResNet50()
        self.global_embed = ProjectionHead(POOLED_WIDTH)
        self.local_embed = LocalHead(PATCH_WIDTH)

    def features(self, pixels: Tensor) -> ImageFeatures:
        """Return (n, 128) before it is scaled, and (n, 361, 128)."""
        middle, last = feature_maps(self.model, enlarge_to_299(pixels))
        local = None if self.local_embed is None else self.local_embed(as_places(middle))
        return ImageFeatures(self.global_embed(pool(last)), local)

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.global_embed(pool(feature_maps(self.model, enlarge_to_299(pixels))[1]))
        return found


class VisionTransformerTower(nn.Module):
    """ViT-B/16 and its class token."""

    # None where the checkpoint holds no local head.
    local_embed: LocalHead | None

    def __init__(self) -> None:
        super().__init__()
        self.model = VisionTransformer(num_classes=0)
        self.global_embed = ProjectionHead(self.model.num_features)
        self.local_embed = LocalHead(self.model.num_features)

    def features(self, pixels: Tensor) -> ImageFeatures:
        """Return (n, 128) before it is scaled, (n, 196, 128), and the class token's attention."""
        found: Any = self.model.forward_intermediates(
            pixels,
            indices=[len(self.model.blocks) - 2],
            return_prefix_tokens=True,
            output_fmt="NLC",
        )
        states, before = found
        vectors = self.global_embed(states[:, 0])
        if self.local_embed is None:
            return ImageFeatures(vectors)
        places, prefix = before[0]
        weights = self._attention_of_class(torch.cat([prefix, places], dim=1))
        return ImageFeatures(vectors, self.local_embed(states[:, 1:]), patch_weights=weights)

    @torch.no_grad()
    def _attention_of_class(self, states: Tensor) -> Tensor:
        """Return attention (n, 196), the mean over heads, from the last block's (n, 197, 768)."""
        block: Any = self.model.blocks[-1]
        heads = block.attn.num_heads
        query, keys, _ = block.attn.qkv(block.norm1(states)).float().chunk(3, dim=2)
        query, keys = query[:, 0].unflatten(1, (heads, -1)), keys.unflatten(2, (heads, -1))
        products = torch.einsum("nhd,nlhd->nhl", query, keys) * block.attn.scale
        weights: Tensor = products.softmax(2).mean(1)[:, 1:]
        return weights

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.global_embed(self.model.forward_features(pixels)[:, 0])
        return found


class MgcaReportTower(nn.Module):
    """Six BERT layers and the last state of [CLS]; there are no segment embeddings.

    The authors' call passes the (all zero) segment ids as position ids of their BERT, so every
    token has position 0 and the order of the words has no effect.
    """

    # None where the checkpoint holds no local head.
    local_embed: LocalHead | None

    def __init__(self) -> None:
        super().__init__()
        self.model = Bert(CLINICAL_BERT_VOCABULARY, layers=6, segments=1)
        self.global_embed = ProjectionHead(_BERT_WIDTH)
        self.local_embed = LocalHead(_BERT_WIDTH)

    def forward(self, tokens: Tokens) -> Tensor:
        states = self.model(tokens, positions=torch.zeros_like(tokens.ids))
        found: Tensor = self.global_embed(states[:, 0])
        return found

    def features(self, tokens: Tokens, tokenizer: WordPieceTokenizer) -> ReportFeatures:
        """Return (n, 128) before it is scaled, (n, W, 128) of words, and the attention of [CLS].

        A word is the sum of its pieces, projected; [SEP] is a word, [CLS] is none.
        """
        places = torch.zeros_like(tokens.ids)
        *_, before, last = self.model.states(tokens, positions=places)
        states = last.float()
        vectors = self.global_embed(states[:, 0])
        if self.local_embed is None:
            return ReportFeatures(vectors)
        weights = attention_of_first(self.model, before, tokens.mask)
        both = torch.cat([states, weights.to(states).unsqueeze(2)], dim=2)
        words, is_word = words_of(both, tokens, tokenizer.continues_word)
        words, is_word = words[:, 1:], is_word[:, 1:]
        return ReportFeatures(
            vectors,
            self.local_embed(words[..., :-1], is_word),
            is_word,
            words[..., -1].detach(),
        )


class _MgcaFamily(PublishedEncoder):
    """Both towers, 128 dimensions; unit length unless the variant is "raw"."""

    parts = (
        Part(
            unused=(
                "text_encoder*.model.encoder.layer.*.crossattention.*",
                "patch_local_atten_layer.*",
                "word_local_atten_layer.*",
                "prototype_layer.*",
            )
        ),
    )
    pipeline = PadCropPipeline
    clean = staticmethod(clean_mgca)
    pads_to_longest = True
    local_heads = ("img_encoder.local_embed", "text_encoder.local_embed")
    image_tower: ClassVar[type[MgcaResNetTower] | type[VisionTransformerTower]]
    tower_suffix: ClassVar[str] = "_q"

    def __init__(self, tokenizer: WordPieceTokenizer, variant: str | None = None) -> None:
        super().__init__(tokenizer, variant)
        self.img_encoder = self.image_tower()
        self.text_encoder = MgcaReportTower()

    @classmethod
    def complete(cls, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        return {cls.key_of(_SEGMENTS): torch.zeros(1, _BERT_WIDTH)} | tensors

    @classmethod
    def key_of(cls, name: str) -> str:
        return name.replace("_encoder.", f"_encoder{cls.tower_suffix}.", 1)

    def embed_images(self, pixels: Tensor) -> Tensor:
        return self._finish(self.img_encoder(pixels))

    def embed_reports(self, tokens: Tokens) -> Tensor:
        return self._finish(self.text_encoder(tokens))

    def image_features(self, pixels: Tensor) -> ImageFeatures:
        found = self.img_encoder.features(pixels)
        return replace(found, vectors=self._finish(found.vectors))

    def report_features(self, tokens: Tokens) -> ReportFeatures:
        found = self.text_encoder.features(tokens, self.tokenizer)
        return replace(found, vectors=self._finish(found.vectors))

    def _finish(self, raw: Tensor) -> Tensor:
        return functional.normalize(raw.float(), dim=-1) if self.card.normalised else raw


class MgcaResNetEncoder(_MgcaFamily):
    """MGCA with ResNet-50."""

    name = "mgca-resnet50"
    image_tower = MgcaResNetTower


class MgcaVisionTransformerEncoder(_MgcaFamily):
    """MGCA with ViT-B/16."""

    name = "mgca-vit"
    image_tower = VisionTransformerTower


class ConvirtMgcaEncoder(_MgcaFamily):
    """ConVIRT as the repository of MGCA trains it, with ResNet-50."""

    name = "convirt-mgca"
    image_tower = MgcaResNetTower
    tower_suffix = ""
