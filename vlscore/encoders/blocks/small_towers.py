"""Small towers that train on one CPU core in minutes, with vectors of places and of words."""

from contextlib import nullcontext
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from vlscore.encoders.blocks.word_tokenizers import (
    LONGEST_SENTENCE,
    PAD,
    UNKNOWN,
    WordTokenizer,
    running_count,
    split_token_ids,
)

_PATCH, _SQUEEZED, _HEADS = 4, 40, 4
# Sentences of similar length share a pass, to reduce padding.
_LENGTHS = (0, 6, 9, 13, LONGEST_SENTENCE)
# Keeps the variance of what a standardised layer and a ReLU make of unit variance at one
# (Brock, De and Smith: Characterizing signal propagation, ICLR 2021, section 3).
_RELU_GAIN = 1.7139588594436646


class StandardisedConvolution(nn.Conv2d):
    """A convolution whose filters have mean 0 and a variance that preserves the size of signals.

    Scaled weight standardisation (Brock, De and Smith 2021): it stabilises training as batch
    normalisation does, but an image's vector does not depend on its batch.
    """

    def __init__(self, channels_in: int, channels: int, size: int, stride: int) -> None:
        super().__init__(channels_in, channels, size, stride, size // 2)
        self.gain = nn.Parameter(torch.ones(channels))

    def forward(self, x: Tensor) -> Tensor:
        mean = self.weight.mean(dim=(1, 2, 3), keepdim=True)
        variance = self.weight.var(dim=(1, 2, 3), keepdim=True, correction=0)
        numbers = self.weight[0].numel()
        scale = _RELU_GAIN * self.gain[:, None, None, None] * torch.rsqrt(variance * numbers + 1e-4)
        filters = (self.weight - mean) * scale
        # The pictures' memory layout; otherwise conversions take a quarter of the time.
        filters = filters.contiguous(memory_format=torch.channels_last)
        return functional.conv2d(x, filters, self.bias, self.stride, self.padding)


class ImageTrunk(nn.Module):
    """(n, 1, side, side) -> (n, channels, side / 16, side / 16)."""

    def __init__(self, channels: tuple[int, int, int]) -> None:
        super().__init__()
        first, second, third = channels
        # Squares of 4 by 4 pixels become channels, so that thin lines reach the first layer whole
        # while it works on a sixteenth of the places.
        self.layers = nn.Sequential(
            nn.PixelUnshuffle(_PATCH),
            *_layer(_PATCH**2, first, 1),
            *_layer(first, second, 2),
            *_layer(second, second, 1),
            *_layer(second, third, 2),
            *_layer(third, third, 1),
        )

    def forward(self, pixels: Tensor) -> Tensor:
        found: Tensor = self.layers(pixels.contiguous(memory_format=torch.channels_last))
        return found


def _layer(channels_in: int, channels: int, stride: int) -> tuple[nn.Module, nn.Module]:
    return StandardisedConvolution(channels_in, channels, 3, stride), nn.ReLU()


class ImageHead(nn.Module):
    """(n, channels, places, places) -> (n, width); keeps places separate for sides and zones.

    Attributes:
        squeeze: reduction to few channels, so that all places together have not too many numbers.
    """

    def __init__(self, channels: int, places: int, width: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(channels, _SQUEEZED, 1)
        self.out = nn.Linear(_SQUEEZED * places**2, width)

    def forward(self, maps: Tensor) -> Tensor:
        found: Tensor = self.out(torch.relu(self.squeeze(maps)).flatten(1))
        return found


class Patches(nn.Module):
    """(n, channels, places, places) -> (n, places² / 4, k): content and position of each place.

    Places are merged two by two in both directions: losses that compare each word with each place
    take most of the time of a training as small as this.
    """

    def __init__(self, channels: int, places: int, width: int) -> None:
        super().__init__()
        self.out = nn.Conv2d(channels, width, 2, 2)
        self.position = nn.Parameter(torch.zeros(places**2 // 4, width))
        nn.init.normal_(self.position, std=0.2)

    def forward(self, maps: Tensor) -> Tensor:
        found: Tensor = self.out(maps).flatten(2).transpose(1, 2)
        return found + self.position


class WordReader(nn.Module):
    """Token ids -> a state for each word, read in its sentence by a transformer of one layer.

    Words attend to words of their sentence alone: the order of sentences does not matter, and equal
    sentences of a batch are read once.
    """

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width, padding_idx=PAD)
        self.places = nn.Embedding(LONGEST_SENTENCE, width)
        nn.init.normal_(self.words.weight, std=0.5)
        nn.init.normal_(self.places.weight, std=0.2)
        with torch.no_grad():
            # Words that never occur in training get zeros instead of random vectors.
            self.words.weight[: UNKNOWN + 1 + WordTokenizer.HASHED] = 0
        self.layer = nn.TransformerEncoderLayer(
            width,
            _HEADS,
            3 * width,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return the states of all N words (N, width) of token ids (n, L), and their reports (N,).

        Words come in the order of reports and of places in them; sentence ends are no words.
        """
        sentences, owner = split_token_ids(ids)
        if not len(sentences):
            return self.norm.weight.new_zeros(0, self.words.embedding_dim), owner
        distinct, which = torch.unique(sentences, dim=0, return_inverse=True)
        row, place = (sentences != PAD).nonzero(as_tuple=True)
        return self._read(distinct)[which[row], place], owner[row]

    def _read(self, sentences: Tensor) -> Tensor:
        """(m, L) -> (m, L, width)."""
        lengths = (sentences != PAD).sum(1)
        rows, states = [], []
        for shorter, longest in pairwise(_LENGTHS):
            alike = ((lengths > shorter) & (lengths <= longest)).nonzero()[:, 0]
            if len(alike):
                width = int(lengths[alike].max())
                found = self._read_alike(sentences[alike, :width]).float()
                rows.append(alike)
                states.append(functional.pad(found, (0, 0, 0, sentences.shape[1] - found.shape[1])))
        return torch.cat(states)[torch.argsort(torch.cat(rows))]

    def _read_alike(self, sentences: Tensor) -> Tensor:
        x = self.words(sentences) + self.places.weight[: sentences.shape[1]]
        # On a CPU the fused kernels take twice as long for sentences of ten words.
        with sdpa_kernel(SDPBackend.MATH) if x.device.type == "cpu" else nullcontext():
            found: Tensor = self.norm(self.layer(x, src_key_padding_mask=sentences == PAD))
        return found


def add_up(states: Tensor, owner: Tensor, reports: int) -> Tensor:
    """Sum states of words (N, width) for each report -> (n, width)."""
    return states.new_zeros(reports, states.shape[1]).index_add(0, owner, states)


def sentences_of_words(ids: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sentence of each word (N,) of token ids (n, L), and the report of each sentence.

    Words come in the order of `WordReader`.
    """
    sentences, owner = split_token_ids(ids)
    sentence, _ = (sentences != PAD).nonzero(as_tuple=True)
    return sentence, owner


def one_row_a_report(states: Tensor, owner: Tensor, reports: int) -> tuple[Tensor, Tensor]:
    """Arrange states of words (N, k) as (n, W, k), zeros after the last word, and their mask."""
    place = running_count(owner)
    longest = int(place.max()) + 1 if len(place) else 0
    words = states.new_zeros(reports, longest, states.shape[1])
    is_word = torch.zeros(reports, longest, dtype=torch.bool, device=states.device)
    is_word[owner, place] = True
    return words.index_put((owner, place), states), is_word
