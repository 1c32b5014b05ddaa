"""Stand-ins for slow parts, for tests of the packages above them."""

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from vlscore.data import Provenance, Radiograph, read_image
from vlscore.encoders import EncoderCard, ImagePipeline, JointEncoder, Tokens
from vlscore.encoders.blocks.pixels import Uint8Pipeline
from vlscore.errors import InvalidReport

DIM = 8
MAX_TOKENS = 12


class BrightnessPipeline(ImagePipeline):
    """Mean grey levels of the four quarters of an image."""

    def __call__(self, radiograph: Radiograph) -> Tensor:
        rows = np.array_split(radiograph.pixels, 2)
        quarters = [half for row in rows for half in np.array_split(row, 2, axis=1)]
        levels = [float(quarter.mean()) if quarter.size else 0.0 for quarter in quarters]
        return torch.tensor(levels * 2, dtype=torch.float32).reshape(1, 1, DIM)


class HashEncoder(JointEncoder):
    """A word is a hashed vector, a report their sum; reports with "untokenizable" are refused."""

    card = EncoderCard(
        name="hash",
        title="Hash encoder for tests",
        dim=DIM,
        normalised=False,
        C=20.0,
        C_source="chosen",
        image_size=2,
        max_tokens=MAX_TOKENS,
        licence="none",
        citation="none",
        reference_code="none",
    )
    image_pipeline = BrightnessPipeline()
    checksum = hashlib.sha256(b"hash encoder").hexdigest()

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1), requires_grad=False)
        self.image_calls = 0
        self.report_rows = 0
        self.eval()

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        if any("untokenizable" in report for report in reports):
            raise InvalidReport("a report cannot be tokenized")
        words = [[_word_id(word) for word in report.split()] or [0] for report in reports]
        longest = min(max(map(len, words)), MAX_TOKENS)
        ids = torch.zeros(len(words), longest, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for row, sequence in enumerate(words):
            kept = sequence[:longest]
            ids[row, : len(kept)] = torch.tensor(kept)
            mask[row, : len(kept)] = 1
        return Tokens(ids, mask, torch.tensor([len(sequence) for sequence in words]))

    def embed_images(self, pixels: Tensor) -> Tensor:
        self.image_calls += 1
        return self.scale * pixels.flatten(1)

    def embed_reports(self, tokens: Tokens) -> Tensor:
        self.report_rows += len(tokens)
        axes = torch.arange(1, DIM + 1)
        vectors = torch.sin(tokens.ids[..., None].double() * axes) * tokens.mask[..., None]
        return self.scale * vectors.sum(1).float()


class Sociable(HashEncoder):
    """A report's embedding depends on its company, as the last digits of every real encoder's."""

    def embed_reports(self, tokens):
        return super().embed_reports(tokens) * (1 + 1e-6 * len(tokens))


class Narrow(HashEncoder):
    """Has memory for so many images or reports at once, and raises `shortage` at more."""

    def __init__(self, most: int, shortage: Exception) -> None:
        super().__init__()
        self.most, self.shortage = most, shortage

    def embed_images(self, pixels: Tensor) -> Tensor:
        self._check(len(pixels))
        return super().embed_images(pixels)

    def embed_reports(self, tokens: Tokens) -> Tensor:
        self._check(len(tokens))
        return super().embed_reports(tokens)

    def _check(self, count: int) -> None:
        if count > self.most:
            raise self.shortage


class QuarterPipeline(Uint8Pipeline):
    """The same quarters as whole levels, which may be kept on disk."""

    cache_version = "1"

    @staticmethod
    def read_as_authors(path):
        return read_image(path).to_uint8()

    def uint8_pixels(self, picture, name):
        radiograph = Radiograph(picture, Provenance("array", 8), name)
        pixels = BrightnessPipeline()(radiograph)
        return np.rint(pixels.numpy() * 255).astype(np.uint8)

    def from_stored(self, stored):
        return stored.float() / 255


class KeptEncoder(Sociable):
    """Its embeddings may be kept on disk; both towers' depend on their company."""

    image_pipeline = QuarterPipeline()
    has_lateral_tower = True
    cache_version = "1"

    def __init__(self, checksum: str = "kept encoder") -> None:
        super().__init__()
        self.checksum = hashlib.sha256(checksum.encode()).hexdigest()
        self.image_rows = 0
        self.is_as_loaded = True

    def embed_images(self, pixels):
        self.image_rows += len(pixels)
        return super().embed_images(pixels) * (1 + 1e-6 * len(pixels))

    def embed_lateral_images(self, pixels):
        return -2 * self.embed_images(pixels)


def _word_id(word: str) -> int:
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:2], "little") + 1
