"""The embedded triples that image-aware metrics are computed from."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vlscore._signature import Signature
from vlscore.errors import InvalidSetting, VLScoreError


@dataclass(frozen=True, eq=False)
class EmbeddingTriples:
    """Embeddings of n studies under one encoder.

    Attributes:
        images, candidates, references: (n, d) arrays or tensors; images or references may be None
            where no metric looks at them.
        signature: what the embeddings depend on (encoder, checksum, policies): a Signature, or
            the same as printed.
        C: the encoder's constant of VLScore, a positive number; None where nobody stated one.
        failures: row -> why it has no embeddings; such rows hold nan.

    Raises: InvalidSetting where shapes differ, or C is not a positive number.
    """

    images: Any
    candidates: Any
    references: Any
    signature: Signature | str
    C: float | None = None
    failures: Mapping[int, VLScoreError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given = [x for x in (self.images, self.candidates, self.references) if x is not None]
        shapes = [tuple(np.shape(x)) for x in given]
        if self.candidates is None or len(set(shapes)) != 1 or len(shapes[0]) != 2:
            raise InvalidSetting(f"embeddings must have one shape (n, d); these have {shapes}")
        check_constant(self.C)
        if isinstance(self.signature, str):
            parsed = Signature.parse(f"embeddings|{self.signature}")
            object.__setattr__(self, "signature", parsed)

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def facts(self) -> Signature:
        """The signature as a value."""
        assert isinstance(self.signature, Signature)
        return self.signature

    def take(self, rows: Sequence[int]) -> "EmbeddingTriples":
        """The triples of some rows."""
        chosen = list(rows)
        parts: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[chosen]
            for name in ("images", "candidates", "references")
        }
        failures = {k: self.failures[row] for k, row in enumerate(chosen) if row in self.failures}
        return replace(self, **parts, failures=failures)


def check_constant(C: Any) -> None:
    """Raises InvalidSetting unless C is None or a finite positive number."""
    if C is None:
        return
    if isinstance(C, bool) or not isinstance(C, int | float) or not (C > 0 and math.isfinite(C)):
        raise InvalidSetting(f"C must be a positive number, not {C!r}")
