"""BioViL (Boecking et al., ECCV 2022) and BioViL-T (Bannur et al., CVPR 2023)."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from vlscore.encoders.base import ImagePipeline, JointEncoder
from vlscore.encoders.blocks.bert_tower import CXR_BERT_VOCABULARY, bert_base, last_layer
from vlscore.encoders.blocks.building import fill, without_initialisation
from vlscore.encoders.blocks.files import vocabulary_file
from vlscore.encoders.blocks.pixels import centre_crop, read_deep, to_unit_range, too_elongated
from vlscore.encoders.blocks.resnet_trunk import POOLED_WIDTH, feature_maps, resnet50_trunk
from vlscore.encoders.blocks.temporal_pooler import TemporalPooler
from vlscore.encoders.blocks.wordpiece import WordPieceTokenizer
from vlscore.encoders.card import EncoderCard
from vlscore.encoders.checkpoints import load_checkpoint, tensors_digest
from vlscore.encoders.tokens import Tokens
from vlscore.encoders.weights import find_weights
from vlscore.errors import UnknownName, WeightsNotFound
from vlscore.images import Radiograph

DIM = 128
MAX_TOKENS = 512
_BERT_WIDTH = 768
_TEMPORAL_WIDTH = 256
_RESIZED = 512
_LONGEST = 1000 * _RESIZED


class ResizeCropPipeline(ImagePipeline):
    """Grey levels stretched from the image's minimum to its maximum, shorter side to 512, the
    middle square, [0, 1] in three equal channels.

    Args:
        side: of the middle square.
    """

    def __init__(self, side: int) -> None:
        self.side = side

    def __call__(self, radiograph: Radiograph) -> Tensor:
        return self._tensor(radiograph.to_uint8(), radiograph.name)

    def as_authors(self, path: Path) -> Tensor:
        return self._tensor(read_deep(path), str(path))

    def _tensor(self, stored: NDArray[np.generic], name: str) -> Tensor:
        image = Image.fromarray(stretch(stored)).convert("L")
        width, height = (int(_RESIZED * n / min(image.size)) for n in image.size)
        if max(width, height) > _LONGEST:
            raise too_elongated(image.height, image.width, name)
        resized = np.asarray(image.resize((width, height), Image.Resampling.BILINEAR))
        return to_unit_range(centre_crop(resized, self.side)).expand(3, -1, -1)


def stretch(stored: NDArray[np.generic]) -> NDArray[np.uint8]:
    """Minimum to maximum -> 0 to 255, truncated; a constant image is black.

    >>> stretch(np.array([[100, 200], [300, 300]])).tolist()
    [[0, 127], [255, 255]]
    """
    shifted = stored.astype(np.float64)
    shifted -= shifted.min()
    highest = shifted.max()
    if highest == 0:
        return np.zeros(stored.shape, np.uint8)
    return (shifted / highest * 255).astype(np.uint8)


class Projector(nn.Module):
    """Projects every place of a feature map to the joint space."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.model = nn.Sequential(
            nn.Conv2d(width, DIM, kernel_size=1, bias=False),
            nn.BatchNorm2d(DIM),
            nn.ReLU(),
            nn.Conv2d(DIM, DIM, kernel_size=1),
        )

    def forward(self, feature_map: Tensor) -> Tensor:
        return self.model(feature_map)


class Backbone(nn.Module):
    """ResNet-50's last feature map."""

    width = POOLED_WIDTH

    def __init__(self) -> None:
        super().__init__()
        self.encoder = resnet50_trunk()

    def forward(self, pixels: Tensor) -> Tensor:
        return feature_maps(self.encoder, pixels)[1]


class TemporalBackbone(nn.Module):
    """ResNet-50's last feature map, reduced, beside what changed since the previous image."""

    width = 2 * _TEMPORAL_WIDTH

    def __init__(self) -> None:
        super().__init__()
        self.encoder = resnet50_trunk()
        self.backbone_to_vit = nn.Conv2d(POOLED_WIDTH, _TEMPORAL_WIDTH, kernel_size=1, bias=False)
        self.vit_pooler = TemporalPooler(_TEMPORAL_WIDTH)
        self.missing_previous_emb = nn.Parameter(torch.zeros(1, _TEMPORAL_WIDTH, 1, 1))

    def forward(self, pixels: Tensor, previous: Tensor | None = None) -> Tensor:
        current = self._patches(pixels)
        if previous is None:
            difference = self.missing_previous_emb.expand_as(current)
        else:
            difference = self.vit_pooler(current, self._patches(previous))
        return torch.cat([current, difference.to(current.dtype)], dim=1)

    def _patches(self, pixels: Tensor) -> Tensor:
        return self.backbone_to_vit(feature_maps(self.encoder, pixels)[1])


class ImageTower(nn.Module):
    """Every place is projected first; the mean over places is the global vector."""

    def __init__(self, backbone: "Backbone | TemporalBackbone") -> None:
        super().__init__()
        self.encoder = backbone
        self.projector = Projector(backbone.width)

    def forward(self, pixels: Tensor, *previous: Tensor) -> Tensor:
        return self.embed_patches(pixels, *previous).mean(dim=(2, 3))

    def embed_patches(self, pixels: Tensor, *previous: Tensor) -> Tensor:
        return self.projector(self.encoder(pixels, *previous))


class ReportHead(nn.Module):
    """Projects the state of [CLS] to the joint space."""

    def __init__(self) -> None:
        super().__init__()
        self.dense_to_hidden = nn.Linear(_BERT_WIDTH, DIM)
        self.LayerNorm = nn.LayerNorm(DIM, eps=1e-12)
        self.dense_to_output = nn.Linear(DIM, DIM)

    def forward(self, state: Tensor) -> Tensor:
        hidden = self.LayerNorm(functional.gelu(self.dense_to_hidden(state)))
        return self.dense_to_output(hidden)


class ReportTower(nn.Module):
    """CXR-BERT and its projection of [CLS]."""

    def __init__(self) -> None:
        super().__init__()
        self.bert = bert_base(CXR_BERT_VOCABULARY)
        self.cls_projection_head = ReportHead()

    def forward(self, tokens: Tokens) -> Tensor:
        return self.cls_projection_head(last_layer(self.bert, tokens)[:, 0])


class BiovilEncoder(JointEncoder):
    """ResNet-50 and CXR-BERT, 128 dimensions, unit length.

    The weights are a folder: the image model's file and CXR-BERT's, under their published names.
    """

    card = EncoderCard(
        name="biovil",
        title="BioViL",
        dim=DIM,
        normalised=True,
        C=1,
        C_source="largest triangle area over ReXVal (Dawidowicz et al. 2024)",
        image_size=480,
        max_tokens=MAX_TOKENS,
        licence="MIT",
        citation=(
            "Boecking et al.: Making the Most of Text Semantics to Improve Biomedical "
            "Vision-Language Processing. ECCV 2022"
        ),
        reference_code="github.com/microsoft/hi-ml (hi-ml-multimodal) at b67c1d27",
        notes=(
            "Every image is stretched from its own minimum to its maximum, also one of 8 bits.",
            'Trailing ".", "!" and "?" are removed from reports, as the authors do.',
            "The authors' code refuses reports of over 512 tokens; here they are truncated, and "
            "flagged.",
        ),
    )
    image_names: ClassVar[tuple[str, ...]] = ("biovil_image_resnet50_proj_size_128.pt",)
    report_names: ClassVar[tuple[str, ...]] = ("pytorch_model.bin", "model.safetensors")
    vocabulary_id: ClassVar[str] = "microsoft/BiomedVLP-CXR-BERT-specialized"
    backbone: ClassVar[type[Backbone] | type[TemporalBackbone]] = Backbone

    def __init__(self, tokenizer: WordPieceTokenizer) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.image_pipeline = ResizeCropPipeline(self.card.image_size)
        self.image_tower = ImageTower(self.backbone())
        self.report_tower = ReportTower()

    @classmethod
    def load(
        cls,
        weights: str | Path | None = None,
        tokenizer: str | Path | None = None,
        variant: str | None = None,
    ) -> Self:
        """Read the authors' two checkpoints, safely, and fill the model with them.

        Args:
            weights: the folder that holds both.
            tokenizer: vocabulary file, its folder, or a hub id; default: beside the weights.
            variant: there is none.

        Raises: the errors that `load_encoder` lists.
        """
        if variant is not None:
            raise UnknownName(f"{cls.card.name} has no variant {variant!r}")
        if weights is not None and Path(weights).is_file():
            raise WeightsNotFound(
                f"{cls.card.name} has two checkpoints, {cls.image_names[0]} and "
                f"{cls.report_names[0]}: give the folder that holds both, not {weights}"
            )
        image_path = find_weights(cls.card.name, weights, cls.image_names, guess=False)
        report_path = find_weights(cls.card.name, weights, cls.report_names, guess=False)
        vocabulary = vocabulary_file(tokenizer, beside=report_path, hub_id=cls.vocabulary_id)
        pieces = WordPieceTokenizer.from_file(vocabulary, size=CXR_BERT_VOCABULARY)
        with without_initialisation():
            encoder = cls(pieces)
        image_tensors, report_tensors = load_checkpoint(image_path), load_checkpoint(report_path)
        fill(
            encoder.image_tower,
            image_tensors,
            source=image_path,
            unused=("encoder.encoder.fc.*", "classifier.*"),
        )
        fill(
            encoder.report_tower,
            report_tensors,
            source=report_path,
            unused=("cls.*", "bert.pooler.*"),
        )
        encoder.checksum = tensors_digest(
            {f"image.{key}": value for key, value in image_tensors.items()}
            | {f"report.{key}": value for key, value in report_tensors.items()}
        )
        return encoder

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        return self.tokenizer([r.rstrip("!?.") for r in reports], max_tokens=MAX_TOKENS)

    def embed_images(self, pixels: Tensor) -> Tensor:
        return functional.normalize(self.image_tower(pixels).float(), dim=-1)

    def embed_reports(self, tokens: Tokens) -> Tensor:
        return functional.normalize(self.report_tower(tokens).float(), dim=-1)

    def embed_patches(self, pixels: Tensor) -> Tensor:
        """(n, 3, h, w) -> (n, 128, h/32, w/32), one vector for each place, not normalised."""
        return self.image_tower.embed_patches(pixels)


class BiovilTEncoder(BiovilEncoder):
    """BioViL-T: as BioViL, and the image tower may see the patient's previous image too."""

    card = replace(
        BiovilEncoder.card,
        name="biovil-t",
        title="BioViL-T",
        C=None,
        C_source="the paper does not use BioViL-T",
        image_size=448,
        citation=(
            "Bannur et al.: Learning to Exploit Temporal Structure for Biomedical "
            "Vision-Language Processing. CVPR 2023"
        ),
        notes=(
            *BiovilEncoder.card.notes,
            "Images are embedded without a previous image unless one is given to "
            "embed_images_with_previous.",
        ),
    )
    image_names = ("biovil_t_image_model_proj_size_128.pt",)
    vocabulary_id = "microsoft/BiomedVLP-BioViL-T"
    backbone = TemporalBackbone

    def embed_images_with_previous(self, pixels: Tensor, previous: Tensor) -> Tensor:
        """(n, 3, 448, 448) twice, current and previous -> (n, 128), unit length."""
        return functional.normalize(self.image_tower(pixels, previous).float(), dim=-1)
