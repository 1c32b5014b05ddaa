"""VLScore, its ablations, CLIPScore and vlscore's own distances, on embedded triples.

The mathematics is in `vlscore.metrics.similarity`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.errors import InvalidSetting
from vlscore.metrics.batch import Batch, Computed, EmbeddingTriples
from vlscore.metrics.metric import EMBEDDINGS, Metric, Parameter
from vlscore.metrics.provider import Provider

if TYPE_CHECKING:
    from torch import Tensor


_VLSCORE_PAPER = "Dawidowicz, Hirsch, Tal 2024, VLScore, NeurIPS"
_CLIPSCORE_PAPER = "Hessel et al. 2021, CLIPScore, EMNLP"
_OURS = "none; docs/which_score.md"

_IMAGE_WEIGHT = Parameter("image", 1.0, "weight of the image; the reference's is 1", above=0.0)


# Metric -> function of `vlscore.metrics.similarity`, where the names differ.
_FUNCTIONS = {"bounding-sphere": "bounding_sphere_radius"}


class SimilarityProvider(Provider):
    """Provider of these metrics; it computes in float64 for embeddings of any precision."""

    library = "vlscore"

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        import torch

        from vlscore.metrics import similarity

        triples = batch.embeddings
        if triples is None:
            raise InvalidSetting(
                f"{metric.name} needs embeddings: pass embeddings=EmbeddingTriples(...), or an "
                "encoder"
            )
        name = _FUNCTIONS.get(metric.name, metric.name.replace("-", "_"))
        function: Callable[..., Tensor] = getattr(similarity, name)
        parts = ["images"] * metric.uses_image + ["candidates"]
        parts += ["references"] * metric.uses_reference
        arguments: list[Any] = [torch.as_tensor(_part(metric, triples, part)) for part in parts]
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
    """Return C of the metric, else of the encoder; raise InvalidSetting if neither is known."""
    chosen = metric.settings["C"]
    C = published if chosen is None else float(chosen)
    if C is None:
        raise InvalidSetting(
            f"{metric.name} needs the constant C, but the encoder has none; set C, as in "
            '"vlscore(C=20)" or --C 20, or choose a metric without it, such as '
            "image-centred-cosine"
        )
    return C


def _part(metric: Metric, triples: EmbeddingTriples, name: str) -> Any:
    part = getattr(triples, name)
    if part is None:
        raise InvalidSetting(
            f"{metric.name} needs the embeddings of the {name}, but there are none"
        )
    return part


def _embedded(name: str, title: str, description: str, citation: str, **further: Any) -> Metric:
    """Return a metric of embeddings; most look at image and reference, and higher is better."""
    defaults: dict[str, Any] = {
        "higher_is_better": True,
        "bounds": (0.0, 1.0),
        "uses_image": True,
        "reference_scores_best": True,
    }
    return Metric(
        provider=SimilarityProvider(),
        name=name,
        title=title,
        description=description,
        citation=citation,
        artefacts=(EMBEDDINGS,),
        **{**defaults, **further},
    )


_DISTANCE: dict[str, Any] = {"higher_is_better": False, "bounds": (0.0, None)}

VLSCORE = _embedded(
    "vlscore",
    "VLScore",
    "max(1 - T/C, 0) with T the area of the triangle image, candidate, reference",
    _VLSCORE_PAPER,
    parameters=(
        Parameter("C", None, "area that scores 0; default: the encoder's", kind=float, above=0.0),
    ),
)
COSINE = _embedded(
    "cosine",
    "Cosine",
    "cosine of candidate and reference; does not look at the image",
    _VLSCORE_PAPER,
    bounds=(-1.0, 1.0),
    uses_image=False,
)
IMAGE_CENTRED_COSINE = _embedded(
    "image-centred-cosine",
    "Image-centred cosine",
    "cosine of the angle at the image between candidate and reference",
    _VLSCORE_PAPER,
    bounds=(-1.0, 1.0),
)
BOUNDING_SPHERE = _embedded(
    "bounding-sphere",
    "Bounding sphere",
    "radius of the smallest sphere around image, candidate and reference",
    _VLSCORE_PAPER,
    **_DISTANCE,
)
CLIPSCORE = _embedded(
    "clipscore",
    "CLIPScore",
    "2.5 max(cos, 0) of image and candidate; does not look at the reference",
    _CLIPSCORE_PAPER,
    bounds=(0.0, 2.5),
    uses_reference=False,
)
REFCLIPSCORE = _embedded(
    "refclipscore",
    "RefCLIPScore",
    "harmonic mean of CLIPScore and max(cosine, 0) of candidate and reference",
    _CLIPSCORE_PAPER,
    bounds=(0.0, 10 / 7),
)
HEIGHT = _embedded(
    "height",
    "Height",
    "distance of the candidate from the line through image and reference, 2T/|i-r|",
    _OURS,
    **_DISTANCE,
)
SEGMENT_DISTANCE = _embedded(
    "segment-distance",
    "Segment distance",
    "distance of the candidate from the segment between image and reference",
    _OURS,
    **_DISTANCE,
)
MIDPOINT_DISTANCE = _embedded(
    "midpoint-distance",
    "Midpoint distance",
    "distance of the candidate from the midpoint of image and reference",
    _OURS,
    reference_scores_best=False,
    **_DISTANCE,
)
IMAGE_GAIN_DISTANCE = _embedded(
    "image-gain-distance",
    "Image-gain distance",
    "squared distance from the reference, less how much nearer to the image the "
    "candidate is than the reference; 0 for the reference",
    _OURS,
    higher_is_better=False,
    bounds=(None, None),
    parameters=(_IMAGE_WEIGHT,),
    reference_scores_best=False,
)
IMAGE_GAIN_COSINE = _embedded(
    "image-gain-cosine",
    "Image-gain cosine",
    "cosine with the reference, plus how much nearer in cosine to the image the "
    "candidate is than the reference; 1 for the reference",
    _OURS,
    bounds=(None, None),
    parameters=(_IMAGE_WEIGHT,),
    reference_scores_best=False,
)
