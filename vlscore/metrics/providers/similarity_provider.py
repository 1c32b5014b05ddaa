"""Metrics of embedded triples, by the similarity room."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.errors import InvalidSetting
from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.embeddings import EmbeddingTriples
from vlscore.metrics.metric import Metric
from vlscore.metrics.providers.base import Provider

if TYPE_CHECKING:
    from torch import Tensor

# Names of functions of `vlscore.similarity`, and which embeddings each takes, in their order.
FUNCTIONS: dict[str, tuple[str, str]] = {
    "vlscore": ("vlscore", "igr"),
    "cosine": ("cosine", "gr"),
    "image-centred-cosine": ("image_centred_cosine", "igr"),
    "bounding-sphere": ("bounding_sphere_radius", "igr"),
    "clipscore": ("clipscore", "ig"),
    "refclipscore": ("refclipscore", "igr"),
    "height": ("height", "igr"),
    "segment-distance": ("segment_distance", "igr"),
    "midpoint-distance": ("midpoint_distance", "igr"),
    "image-gain-distance": ("image_gain_distance", "igr"),
    "image-gain-cosine": ("image_gain_cosine", "igr"),
}


class SimilarityProvider(Provider):
    """In float64, whatever the embeddings' precision."""

    library = "vlscore"
    supports = tuple(FUNCTIONS)

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        import torch

        from vlscore import similarity

        triples = batch.embeddings
        if triples is None:
            raise InvalidSetting(
                f"{metric.name} looks at embeddings: give embeddings=EmbeddingTriples(...), or an "
                "encoder"
            )
        name, letters = FUNCTIONS[metric.name]
        function: Callable[..., Tensor] = getattr(similarity, name)
        arguments: list[Any] = [torch.as_tensor(_part(metric, triples, c)) for c in letters]
        if "C" in metric.settings:
            arguments.append(constant_of(metric, triples.C))
        if "image" in metric.settings:
            arguments.append(metric.settings["image"])
        values = function(*arguments).double().cpu().numpy()
        undefined = np.flatnonzero(~np.isfinite(values)).tolist()
        reasons = {row: triples.failures[row] for row in undefined if row in triples.failures}
        return Computed([np.array(values)], failures=reasons)

    def facts(self, metric: Metric) -> dict[str, Any]:
        return {}


def constant_of(metric: Metric, published: float | None) -> float:
    """C as the metric states it, else the encoder's; raises InvalidSetting where none is known."""
    chosen = metric.settings["C"]
    C = published if chosen is None else float(chosen)
    if C is None:
        raise InvalidSetting(
            f"{metric.name} needs the encoder's constant C, and nobody stated one; give C, as in "
            '"vlscore(C=20)" or --C 20, or choose a metric without it, such as '
            "image-centred-cosine"
        )
    return C


def _part(metric: Metric, triples: EmbeddingTriples, letter: str) -> Any:
    name = {"i": "images", "g": "candidates", "r": "references"}[letter]
    part = getattr(triples, name)
    if part is None:
        raise InvalidSetting(f"{metric.name} looks at the {name}' embeddings, and there are none")
    return part
