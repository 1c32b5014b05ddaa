"""Base classes of joint encoders: `JointEncoder`, tokens and features.

* `JointEncoder` is what every encoder offers, with the batching that all of them share.
* `Tokens` are the token ids of a batch of reports, and what was cut from them.
* `ImageFeatures` and `ReportFeatures` are what a tower returns in training: global vectors, and
  local ones if an objective needs them.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from vlscore.data import ImagePolicy, Radiograph
from vlscore.encoders.cards import EncoderCard
from vlscore.encoders.checkpoints import tensors_digest
from vlscore.encoders.devices import Precision, check_ready, inference
from vlscore.encoders.image_pipeline import ImagePipeline
from vlscore.errors import InvalidReport, InvalidSetting


@dataclass(frozen=True, eq=False)
class ImageFeatures:
    """Vectors of n images.

    Attributes:
        vectors: (n, d), the embeddings that `embed_images` returns.
        patches: (n, P, k), one vector for each of P places; None if the encoder has none.
        is_patch: (n, P) bool, False for a missing place, as of a lateral view that was not taken;
            None if all exist.
        patch_weights: (n, P), the tower's own attention to each place, at least 0, without
            gradient; None for a tower without attention, such as a convolutional one.
    """

    vectors: Tensor
    patches: Tensor | None = None
    is_patch: Tensor | None = None
    patch_weights: Tensor | None = None


@dataclass(frozen=True, eq=False)
class ReportFeatures:
    """Vectors of n reports.

    Attributes:
        vectors: (n, d), the embeddings that `embed_reports` returns.
        words: (n, W, k), one vector for each word, in the space of `ImageFeatures.patches`; zeros
            after a report's last word; None if the encoder has none. The encoder decides whether
            special tokens such as [CLS] count as words, in agreement with its authors' loss.
        is_word: (n, W) bool, False after a report's last word.
        word_weights: (n, W), the tower's own attention to each word, at least 0, without gradient,
            0 after the last word; None for a tower without attention.
    """

    vectors: Tensor
    words: Tensor | None = None
    is_word: Tensor | None = None
    word_weights: Tensor | None = None


@dataclass(frozen=True)
class Tokens:
    """Token ids of n reports, padded at the end to a common length L.

    Attributes:
        ids: (n, L) int64.
        mask: (n, L) int64, 1 at tokens and 0 at padding.
        full_lengths: (n,) int64, the number of tokens (special tokens included) that each whole
            report has; larger than the length in `ids` if the report was truncated.
    """

    ids: Tensor
    mask: Tensor
    full_lengths: Tensor

    @classmethod
    def padded(
        cls,
        rows: Sequence[Sequence[int]],
        *,
        max_tokens: int,
        pad: int = 0,
        pad_to: int | None = None,
    ) -> "Tokens":
        """Pad token ids of whole reports, special tokens included; cut those that are too long.

        Args:
            max_tokens: longest sequence; a longer one loses tokens before its last, which is the
                end token.
            pad: id of padding.
            pad_to: common length; default: that of the longest sequence after cutting.

        >>> Tokens.padded([[2, 7, 8, 9, 3], [2, 3]], max_tokens=4).ids.tolist()
        [[2, 7, 8, 3], [2, 3, 0, 0]]
        """
        rows_cut = [
            row if len(row) <= max_tokens else [*row[: max_tokens - 1], row[-1]] for row in rows
        ]
        length = pad_to or max(map(len, rows_cut), default=0)
        ids = torch.full((len(rows_cut), length), pad, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for number, row in enumerate(rows_cut):
            ids[number, : len(row)] = torch.tensor(row, dtype=torch.long)
            mask[number, : len(row)] = 1
        return cls(ids, mask, torch.tensor([len(row) for row in rows], dtype=torch.long))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def lengths(self) -> Tensor:
        """Number of tokens in `ids`, (n,) int64."""
        return self.mask.sum(dim=1)

    @property
    def truncated(self) -> Tensor:
        """Mask (n,) bool, True if the tail of the report does not reach the encoder."""
        return self.full_lengths > self.lengths

    def take(self, rows: Sequence[int]) -> "Tokens":
        """Return some rows, trimmed to the longest of them."""
        index = torch.as_tensor(rows, dtype=torch.long)
        mask = self.mask[index]
        longest = max(int(mask.sum(dim=1).max()), 1) if len(index) else 0
        return Tokens(self.ids[index, :longest], mask[:, :longest], self.full_lengths[index])

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "Tokens":
        """Return the tokens on a device; `non_blocking` as in `torch.Tensor.to`."""
        ids, mask = (each.to(device, non_blocking=non_blocking) for each in (self.ids, self.mask))
        return Tokens(ids, mask, self.full_lengths)


# Every tokenizer reads these once, so that the digest shows how it cleans and cuts texts.
_PROBES = (
    "FINDINGS: The heart is mildly enlarged.\nNo pleural effusion or pneumothorax!",
    "1. Nodule of 2.5 cm in the RIGHT upper lobe, unchanged since ___. 2. Na\u00efve \u00b5m (R>L)",
    "",
    "No focal consolidation is seen. " * 200,
)


class JointEncoder(nn.Module, ABC):
    """An image tower and a report tower that share one space of d dimensions.

    A subclass sets `card` and `image_pipeline`, and implements `tokenize`, `embed_images`
    and `embed_reports`. Embeddings must not depend on batch size, order or padding.

    Attributes:
        card: facts about the encoder.
        image_pipeline: preprocessing of one image.
        weights_digest: hexadecimal sha256 of the weights, the same for any container.
        checksum: hexadecimal sha256 of all that its embeddings depend on: weights, vocabulary,
            cleaning of texts, preprocessing of images. Signatures show its first digits.
        image_policy: how files become radiographs; only `load_encoder` sets it.
        has_lateral_tower: whether `embed_lateral_images` can be called.
        takes_prior: whether `embed_images_with_prior` can be called.
        variants: possible suffixes of the name, as in "mgca-vit:raw"; None for any suffix.
        takes_tokenizer: whether `load` uses a vocabulary.
        cache_version: version of this code's embeddings in the cache. An encoder outside vlscore
            sets it, and changes it with the code; without it, its embeddings are not cached.
        is_as_loaded: whether the weights are those that `load_encoder` read; only then, and while
            they are frozen, embeddings are cached. Whoever changes them sets it to False.
    """

    card: EncoderCard
    image_pipeline: ImagePipeline
    image_policy: ImagePolicy = ImagePolicy()
    has_lateral_tower: bool = False
    takes_prior: bool = False
    variants: ClassVar[tuple[str, ...] | None] = ()
    takes_tokenizer: ClassVar[bool] = True
    cache_version: ClassVar[str | None] = None
    is_as_loaded: bool = False

    @abstractmethod
    def tokenize(self, reports: Sequence[str]) -> Tokens:
        """Convert reports to token ids, cleaned as the authors clean; truncation is flagged."""

    @abstractmethod
    def embed_images(self, pixels: Tensor) -> Tensor:
        """Embed pixels (n, channels, height, width) -> (n, d) float32."""

    @abstractmethod
    def embed_reports(self, tokens: Tokens) -> Tensor:
        """Embed n token sequences -> (n, d) float32."""

    def embed_lateral_images(self, pixels: Tensor) -> Tensor:
        """Embed lateral views -> (n, d), by a separate tower if `has_lateral_tower`."""
        raise InvalidSetting(f"{self.card.name} has no tower for lateral views")

    def embed_images_with_prior(self, pixels: Tensor, prior: Tensor) -> Tensor:
        """Embed current images with the patients' earlier ones -> (n, d), if `takes_prior`."""
        raise InvalidSetting(f"{self.card.name} does not take an earlier image")

    def image_features(self, pixels: Tensor) -> ImageFeatures:
        """Return features for training: `embed_images`, and a vector for each place, if any.

        An encoder with local vectors overrides this: one pass through the tower computes both.
        """
        return ImageFeatures(self.embed_images(pixels))

    def study_features(
        self, frontal: Tensor, lateral: Tensor, has_lateral: Tensor
    ) -> ImageFeatures:
        """Return features for training of studies with two views, if `has_lateral_tower`.

        Vectors are half the sum of both views' vectors, as in an evaluation; a missing lateral view
        counts as zeros. An encoder with vectors of the lateral image's places overrides this.

        Args:
            frontal: (n, channels, height, width).
            lateral: (m, channels, height, width), of the studies that have one, in their order.
            has_lateral: (n,) bool, m of them True.
        """
        found = self.image_features(frontal)
        vectors = found.vectors
        if len(lateral):
            rows = has_lateral.nonzero()[:, 0]
            vectors = vectors.index_add(0, rows, self.embed_lateral_images(lateral))
        return replace(found, vectors=vectors / 2)

    def report_features(self, tokens: Tokens) -> ReportFeatures:
        """Return features for training: `embed_reports`, and a vector for each word, if any."""
        return ReportFeatures(self.embed_reports(tokens))

    def preprocess(self, radiograph: Radiograph) -> Tensor:
        """Convert one radiograph to float32 (channels, height, width), on the CPU."""
        return self.image_pipeline(radiograph)

    @cached_property
    def weights_digest(self) -> str:
        return tensors_digest(self.state_dict())

    @cached_property
    def checksum(self) -> str:
        card = self.card
        parts = (
            f"{type(self).__name__} {card.name} {card.dim} {card.normalised}",
            self.weights_digest,
            self.tokenizer_digest(),
            self.image_pipeline.identity(),
        )
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def tokenizer_digest(self) -> str:
        """Compute the hexadecimal sha256 of the vocabulary, and of the tokens of a few texts.

        The vocabulary comes from the attribute `tokenizer`, if this has an attribute `digest` or,
        as all tokenizers of Hugging Face, a method `get_vocab`.
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
        Raises: UnreadableImage that names the image; BrokenContract in training mode;
            InvalidSetting for one image instead of a list.
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

        Returns: (n, d) float32, on the CPU, in the order of the reports.
        Raises: InvalidReport if an item is not a text; BrokenContract in training mode.
        """
        if isinstance(reports, str):
            raise InvalidReport("reports is one text; give a list of texts, even of one")
        for position, report in enumerate(reports):
            if not isinstance(report, str):
                raise InvalidReport(f"report {position} is a {type(report).__name__}, not a text")
        if not len(reports):
            return torch.empty(0, self.card.dim)
        return self.encode_tokens(
            self.tokenize(reports), batch_size=batch_size, precision=precision
        )

    def encode_tokens(
        self, tokens: Tokens, *, batch_size: int = 32, precision: Precision = "fp32"
    ) -> Tensor:
        """Embed tokenized reports; else as `encode_reports`."""
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


def _parts(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    if size < 1:
        raise InvalidSetting(f"batch size must be at least 1, not {size}")
    return (items[start : start + size] for start in range(0, len(items), size))
