"""CheXzero (Tiu et al., Nature Biomedical Engineering 2022): CLIP ViT-B/32 on radiographs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import open_clip
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from vlscore.encoders.base import ImagePipeline, JointEncoder
from vlscore.encoders.blocks.building import fill, without_initialisation
from vlscore.encoders.blocks.clip_tokens import CONTEXT, ClipTokenizer, whole_context
from vlscore.encoders.blocks.pixels import read_with_opencv, too_elongated
from vlscore.encoders.card import EncoderCard
from vlscore.encoders.checkpoints import load_checkpoint, tensors_digest
from vlscore.encoders.tokens import Tokens
from vlscore.encoders.weights import find_weights
from vlscore.errors import UnknownName
from vlscore.images import Radiograph

DIM = 512
SIDE = 224
_CANVAS = 320
_MEAN, _STD = 101.48761, 83.43944


class CanvasPipeline(ImagePipeline):
    """Longest side to 320 (Lanczos), centred on black, then to 224 bicubically.

    The second step does not smooth before it samples, as in the torchvision of that time.
    """

    def __call__(self, radiograph: Radiograph) -> Tensor:
        return self._tensor(radiograph.to_uint8(), radiograph.name)

    def as_authors(self, path: Path) -> Tensor:
        return self._tensor(read_with_opencv(path, colour=True), str(path))

    def _tensor(self, pixels: NDArray[np.uint8], name: str) -> Tensor:
        canvas = torch.from_numpy(self.canvas(Image.fromarray(pixels), name).astype(np.float32))
        scaled = (canvas - torch.tensor(_MEAN)) / torch.tensor(_STD)
        small = functional.interpolate(
            scaled.expand(1, 3, -1, -1), (SIDE, SIDE), mode="bicubic", antialias=False
        )
        return small[0]

    @staticmethod
    def canvas(image: Image.Image, name: str = "image") -> NDArray[np.uint8]:
        """(320, 320) grey levels: what the authors store before training."""
        ratio = _CANVAS / max(image.size)
        width, height = (int(length * ratio) for length in image.size)
        if not width or not height:
            raise too_elongated(image.height, image.width, name)
        resized = image.resize((width, height), Image.Resampling.LANCZOS)
        canvas = Image.new("L", (_CANVAS, _CANVAS))
        canvas.paste(resized.convert("L"), ((_CANVAS - width) // 2, (_CANVAS - height) // 2))
        return np.asarray(canvas)


class ChexzeroEncoder(JointEncoder):
    """CLIP ViT-B/32 trained on MIMIC-CXR, 512 dimensions, unit length."""

    card = EncoderCard(
        name="chexzero",
        title="CheXzero",
        dim=DIM,
        normalised=True,
        C=None,
        C_source="the paper does not use CheXzero",
        image_size=SIDE,
        max_tokens=CONTEXT,
        licence="not stated (code: MIT)",
        citation=(
            "Tiu, Talius, Patel, Langlotz, Ng, Rajpurkar: Expert-level detection of pathologies "
            "from unannotated chest X-ray images via self-supervised learning. Nature Biomedical "
            "Engineering 2022"
        ),
        reference_code="github.com/rajpurkarlab/CheXzero at 5c341db",
        notes=(
            "Reports end at 77 tokens, the context of CLIP.",
            "Images are reduced from 320 to 224 pixels without smoothing, as the authors' "
            "version of torchvision did; smoothing changes embeddings by up to 5 %.",
        ),
    )
    checkpoint_names = ("best_64_5e-05_original_22000_0.864.pt", "chexzero.pt")

    def __init__(self, tokenizer: ClipTokenizer) -> None:
        super().__init__()
        self.tokenizer = tokenizer
        self.image_pipeline = CanvasPipeline()
        self.clip = open_clip.CLIP(
            embed_dim=DIM,
            vision_cfg=open_clip.CLIPVisionCfg(
                layers=12, width=768, patch_size=32, image_size=SIDE
            ),
            text_cfg=open_clip.CLIPTextCfg(context_length=CONTEXT, width=512, heads=8, layers=12),
            quick_gelu=True,
        )

    @classmethod
    def load(
        cls,
        weights: str | Path | None = None,
        tokenizer: str | Path | None = None,
        variant: str | None = None,
    ) -> Self:
        """Read the authors' checkpoint, safely, and fill the model with it.

        Args:
            weights: checkpoint file, or the folder that holds it.
            tokenizer: a gzipped list of merges; default: CLIP's, which open_clip ships.
            variant: there is none.

        Raises: the errors that `load_encoder` lists.
        """
        if variant is not None:
            raise UnknownName(f"{cls.card.name} has no variant {variant!r}")
        pieces = ClipTokenizer(None if tokenizer is None else Path(tokenizer))
        path = find_weights(cls.card.name, weights, cls.checkpoint_names)
        tensors = load_checkpoint(path)
        with without_initialisation():
            encoder = cls(pieces)
        fill(encoder.clip, tensors, source=path)
        encoder.checksum = tensors_digest(tensors)
        return encoder

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        return self.tokenizer(reports)

    def embed_images(self, pixels: Tensor) -> Tensor:
        return functional.normalize(self.clip.encode_image(pixels).float(), dim=-1)

    def embed_reports(self, tokens: Tokens) -> Tensor:
        ids = whole_context(tokens.ids, self.tokenizer.context)
        return functional.normalize(self.clip.encode_text(ids).float(), dim=-1)
