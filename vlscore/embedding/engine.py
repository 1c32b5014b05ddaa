"""Embed images and texts with one encoder: deduplicated, batched, failing item by item."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakValueDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vlscore.core import Cache, Namespace, file_digest
from vlscore.data import ImagePolicy, check_texts
from vlscore.embedding.batches import Forward, Work, default_batch_size, in_batches, stacked
from vlscore.embedding.cache_facts import embedding_facts
from vlscore.embedding.decoding import ImageDecoder, PendingPixels
from vlscore.embedding.encoder_source import EncoderSource
from vlscore.encoders import JointEncoder, Precision, Tokens, check_ready
from vlscore.errors import VLScoreError

# Rows with two reports each: then 95 % of the tokens that a processor computes are no padding.
_BATCHES_AT_ONCE = 16
# Number of reports that are sorted together: enough to make padding rare, with still few tokens.
_REPORTS_AT_ONCE = 4096

#: The method of an encoder that embeds images: what its vectors are of, as the cache names it.
Tower = Literal["images", "lateral images", "images with prior"]

# float32: the embedding (d,) of an image; (d + 1,) of a text, then 1 if its tail was cut.
_Row = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class EmbeddedRows:
    """Embeddings of n images, studies or texts; failed rows hold nan.

    Attributes:
        vectors: (n, d) float32, on the CPU.
        failures: row -> why it has no embedding, in order.
        truncated: (n,) bool: the encoder did not read the text's tail; False for images.
    """

    vectors: Tensor
    failures: dict[int, VLScoreError]
    truncated: Tensor


class EmbeddingEngine:
    """Engine that embeds images and texts with one encoder at one precision.

    Each distinct report, and each distinct image file, is embedded once within a call. With a cache
    this holds for all calls, also of earlier runs: the first computed embedding stays.

    The last digits of an embedding (at most 2e-6 of its length) depend on the items that are
    computed in the same call, and on nothing else: missing items are batched in one order. So a
    call that was stopped and is repeated, with the same cache, gives the same bytes.

    Threads may share it.

    Attributes:
        encoder: the model; it is read from its checkpoint when it is first asked for.
        card: facts about the encoder.
        dim: dimensions of an embedding.
        device: where the encoder computes.
        image_policy: how image files are read.
        precision: "fp32", "bf16" or "fp16".
        cache: store of embeddings between runs, or None.
        work: counts of computed and of cached items.
    """

    def __init__(
        self,
        encoder: JointEncoder | EncoderSource,
        *,
        batch_size: int | None = None,
        precision: Precision = "fp32",
        image_policy: ImagePolicy | None = None,
        cache: Cache | None = None,
    ) -> None:
        if isinstance(encoder, JointEncoder):
            encoder = EncoderSource(encoder)
        self._source = encoder
        self.card, self.dim = encoder.known.card, encoder.known.card.dim
        self.image_policy = image_policy or encoder.known.image_policy
        self.precision = precision
        self.cache = cache
        self.work = Work()
        self._forward = Forward(
            encoder, precision, batch_size or default_batch_size(encoder.device)
        )
        self._begin()

    def _begin(self) -> None:
        """Make the parts that belong to this process alone and are never sent to another."""
        self._namespaces: dict[tuple[str, str], Namespace | None] = {}
        self._in_flight: WeakValueDictionary[tuple[str, str], PendingPixels]
        self._in_flight = WeakValueDictionary()
        self._weights: list[Tensor] = []

    def __getstate__(self) -> dict[str, Any]:
        """Return the encoder and the settings, without what belongs to this process."""
        own = ("_namespaces", "_in_flight", "_weights")
        return {name: value for name, value in vars(self).items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    @property
    def encoder(self) -> JointEncoder:
        return self._source.encoder()

    @property
    def device(self) -> torch.device:
        return self._source.device

    @property
    def checksum(self) -> str:
        """Checksum of the encoder, as `JointEncoder.checksum`."""
        return self._source.known.checksum

    @property
    def batch_size(self) -> int:
        """Images per forward pass."""
        return self._forward.images

    @property
    def rows_at_once(self) -> int:
        """Number of rows to embed in one call, large enough for little padding."""
        return _BATCHES_AT_ONCE * self.batch_size

    def decoder(self, workers: int = 0) -> ImageDecoder:
        """Return an image decoder, with `workers` processes; a context manager."""
        pipeline = self._source.known.image_pipeline
        return ImageDecoder(pipeline, self.image_policy, workers, work=self.work)

    def embed_images(
        self, images: Sequence[Any], *, decoder: ImageDecoder | None = None
    ) -> EmbeddedRows:
        """Embed images (paths, arrays, ...), decoded by `decoder` or in this process."""
        found = self.embed_pending([self.pending(image, decoder) for image in images])
        return self._checked(found.vectors, found.failures)

    def embed_texts(self, texts: Sequence[str]) -> EmbeddedRows:
        """Embed each whole text to one vector; equal texts are embedded once.

        Texts of like length go through the encoder together: the more there are in one call, the
        less of it is padding.

        Raises: InvalidReport for one text, a dict, a set or a table in place of a list.
        """
        check_texts("texts", texts)
        distinct = list(dict.fromkeys(texts))
        found: dict[str, _Row] = {}
        failed: dict[str, VLScoreError] = {}
        # Memory holds the tokens of one window. Windows are cut before any look-up, so that they
        # do not depend on the items that are known already.
        for start in range(0, len(distinct), _REPORTS_AT_ONCE):
            window = distinct[start : start + _REPORTS_AT_ONCE]
            known = self._known(window, "reports")
            self.work.add(reports_from_cache=len(known))
            found |= known
            if missing := [text for text in window if text not in known]:
                found |= self._computed(missing, failed)
        nothing = np.full(self.dim + 1, np.nan, np.float32)
        rows = torch.from_numpy(np.stack([found.get(text, nothing) for text in texts] or [nothing]))
        rows = rows[: len(texts)]
        failures = {row: failed[text] for row, text in enumerate(texts) if text in failed}
        return self._checked(rows[:, :-1].contiguous(), failures, rows[:, -1] > 0)

    def pending(
        self, image: Any, decoder: ImageDecoder | None = None, tower: Tower = "images"
    ) -> PendingPixels:
        """Begin to decode an image, unless its embedding is known.

        Args:
            image: path, array, ...; with the tower "images with prior" (image, earlier image).
            decoder: as `decoder` returns it; None decodes in this process when pixels are needed.
            tower: what will embed it.
        """
        digest = digest_of(image)
        if digest is not None and (known := self._known([digest], tower)):
            self.work.add(images_from_cache=1)
            return PendingPixels(image, digest=digest, embedding=torch.from_numpy(known[digest]))
        decoder = decoder or self.decoder()
        if tower == "images with prior":
            both = [decoder.submit(each) for each in image]
            pixels = lambda: np.stack([each.stored().numpy() for each in both])  # noqa: E731
            return PendingPixels(image, pixels, digest=digest)
        if digest is None:
            return decoder.submit(image)
        # A table of several systems has the same image in consecutive rows.
        key = (os.fspath(image), digest)
        pending = self._in_flight.get(key)
        if pending is None:
            pending = self._in_flight[key] = decoder.submit(image, digest)
        return pending

    def embed_pending(
        self, pending: Sequence[PendingPixels], tower: Tower = "images"
    ) -> EmbeddedRows:
        """Embed images whose decoding has begun for this tower.

        Raises: BrokenContract if the encoder is in training mode.
        """
        vectors = torch.full((len(pending), self.dim), torch.nan)
        failures: dict[int, VLScoreError] = {}
        missing: dict[str | int, list[int]] = {}
        for position, item in enumerate(pending):
            if item.embedding is not None:
                vectors[position] = item.embedding
            else:
                missing.setdefault(item.digest or position, []).append(position)
        # Another call may have computed some meanwhile.
        digests = [key for key in missing if isinstance(key, str)]
        for digest, vector in self._known(digests, tower).items() if digests else ():
            positions = missing.pop(digest)
            self.work.add(images_from_cache=len(positions))
            vectors[positions] = torch.from_numpy(vector)
        nothing = torch.zeros(len(pending), dtype=torch.bool)
        if not missing:
            return EmbeddedRows(vectors, failures, nothing)
        check_ready(self.encoder)
        decoded = _decoded(pending, missing, failures)
        for group in in_batches(decoded, lambda: self._forward.images):
            pixels = stacked([stored for _, stored in group], self.device)
            found = self._forward(lambda batch: self._embedded(batch, tower), pixels)
            self.work.add(images_embedded=len(group))
            new: dict[str, NDArray[np.float32]] = {}
            for (positions, _), vector in zip(group, found, strict=True):
                vectors[positions] = vector
                first = pending[positions[0]]
                # A file that has changed since it was hashed may have been decoded afterwards.
                if first.digest is not None and digest_of(first.image) == first.digest:
                    new[first.digest] = vector.numpy()
            stored_rows = self._stored(tower, new)
            for positions, _ in group:
                stored = stored_rows.get(pending[positions[0]].digest or "")
                if stored is not None:
                    vectors[positions] = torch.from_numpy(stored)
        return EmbeddedRows(vectors, failures, nothing)

    def _embedded(self, stored: Tensor, tower: Tower) -> Tensor:
        if tower == "images with prior":
            current, prior = (self._pixels(each.contiguous()) for each in stored.unbind(1))
            return self.encoder.embed_images_with_prior(current, prior)
        pixels = self._pixels(stored)
        if tower == "lateral images":
            return self.encoder.embed_lateral_images(pixels)
        return self.encoder.embed_images(pixels)

    def _pixels(self, stored: Tensor) -> Tensor:
        pixels = self.encoder.image_pipeline.from_stored(stored)
        if self.precision != "fp32" and pixels.ndim == 4:
            # This gives no gain in float32 on a CPU.
            return pixels.contiguous(memory_format=torch.channels_last)
        return pixels

    def _computed(self, texts: list[str], failed: dict[str, VLScoreError]) -> dict[str, _Row]:
        """Return the rows of distinct texts, and store them in the cache."""
        found: dict[str, _Row] = {}
        texts, tokens = self._tokenized(texts, failed)
        if tokens is not None:
            check_ready(self.encoder)
            for rows in self._forward.report_batches(tokens.lengths.tolist()):
                vectors = self._forward(self.encoder.embed_reports, tokens.take(rows))
                self.work.add(reports_embedded=len(rows))
                full = torch.cat([vectors, tokens.truncated[rows, None].float()], dim=1).numpy()
                # Rows are copied, because a row would hold the memory of its whole batch.
                new = {texts[row]: full[k].copy() for k, row in enumerate(rows)}
                found |= self._stored("reports", new)
        return found

    def _tokenized(
        self, texts: list[str], failed: dict[str, VLScoreError]
    ) -> tuple[list[str], Tokens | None]:
        """Return the texts that can be tokenized, and their tokens (None without any)."""
        try:
            return texts, self._source.known.tokenize(texts)
        except VLScoreError as error:
            if len(texts) == 1:
                failed[texts[0]] = error
                return [], None
        # Halves are tried alone, so that one text does not fail the others.
        middle = len(texts) // 2
        usable = [
            text
            for half in (texts[:middle], texts[middle:])
            for text in self._tokenized(half, failed)[0]
        ]
        return usable, self._source.known.tokenize(usable) if usable else None

    def _namespace(self, holds: str) -> Namespace | None:
        """Return where embeddings are cached; None if there is no cache, or they may not be.

        They may not where a weight is trained, and therefore changes. Code that changes frozen
        weights sets `is_as_loaded` to False, or works without the cache.
        """
        known = self._source.known
        if self.cache is None or not known.is_as_loaded:
            return None
        # The list is remembered, because a walk through all modules takes longer than a look-up.
        if not self._weights:
            self._weights = list(known.parameters())
        if any(weight.requires_grad for weight in self._weights):
            return None
        # The device may have changed, too.
        name = (holds, self._source.device.type)
        if name not in self._namespaces:
            facts = embedding_facts(known, self.image_policy, self.precision, *name)
            self._namespaces[name] = None if facts is None else self.cache.namespace(facts)
        return self._namespaces[name]

    def _known(self, contents: list[str], holds: str) -> dict[str, _Row]:
        """Return the stored row of each text, or digest of an image, that is in the cache."""
        names = self._namespace(holds)
        return names.get(contents) if names is not None else {}

    def _stored(self, holds: str, new: dict[str, _Row]) -> dict[str, _Row]:
        """Store rows in the cache; return the stored ones, which may be another process's."""
        names = self._namespace(holds)
        if names is None:
            return new
        return new | names.put({key: row for key, row in new.items() if np.isfinite(row).all()})

    def _checked(
        self,
        vectors: Tensor,
        failures: dict[int, VLScoreError],
        truncated: Tensor | None = None,
    ) -> EmbeddedRows:
        """Turn rows that are not finite into failures, and set failures to nan."""
        if truncated is None:
            truncated = torch.zeros(len(vectors), dtype=torch.bool)
        for row in torch.nonzero(~vectors.isfinite().all(1)).flatten().tolist():
            text = f"{self.card.name} returned an embedding that is not finite"
            failures.setdefault(row, VLScoreError(text))
        rows = sorted(failures)
        vectors[rows] = torch.nan
        truncated[rows] = False
        return EmbeddedRows(vectors, {row: failures[row] for row in rows}, truncated)


def _decoded(
    pending: Sequence[PendingPixels],
    missing: dict[str | int, list[int]],
    failures: dict[int, VLScoreError],
) -> Iterator[tuple[list[int], Tensor]]:
    """Yield positions and pixels of each distinct image; failures are put at their positions."""
    for positions in missing.values():
        for number, position in enumerate(positions):
            try:
                stored = pending[position].stored()
            except VLScoreError as error:
                # Each file of the same content is tried, so that each error names its own.
                failures[position] = error
                continue
            yield positions[number:], stored
            break


def digest_of(image: Any) -> str | None:
    """Return the sha256 of an image file; None if it is none, or cannot be read.

    That of an image with an earlier one is both, joined.
    """
    if isinstance(image, tuple):
        digests = [digest_of(each) for each in image]
        return None if None in digests else "+".join(map(str, digests))
    try:
        if isinstance(image, str | os.PathLike) and os.path.isfile(image):
            return file_digest(image)
    except (OSError, ValueError):
        pass
    return None
