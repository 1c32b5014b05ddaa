"""Small encoder for training on a user's own pairs, and the bundled demonstration encoders.

`vlscore train` starts from `SmallEncoder`. `PhantomEncoder` is one that learned from phantom pairs
alone: it shows that everything around an encoder works, and its scores of real radiographs mean
nothing. Its training, results and limits: weights/phantom/README.md.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import torch
from safetensors.torch import save
from torch import Tensor, nn
from torch.nn import functional

from vlscore.core import atomic_write, from_plain, resource_path, write_json
from vlscore.data import Radiograph
from vlscore.encoders.base import ImageFeatures, JointEncoder, ReportFeatures, Tokens
from vlscore.encoders.blocks.convolutional import CHANNELS, STRIDE, EfficientNetLite
from vlscore.encoders.blocks.pixels import equalised_square, padded_square, standardise
from vlscore.encoders.blocks.small_towers import (
    ImageHead,
    ImageTrunk,
    Patches,
    WordReader,
    add_up,
    one_row_a_report,
    sentences_of_words,
)
from vlscore.encoders.blocks.tokenizers import read_json
from vlscore.encoders.blocks.word_tokenizers import (
    MAX_TOKENS,
    FindingTokenizer,
    WordTokenizer,
    read_vocabulary,
)
from vlscore.encoders.cards import CARD, EncoderCard, card_of, read_facts
from vlscore.encoders.checkpoints import load_checkpoint, tensors_digest
from vlscore.encoders.image_pipeline import ImagePipeline
from vlscore.encoders.published import load_state_dict, without_initialisation
from vlscore.encoders.weight_files import find_weights
from vlscore.errors import ChecksumMismatch, IncompatibleCheckpoint, InvalidSetting, WeightsNotFound
from vlscore.findings import freeze

MODEL, VOCABULARY = "model.safetensors", "vocabulary.json"
# The lexicon of an encoder that reads findings.
LEXICON = "lexicon.json"
# Networks for image towers, with their stride: input pixels for each place of the output.
TRUNKS = {"plain": 16, "efficientnet-lite0": STRIDE}
# Tokenizers of the report tower.
READINGS = {"words": WordTokenizer, "findings": FindingTokenizer}
_LARGEST = 4096


@dataclass(frozen=True)
class Style:
    """Pooling and scaling of a paper's encoder: how one vector comes from a report's words.

    Attributes:
        pooling: "mean" over the words; their "sum" divided by 97; or "sentences": a vector for each
            sentence, of the mean over its words, and their sum.
        hidden: whether both towers end in two layers instead of one.
        normalised: whether vectors have unit length.
        dim: length of the vectors of an encoder that `vlscore train` makes.
    """

    pooling: Literal["mean", "sum", "sentences"]
    hidden: bool
    normalised: bool
    dim: int = 128


# Pooling and scaling as in the published models of vlscore.encoders, which lack SigLIP.
STYLES = {
    "biovil": Style("mean", hidden=True, normalised=True),
    "convirt": Style("mean", hidden=True, normalised=False),
    "gloria": Style("sum", hidden=False, normalised=False),
    # Reports add up over their sentences, without normalisation; so more dimensions are needed.
    "judging": Style("sentences", hidden=True, normalised=False, dim=256),
    "limitr": Style("sum", hidden=False, normalised=False),
    "medclip": Style("mean", hidden=False, normalised=True),
    "mgca": Style("mean", hidden=True, normalised=True),
    "siglip": Style("mean", hidden=False, normalised=True),
}
# The divisor of LIMITR and GLoRIA for reports of every length (97 positions).
_POSITIONS = 97


@dataclass(frozen=True)
class SmallSettings:
    """Settings of the shape of a small encoder.

    Attributes:
        style: a key of STYLES.
        side: side in pixels of the square that enters; a multiple of 32.
        dim: length of the global vectors.
        local_dim: length of the vectors of places and words.
        channels: channels of the plain image tower's three resolutions.
        width: width of the report tower.
        trunk: network of the image tower: one of TRUNKS.
        lateral: whether lateral views have a head of their own, after the same trunk.
        reading: what the report tower reads, a key of READINGS: words, or extracted findings.
        pixels: a key of PIXELS: padded to a square; or stretched to one, with grey levels
            equalised, which makes images of different machines more alike.

    Raises: InvalidSetting.
    """

    style: str = "siglip"
    side: int = 128
    dim: int = 128
    local_dim: int = 32
    channels: tuple[int, int, int] = (32, 64, 128)
    width: int = 128
    trunk: str = "plain"
    lateral: bool = False
    reading: str = "words"
    pixels: str = "padded"

    def __post_init__(self) -> None:
        known: dict[str, Mapping[str, Any]] = {
            "style": STYLES,
            "trunk": TRUNKS,
            "reading": READINGS,
            "pixels": PIXELS,
        }
        for name, words in known.items():
            if not isinstance(word := getattr(self, name), str) or word not in words:
                raise InvalidSetting(f"{name} is one of {', '.join(words)}, not {word!r}")
        sizes = (self.side, self.dim, self.local_dim, self.width, *self.channels)
        if len(self.channels) != 3 or not all(
            type(size) is int and 0 < size <= _LARGEST for size in sizes
        ):
            raise InvalidSetting(f"sizes are whole numbers from 1 to {_LARGEST}, not {sizes}")
        least = 2 * TRUNKS[self.trunk]
        if self.side % least or self.width % 4:
            raise InvalidSetting(
                f"side is a multiple of {least} and width one of 4, not {self.side} and "
                f"{self.width}"
            )


class SquarePipeline(ImagePipeline):
    """Pad to a square, shrink by area, standardise to mean 0 and deviation 1."""

    def __init__(self, side: int) -> None:
        self.side = side

    def __call__(self, radiograph: Radiograph) -> Tensor:
        return standardise(padded_square(radiograph, self.side))[None]


class EqualisedPipeline(SquarePipeline):
    """Stretch to a square, shrink by area, equalise grey levels, standardise."""

    def __call__(self, radiograph: Radiograph) -> Tensor:
        return standardise(equalised_square(radiograph, self.side))[None]


# How an image becomes a square.
PIXELS = {"padded": SquarePipeline, "equalised": EqualisedPipeline}


class SmallEncoder(JointEncoder):
    """A plain convolutional network, and a transformer layer that reads sentence by sentence.

    `new` makes one with random weights, `save` writes a folder, `load_encoder("small",
    weights=FOLDER)` reads it. `settings.style` decides how global vectors are made; local vectors
    have `settings.local_dim` numbers in both towers.
    """

    card = card_of("small")
    takes_tokenizer = False

    def __init__(
        self, words: Sequence[str], settings: SmallSettings, lexicon: Path | None = None
    ) -> None:
        super().__init__()
        self.settings = settings
        self.style = STYLES[settings.style]
        self.tokenizer: WordTokenizer
        if settings.reading == "findings":
            self.tokenizer = FindingTokenizer(words, lexicon)
        else:
            self.tokenizer = WordTokenizer(words)
        self.image_pipeline = PIXELS[settings.pixels](settings.side)
        self.has_lateral_tower = settings.lateral
        places, channels = settings.side // TRUNKS[settings.trunk], settings.channels[-1]
        if settings.trunk == "plain":
            self.image_trunk: nn.Module = ImageTrunk(settings.channels)
        else:
            self.image_trunk, channels = EfficientNetLite(), CHANNELS
        width = 2 * settings.dim if self.style.hidden else settings.dim
        self.image_head = ImageHead(channels, places, width)
        self.image_end = _end(width, settings.dim) if self.style.hidden else nn.Identity()
        if settings.lateral:
            self.lateral_head = ImageHead(channels, places, width)
            self.lateral_end = _end(width, settings.dim) if self.style.hidden else nn.Identity()
        self.patches = Patches(channels, places, settings.local_dim)
        self.word_reader = WordReader(self.tokenizer.size, settings.width)
        self.report_head = nn.Linear(settings.width, width, bias=self.style.pooling != "sum")
        self.report_end: nn.Module = nn.Identity()
        if self.style.hidden:
            self.report_end = _end(width, settings.dim, bias=self.style.pooling != "sentences")
        self.word_head = nn.Linear(settings.width, settings.local_dim)
        self.card = self._card({})

    @classmethod
    def new(cls, words: Sequence[str], *, seed: int = 0, **settings: Any) -> "SmallEncoder":
        """Make an encoder with random weights, in training mode.

        Args:
            words: the vocabulary of the training reports, by the tokenizer's `vocabulary_of`.
            seed: seed of the weights; the process's own random numbers do not change.
            settings: fields of SmallSettings.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return cls(words, SmallSettings(**settings)).train()

    def save(self, folder: str | Path, card: Mapping[str, Any] | None = None) -> None:
        """Write weights, vocabulary and card; with them the lexicon of one that reads findings.

        Args:
            card: facts besides the settings: fields of EncoderCard (C, C_source, title, notes,
                ...), and further facts of the training under other keys.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        state = {name: x.detach().cpu().contiguous() for name, x in self.state_dict().items()}
        content, words = save(state), self.tokenizer.words
        with atomic_write(folder / MODEL, "wb") as stream:
            stream.write(content)
        with atomic_write(folder / VOCABULARY) as stream:
            json.dump(words, stream, indent=0, ensure_ascii=False)
        if isinstance(self.tokenizer, FindingTokenizer):
            with atomic_write(folder / LEXICON) as stream:
                stream.write(freeze(self.tokenizer.lexicon))
        write_json(
            folder / CARD,
            {"encoder": "small", "settings": asdict(self.settings)}
            | dict(card or {})
            | {"sha256": digest_of_words(content, words)},
        )

    @classmethod
    def default_weights(cls) -> Path:
        """Return the model in the folder that `vlscore weights path small` prints."""
        return find_weights("small", None, (MODEL,))

    @classmethod
    def load(cls, weights: str | Path | None = None, tokenizer: str | Path | None = None) -> Self:
        """Read a folder that `save` wrote.

        Args:
            weights: the folder, or the model.safetensors in it; default: `default_weights`.
            tokenizer: not used; the folder has its own.

        A folder without a lexicon, of an encoder that reads findings, is read with ours.

        Raises: WeightsNotFound; IncompatibleCheckpoint and UnsafeCheckpoint; InvalidLexicon;
            ChecksumMismatch where weights and vocabulary are not those that the card was written
            with.
        """
        chosen = cls.default_weights() if weights is None else Path(weights)
        model = (chosen.parent if chosen.is_file() else chosen) / MODEL
        path, vocabulary = model.with_name(CARD), model.with_name(VOCABULARY)
        lexicon = model.with_name(LEXICON)
        if absent := [each.name for each in (model, vocabulary, path) if not each.is_file()]:
            raise WeightsNotFound(
                f"{model.parent} is no folder of a small encoder: no {', '.join(absent)}. To use a "
                "checkpoint of another encoder, name that one with encoder=... (--encoder)"
            )
        words = read_vocabulary(vocabulary)
        facts = read_json(path, "card of a small encoder")
        stated = read_facts(facts, path)
        try:
            settings: SmallSettings = from_plain(SmallSettings, facts.get("settings"))
        except (InvalidSetting, ValueError, TypeError) as error:
            raise IncompatibleCheckpoint(f"{path} is no card of a small encoder: {error}") from None
        if facts.get("sha256") not in (None, digest_of_words(model.read_bytes(), words)):
            raise ChecksumMismatch(
                f"{model}: weights and vocabulary are not those that {CARD} states; copy the "
                "folder again, or train again"
            )
        tensors = load_checkpoint(model)
        with without_initialisation():
            encoder = cls(words, settings, lexicon if lexicon.is_file() else None)
        load_state_dict(encoder, tensors, source=model)
        encoder.weights_digest = tensors_digest(tensors)
        encoder.card = encoder._card(stated)
        return encoder

    def _card(self, facts: Mapping[str, Any]) -> EncoderCard:
        """Make the card from the settings and the facts of the folder."""
        settings = self.settings
        return replace(
            type(self).card,
            **{"title": f"Small encoder in the style of {settings.style}"} | dict(facts),
            dim=settings.dim,
            image_size=settings.side,
            max_tokens=MAX_TOKENS,
            normalised=self.style.normalised,
        )

    def tokenize(self, reports: Sequence[str]) -> Tokens:
        return self.tokenizer(reports)

    def embed_images(self, pixels: Tensor) -> Tensor:
        return self._image_vectors(self.image_trunk(pixels))

    def embed_lateral_images(self, pixels: Tensor) -> Tensor:
        if not self.settings.lateral:
            return super().embed_lateral_images(pixels)
        return self._finished(self.lateral_end(self.lateral_head(self.image_trunk(pixels))))

    def embed_reports(self, tokens: Tokens) -> Tensor:
        states, owner = self.word_reader(tokens.ids)
        return self._report_vectors(states, owner, tokens)

    def image_features(self, pixels: Tensor) -> ImageFeatures:
        maps = self.image_trunk(pixels)
        return ImageFeatures(self._image_vectors(maps), self.patches(maps).float())

    def report_features(self, tokens: Tokens) -> ReportFeatures:
        states, owner = self.word_reader(tokens.ids)
        local = self.word_head(states).float()
        vectors = self._report_vectors(states, owner, tokens)
        return ReportFeatures(vectors, *one_row_a_report(local, owner, len(tokens)))

    def _image_vectors(self, maps: Tensor) -> Tensor:
        return self._finished(self.image_end(self.image_head(maps)))

    def _report_vectors(self, states: Tensor, owner: Tensor, tokens: Tokens) -> Tensor:
        reports = len(tokens)
        if self.style.pooling == "sentences":
            sentence, owner = sentences_of_words(tokens.ids)
            count = torch.bincount(sentence, minlength=len(owner)).clamp(min=1)
            pooled = add_up(states, sentence, len(owner)) / count[:, None]
            stated = self.report_end(self.report_head(pooled)).float()
            return self._finished(add_up(stated, owner, reports))
        pooled = add_up(states, owner, reports)
        if self.style.pooling == "mean":
            count = torch.bincount(owner, minlength=reports).clamp(min=1)
            pooled = pooled / count[:, None]
        else:
            pooled = pooled / _POSITIONS
        return self._finished(self.report_end(self.report_head(pooled)))

    def _finished(self, vectors: Tensor) -> Tensor:
        vectors = vectors.float()
        return functional.normalize(vectors, dim=1) if self.style.normalised else vectors


def _end(width: int, dim: int, *, bias: bool = True) -> nn.Module:
    return nn.Sequential(nn.ReLU(), nn.Linear(width, dim, bias=bias))


def digest_of_words(content: bytes, words: Sequence[str]) -> str:
    """Compute the hexadecimal sha256 of a weight file's content and a vocabulary."""
    return hashlib.sha256(content + "\n".join(words).encode()).hexdigest()


class PhantomEncoder(SmallEncoder):
    """Bundled encoder, a SmallEncoder of another name; it was trained on pairs alone."""

    card = card_of("phantom")

    @classmethod
    def default_weights(cls) -> Path:
        """Return the bundled folder."""
        return resource_path("weights", cls.card.name)

    def _card(self, facts: Mapping[str, Any]) -> EncoderCard:
        return super()._card({"title": type(self).card.title} | dict(facts))


class PhantomJudgingEncoder(PhantomEncoder):
    """Bundled encoder that is the default: trained on pairs and on changed copies of reports."""

    card = card_of("phantom-judging")

    def image_features(self, pixels: Tensor) -> ImageFeatures:
        # No training has fitted its local vectors.
        return ImageFeatures(self.embed_images(pixels))

    def report_features(self, tokens: Tokens) -> ReportFeatures:
        return ReportFeatures(self.embed_reports(tokens))
