"""CheXzero (Tiu et al., Nature Biomedical Engineering 2022): CLIP ViT-B/32 on radiographs."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import open_clip
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.nn import functional

from vlscore.encoders.base import Tokens
from vlscore.encoders.blocks.pixels import Grey, Uint8Pipeline, read_with_opencv, too_elongated
from vlscore.encoders.blocks.tokenizers import CONTEXT, ClipTokenizer, whole_context
from vlscore.encoders.published import Part, PublishedEncoder

DIM = 512
SIDE = 224
_CANVAS = 320
_MEAN, _STD = 101.48761, 83.43944


class CanvasPipeline(Uint8Pipeline):
    """Resize the longest side to 320 (Lanczos), centre on black, then resize to 224 bicubically.

    The second step does not smooth before it samples, as in the torchvision of that time.
    """

    read_as_authors = staticmethod(partial(read_with_opencv, colour=True))

    def uint8_pixels(self, picture: NDArray[np.uint8], name: str) -> Grey:
        return self.canvas(Image.fromarray(picture), name)[np.newaxis].copy()

    def from_stored(self, stored: Tensor) -> Tensor:
        canvas = stored.float()
        mean, deviation = (torch.tensor(v, device=canvas.device) for v in (_MEAN, _STD))
        return functional.interpolate(
            ((canvas - mean) / deviation).expand(-1, 3, -1, -1),
            (SIDE, SIDE),
            mode="bicubic",
            antialias=False,
        )

    @staticmethod
    def canvas(image: Image.Image, name: str = "image") -> NDArray[np.uint8]:
        """Return the (320, 320) grey levels that the authors store before training."""
        ratio = _CANVAS / max(image.size)
        width, height = (int(length * ratio) for length in image.size)
        if not width or not height:
            raise too_elongated(image.height, image.width, name)
        resized = image.resize((width, height), Image.Resampling.LANCZOS)
        canvas = Image.new("L", (_CANVAS, _CANVAS))
        canvas.paste(resized.convert("L"), ((_CANVAS - width) // 2, (_CANVAS - height) // 2))
        return np.asarray(canvas)


class ChexzeroEncoder(PublishedEncoder):
    """CLIP ViT-B/32 trained on MIMIC-CXR, 512 dimensions, unit length."""

    name = "chexzero"
    pipeline = CanvasPipeline
    takes_tokenizer = False
    parts = (Part("clip"),)

    def __init__(self, tokenizer: ClipTokenizer, variant: str | None = None) -> None:
        super().__init__(tokenizer, variant)
        self.clip = open_clip.CLIP(
            embed_dim=DIM,
            vision_cfg=open_clip.CLIPVisionCfg(
                layers=12, width=768, patch_size=32, image_size=SIDE
            ),
            text_cfg=open_clip.CLIPTextCfg(context_length=CONTEXT, width=512, heads=8, layers=12),
            quick_gelu=True,
        )

    @classmethod
    def read_tokenizer(cls, named: str | Path | None, checkpoint: Path) -> ClipTokenizer:
        """Return CLIP's tokenizer, which open_clip ships."""
        return ClipTokenizer()

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        found: Tokens = self.tokenizer(reports)
        return found

    def embed_images(self, pixels: Tensor) -> Tensor:
        return functional.normalize(self.clip.encode_image(pixels).float(), dim=-1)

    def embed_reports(self, tokens: Tokens) -> Tensor:
        ids = whole_context(tokens.ids, self.tokenizer.context)
        return functional.normalize(self.clip.encode_text(ids).float(), dim=-1)
