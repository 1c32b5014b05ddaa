"""From images and texts to embeddings: deduplicated, bucketed, batched, failing item by item."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from vlscore._recent import Recent
from vlscore.embedding.decoding import ImageDecoder, PendingPixels
from vlscore.encoders import JointEncoder, Precision, check_ready
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


# An embedding and whether the text was cut, or why there is none.
_Outcome = tuple[Tensor, bool] | VLScoreError


class EmbeddingEngine:
    """Embeds with one encoder at one precision; threads may share it.

    Each distinct report is embedded once: within a call, and across calls while it is among the
    most recently used.

    Attributes:
        encoder: the model.
        batch_size: images per forward pass; reports take twice as many.
        precision: "fp32", or "bf16" or "fp16" (autocast).
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
        self._remembered: Recent[str, tuple[Tensor, bool]] = Recent(_REMEMBERED_REPORTS)
        self._counting = threading.Lock()

    def forget(self) -> None:
        """Forget the embeddings of earlier calls.

        An embedding differs in its last digits with the company in which it was computed. After
        this, what follows depends on nothing that came before, as in a new process.
        """
        self._remembered.clear()

    def embed_reports(self, reports: Sequence[str]) -> Embedded:
        """Embed texts; equal texts share one embedding."""
        distinct = dict.fromkeys(reports)
        known = self._remembered.known(distinct)
        outcome: dict[str, _Outcome] = {
            **known,
            **self._embed_distinct([text for text in distinct if text not in known]),
        }
        return self._assemble([outcome[text] for text in reports])

    def embed_images(
        self, images: Sequence[Any], *, lateral: bool = False, decoder: ImageDecoder | None = None
    ) -> Embedded:
        """Embed images (paths, arrays, ...), decoded by `decoder` or here."""
        decoder = decoder or ImageDecoder(self.encoder.image_pipeline, self.encoder.image_policy)
        return self.embed_pending([decoder.submit(image) for image in images], lateral=lateral)

    def embed_pending(self, pending: Sequence[PendingPixels], *, lateral: bool = False) -> Embedded:
        """Embed images whose decoding has begun; `lateral` takes the lateral views' tower.

        Raises: BrokenContract where the encoder is in training mode.
        """
        check_ready(self.encoder)
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
        with self._counting:
            self.images_embedded += len(pending) - len(failures)
        return Embedded(vectors, failures)

    def _embed_distinct(self, texts: list[str]) -> dict[str, _Outcome]:
        if not texts:
            return {}
        try:
            tokens = self.encoder.tokenize(texts)
        except VLScoreError as error:
            # One text that cannot be tokenized must not take the others with it.
            if len(texts) == 1:
                return {texts[0]: error}
            middle = len(texts) // 2
            return self._embed_distinct(texts[:middle]) | self._embed_distinct(texts[middle:])
        vectors = self.encoder.encode_tokens(
            tokens, batch_size=2 * self.batch_size, precision=self.precision
        )
        flags = tokens.truncated.tolist()
        # Rows are copied: a row would keep the memory of its whole batch.
        new = {text: (vectors[row].clone(), flags[row]) for row, text in enumerate(texts)}
        self._remembered.add(new)
        with self._counting:
            self.reports_embedded += len(texts)
        return dict(new)

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
