"""LIMITR (Dawidowicz, Hirsch and Tal, ICCV 2023), by the authors of VLScore.

Its authors read images in two ways: their package `vlscore-cxr` resizes with Pillow, which
"limitr" follows, and the repository gefend/LIMITR with OpenCV, which "limitr:repository" follows.
"""

import torch
from torch import Tensor

from vlscore.data import clean_limitr
from vlscore.encoders.base import ImageFeatures
from vlscore.encoders.blocks.pixels import PadCropPipeline, PillowPadCropPipeline
from vlscore.encoders.blocks.tokenizers import WordPieceTokenizer
from vlscore.encoders.image_pipeline import ImagePipeline
from vlscore.encoders.models.gloria import EnlargedResNet, GloriaFamily
from vlscore.encoders.published import Part


class LimitrEncoder(GloriaFamily):
    """Frontal and lateral image towers and a report tower, 768 dimensions, not normalised.

    A study with both views is the mean of the two image embeddings. A missing lateral view counts
    as a zero vector, so the mean is half the frontal embedding.
    """

    name = "limitr"
    clean = staticmethod(clean_limitr)
    prefix = "limitr."
    parts = (
        Part(
            unused=(
                "*text_encoder.model.pooler.*",
                "*SAF_module.*",
                "*sim_eval_w_cap.*",
                "*sim_eval_w_img.*",
            )
        ),
    )
    has_lateral_tower = True

    def __init__(self, tokenizer: WordPieceTokenizer, variant: str | None = None) -> None:
        super().__init__(tokenizer, variant)
        self.img_encoder_f = EnlargedResNet()
        self.img_encoder_l = EnlargedResNet()

    def make_pipeline(self) -> ImagePipeline:
        return PadCropPipeline() if self.variant == "repository" else PillowPadCropPipeline()

    def embed_images(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.img_encoder_f(pixels)
        return found

    def embed_lateral_images(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.img_encoder_l(pixels)
        return found

    def image_features(self, pixels: Tensor) -> ImageFeatures:
        return self.img_encoder_f.features(pixels)

    def study_features(
        self, frontal: Tensor, lateral: Tensor, has_lateral: Tensor
    ) -> ImageFeatures:
        """Return features for training on both views: the mean of the two vectors, and all places.

        Args:
            frontal: (n, 3, 224, 224).
            lateral: (m, 3, 224, 224), of the studies that have one, in their order.
            has_lateral: (n,) bool, m of them True.

        Returns: (n, 768), half the frontal vector without a lateral view; and (n, 722, 768), the
            lateral's places after the frontal's.
        """
        found = self.img_encoder_f.features(frontal)
        assert found.patches is not None
        vectors, patches = (torch.zeros_like(x) for x in (found.vectors, found.patches))
        if len(lateral):
            side = self.img_encoder_l.features(lateral)
            assert side.patches is not None
            rows = has_lateral.nonzero()[:, 0]
            vectors = vectors.index_add(0, rows, side.vectors)
            patches = patches.index_add(0, rows, side.patches)
        there = has_lateral.unsqueeze(1).expand(patches.shape[:2])
        return ImageFeatures(
            (found.vectors + vectors) / 2,
            torch.cat([found.patches, patches], dim=1),
            torch.cat([torch.ones_like(there), there], dim=1),
        )
