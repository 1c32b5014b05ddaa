"""Embed images and texts: deduplicated, sorted by length, batched, failing item by item."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from vlscore.core import Cache, Recent, Space, confirm, text_digest
from vlscore.data import ImagePolicy
from vlscore.embedding.batches import (
    CompiledTowers,
    Forward,
    Work,
    can_compile,
    default_batch_size,
    in_batches,
    one_thread_if_small,
    stacked,
)
from vlscore.embedding.cached import (
    CachedEmbeddings,
    Contents,
    cached_pixels,
    vector_entry,
    vector_of,
)
from vlscore.embedding.decoding import ImageDecoder, PendingPixels
from vlscore.encoders import JointEncoder, Precision, Tokens, check_ready, unchanging_weights
from vlscore.errors import VLScoreError

# Embeddings of repeated reports in memory: a bound, generous for real corpora, where
# the most frequent normal reports make most of the repetition.
_REMEMBERED_REPORTS = 10_000
# Rows with two reports each: then 97 % of the tokens that a processor computes are no padding, as
# measured on the Indiana collection (benchmarks/results/text_batching.md).
_BATCHES_AT_ONCE = 16
# Number of reports that are sorted together: enough to make padding rare, with still few tokens.
_REPORTS_AT_ONCE = 4096


@dataclass
class Embedded:
    """Embeddings of n items; failed items have a row of nan.

    Attributes:
        vectors: (n, d) float32, on the CPU.
        failures: position -> error why the item has no embedding.
        truncated: (n,) bool, reports only: the tail was cut.
    """

    vectors: Tensor
    failures: dict[int, VLScoreError] = field(default_factory=dict)
    truncated: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.bool))


# An embedding and whether the text was cut, or the error of a failed item.
_Vector = tuple[Tensor, bool]
_Outcome = _Vector | VLScoreError


class EmbeddingEngine:
    """Engine that embeds with one encoder at one precision; threads may share it.

    Each distinct report is embedded once: within a call, and across calls while it is among the
    most recently used. Each distinct image file is embedded once within a call. With a cache this
    holds for all calls, also of earlier runs: the first computed embedding stays.

    The last digits of an embedding (at most 2e-6 of its length) depend on the items that are
    computed in the same call, and on nothing else: missing items are batched in one order. So a
    call that was stopped and is repeated, with the same cache, gives the same bytes.

    Attributes:
        encoder: the model.
        image_policy: how files are read.
        batch_size: images per forward pass; reports are counted by tokens. Halved if memory is
            short.
        precision: "fp32", or "bf16" or "fp16" (autocast).
        cache: cache of embeddings and pixels between runs, or None.
        is_compiled: whether towers run under torch.compile: wanted and possible.
        work: counts of computed and of cached items.
    """

    def __init__(
        self,
        encoder: JointEncoder,
        *,
        batch_size: int | None = None,
        precision: Precision = "fp32",
        image_policy: ImagePolicy | None = None,
        cache: Cache | None = None,
        compile: bool = False,
    ) -> None:
        self.encoder = encoder
        self.image_policy = image_policy or encoder.image_policy
        self.precision = precision
        self.is_compiled = compile and can_compile(encoder.device)
        self.work = Work()
        self._forward = Forward(
            encoder, precision, batch_size or default_batch_size(encoder.device)
        )
        self.cache = cache
        self._begin()

    def _begin(self) -> None:
        """Make the parts that belong to this process alone and are never sent to another."""
        encoder = self.encoder
        self._towers = CompiledTowers(encoder) if self.is_compiled else encoder
        self._contents = Contents()
        self._cached = None
        if self.cache is not None:
            self._cached = CachedEmbeddings(
                self.cache, encoder, self.image_policy, self.precision, is_compiled=self.is_compiled
            )
        self._in_flight: WeakValueDictionary[tuple[str, bytes], PendingPixels]
        self._in_flight = WeakValueDictionary()
        self._remembered: Recent[str, _Vector] = Recent(_REMEMBERED_REPORTS)

    def __getstate__(self) -> dict[str, Any]:
        """Return the encoder and the settings, without memory of earlier calls.

        Raises: ChecksumMismatch if the checkpoint has not the content of its digest. The check
            runs in the background of this process, so this call waits for its end.
        """
        confirm(self.encoder)
        own = ("_towers", "_contents", "_cached", "_in_flight", "_remembered")
        return {name: value for name, value in vars(self).items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._begin()

    @property
    def batch_size(self) -> int:
        """Images per forward pass."""
        return self._forward.images

    @property
    def rows_at_once(self) -> int:
        """Number of rows to embed in one call, large enough for little padding."""
        return _BATCHES_AT_ONCE * self.batch_size

    @property
    def reports_embedded(self) -> int:
        """Number of reports that went through the encoder."""
        return self.work.reports_embedded

    @property
    def images_embedded(self) -> int:
        """Number of images that went through the encoder."""
        return self.work.images_embedded

    def forget(self) -> None:
        """Remove the embeddings of earlier calls from memory, but not from the cache.

        The last digits of an embedding depend on its batch. After this call, results do not depend
        on earlier calls, as in a new process.
        """
        self._remembered.clear()

    def decoder(self, workers: int = 0) -> ImageDecoder:
        """Return an image decoder for this engine, with `workers` processes; a context manager."""
        pipeline, policy = self.encoder.image_pipeline, self.image_policy
        pixels = cached_pixels(self.cache, pipeline, policy) if self.cache is not None else None
        return ImageDecoder(pipeline, policy, workers, pixels=pixels, work=self.work)

    def begin(self, image: Any, decoder: ImageDecoder, *, lateral: bool = False) -> PendingPixels:
        """Begin to decode an image, unless its embedding is known.

        Args:
            image: path, array, ...
            decoder: a decoder from `decoder`.
            lateral: whether the lateral views' tower will embed it.
        """
        content = self._contents.of(image)
        space = self._cached.images(lateral=lateral) if self._cached is not None else None
        if content is not None and space is not None:
            found = space.get([content.digest]).get(content.digest)
            if (vector := vector_of(found, self.encoder.card.dim)) is not None:
                self.work.add(images_from_cache=1)
                return PendingPixels.known(image, vector)
        if content is None:
            return decoder.submit(image)
        # A table of several systems has the same image in consecutive rows.
        key = (content.path, content.digest)
        pending = self._in_flight.get(key)
        if pending is None:
            pending = self._in_flight[key] = decoder.submit(image, content)
        return pending

    def embed_reports(self, reports: Sequence[str]) -> Embedded:
        """Embed texts; equal texts share one embedding.

        Texts of like length go through the encoder together: the more there are in one call, the
        less of it is padding.
        """
        distinct = list(dict.fromkeys(reports))
        outcome: dict[str, _Outcome] = {}
        # Memory holds the tokens of one window. Windows are cut before any look-up, so that they
        # do not depend on the items that are known already.
        with one_thread_if_small(self.encoder, len(distinct)):
            for start in range(0, len(distinct), _REPORTS_AT_ONCE):
                window = distinct[start : start + _REPORTS_AT_ONCE]
                known = self._remembered.known(window)
                outcome |= known
                outcome |= self._embed_missing([text for text in window if text not in known])
        return self._assemble([outcome[text] for text in reports])

    def embed_images(
        self, images: Sequence[Any], *, lateral: bool = False, decoder: ImageDecoder | None = None
    ) -> Embedded:
        """Embed images (paths, arrays, ...), decoded by `decoder` or in this process."""
        decoder = decoder or self.decoder()
        begun = [self.begin(image, decoder, lateral=lateral) for image in images]
        return self.embed_pending(begun, lateral=lateral)

    def embed_pending(self, pending: Sequence[PendingPixels], *, lateral: bool = False) -> Embedded:
        """Embed images whose decoding has begun; `lateral` uses the lateral views' tower.

        Raises: BrokenContract if the encoder is in training mode.
        """
        check_ready(self.encoder)
        vectors = torch.full((len(pending), self.encoder.card.dim), torch.nan)
        failures: dict[int, VLScoreError] = {}
        missing: dict[bytes | int, list[int]] = {}
        for position, item in enumerate(pending):
            if item.embedding is not None:
                vectors[position] = item.embedding
            else:
                key = item.content.digest if item.content is not None else position
                missing.setdefault(key, []).append(position)
        ready = self._ready(pending, missing, vectors, failures, lateral=lateral)
        towers = self._towers
        tower = towers.embed_lateral_images if lateral else towers.embed_images
        with unchanging_weights(), one_thread_if_small(self.encoder, len(pending)):
            for group in in_batches(ready, lambda: self._forward.images):
                owners = [positions for positions, _ in group]
                pixels = stacked([stored for _, stored in group], self.encoder.device)
                found = self._forward(lambda batch: tower(self._pixels(batch)), pixels)
                self.work.add(images_embedded=len(group))
                first = [pending[positions[0]] for positions in owners]
                for positions, row in zip(owners, self._stored(first, found, lateral), strict=True):
                    vectors[positions] = row
        return Embedded(vectors, failures)

    def _ready(
        self,
        pending: Sequence[PendingPixels],
        missing: dict[bytes | int, list[int]],
        vectors: Tensor,
        failures: dict[int, VLScoreError],
        *,
        lateral: bool,
    ) -> Iterator[tuple[list[int], Tensor]]:
        """Return positions and pixels of each distinct image that must be embedded.

        Vectors that were computed meanwhile, and failures, are stored at their positions.
        """
        space = self._cached.images(lateral=lateral) if self._cached is not None else None
        digests = [key for key in missing if isinstance(key, bytes)]
        found = space.get(digests) if space is not None else {}
        for key, positions in missing.items():
            entry = found.get(key) if isinstance(key, bytes) else None
            if (vector := vector_of(entry, self.encoder.card.dim)) is not None:
                self.work.add(images_from_cache=len(positions))
                vectors[positions] = vector
                continue
            for number, position in enumerate(positions):
                try:
                    stored = pending[position].stored()
                except VLScoreError as error:
                    # Each file of the same content is tried, so that each error names its own.
                    failures[position] = error
                    continue
                yield positions[number:], stored
                break

    def _pixels(self, stored: Tensor) -> Tensor:
        pixels = self.encoder.image_pipeline.from_stored(stored)
        if self.precision != "fp32" and pixels.ndim == 4:
            # This gives no gain in float32 on a CPU.
            return pixels.contiguous(memory_format=torch.channels_last)
        return pixels

    def _stored(
        self, images: Sequence[PendingPixels], vectors: Tensor, lateral: bool
    ) -> Sequence[Tensor]:
        """Store vectors in the cache; return the stored ones, which may be another process's."""
        rows = [row.clone() for row in vectors]
        space = self._cached.images(lateral=lateral) if self._cached is not None else None
        if space is None:
            return rows
        # A file that has changed since it was hashed may have been decoded after the change.
        entries = {
            image.content.digest: vector_entry(row)
            for image, row in zip(images, rows, strict=True)
            if image.content is not None and image.content.is_unchanged() and _is_finite(row)
        }
        # Nothing is cached before the checkpoint's digest has been verified.
        confirm(self.encoder)
        stored = space.put(entries)
        for k, image in enumerate(images):
            entry = stored.get(image.content.digest) if image.content is not None else None
            if (vector := vector_of(entry, self.encoder.card.dim)) is not None:
                rows[k] = vector
        return rows

    def _embed_missing(self, distinct: Sequence[str]) -> dict[str, _Outcome]:
        """Return outcomes of texts that are not in memory: from the cache, else computed."""
        outcome: dict[str, _Outcome] = {}
        space = self._cached.reports() if self._cached is not None else None
        digests = {text: text_digest(text) for text in distinct} if space is not None else {}
        if space is not None:
            found = space.get(digests.values())
            for text, digest in digests.items():
                entry = found.get(digest)
                vector = vector_of(entry, self.encoder.card.dim)
                if entry is not None and vector is not None:
                    outcome[text] = (vector, bool(entry.flag))
            self.work.add(reports_from_cache=len(outcome))
            self._remembered.add(outcome)  # type: ignore[arg-type]
        missing = [text for text in distinct if text not in outcome]
        missing, tokens, failed = self._tokenized(missing)
        outcome |= failed
        if tokens is None:
            return outcome
        check_ready(self.encoder)
        flags = tokens.truncated.tolist()
        with unchanging_weights():
            for rows in self._forward.report_batches(tokens.lengths.tolist()):
                vectors = self._forward(self._towers.embed_reports, tokens.take(rows))
                self.work.add(reports_embedded=len(rows))
                # Rows are copied, because a row would hold the memory of its whole batch.
                new = {
                    missing[row]: (vector.clone(), bool(flags[row]))
                    for row, vector in zip(rows, vectors, strict=True)
                }
                if space is not None:
                    confirm(self.encoder)
                    new = _stored_reports(space, new, digests, self.encoder.card.dim)
                self._remembered.add(new)
                outcome |= new
        return outcome

    def _tokenized(self, texts: list[str]) -> tuple[list[str], Tokens | None, dict[str, _Outcome]]:
        """Return the texts that can be tokenized, their tokens (None without any), and failures."""
        failed: dict[str, _Outcome] = {}
        try:
            return texts, self.encoder.tokenize(texts) if texts else None, failed
        except VLScoreError:
            failed = self._untokenizable(texts)
        usable = [text for text in texts if text not in failed]
        return usable, self.encoder.tokenize(usable) if usable else None, failed

    def _untokenizable(self, texts: Sequence[str]) -> dict[str, _Outcome]:
        """Find the texts that cannot be tokenized, so that one does not fail the others."""
        if not texts:
            return {}
        try:
            self.encoder.tokenize(texts)
        except VLScoreError as error:
            if len(texts) == 1:
                return {texts[0]: error}
            middle = len(texts) // 2
            return self._untokenizable(texts[:middle]) | self._untokenizable(texts[middle:])
        return {}

    def _assemble(self, items: list[_Outcome]) -> Embedded:
        vectors = torch.full((len(items), self.encoder.card.dim), torch.nan)
        truncated = torch.zeros(len(items), dtype=torch.bool)
        failures: dict[int, VLScoreError] = {}
        for position, item in enumerate(items):
            if isinstance(item, VLScoreError):
                failures[position] = item
            else:
                vectors[position], truncated[position] = item
        return Embedded(vectors, failures, truncated)


def _stored_reports(
    space: Space, new: dict[str, _Vector], digests: dict[str, bytes], dim: int
) -> dict[str, _Vector]:
    """Store vectors in the cache; return the stored ones, which may be another process's."""
    stored = space.put(
        {
            digests[text]: vector_entry(vector, truncated=cut)
            for text, (vector, cut) in new.items()
            if _is_finite(vector)
        }
    )
    kept: dict[str, _Vector] = {}
    for text, outcome in new.items():
        entry = stored.get(digests[text])
        vector = vector_of(entry, dim)
        kept[text] = outcome if entry is None or vector is None else (vector, bool(entry.flag))
    return kept


def _is_finite(vector: Tensor) -> bool:
    return bool(vector.isfinite().all())
