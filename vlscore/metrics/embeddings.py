"""The embedded triples that image-aware metrics are computed from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vlscore.errors import InvalidSetting


@dataclass(frozen=True, eq=False)
class EmbeddingTriples:
    """Embeddings of n studies under one encoder.

    Attributes:
        images, candidates, references: (n, d) arrays or tensors.
        signature: what the embeddings depend on: encoder, checksum, policies.
        C: the encoder's constant of VLScore; None where nobody stated one.
    """

    images: Any
    candidates: Any
    references: Any
    signature: str
    C: float | None = None

    def __post_init__(self) -> None:
        shapes = [np.shape(x) for x in (self.images, self.candidates, self.references)]
        if len(set(shapes)) != 1 or len(shapes[0]) != 2:
            raise InvalidSetting(f"embeddings must have one shape (n, d); these have {shapes}")

    def __len__(self) -> int:
        return len(self.candidates)

    def take(self, rows: Sequence[int]) -> "EmbeddingTriples":
        """The triples of some rows."""
        return EmbeddingTriples(
            self.images[rows],
            self.candidates[rows],
            self.references[rows],
            self.signature,
            self.C,
        )
