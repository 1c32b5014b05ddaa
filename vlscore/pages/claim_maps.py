"""What the image says about a study's claims, and where: maps by occlusion.

A part of the image is filled with its mean grey, and the score of a finding computed again
(occlusion, Zeiler and Fergus, ECCV 2014). Where the score falls, the evidence lies. It is evidence
for this encoder's probe: no proof that the finding is there.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.claims import ImageEvidence, claims_of_reports, verdicts_of
from vlscore.data import Radiograph, as_radiograph
from vlscore.embedding import StudyEmbedder, StudyViews
from vlscore.metrics import Scorer
from vlscore.pages.page_parts import image_url

#: Parts to a side of the image.
PARTS = 8
_NOTE = (
    "Occlusion: where hiding a part of the image lowers the score of {finding} most. It shows what "
    "this encoder's probe uses, and is no proof that the finding is there."
)


def claims_with_maps(
    scorer: Scorer, images: Sequence[Any], candidate: str, reference: str, *, maps: bool
) -> tuple[list[dict[str, Any]], Mapping[str, Any] | None]:
    """Return each claim of a study with its verdict, and where the evidence of its finding lies.

    Verdicts are at the metric's level, each claim for itself; the probability is None without
    evidence. Maps are of the first image.

    Args:
        scorer: of `judge-image`.
        images: at least one.
        maps: whether maps are drawn.

    Returns: claims as `verdicts_of` has them; maps as `maps_to_dict`, None without evidence of any.
    Raises: UnreadableImage.
    """
    embedder = scorer.embedder
    assert embedder is not None
    metric: Any = scorer.metrics[0]
    evidence: ImageEvidence = metric.read_evidence(str(embedder.signature))
    embedded = embedder.embed_studies([StudyViews(tuple(images))])
    for error in embedded.failures.values():
        raise error
    vector: NDArray[np.float64] = embedded.vectors[:1].double().numpy()
    claims = claims_of_reports(0, candidate, reference)
    rows = verdicts_of(evidence, vector, claims, rate=float(metric.level)).drop(columns="image")
    found: list[dict[str, Any]] = rows.astype(object).where(rows.notna(), None).to_dict("records")
    names = dict.fromkeys(each["finding"] for each in found if each["has_evidence"])
    if not maps or not names:
        return found, None
    image = as_radiograph(images[0], embedder.image_policy)
    drops = _drops(embedder, evidence, image, images, vector)
    drawn = []
    for name in names:
        places = drops[:, evidence.column[name]]
        low, high = min(float(places.min()), 0.0), float(places.max())
        scaled = np.clip((places - low) / ((high - low) or 1.0), 0, 1)
        shown = [round(float(value), 2) for value in scaled]
        drawn.append({"text": name, "places": shown, "note": _NOTE.format(finding=name)})
    return found, {"image": image_url(image.to_uint8()), "sentences": drawn}


def _drops(
    embedder: StudyEmbedder,
    evidence: ImageEvidence,
    image: Radiograph,
    images: Sequence[Any],
    whole: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return (PARTS * PARTS, k) by how much the scores of k findings fall, rows first.

    Args: whole: (1, d), the vector of the whole images.
    """
    height, width = image.pixels.shape
    rows, columns = (np.linspace(0, size, PARTS + 1).astype(int) for size in (height, width))
    shown = []
    for top, bottom in pairwise(rows):
        for left, right in pairwise(columns):
            pixels = image.pixels.copy()
            pixels[top:bottom, left:right] = pixels.mean()
            hidden = Radiograph(pixels, image.provenance, image.name)
            shown.append(StudyViews((hidden, *images[1:])))
    vectors = embedder.embed_studies(shown).vectors.double().numpy()
    found: NDArray[np.float64] = evidence.probes(whole) - evidence.probes(vectors)
    return found
