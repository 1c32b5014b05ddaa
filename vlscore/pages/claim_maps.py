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


def claims_of_study(
    scorer: Scorer, images: Sequence[Any], candidate: str, reference: str
) -> list[dict[str, Any]]:
    """Return each claim of a study with its verdict, as `verdicts_of` returns them.

    Verdicts are at the metric's level, each claim for itself; the probability is None without
    evidence.

    Returns: nothing unless the scorer's first metric has evidence (`judge-image`).
    """
    evidence, vector = _evidence_of(scorer), _vector(scorer, images)
    if evidence is None or vector is None:
        return []
    claims = claims_of_reports(0, candidate, reference)
    level = float(scorer.metrics[0].settings["level"] or 0)
    rows = verdicts_of(evidence, vector[None], claims, rate=level).drop(columns="image")
    found: list[dict[str, Any]] = rows.astype(object).where(rows.notna(), None).to_dict("records")
    return found


def occlusion_maps(
    scorer: Scorer, images: Sequence[Any], claims: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Return the first image, and where it has the evidence of each finding that is claimed.

    Returns: as `maps_to_dict`; None without evidence.
    Raises: UnreadableImage.
    """
    evidence, whole = _evidence_of(scorer), _vector(scorer, images)
    names = dict.fromkeys(each["finding"] for each in claims if each["has_evidence"])
    if evidence is None or whole is None or not names:
        return None
    assert scorer.embedder is not None
    image = as_radiograph(images[0], scorer.embedder.image_policy)
    drops = _drops(scorer.embedder, evidence, image, images, whole)
    maps = []
    for name in names:
        places = drops[:, evidence.column[name]]
        low, high = min(float(places.min()), 0.0), float(places.max())
        scaled = np.clip((places - low) / ((high - low) or 1.0), 0, 1)
        shown = [round(float(value), 2) for value in scaled]
        maps.append({"text": name, "places": shown, "note": _NOTE.format(finding=name)})
    return {"image": image_url(image.pixels), "sentences": maps}


def _drops(
    embedder: StudyEmbedder,
    evidence: ImageEvidence,
    image: Radiograph,
    images: Sequence[Any],
    whole: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return (PARTS * PARTS, k) by how much the scores of k findings fall, rows first."""
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
    found: NDArray[np.float64] = evidence.probes(whole[None]) - evidence.probes(vectors)
    return found


def _evidence_of(scorer: Scorer) -> ImageEvidence | None:
    metric = scorer.metrics[0]
    if scorer.embedder is None or metric.name != "judge-image":
        return None
    found: ImageEvidence = metric.read_evidence(str(scorer.embedder.signature))  # type: ignore[attr-defined]
    return found


def _vector(scorer: Scorer, images: Sequence[Any]) -> NDArray[np.float64] | None:
    if scorer.embedder is None or not images:
        return None
    found = scorer.embedder.embed_studies([StudyViews(tuple(images))])
    for error in found.failures.values():
        raise error
    vector: NDArray[np.float64] = found.vectors[0].double().numpy()
    return vector
