"""VLScore, its ablations, CLIPScore and vlscore's own distances, on embedded triples.

The mathematics is in `vlscore.metrics.similarity`.
"""

from vlscore.metrics.embedded_metric import EmbeddedMetric
from vlscore.metrics.metric import parameter

_VLSCORE_PAPER = "Dawidowicz, Hirsch, Tal 2024, VLScore, NeurIPS"
_CLIPSCORE_PAPER = "Hessel et al. 2021, CLIPScore, EMNLP"
_OURS = "none; docs/which_score.md"
_IMAGE_WEIGHT = "weight of the image; the reference's is 1"


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
    description = "cosine of candidate and reference; does not use the image"
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
    description = "2.5 max(cos, 0) of image and candidate; does not use the reference"
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
        "squared distance from the reference, minus the gain: how much nearer to the image the "
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
        "cosine with the reference, plus the gain: how much larger the candidate's cosine with "
        "the image is than the reference's; 1 for the reference"
    )
    citation = _OURS
    bounds = (None, None)
    reference_scores_best = False
    image: float = parameter(1.0, _IMAGE_WEIGHT, above=0.0)
