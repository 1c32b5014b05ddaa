"""Metrics of embedded triples, by the similarity room."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from vlscore._version import __version__
from vlscore.errors import InvalidSetting
from vlscore.metrics.embeddings import EmbeddingTriples
from vlscore.metrics.metric import Metric
from vlscore.metrics.providers.base import Provider
from vlscore.similarity import SIMILARITIES


class SimilarityProvider(Provider):
    """In float64, whatever the embeddings' precision."""

    library = "vlscore"

    def supports(self, metric: Metric) -> bool:
        return metric.name in SIMILARITIES

    def compute(
        self,
        metric: Metric,
        candidates: Sequence[str],
        references: Sequence[str],
        embeddings: EmbeddingTriples | None,
    ) -> NDArray[np.float64]:
        if embeddings is None:
            raise InvalidSetting(
                f"{metric.name} looks at embeddings: give embeddings=EmbeddingTriples(...)"
            )
        similarity = SIMILARITIES[metric.name]
        if similarity.uses_C and embeddings.C is None:
            raise InvalidSetting(
                f"{metric.name} needs the encoder's constant C, and nobody stated one; give C"
            )
        triple = (embeddings.images, embeddings.candidates, embeddings.references)
        i, g, r = (torch.as_tensor(x) for x in triple)
        return similarity.compute(i, g, r, embeddings.C or 1.0).double().cpu().numpy()

    def version(self) -> str:
        return __version__
