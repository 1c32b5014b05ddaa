"""What every joint encoder must offer, and the batching that all of them share."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from vlscore._assurance import assure
from vlscore._signature import stable_class
from vlscore.encoders.card import EncoderCard
from vlscore.encoders.checkpoints import tensors_digest
from vlscore.encoders.features import ImageFeatures, ReportFeatures
from vlscore.encoders.inference import Precision, check_ready, inference
from vlscore.encoders.known_digests import digest_of
from vlscore.encoders.pipeline import ImagePipeline
from vlscore.encoders.tokens import Tokens
from vlscore.errors import InvalidReport, InvalidSetting
from vlscore.images import ImagePolicy, Radiograph

__all__ = [
    "ImagePipeline",
    "JointEncoder",
    "Precision",
    "check_ready",
    "check_texts",
    "inference",
]

# Read by every tokenizer once, to tell one that cleans or cuts texts otherwise.
_PROBES = (
    "FINDINGS: The heart is mildly enlarged.\nNo pleural effusion or pneumothorax!",
    "1. Nodule of 2.5 cm in the RIGHT upper lobe, unchanged since ___. 2. Na\u00efve \u00b5m (R>L)",
    "",
    "No focal consolidation is seen. " * 200,
)


class JointEncoder(nn.Module, ABC):
    """An image tower and a report tower that share one space of d dimensions.

    A subclass states `card`, sets `image_pipeline`, and implements `tokenize`, `embed_images`
    and `embed_reports`. Embeddings must not depend on batch size, order or padding.

    Attributes:
        card: facts about the encoder.
        image_pipeline: preprocessing of one image.
        weights_digest: hexadecimal sha256 of the weights, the same for any container they come in.
        checksum: hexadecimal sha256 of all that its embeddings depend on: weights, vocabulary,
            cleaning of texts, preprocessing of images. Signatures show its first digits.
        image_policy: how files become radiographs; only `load_encoder` sets it.
        variants: what may stand behind the name, as in "mgca-vit:raw"; None: anything.
        takes_tokenizer: whether `load` has a use for a vocabulary.
        cache_version: tells this code's embeddings from those of its other editions. Encoders
            outside vlscore state one, and change it with their code, so that embeddings may be kept
            on disk; None keeps none.
        loaded_weights: `weights_sample` of what `load_encoder` read; None of other encoders.
    """

    card: EncoderCard
    image_pipeline: ImagePipeline
    image_policy: ImagePolicy = ImagePolicy()
    has_lateral_tower: ClassVar[bool] = False
    variants: ClassVar[tuple[str, ...] | None] = ()
    takes_tokenizer: ClassVar[bool] = True
    cache_version: ClassVar[str | None] = None
    loaded_weights: bytes | None = None

    @abstractmethod
    def tokenize(self, reports: Sequence[str]) -> Tokens:
        """Reports -> token ids, cleaned as the authors clean; truncation is flagged."""

    @abstractmethod
    def embed_images(self, pixels: Tensor) -> Tensor:
        """(n, channels, height, width) -> (n, d) float32."""

    @abstractmethod
    def embed_reports(self, tokens: Tokens) -> Tensor:
        """n token sequences -> (n, d) float32."""

    def embed_lateral_images(self, pixels: Tensor) -> Tensor:
        """Lateral views -> (n, d), by the tower of their own where `has_lateral_tower`."""
        raise InvalidSetting(f"{self.card.name} has no tower for lateral views")

    def image_features(self, pixels: Tensor) -> ImageFeatures:
        """What training looks at: `embed_images`, and the vector of each place where there is one.

        An encoder with local vectors overrides this, so that one pass through the tower gives both.
        """
        return ImageFeatures(self.embed_images(pixels))

    def study_features(
        self, frontal: Tensor, lateral: Tensor, has_lateral: Tensor
    ) -> ImageFeatures:
        """What training looks at of studies with two views, where `has_lateral_tower`.

        Vectors are half the sum of both views', as an evaluation has it; a missing lateral view
        counts as zeros. An encoder with vectors of the lateral image's places overrides this.

        Args:
            frontal: (n, channels, height, width).
            lateral: (m, channels, height, width), of those that have one, in their order.
            has_lateral: (n,) bool, m of them True.
        """
        found = self.image_features(frontal)
        vectors = found.vectors
        if len(lateral):
            rows = has_lateral.nonzero()[:, 0]
            vectors = vectors.index_add(0, rows, self.embed_lateral_images(lateral))
        return replace(found, vectors=vectors / 2)

    def report_features(self, tokens: Tokens) -> ReportFeatures:
        """What training looks at: as `embed_reports`, and each word's vector where there is one."""
        return ReportFeatures(self.embed_reports(tokens))

    def preprocess(self, radiograph: Radiograph) -> Tensor:
        """One radiograph -> float32 (channels, height, width), on the CPU."""
        return self.image_pipeline(radiograph)

    @cached_property
    def weights_digest(self) -> str:
        return tensors_digest(self.state_dict())

    @cached_property
    def checksum(self) -> str:
        card = self.card
        parts = (
            f"{stable_class(type(self))} {card.name} {card.dim} {card.normalised}",
            self.weights_digest,
            self.tokenizer_digest(),
            self.image_pipeline.identity(),
        )
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def take_digest(
        self, files: Sequence[Path], tensors: Mapping[str, Tensor], what: str = ""
    ) -> None:
        """Set `weights_digest` to that of a checkpoint's tensors, remembered where it was taken.

        A remembered one is taken again beside the work. Whoever writes results waits for that
        (`vlscore._assurance.confirm`), and ends with ChecksumMismatch where it is another.

        Args:
            files: the checkpoint.
            what: tells this digest from others of the same files.
        """
        self.weights_digest, verified = digest_of(
            files,
            f"tensors {what}",
            lambda threads, stopped: tensors_digest(tensors, threads=threads, stopped=stopped),
        )
        if verified is not None:
            assure(self, verified)

    def tokenizer_digest(self) -> str:
        """Hexadecimal sha256 of the vocabulary, and of how a few texts are read with it.

        The vocabulary is that of the attribute `tokenizer`, where this has the attribute `digest`
        or, as all tokenizers of Hugging Face, the method `get_vocab`.
        """
        digest = hashlib.sha256()
        tokenizer = getattr(self, "tokenizer", None)
        if isinstance(known := getattr(tokenizer, "digest", None), str):
            digest.update(known.encode())
        elif callable(vocabulary := getattr(tokenizer, "get_vocab", None)):
            digest.update(repr(sorted(vocabulary().items())).encode())
        tokens = self.tokenize(list(_PROBES))
        for ids, length in zip(tokens.ids.tolist(), tokens.lengths.tolist(), strict=True):
            digest.update(repr(ids[:length]).encode())
        digest.update(repr(tokens.full_lengths.tolist()).encode())
        return digest.hexdigest()

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def encode_images(
        self, images: Sequence[Any], *, batch_size: int = 16, precision: Precision = "fp32"
    ) -> Tensor:
        """Embed images: paths, PIL images, arrays, tensors or radiographs.

        Returns: (n, d) float32, on the CPU.
        Raises: UnreadableImage naming the image that cannot be used; BrokenContract in training
            mode; InvalidSetting where one image is given instead of a list.
        """
        if isinstance(images, str | Path) or not hasattr(images, "__getitem__"):
            raise InvalidSetting("images is one image; give a list of images, even of one")
        check_ready(self)
        batches = [
            self._run(
                self.embed_images,
                torch.stack([self.image_pipeline.load(image, self.image_policy) for image in part]),
                precision,
            )
            for part in _parts(images, batch_size)
        ]
        return torch.cat(batches) if batches else torch.empty(0, self.card.dim)

    def encode_reports(
        self, reports: Sequence[str], *, batch_size: int = 32, precision: Precision = "fp32"
    ) -> Tensor:
        """Embed report texts. Reports of similar length share a batch, so little is padding.

        Returns: (n, d) float32, on the CPU, in the order given.
        Raises: InvalidReport where an item is not a text; BrokenContract in training mode.
        """
        if not len(check_texts(reports)):
            return torch.empty(0, self.card.dim)
        return self.encode_tokens(
            self.tokenize(reports), batch_size=batch_size, precision=precision
        )

    def encode_tokens(
        self, tokens: Tokens, *, batch_size: int = 32, precision: Precision = "fp32"
    ) -> Tensor:
        """Embed reports that are tokenized already; as `encode_reports` otherwise."""
        check_ready(self)
        embeddings = torch.empty(len(tokens), self.card.dim)
        by_length = torch.argsort(tokens.lengths, stable=True).tolist()
        for rows in _parts(by_length, batch_size):
            embeddings[rows] = self._run(self.embed_reports, tokens.take(rows), precision)
        return embeddings

    def _run(
        self, embed: Callable[[Any], Tensor], batch: Tensor | Tokens, precision: Precision
    ) -> Tensor:
        with inference(self.device, precision):
            return embed(batch.to(self.device)).float().cpu()


def check_texts(reports: Sequence[str]) -> Sequence[str]:
    """The reports themselves; raises InvalidReport at the first that is not a text."""
    if isinstance(reports, str):
        raise InvalidReport("reports is one text; give a list of texts, even of one")
    for position, report in enumerate(reports):
        if not isinstance(report, str):
            raise InvalidReport(f"report {position} is a {type(report).__name__}, not a text")
    return reports


def _parts(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    if size < 1:
        raise InvalidSetting(f"batch size must be at least 1, not {size}")
    return (items[start : start + size] for start in range(0, len(items), size))
