"""Supervised phantom encoder: an in-sample upper bound of training on phantoms.

Its report tower was fitted by regression to the number of errors that the phantom benchmarks count.
So its numbers there show what a score could reach, not what a score is. Its scores of real
radiographs mean nothing. Training: weights/phantom-supervised/train.py; data, results and limits:
weights/phantom-supervised/README.md.

The report tower reads every sentence separately and adds the sentences up, so a report is the sum
of its sentences, in any order. Each tower has one extra coordinate, far from the other tower's: the
modality gap that contrastive encoders have anyway, here of a fixed width.
"""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn

from vlscore.core import resource_path
from vlscore.data import Radiograph
from vlscore.encoders.base import JointEncoder, Tokens
from vlscore.encoders.blocks.pixels import padded_square, standardise
from vlscore.encoders.blocks.tokenizers import read_json
from vlscore.encoders.blocks.word_tokenizers import (
    LONGEST_SENTENCE,
    PAD,
    WordTokenizer,
    read_vocabulary,
    split_token_ids,
)
from vlscore.encoders.cards import card_of
from vlscore.encoders.checkpoints import load_checkpoint, tensors_digest
from vlscore.encoders.image_pipeline import ImagePipeline
from vlscore.encoders.models.small import check_folder, digest_of_words
from vlscore.encoders.published import fill, without_initialisation
from vlscore.errors import ChecksumMismatch

IMAGE_SIZE = 128
CONTENT_DIM = 190
_WIDTH = 128
_LAYERS = 2
_HEADS = 4

_FILES = ("model.safetensors", "vocabulary.json", "facts.json")


class PhantomPipeline(ImagePipeline):
    """Pad to a square, shrink to 128 pixels by area, standardise to mean 0 and deviation 1."""

    stable_name = "vlscore.encoders.phantom_supervised:PhantomPipeline"

    def __call__(self, radiograph: Radiograph) -> Tensor:
        return standardise(padded_square(radiograph, IMAGE_SIZE))[None]


class _ResidualBlock(nn.Module):
    def __init__(self, channels_in: int, channels: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False)
        self.norm_first = nn.BatchNorm2d(channels)
        self.second = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.norm_second = nn.BatchNorm2d(channels)
        self.skip = nn.Conv2d(channels_in, channels, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        inner = torch.relu(self.norm_first(self.first(x)))
        return torch.relu(self.norm_second(self.second(inner)) + self.skip(x))


class SupervisedImageTower(nn.Module):
    """Embed (n, 1, 128, 128) -> (n, 190); places stay separate, because sides and zones matter."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 24, 5, 2, 2, bias=False)
        self.norm = nn.BatchNorm2d(24)
        self.blocks = nn.Sequential(
            _ResidualBlock(24, 48, 2), _ResidualBlock(48, 96, 2), _ResidualBlock(96, 144, 2)
        )
        self.squeeze = nn.Conv2d(144, 40, 1)
        self.out = nn.Linear(40 * 8 * 8, CONTENT_DIM)

    def forward(self, pixels: Tensor) -> Tensor:
        x = torch.relu(self.norm(self.stem(pixels)))
        x = torch.relu(self.squeeze(self.blocks(x)))
        found: Tensor = self.out(x.flatten(1))
        return found


class SupervisedReportTower(nn.Module):
    """Embed token ids (n, L) -> (n, 190): the sum over the vectors of the sentences."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, _WIDTH, padding_idx=PAD)
        self.places = nn.Embedding(LONGEST_SENTENCE, _WIDTH)
        layer = nn.TransformerEncoderLayer(
            _WIDTH,
            _HEADS,
            3 * _WIDTH,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.layers = nn.TransformerEncoder(layer, _LAYERS, enable_nested_tensor=False)
        out = nn.Linear(2 * _WIDTH, CONTENT_DIM, bias=False)
        self.sentence = nn.Sequential(
            nn.LayerNorm(_WIDTH), nn.Linear(_WIDTH, 2 * _WIDTH), nn.GELU(), out
        )

    def forward(self, ids: Tensor) -> Tensor:
        sentences, owner = split_token_ids(ids)
        total = self.words.weight.new_zeros(len(ids), CONTENT_DIM)
        if not len(sentences):
            return total
        distinct, position = torch.unique(sentences, dim=0, return_inverse=True)
        return total.index_add(0, owner, self._state(distinct)[position])

    def _state(self, sentences: Tensor) -> Tensor:
        """Compute a vector for each sentence, (m, 190); those of similar length share a pass."""
        lengths = (sentences != PAD).sum(1)
        stated = self.words.weight.new_zeros(len(sentences), CONTENT_DIM)
        for shortest, longest in pairwise((0, 6, 9, 13, LONGEST_SENTENCE)):
            rows = ((lengths > shortest) & (lengths <= longest)).nonzero()[:, 0]
            if len(rows):
                width = int(lengths[rows].max())
                stated = stated.index_copy(0, rows, self._read(sentences[rows, :width]))
        return stated

    def _read(self, sentences: Tensor) -> Tensor:
        used = sentences != PAD
        x = self.words(sentences) + self.places.weight[: sentences.shape[1]]
        x = self.layers(x, src_key_padding_mask=~used)
        mean = (x * used[..., None]).sum(1) / used.sum(1, keepdim=True)
        found: Tensor = self.sentence(mean).float()
        return found


class SupervisedPhantomEncoder(JointEncoder):
    """A small residual network and a small transformer, 192 dimensions, fitted to error counts."""

    stable_name = "vlscore.encoders.phantom_supervised:SupervisedPhantomEncoder"
    card = card_of("phantom-supervised")
    takes_tokenizer = False
    image_pipeline = PhantomPipeline()
    gap: Tensor

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__()
        self.tokenizer = WordTokenizer(words)
        self.image_tower = SupervisedImageTower()
        self.report_tower = SupervisedReportTower(self.tokenizer.size)
        self.register_buffer("gap", torch.ones(()))

    @classmethod
    def load(
        cls, weights: str | Path | None = None, tokenizer: str | Path | None = None
    ) -> "SupervisedPhantomEncoder":
        """The bundled weights, or others that train.py wrote.

        Args:
            weights: the folder that train.py wrote.
            tokenizer: not used; the folder has its own.

        Raises: WeightsNotFound; ChecksumMismatch where the bundled file is not the one that was
            published; IncompatibleCheckpoint and UnsafeCheckpoint.
        """
        folder = (
            Path(weights) if weights is not None else resource_path("weights", "phantom-supervised")
        )
        model, listed, facts = (folder / name for name in _FILES)
        check_folder(folder, _FILES, "phantom-supervised")
        words = read_vocabulary(listed)
        stated = read_json(facts, "statement of phantom-supervised").get("sha256")
        checksum = digest_of_words(model.read_bytes(), words)
        if checksum != stated:
            raise ChecksumMismatch(
                f"{model}: the weights are not those that facts.json states; fetch the folder again"
            )
        tensors = load_checkpoint(model)
        with without_initialisation():
            encoder = cls(words)
        fill(encoder, tensors, source=model)
        encoder.weights_digest = tensors_digest(tensors)
        # Digest of weights and words, as in facts.json since the first release.
        encoder.checksum = checksum
        return encoder

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        return self.tokenizer(reports)

    def embed_images(self, pixels: Tensor) -> Tensor:
        content = self.image_tower(pixels).float()
        return torch.cat([content, *self._gap_coordinates(content, image=True)], dim=1)

    def embed_reports(self, tokens: Tokens) -> Tensor:
        content = self.report_tower(tokens.ids).float()
        return torch.cat([content, *self._gap_coordinates(content, image=False)], dim=1)

    def _gap_coordinates(self, content: Tensor, *, image: bool) -> tuple[Tensor, Tensor]:
        zero = content.new_zeros(len(content), 1)
        own = zero + self.gap
        return (own, zero) if image else (zero, own)
