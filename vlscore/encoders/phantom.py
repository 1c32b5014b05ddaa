"""The bundled demonstration encoder, trained on synthetic phantoms.

It proves that everything around it works. Its scores of real radiographs mean nothing. Training:
weights/phantom/train.py; data, results and limits: weights/phantom/README.md.

The report tower reads every sentence by itself and adds the sentences up, so that a report is the
sum of what it states, in any order. Both towers get one coordinate of their own, far from the
other's: the modality gap that contrastive encoders have anyway, here of a fixed width.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import cv2
import numpy as np
import torch
from torch import Tensor, nn

from vlscore._resources import resource_path
from vlscore.encoders.base import ImagePipeline, JointEncoder
from vlscore.encoders.blocks.building import fill, without_initialisation
from vlscore.encoders.blocks.json_files import read_json
from vlscore.encoders.blocks.pixels import check_square
from vlscore.encoders.cards import card_of
from vlscore.encoders.checkpoints import load_checkpoint, tensors_digest
from vlscore.encoders.tokens import Tokens
from vlscore.errors import ChecksumMismatch, IncompatibleCheckpoint, WeightsNotFound
from vlscore.images import Radiograph

IMAGE_SIZE = 128
MAX_TOKENS = 384
CONTENT_DIM = 190
_WIDTH = 128
_LAYERS = 2
_HEADS = 4
_LONGEST_SENTENCE = 48

_FILES = ("model.safetensors", "vocabulary.json", "facts.json")
PAD, STOP, UNKNOWN = 0, 1, 2
_HASH_BUCKETS = 256
_WORD = re.compile(r"\[unk\]|[^\W_]+|[.;!?\n]")


class PhantomPipeline(ImagePipeline):
    """Pad to a square, shrink to 128 pixels by area, standardise to mean 0 and deviation 1."""

    def __call__(self, radiograph: Radiograph) -> Tensor:
        pixels = radiograph.pixels
        height, width = pixels.shape
        check_square(height, width, radiograph.name)
        side = max(height, width)
        top, left = (side - height) // 2, (side - width) // 2
        square = np.zeros((side, side), dtype=np.float32)
        square[top : top + height, left : left + width] = pixels
        small = cv2.resize(square, (IMAGE_SIZE, IMAGE_SIZE), interpolation=cv2.INTER_AREA)
        return standardise(torch.from_numpy(small))[None]


def standardise(pixels: Tensor) -> Tensor:
    """(..., height, width) -> the same of mean 0 and deviation 1; a constant image becomes 0."""
    mean = pixels.mean(dim=(-2, -1), keepdim=True)
    deviation = pixels.std(dim=(-2, -1), keepdim=True, correction=0)
    return (pixels - mean) / deviation.clamp(min=1e-4)


class WordTokenizer:
    """Words and sentence ends to ids; words it does not know share hashed ids."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = list(words)
        first = UNKNOWN + 1 + _HASH_BUCKETS
        self._ids = {word: first + k for k, word in enumerate(words)}
        self.size = first + len(words)

    def ids_of(self, report: str) -> list[int]:
        """Token ids; a report without words has one sentence end."""
        return [self._id_of(token) for token in _WORD.findall(report.lower())] or [STOP]

    def _id_of(self, token: str) -> int:
        if token in ".;!?\n":
            return STOP
        if token == "[unk]":
            return UNKNOWN
        known = self._ids.get(token)
        if known is not None:
            return known
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        return UNKNOWN + 1 + digest[0]

    def __call__(self, reports: Sequence[str]) -> Tokens:
        sequences = [self.ids_of(report) for report in reports]
        longest = min(max(map(len, sequences), default=0), MAX_TOKENS)
        ids = torch.full((len(sequences), longest), PAD, dtype=torch.long)
        for row, sequence in enumerate(sequences):
            kept = sequence[:longest]
            ids[row, : len(kept)] = torch.tensor(kept)
        full_lengths = torch.tensor([len(sequence) for sequence in sequences], dtype=torch.long)
        return Tokens(ids, (ids != PAD).long(), full_lengths)


def pretokenize(report: str) -> list[str]:
    """The words and sentence ends that a vocabulary is made from."""
    return _WORD.findall(report.lower())


class _Block(nn.Module):
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


class ImageTower(nn.Module):
    """(n, 1, 128, 128) -> (n, 190); keeps places apart, for sides and zones matter."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, 24, 5, 2, 2, bias=False)
        self.norm = nn.BatchNorm2d(24)
        self.blocks = nn.Sequential(_Block(24, 48, 2), _Block(48, 96, 2), _Block(96, 144, 2))
        self.squeeze = nn.Conv2d(144, 40, 1)
        self.out = nn.Linear(40 * 8 * 8, CONTENT_DIM)

    def forward(self, pixels: Tensor) -> Tensor:
        x = torch.relu(self.norm(self.stem(pixels)))
        x = torch.relu(self.squeeze(self.blocks(x)))
        found: Tensor = self.out(x.flatten(1))
        return found


class ReportTower(nn.Module):
    """Token ids (n, L) -> (n, 190): the sum over sentences of what each one states."""

    def __init__(self, vocabulary: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, _WIDTH, padding_idx=PAD)
        self.places = nn.Embedding(_LONGEST_SENTENCE, _WIDTH)
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
        sentences, owner = split_sentences(ids)
        total = self.words.weight.new_zeros(len(ids), CONTENT_DIM)
        if not len(sentences):
            return total
        distinct, position = torch.unique(sentences, dim=0, return_inverse=True)
        return total.index_add(0, owner, self._state(distinct)[position])

    def _state(self, sentences: Tensor) -> Tensor:
        """What each sentence states, (m, 190); sentences of similar length share a pass."""
        lengths = (sentences != PAD).sum(1)
        stated = self.words.weight.new_zeros(len(sentences), CONTENT_DIM)
        for shortest, longest in pairwise((0, 6, 9, 13, _LONGEST_SENTENCE)):
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


def split_sentences(ids: Tensor) -> tuple[Tensor, Tensor]:
    """Token ids (n, L) -> one row a sentence (m, longest) and the report each belongs to (m,).

    A sentence of more than 48 words is read in pieces of 48.
    """
    is_word = (ids != PAD) & (ids != STOP)
    number = torch.cumsum(ids == STOP, dim=1)
    report = torch.arange(len(ids), device=ids.device)[:, None].expand_as(ids)
    words, number, report = ids[is_word], number[is_word], report[is_word]
    key = report * (ids.shape[1] + 1) + number
    place = _running_count(key)
    piece = place // _LONGEST_SENTENCE
    starts = torch.ones_like(key, dtype=torch.bool)
    starts[1:] = (key[1:] != key[:-1]) | (piece[1:] != piece[:-1])
    row = torch.cumsum(starts, dim=0) - 1
    longest = int(place.clamp(max=_LONGEST_SENTENCE - 1).max()) + 1 if len(place) else 0
    sentences = ids.new_full((int(starts.sum()), longest), PAD)
    sentences[row, place % _LONGEST_SENTENCE] = words
    return sentences, report[starts]


def _running_count(key: Tensor) -> Tensor:
    """For sorted keys, how many equal ones came before."""
    position = torch.arange(len(key), device=key.device)
    starts = torch.ones_like(key, dtype=torch.bool)
    starts[1:] = key[1:] != key[:-1]
    first = torch.where(starts, position, 0)
    return position - torch.cummax(first, dim=0).values if len(key) else position


def _read_words(path: Path) -> list[str]:
    try:
        words = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise ValueError("it is no list of words")
        "\n".join(words).encode()
    except (OSError, ValueError, RecursionError) as error:
        raise IncompatibleCheckpoint(
            f"{path} is no vocabulary: {str(error) or type(error).__name__}"
        ) from None
    return words


class PhantomEncoder(JointEncoder):
    """Bundled encoder: a small residual network and a small transformer, 192 dimensions."""

    card = card_of("phantom")
    takes_tokenizer = False
    image_pipeline = PhantomPipeline()
    gap: Tensor

    def __init__(self, words: Sequence[str]) -> None:
        super().__init__()
        self.tokenizer = WordTokenizer(words)
        self.image_tower = ImageTower()
        self.report_tower = ReportTower(self.tokenizer.size)
        self.register_buffer("gap", torch.ones(()))

    @classmethod
    def load(
        cls, weights: str | Path | None = None, tokenizer: str | Path | None = None
    ) -> "PhantomEncoder":
        """The bundled weights, or others that train.py wrote.

        Args:
            weights: the folder that train.py wrote.
            tokenizer: there is none but the folder's own.

        Raises: WeightsNotFound; ChecksumMismatch where the bundled file is not the one that was
            published; IncompatibleCheckpoint and UnsafeCheckpoint.
        """
        folder = Path(weights) if weights is not None else resource_path("weights", "phantom")
        model, listed, facts = (folder / name for name in _FILES)
        absent = [path.name for path in (model, listed, facts) if not path.is_file()]
        if absent:
            raise WeightsNotFound(
                f"{folder} is no folder of the demonstration encoder: no {', '.join(absent)}. To "
                "use a checkpoint of another encoder, name that one with encoder=... (--encoder)"
            )
        words = _read_words(listed)
        stated = read_json(facts, "statement of the demonstration encoder").get("sha256")
        content = model.read_bytes()
        checksum = hashlib.sha256(content + "\n".join(words).encode()).hexdigest()
        if checksum != stated:
            raise ChecksumMismatch(
                f"{model}: the weights are not those that facts.json states; fetch the folder again"
            )
        tensors = load_checkpoint(model)
        with without_initialisation():
            encoder = cls(words)
        fill(encoder, tensors, source=model)
        encoder.weights_digest = tensors_digest(tensors)
        # Of weights and words, as facts.json has stated it since the first release.
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
