"""From images and texts to embeddings: deduplicated, bucketed, batched, failing item by item."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from vlscore.embedding.decoding import ImageDecoder, PendingPixels
from vlscore.encoders import JointEncoder, Precision
from vlscore.encoders.base import inference
from vlscore.errors import VLScoreError

# Embeddings of repeated reports that are kept: a bound on memory, generous for real corpora,
# where the most frequent normal reports make most of the repetition.
_REMEMBERED_REPORTS = 10_000


@dataclass
class Embedded:
    """Embeddings of n items; failed items have a row of nan.

    Attributes:
        vectors: (n, d) float32, on the CPU.
        failures: position -> why the item has no embedding.
        truncated: (n,) bool, reports only: the tail was cut.
    """

    vectors: Tensor
    failures: dict[int, VLScoreError] = field(default_factory=dict)
    truncated: Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.bool))


class EmbeddingEngine:
    """Embeds with one encoder at one precision.

    Each distinct report is embedded once: within a call, and across calls while it is among the
    most recently used.

    Attributes:
        encoder: the model.
        batch_size: images per forward pass; reports take twice as many.
        precision: "fp32" or "bf16" (autocast).
        reports_embedded, images_embedded: how many went through the encoder so far.
    """

    def __init__(
        self, encoder: JointEncoder, *, batch_size: int = 16, precision: Precision = "fp32"
    ) -> None:
        self.encoder = encoder
        self.batch_size = batch_size
        self.precision = precision
        self.reports_embedded = 0
        self.images_embedded = 0
        self._remembered: OrderedDict[str, tuple[Tensor, bool]] = OrderedDict()

    def forget(self) -> None:
        """Forget the embeddings of earlier calls.

        An embedding differs in its last digits with the company in which it was computed. After
        this, what follows depends on nothing that came before, as in a new process.
        """
        self._remembered.clear()

    def embed_reports(self, reports: Sequence[str]) -> Embedded:
        """Embed texts; equal texts share one embedding."""
        outcome: dict[str, tuple[Tensor, bool] | VLScoreError] = {}
        for text in dict.fromkeys(reports):
            if text in self._remembered:
                self._remembered.move_to_end(text)
                outcome[text] = self._remembered[text]
        new = [text for text in dict.fromkeys(reports) if text not in outcome]
        outcome.update(self._embed_distinct(new))
        return self._assemble([outcome[text] for text in reports])

    def embed_images(
        self, images: Sequence[Any], *, lateral: bool = False, decoder: ImageDecoder | None = None
    ) -> Embedded:
        """Embed images (paths, arrays, ...), decoded by `decoder` or here."""
        decoder = decoder or ImageDecoder(self.encoder.image_pipeline, self.encoder.image_policy)
        return self.embed_pending([decoder.submit(image) for image in images], lateral=lateral)

    def embed_pending(self, pending: Sequence[PendingPixels], *, lateral: bool = False) -> Embedded:
        """Embed images whose decoding has begun; `lateral` takes the lateral views' tower."""
        vectors = torch.full((len(pending), self.encoder.card.dim), torch.nan)
        failures: dict[int, VLScoreError] = {}
        embed = self.encoder.embed_lateral_images if lateral else self.encoder.embed_images
        for start in range(0, len(pending), self.batch_size):
            positions, pixels = [], []
            for position in range(start, min(start + self.batch_size, len(pending))):
                try:
                    pixels.append(pending[position].result())
                    positions.append(position)
                except VLScoreError as error:
                    failures[position] = error
            if pixels:
                with inference(self.encoder.device, self.precision):
                    batch = torch.stack(pixels).to(self.encoder.device)
                    vectors[positions] = embed(batch).float().cpu()
        self.images_embedded += len(pending) - len(failures)
        return Embedded(vectors, failures)

    def _embed_distinct(
        self, texts: list[str]
    ) -> Iterator[tuple[str, tuple[Tensor, bool] | VLScoreError]]:
        if not texts:
            return
        try:
            tokens = self.encoder.tokenize(texts)
        except VLScoreError as error:
            # One text that cannot be tokenized must not take the others with it.
            if len(texts) == 1:
                yield texts[0], error
                return
            middle = len(texts) // 2
            yield from self._embed_distinct(texts[:middle])
            yield from self._embed_distinct(texts[middle:])
            return
        vectors = self.encoder.encode_tokens(
            tokens, batch_size=2 * self.batch_size, precision=self.precision
        )
        self.reports_embedded += len(texts)
        for text, vector, truncated in zip(texts, vectors, tokens.truncated.tolist(), strict=True):
            self._remember(text, (vector.clone(), truncated))
            yield text, (vector, truncated)

    def _remember(self, text: str, embedded: tuple[Tensor, bool]) -> None:
        self._remembered[text] = embedded
        if len(self._remembered) > _REMEMBERED_REPORTS:
            self._remembered.popitem(last=False)

    def _assemble(self, items: list[tuple[Tensor, bool] | VLScoreError]) -> Embedded:
        vectors = torch.full((len(items), self.encoder.card.dim), torch.nan)
        truncated = torch.zeros(len(items), dtype=torch.bool)
        failures: dict[int, VLScoreError] = {}
        for position, item in enumerate(items):
            if isinstance(item, VLScoreError):
                failures[position] = item
            else:
                vectors[position], truncated[position] = item
        return Embedded(vectors, failures, truncated)
