"""VLScore, its ablations, CLIPScore and vlscore's own distances, on embedded triples.

The mathematics is in `vlscore.metrics.similarity`.
"""

from typing import Any, ClassVar

import numpy as np

from vlscore.errors import InvalidSetting
from vlscore.metrics.batch import Batch, Bounds, Computed
from vlscore.metrics.metric import Metric, parameter

_VLSCORE_PAPER = "Dawidowicz, Hirsch, Tal 2024, VLScore, NeurIPS"
_CLIPSCORE_PAPER = "Hessel et al. 2021, CLIPScore, EMNLP"
_OURS = "none; docs/which_score.md"
_IMAGE_WEIGHT = "weight of the image; the reference's is 1"


class EmbeddedMetric(Metric):
    """Base of these metrics; they are computed in float64 for embeddings of any precision.

    Attributes:
        function: name of the function of `vlscore.metrics.similarity`; default: the metric's name.
        takes_areas: whether it takes the areas of the triangles, which are computed once a batch.
    """

    uses_embeddings = True
    uses_image = True
    reference_scores_best = True
    bounds: ClassVar[Bounds] = (0.0, 1.0)
    library = "vlscore"
    function: ClassVar[str] = ""
    takes_areas: ClassVar[bool] = False

    def compute(self, batch: Batch) -> Computed:
        import torch

        from vlscore.metrics import similarity

        triples = batch.embeddings
        assert triples is not None
        names = ["images"] * self.uses_image + ["candidates"] + ["references"] * self.uses_reference
        arguments: list[Any] = []
        for name in names:
            if (part := getattr(triples, name)) is None:
                raise InvalidSetting(
                    f"{self.name} needs the embeddings of the {name}, but there are none"
                )
            arguments.append(torch.as_tensor(part))
        if self.takes_areas:
            arguments = [triples.areas]
        for name, value in vars(self).items():
            arguments.append(constant_of(self, triples.C) if name == "C" else value)
        function = getattr(similarity, self.function or self.name.replace("-", "_"))
        values = function(*arguments).double().cpu().numpy()
        undefined = np.flatnonzero(~np.isfinite(values)).tolist()
        reasons = {row: triples.failures[row] for row in undefined if row in triples.failures}
        return Computed([np.array(values)], failures=reasons)


def constant_of(metric: Metric, published: float | None) -> float:
    """Return C of the metric, else of the encoder; raise InvalidSetting if neither is known."""
    chosen = getattr(metric, "C")  # noqa: B009 - of some metrics alone
    C = published if chosen is None else float(chosen)
    if C is None:
        raise InvalidSetting(
            f"{metric.name} needs the constant C, but the encoder has none; set C, as in "
            '"vlscore(C=20)" or --C 20, or choose a metric without it, such as '
            "image-centred-cosine"
        )
    return C


class VLScoreMetric(EmbeddedMetric):
    """VLScore, Eq. 2."""

    name = "vlscore"
    title = "VLScore"
    description = "max(1 - T/C, 0) with T the area of the triangle image, candidate, reference"
    citation = _VLSCORE_PAPER
    function = "score_of_area"
    takes_areas = True
    C: float | None = parameter(
        None, "area that scores 0; default: the encoder's", kind=float, above=0.0
    )


class CosineMetric(EmbeddedMetric):
    """Ablation of VLScore without the image."""

    name = "cosine"
    title = "Cosine"
    description = "cosine of candidate and reference; does not look at the image"
    citation = _VLSCORE_PAPER
    bounds = (-1.0, 1.0)
    uses_image = False


class ImageCentredCosineMetric(EmbeddedMetric):
    """Ablation of VLScore by an angle."""

    name = "image-centred-cosine"
    title = "Image-centred cosine"
    description = "cosine of the angle at the image between candidate and reference"
    citation = _VLSCORE_PAPER
    bounds = (-1.0, 1.0)


class BoundingSphereMetric(EmbeddedMetric):
    """Ablation of VLScore by a sphere."""

    name = "bounding-sphere"
    title = "Bounding sphere"
    description = "radius of the smallest sphere around image, candidate and reference"
    citation = _VLSCORE_PAPER
    higher_is_better = False
    bounds = (0.0, None)
    function = "bounding_sphere_radius"


class CLIPScoreMetric(EmbeddedMetric):
    """CLIPScore."""

    name = "clipscore"
    title = "CLIPScore"
    description = "2.5 max(cos, 0) of image and candidate; does not look at the reference"
    citation = _CLIPSCORE_PAPER
    bounds = (0.0, 2.5)
    uses_reference = False


class RefCLIPScoreMetric(EmbeddedMetric):
    """RefCLIPScore."""

    name = "refclipscore"
    title = "RefCLIPScore"
    description = "harmonic mean of CLIPScore and max(cosine, 0) of candidate and reference"
    citation = _CLIPSCORE_PAPER
    bounds = (0.0, 10 / 7)


class HeightMetric(EmbeddedMetric):
    """Height of the triangle."""

    name = "height"
    title = "Height"
    description = "distance of the candidate from the line through image and reference, 2T/|i-r|"
    citation = _OURS
    higher_is_better = False
    bounds = (0.0, None)


class SegmentDistanceMetric(EmbeddedMetric):
    """Distance from the segment."""

    name = "segment-distance"
    title = "Segment distance"
    description = "distance of the candidate from the segment between image and reference"
    citation = _OURS
    higher_is_better = False
    bounds = (0.0, None)


class MidpointDistanceMetric(EmbeddedMetric):
    """Distance from the midpoint."""

    name = "midpoint-distance"
    title = "Midpoint distance"
    description = "distance of the candidate from the midpoint of image and reference"
    citation = _OURS
    higher_is_better = False
    bounds = (0.0, None)
    reference_scores_best = False


class ImageGainDistanceMetric(EmbeddedMetric):
    """Squared distance minus the gain."""

    name = "image-gain-distance"
    title = "Image-gain distance"
    description = (
        "squared distance from the reference, less how much nearer to the image the "
        "candidate is than the reference; 0 for the reference"
    )
    citation = _OURS
    higher_is_better = False
    bounds = (None, None)
    reference_scores_best = False
    image: float = parameter(1.0, _IMAGE_WEIGHT, above=0.0)


class ImageGainCosineMetric(EmbeddedMetric):
    """Cosine plus the gain."""

    name = "image-gain-cosine"
    title = "Image-gain cosine"
    description = (
        "cosine with the reference, plus how much nearer in cosine to the image the "
        "candidate is than the reference; 1 for the reference"
    )
    citation = _OURS
    bounds = (None, None)
    reference_scores_best = False
    image: float = parameter(1.0, _IMAGE_WEIGHT, above=0.0)
