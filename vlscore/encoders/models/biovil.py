"""BioViL (Boecking et al., ECCV 2022) and BioViL-T (Bannur et al., CVPR 2023).

BioViL-T has a transformer over the places of a current and a previous image (`TemporalPooler`).
"""

import math
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from vlscore.encoders.base import ImageFeatures, Tokens
from vlscore.encoders.blocks.bert import CXR_BERT_VOCABULARY, Bert
from vlscore.encoders.blocks.convolutional import POOLED_WIDTH, ResNet50, as_places, feature_maps
from vlscore.encoders.blocks.pixels import (
    Grey,
    Uint8Pipeline,
    centre_crop,
    read_deep,
    to_unit_range,
    too_elongated,
)
from vlscore.encoders.blocks.tokenizers import WordPieceTokenizer
from vlscore.encoders.image_pipeline import ImagePipeline
from vlscore.encoders.published import Part, PublishedEncoder

DIM = 128
_BERT_WIDTH = 768
_TEMPORAL_WIDTH = 256
_HEADS = 8
_BLOCKS = 3
_EPSILON = 1e-6
_TEMPERATURE = 10_000
_RESIZED = 512
_LONGEST = 1000 * _RESIZED


class ResizeCropPipeline(Uint8Pipeline):
    """Stretch grey levels from the image's minimum to its maximum, resize the shorter side to 512,
    crop the middle square, and scale to [0, 1] in three equal channels.

    Args:
        side: side of the middle square in pixels.
    """

    def __init__(self, side: int) -> None:
        self.side = side

    read_as_authors = staticmethod(read_deep)

    def from_stored(self, stored: Tensor) -> Tensor:
        return to_unit_range(stored).expand(-1, 3, -1, -1)

    def uint8_pixels(self, picture: NDArray[np.generic], name: str) -> Grey:
        image = Image.fromarray(stretch(picture)).convert("L")
        width, height = (int(_RESIZED * n / min(image.size)) for n in image.size)
        if max(width, height) > _LONGEST:
            raise too_elongated(image.height, image.width, name)
        resized = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR))
        return centre_crop(resized, self.side)[np.newaxis].copy()


def stretch(stored: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Map minimum to maximum to 0 to 255, truncated; a constant image becomes black.

    >>> stretch(np.array([[100, 200], [300, 300]])).tolist()
    [[0, 127], [255, 255]]
    """
    shifted = stored.astype(np.float64)
    shifted -= shifted.min()
    highest = shifted.max()
    if highest == 0:
        return np.zeros(stored.shape, np.uint8)
    found: NDArray[np.uint8] = (shifted / highest * 255).astype(np.uint8)
    return found


class Projector(nn.Module):
    """Projection of every place of a feature map to the joint space."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.model = nn.Sequential(
            nn.Conv2d(width, DIM, kernel_size=1, bias=False),
            nn.BatchNorm2d(DIM),
            nn.ReLU(),
            nn.Conv2d(DIM, DIM, kernel_size=1),
        )

    def forward(self, feature_map: Tensor) -> Tensor:
        found: Tensor = self.model(feature_map)
        return found


class Backbone(nn.Module):
    """ResNet-50's last feature map."""

    width = POOLED_WIDTH

    def __init__(self) -> None:
        super().__init__()
        self.encoder = ResNet50()

    def forward(self, pixels: Tensor) -> Tensor:
        return feature_maps(self.encoder, pixels)[1]


class TemporalPooler(nn.Module):
    """Change at each place between two images (Bannur et al. 2023, section 3.1).

    Args:
        width: channels of both feature maps.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(_TransformerBlock(width) for _ in range(_BLOCKS))
        self.norm_post = nn.LayerNorm(width, eps=_EPSILON)
        self.type_embed = nn.Parameter(torch.zeros(2, 1, width))

    def forward(self, current: Tensor, previous: Tensor) -> Tensor:
        """Compare feature maps (n, width, h, w) twice -> (n, width, h, w)."""
        _, width, height, columns = current.shape
        tokens = torch.cat([as_places(current), as_places(previous)], dim=1)
        places = sine_positions(height, columns, width).to(tokens)
        offsets = torch.cat([places + kind for kind in self.type_embed])
        for block in self.blocks:
            tokens = block(tokens, offsets)
        changed = self.norm_post(tokens)[:, : height * columns]
        found: Tensor = changed.transpose(1, 2).unflatten(2, (height, columns))
        return found


class _TokenAttention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.proj_q, self.proj_k, self.proj_v = (
            nn.Linear(width, width, bias=False) for _ in range(3)
        )
        self.proj = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        q, k, v = (
            projection(tokens).unflatten(2, (_HEADS, -1)).transpose(1, 2)
            for projection in (self.proj_q, self.proj_k, self.proj_v)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v)
        found: Tensor = self.proj(mixed.transpose(1, 2).flatten(2))
        return found


class _Mlp(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(width, width)
        self.fc2 = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        found: Tensor = self.fc2(functional.gelu(self.fc1(tokens)))
        return found


class _TransformerBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=_EPSILON)
        self.attn = _TokenAttention(width)
        self.norm2 = nn.LayerNorm(width, eps=_EPSILON)
        self.mlp = _Mlp(width)

    def forward(self, tokens: Tensor, offsets: Tensor) -> Tensor:
        # Positions enter queries, keys and values alike, in every block.
        tokens = tokens + self.attn(self.norm1(tokens) + offsets)
        found: Tensor = tokens + self.mlp(self.norm2(tokens))
        return found


def sine_positions(height: int, width: int, channels: int) -> Tensor:
    """Return DETR's sine embedding of places (height * width, channels), rows first."""
    half = channels // 2
    powers = _TEMPERATURE ** (2 * torch.div(torch.arange(half), 2, rounding_mode="floor") / half)
    rows = _waves(height, powers)[:, None].expand(-1, width, -1)
    columns = _waves(width, powers)[None].expand(height, -1, -1)
    return torch.cat([rows, columns], dim=-1).flatten(0, 1)


def _waves(count: int, powers: Tensor) -> Tensor:
    steps = torch.arange(1, count + 1, dtype=torch.float32)
    angles = (steps / (steps[-1] + 1e-6) * (2 * math.pi))[:, None] / powers
    return torch.stack([angles[:, 0::2].sin(), angles[:, 1::2].cos()], dim=-1).flatten(1)


class TemporalBackbone(nn.Module):
    """ResNet-50's last feature map, reduced, joined with the change since the previous image."""

    width = 2 * _TEMPORAL_WIDTH

    def __init__(self) -> None:
        super().__init__()
        self.encoder = ResNet50()
        self.backbone_to_vit = nn.Conv2d(POOLED_WIDTH, _TEMPORAL_WIDTH, kernel_size=1, bias=False)
        self.vit_pooler = TemporalPooler(_TEMPORAL_WIDTH)
        self.missing_previous_emb = nn.Parameter(torch.zeros(1, _TEMPORAL_WIDTH, 1, 1))

    def forward(self, pixels: Tensor, previous: Tensor | None = None) -> Tensor:
        current = self._places(pixels)
        if previous is None:
            change = self.missing_previous_emb.expand_as(current)
        else:
            change = self.vit_pooler(current, self._places(previous))
        return torch.cat([current, change.to(current.dtype)], dim=1)

    def _places(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.backbone_to_vit(feature_maps(self.encoder, pixels)[1])
        return found


class BiovilImageTower(nn.Module):
    """ResNet-50 whose every place is projected; their mean is the global vector."""

    def __init__(self, backbone: "Backbone | TemporalBackbone") -> None:
        super().__init__()
        self.encoder = backbone
        self.projector = Projector(backbone.width)

    def forward(self, *pixels: Tensor) -> Tensor:
        """Return projected places (n, 128, h/32, w/32); BioViL-T also takes previous images."""
        found: Tensor = self.projector(self.encoder(*pixels))
        return found


class ReportHead(nn.Module):
    """Projection of the state of [CLS] to the joint space."""

    def __init__(self) -> None:
        super().__init__()
        self.dense_to_hidden = nn.Linear(_BERT_WIDTH, DIM)
        self.LayerNorm = nn.LayerNorm(DIM, eps=1e-12)
        self.dense_to_output = nn.Linear(DIM, DIM)

    def forward(self, state: Tensor) -> Tensor:
        hidden = self.LayerNorm(functional.gelu(self.dense_to_hidden(state)))
        found: Tensor = self.dense_to_output(hidden)
        return found


class BiovilReportTower(nn.Module):
    """CXR-BERT and its projection of [CLS]."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = Bert(CXR_BERT_VOCABULARY)
        self.cls_projection_head = ReportHead()

    def forward(self, tokens: Tokens) -> Tensor:
        found: Tensor = self.cls_projection_head(self.bert(tokens)[:, 0])
        return found


class BiovilEncoder(PublishedEncoder):
    """ResNet-50 and CXR-BERT, 128 dimensions, unit length.

    The weights are a folder: the image model's file and CXR-BERT's, under their published names.
    """

    name = "biovil"
    parts = (
        Part("image_tower", unused=("encoder.encoder.fc.*", "classifier.*"), label="image."),
        Part("report_tower", unused=("cls.*", "bert.pooler.*"), label="report."),
    )
    vocabulary_size = CXR_BERT_VOCABULARY
    backbone: ClassVar[type[Backbone] | type[TemporalBackbone]] = Backbone

    def __init__(self, tokenizer: WordPieceTokenizer, variant: str | None = None) -> None:
        super().__init__(tokenizer, variant)
        self.image_tower = BiovilImageTower(self.backbone())
        self.report_tower = BiovilReportTower()

    def make_pipeline(self) -> ImagePipeline:
        return ResizeCropPipeline(self.card.image_size)

    @staticmethod
    def clean(report: str) -> str:
        return report.rstrip("!?.")

    def embed_images(self, pixels: Tensor) -> Tensor:
        return self.image_features(pixels).vectors

    def embed_reports(self, tokens: Tokens) -> Tensor:
        return functional.normalize(self.report_tower(tokens).float(), dim=-1)

    def image_features(self, pixels: Tensor) -> ImageFeatures:
        """Return vectors, and the places of which they are the mean; words have no vectors.

        The authors publish a projection of [CLS] alone.
        """
        patches = self.image_tower(pixels)
        vectors = functional.normalize(patches.mean(dim=(2, 3)).float(), dim=-1)
        return ImageFeatures(vectors, as_places(patches))


class BiovilTEncoder(BiovilEncoder):
    """BioViL-T: as BioViL, but the image tower may also take the patient's previous image."""

    name = "biovil-t"
    backbone = TemporalBackbone
    takes_prior = True

    def embed_images_with_prior(self, pixels: Tensor, prior: Tensor) -> Tensor:
        """Embed current and previous images, each (n, 3, 448, 448) -> (n, 128), unit length."""
        patches = self.image_tower(pixels, prior)
        return functional.normalize(patches.mean(dim=(2, 3)).float(), dim=-1)
