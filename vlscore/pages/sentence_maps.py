"""What the sentences of a page's worst studies cost, and where on an image they look.

Costs are computed with the run's encoder; maps come from its local vectors, checked by deletion.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan, isqrt
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, interpolate, normalize

from vlscore.core import RECORD, Signature, with_noun
from vlscore.data import ImagePolicy
from vlscore.encoders import JointEncoder, encoder_from_file
from vlscore.errors import DemonstrationEncoderWarning, VLScoreError
from vlscore.metrics import Explanation, Scorer, explain_with, metric_from_file
from vlscore.pages.claim_maps import claims_with_maps
from vlscore.pages.claim_views import claims_shown
from vlscore.pages.page_parts import RunView, image_url, worst_first
from vlscore.stats import Result

#: Shares of the image that are deleted, one after the other.
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
#: Most copies of a map, moved elsewhere, with which the deletion is compared.
COPIES = 20
_BATCH = 32
# Cells to a side of the blurred image that takes the place of what is deleted.
_BLURRED = 4
# A score computed again may differ by this much from that of the run: batches are of other sizes.
_TOLERANCE = 1e-3


@dataclass(frozen=True)
class SentenceMap:
    """Map of one sentence.

    Attributes:
        text: the sentence.
        places: (side, side) float64, mean cosine of the sentence's words with each place.
        beaten: number of moved copies of the map whose deletion lowers the agreement of image and
            sentence less than that of the map; a useless map beats half of them in the mean.
        copies: number of copies.
    """

    text: str
    places: NDArray[np.float64]
    beaten: float
    copies: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain data; places from 0 to 1, row by row."""
        low, high = float(self.places.min()), float(self.places.max())
        scaled = (self.places - low) / (high - low or 1.0)
        return {
            "text": self.text,
            "places": [round(float(value), 2) for value in scaled.ravel()],
            "beaten": self.beaten,
            "copies": self.copies,
        }


@torch.no_grad()
def sentence_maps(
    encoder: JointEncoder,
    image: Any,
    sentences: Sequence[str],
    policy: ImagePolicy | None = None,
    seed: int = 0,
) -> tuple[Tensor, list[SentenceMap]] | None:
    """Return the image as the encoder reads it, and the map of each sentence.

    A map is checked by deletion (after Petsiuk, Das and Saenko, RISE, BMVC 2018): the places of
    the largest values are blurred, in four steps up to half of the image, and the mean cosine of
    image and sentence is compared with that of copies of the map that are moved, at random, around
    the edges of the image. Copies have the shape of the map, so that only the place differs.

    Args:
        encoder: with local vectors in a square of places.
        image: as `as_radiograph` takes it.
        sentences: of a report.
        policy: how the file is read.
        seed: of the copies' places.

    Returns: ((channels, height, width), maps); None for an encoder without such vectors.
    Raises: UnreadableImage; InvalidReport.
    """
    loaded = encoder.image_pipeline.load(image, policy or encoder.image_policy)
    pixels = loaded[None].to(encoder.device)
    patches = encoder.image_features(pixels).patches
    if patches is None or isqrt(patches.shape[1]) ** 2 != patches.shape[1]:
        return None
    rng = np.random.default_rng(seed)
    found = []
    for sentence in sentences:
        features = encoder.report_features(encoder.tokenize([sentence]).to(encoder.device))
        if features.words is None or features.is_word is None or not bool(features.is_word.any()):
            continue
        places = _places(patches[0], features.words[0][features.is_word[0]])
        beaten, copies = _beaten(encoder, pixels, features.vectors[0], places, rng)
        found.append(SentenceMap(sentence, places, beaten, copies))
    return pixels[0].cpu(), found


def _places(patches: Tensor, words: Tensor) -> NDArray[np.float64]:
    """Return the mean cosine of the words with each place, (side, side)."""
    cosines = normalize(words.double(), dim=1) @ normalize(patches.double(), dim=1).T
    side = isqrt(len(patches))
    values: NDArray[np.float64] = cosines.mean(0).reshape(side, side).cpu().numpy()
    return values


def _beaten(
    encoder: JointEncoder,
    pixels: Tensor,
    sentence: Tensor,
    places: NDArray[np.float64],
    rng: np.random.Generator,
) -> tuple[float, int]:
    """Return how many moved copies the map beats, and of how many; ties count half."""
    side = len(places)
    moves = rng.permutation(side * side - 1)[:COPIES] + 1
    maps = [places, *(np.roll(places, divmod(int(k), side), axis=(0, 1)) for k in moves)]
    size = pixels.shape[-2:]
    blurred = interpolate(
        adaptive_avg_pool2d(pixels, _BLURRED), size=size, mode="bilinear", align_corners=False
    )
    masks = torch.stack([_mask(each, share) for each in maps for share in SHARES])
    large = interpolate(masks[:, None], size=size, mode="nearest").to(pixels)
    cosines = []
    for part in large.split(_BATCH):
        vectors = encoder.embed_images(pixels * (1 - part) + blurred * part)
        cosines.append(normalize(vectors.double(), dim=1) @ normalize(sentence.double(), dim=0))
    means = torch.cat(cosines).reshape(len(maps), len(SHARES)).mean(1).cpu().numpy()
    beaten = (means[1:] > means[0]).sum() + 0.5 * (means[1:] == means[0]).sum()
    return float(beaten), len(moves)


def _mask(places: NDArray[np.float64], share: float) -> Tensor:
    """Return 1 at the places of the largest values, 0 elsewhere; (side, side) float32."""
    mask = np.zeros(places.size, dtype=np.float32)
    count = max(round(share * places.size), 1)
    mask[np.argsort(-places, axis=None, kind="stable")[:count]] = 1
    return torch.from_numpy(mask.reshape(places.shape))


def maps_to_dict(image: Tensor, maps: Sequence[SentenceMap]) -> Mapping[str, Any]:
    """Return what a page draws: the image as the encoder reads it, and the maps."""
    grey = image.float().mean(0).numpy()
    low, high = float(grey.min()), float(grey.max())
    levels = np.rint((grey - low) / (high - low or 1.0) * 255).astype(np.uint8)
    return {
        "image": image_url(levels),
        "sentences": [each.to_dict() for each in maps],
    }


def claims_and_maps(
    scorer: Scorer,
    images: Sequence[Any],
    candidate: str,
    reference: str,
    explanation: Explanation,
    *,
    maps: bool,
) -> tuple[list[dict[str, Any]], Mapping[str, Any] | None]:
    """Return the claims of a study with the image's verdicts, and maps of its first image.

    With `judge-image`, maps show where the evidence of each claim lies; there are no claims with
    other metrics, and maps show where each sentence of the explanation looks.

    Returns: claims as `claims_with_maps` has them; maps as `maps_to_dict`, None where they are not
        asked for, without an image, or for an encoder without local vectors.
    Raises: UnreadableImage; InvalidReport.
    """
    if scorer.embedder is None or not images:
        return [], None
    if scorer.metrics[0].name == "judge-image":
        return claims_with_maps(scorer, images, candidate, reference, maps=maps)
    if not maps:
        return [], None
    sentences = [each.text for each in (*explanation.candidate, *explanation.reference)]
    embedder = scorer.embedder
    found = sentence_maps(
        embedder.encoder, images[0], list(dict.fromkeys(sentences)), embedder.image_policy
    )
    return [], None if found is None else maps_to_dict(*found)


def add_shares(
    view: RunView,
    run: Result,
    count: int,
    weights: str | Path | None = None,
    *,
    maps: bool = False,
) -> None:
    """Add the shares of the sentences to the first `count` cases of the list.

    A note says why shares are absent: the encoder cannot be loaded, or is not the run's.

    Args: maps: also add where each sentence looks on the first image.
    """
    if view.cases is None or view.cases.cases is None or view.command != "evaluate":
        return
    name, recorded = next(iter(run.signatures.items()))
    try:
        scorer = _scorer_of(name, recorded, run, weights)
        here = str(scorer.signature.without("txt"))
        if here != str(Signature.parse(recorded).without("txt")):
            raise VLScoreError(f"the signature is {here} here, but {recorded} in the run")
    except VLScoreError as error:
        view.notes.append(f"No shares of sentences: {error}.")
        return
    failed = 0
    for row in worst_first(view.cases)[:count]:
        study, blocks = view.cases.studies[row], view.cases.cases[row]
        value = view.cases.values[name][row]
        if study is None or not blocks or isnan(value):
            continue
        texts = study.candidate or "", study.reference or ""
        try:
            with warnings.catch_warnings():
                # The run has said it: of the views of its images, for example.
                warnings.simplefilter("ignore", UserWarning)
                found = explain_with(scorer, study.images, *texts)
        except VLScoreError:
            failed += 1
            continue
        if abs(found.score - value) > _TOLERANCE * max(1.0, abs(value)):
            failed += 1
            continue
        blocks[0].shares = {**found.to_dict(), "metric": name}
        claims, blocks[0].maps = claims_and_maps(scorer, study.images, *texts, found, maps=maps)
        blocks[0].claims = claims_shown(claims)
    if failed:
        view.notes.append(
            f"No shares of sentences for {with_noun(failed, 'study')}: the score could not be "
            "computed again, or is different now."
        )


def _scorer_of(name: str, recorded: str, run: Result, weights: str | Path | None) -> Scorer:
    """Return a scorer with the settings that a signature names; the texts are selected already."""
    facts, source = Signature.parse(recorded), run.folder / RECORD
    encoder = run.record.get("encoder")
    named = encoder.get("name") if isinstance(encoder, Mapping) else None
    # The folder may be somebody else's: its names choose registered members alone, never code.
    metric = metric_from_file(name, source)
    if named is not None:
        named = encoder_from_file(str(named), source, "--encoder")
    settings: dict[str, Any] = {}
    if facts.get("img") is not None:
        settings["image_policy"] = facts.get("img")
    if facts.get("views") is not None:
        settings["views"] = facts.get("views")
    if facts.get("C") is not None and facts.subject == "vlscore":
        settings["C"] = float(facts.get("C") or 0)
    if weights is not None:
        settings["weights"] = str(weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DemonstrationEncoderWarning)
        return Scorer(named, metrics=metric, **settings)
