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


# Functions of `vlscore.metrics.similarity`, and which embeddings each takes, in their order.
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
    """Provider of these metrics; it computes in float64 for embeddings of any precision."""

    library = "vlscore"

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        import torch

        from vlscore.metrics import similarity

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
    """Return C of the metric, else of the encoder; raise InvalidSetting if neither is known."""
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


VLSCORE = Metric(
    provider=SimilarityProvider(),
    name="vlscore",
    title="VLScore",
    description="max(1 - T/C, 0) with T the area of the triangle image, candidate, reference",
    higher_is_better=True,
    bounds=(0.0, 1.0),
    uses_image=True,
    uses_reference=True,
    reference_scores_best=True,
    artefacts=(EMBEDDINGS,),
    citation=_VLSCORE_PAPER,
    parameters=(
        Parameter("C", None, "area that scores 0; default: the encoder's", kind=float, above=0.0),
    ),
)


COSINE = Metric(
    provider=SimilarityProvider(),
    name="cosine",
    title="Cosine",
    description="cosine of candidate and reference; does not look at the image",
    higher_is_better=True,
    bounds=(-1.0, 1.0),
    uses_image=False,
    uses_reference=True,
    reference_scores_best=True,
    artefacts=(EMBEDDINGS,),
    citation=_VLSCORE_PAPER,
)


IMAGE_CENTRED_COSINE = Metric(
    provider=SimilarityProvider(),
    name="image-centred-cosine",
    title="Image-centred cosine",
    description="cosine of the angle at the image between candidate and reference",
    higher_is_better=True,
    bounds=(-1.0, 1.0),
    uses_image=True,
    uses_reference=True,
    reference_scores_best=True,
    artefacts=(EMBEDDINGS,),
    citation=_VLSCORE_PAPER,
)


BOUNDING_SPHERE = Metric(
    provider=SimilarityProvider(),
    name="bounding-sphere",
    title="Bounding sphere",
    description="radius of the smallest sphere around image, candidate and reference",
    higher_is_better=False,
    bounds=(0.0, None),
    uses_image=True,
    uses_reference=True,
    reference_scores_best=True,
    artefacts=(EMBEDDINGS,),
    citation=_VLSCORE_PAPER,
)


CLIPSCORE = Metric(
    provider=SimilarityProvider(),
    name="clipscore",
    title="CLIPScore",
    description="2.5 max(cos, 0) of image and candidate; does not look at the reference",
    higher_is_better=True,
    bounds=(0.0, 2.5),
    uses_image=True,
    uses_reference=False,
    reference_scores_best=True,
    artefacts=(EMBEDDINGS,),
    citation=_CLIPSCORE_PAPER,
)


REFCLIPSCORE = Metric(
    provider=SimilarityProvider(),
    name="refclipscore",
    title="RefCLIPScore",
    description="harmonic mean of CLIPScore and max(cosine, 0) of candidate and reference",
    higher_is_better=True,
    bounds=(0.0, 10 / 7),
    uses_image=True,
    uses_reference=True,
    reference_scores_best=True,
    artefacts=(EMBEDDINGS,),
    citation=_CLIPSCORE_PAPER,
)


HEIGHT = Metric(
    provider=SimilarityProvider(),
    name="height",
    title="Height",
    description="distance of the candidate from the line through image and reference, 2T/|i-r|",
    higher_is_better=False,
    bounds=(0.0, None),
    uses_image=True,
    uses_reference=True,
    reference_scores_best=True,
    artefacts=(EMBEDDINGS,),
    citation=_OURS,
)


SEGMENT_DISTANCE = Metric(
    provider=SimilarityProvider(),
    name="segment-distance",
    title="Segment distance",
    description="distance of the candidate from the segment between image and reference",
    higher_is_better=False,
    bounds=(0.0, None),
    uses_image=True,
    uses_reference=True,
    reference_scores_best=True,
    artefacts=(EMBEDDINGS,),
    citation=_OURS,
)


MIDPOINT_DISTANCE = Metric(
    provider=SimilarityProvider(),
    name="midpoint-distance",
    title="Midpoint distance",
    description="distance of the candidate from the midpoint of image and reference",
    higher_is_better=False,
    bounds=(0.0, None),
    uses_image=True,
    uses_reference=True,
    artefacts=(EMBEDDINGS,),
    citation=_OURS,
)


IMAGE_GAIN_DISTANCE = Metric(
    provider=SimilarityProvider(),
    name="image-gain-distance",
    title="Image-gain distance",
    description="squared distance from the reference, less how much nearer to the image the "
    "candidate is than the reference; 0 for the reference",
    higher_is_better=False,
    bounds=(None, None),
    uses_image=True,
    uses_reference=True,
    artefacts=(EMBEDDINGS,),
    citation=_OURS,
    parameters=(_IMAGE_WEIGHT,),
)


IMAGE_GAIN_COSINE = Metric(
    provider=SimilarityProvider(),
    name="image-gain-cosine",
    title="Image-gain cosine",
    description="cosine with the reference, plus how much nearer in cosine to the image the "
    "candidate is than the reference; 1 for the reference",
    higher_is_better=True,
    bounds=(None, None),
    uses_image=True,
    uses_reference=True,
    artefacts=(EMBEDDINGS,),
    citation=_OURS,
    parameters=(_IMAGE_WEIGHT,),
)


EMBEDDED = (
    VLSCORE,
    COSINE,
    IMAGE_CENTRED_COSINE,
    BOUNDING_SPHERE,
    CLIPSCORE,
    REFCLIPSCORE,
    HEIGHT,
    SEGMENT_DISTANCE,
    MIDPOINT_DISTANCE,
    IMAGE_GAIN_DISTANCE,
    IMAGE_GAIN_COSINE,
)
