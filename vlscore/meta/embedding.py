"""Embedding pairs of reports and their studies' images, each image and text once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from vlscore.embedding import ImageDecoder, PendingPixels
from vlscore.errors import InvalidStudy, VLScoreError
from vlscore.images import Provenance, Radiograph
from vlscore.meta.pairs import Pair
from vlscore.metrics import EmbeddingTriples
from vlscore.scorer import Item, Scorer
from vlscore.studies import StudyImages

_STUDIES_AT_ONCE = 64
_BLACK_SIDE = 256


@dataclass(frozen=True, eq=False)
class EmbeddedPairs:
    """Embeddings of n pairs.

    Attributes:
        images: (n, d), of each pair's study; zeros where none were given.
        black: (d,), of an image whose pixels are all 0; zeros where no images were given.
        originals, perturbed: (n, d), of the reports.
        has_images: whether metrics that look at the image can be computed.
        failures: position of a pair -> why it has no embeddings.
        truncated: how many distinct reports the encoder did not read to the end.
        signature: what the embeddings depend on.
        C: the encoder's constant.
    """

    images: Tensor
    black: Tensor
    originals: Tensor
    perturbed: Tensor
    has_images: bool
    failures: dict[int, VLScoreError]
    truncated: int
    signature: str
    C: float | None

    def triples(self, candidates: Tensor, images: Tensor | None = None) -> EmbeddingTriples:
        """The originals as references, with these candidates and, if given, other images."""
        i = self.images if images is None else images
        return EmbeddingTriples(i, candidates, self.originals, self.signature, self.C)


def embed_pairs(
    pairs: Sequence[Pair],
    scorer: Scorer,
    images: Mapping[str, StudyImages] | None = None,
    *,
    C: float | None = None,
    workers: int = 0,
) -> EmbeddedPairs:
    """Embed every pair; what fails is listed, never raised.

    Args:
        scorer: its encoder and policies are used, its similarity is not.
        images: by study id; None where only texts are compared.
        C: constant of VLScore; default: the encoder's.
        workers: processes that decode images; 0 decodes in this one.
    """
    texts = _embed_texts(
        scorer, list(dict.fromkeys(t for p in pairs for t in (p.original, p.perturbed)))
    )
    failures = {
        position: texts.failures[text]
        for position, pair in enumerate(pairs)
        for text in (pair.original, pair.perturbed)
        if text in texts.failures
    }
    originals = texts.of([pair.original for pair in pairs])
    vectors, black = torch.zeros_like(originals), torch.zeros(originals.shape[1])
    if images is not None:
        studies = _embed_studies(scorer, pairs, images, workers)
        black = _embed_black(scorer, next(iter(texts.vectors), ""))
        for position, pair in enumerate(pairs):
            outcome = studies[pair.study_id]
            if isinstance(outcome, VLScoreError):
                failures.setdefault(position, outcome)
            else:
                vectors[position] = outcome
    return EmbeddedPairs(
        images=vectors,
        black=black,
        originals=originals,
        perturbed=texts.of([pair.perturbed for pair in pairs]),
        has_images=images is not None,
        failures=dict(sorted(failures.items())),
        truncated=texts.truncated,
        signature=_signature(scorer, images is not None),
        C=scorer.encoder.card.C if C is None else C,
    )


@dataclass(frozen=True)
class _Texts:
    dim: int
    vectors: dict[str, Tensor] = field(default_factory=dict)
    failures: dict[str, VLScoreError] = field(default_factory=dict)
    truncated: int = 0

    def of(self, texts: Sequence[str]) -> Tensor:
        nothing = torch.full((self.dim,), torch.nan)
        rows = [self.vectors.get(text, nothing) for text in texts]
        return torch.stack(rows) if rows else torch.empty(0, self.dim)


def _embed_texts(scorer: Scorer, texts: list[str]) -> _Texts:
    found, cut, reasons = scorer.embed_texts(texts)
    failures = {texts[k]: error for k, error in reasons.items()}
    vectors = {text: found[k] for k, text in enumerate(texts) if text not in failures}
    truncated = int(cut.sum())
    return _Texts(scorer.encoder.card.dim, vectors, failures, truncated)


def _embed_studies(
    scorer: Scorer, pairs: Sequence[Pair], images: Mapping[str, StudyImages], workers: int
) -> dict[str, Tensor | VLScoreError]:
    found: dict[str, Tensor | VLScoreError] = {}
    reports = {pair.study_id: pair.original for pair in pairs}
    for study_id in reports:
        if study_id not in images:
            found[study_id] = InvalidStudy(f"study {study_id}: no image is given for it")
    waiting = iter([study_id for study_id in reports if study_id in images])
    encoder = scorer.encoder
    with ImageDecoder(encoder.image_pipeline, encoder.image_policy, workers) as decoder:
        while chunk := list(islice(waiting, _STUDIES_AT_ONCE)):
            items = [_item(images[study_id], reports[study_id]) for study_id in chunk]
            started = [scorer.begin_decoding(item, decoder) for item in items]
            embedded = scorer.embed_items(started)
            for position, study_id in enumerate(chunk):
                error = embedded.failures.get(position)
                found[study_id] = embedded.images[position] if error is None else error
    return found


def _item(shown: StudyImages, report: str) -> Item:
    return Item(images=shown.images, candidate=report, reference=report, views=shown.views)


def _embed_black(scorer: Scorer, report: str) -> Tensor:
    """The embedding of a black image, which file readers rightly refuse to take for a study."""
    pixels = scorer.encoder.preprocess(_black_radiograph())
    black = [PendingPixels("black image", lambda: pixels)]
    lateral = black if scorer.views == "frontal+lateral" else []
    item = Item(images=(), candidate=report, reference=report, frontal=black, lateral=lateral)
    return scorer.embed_items([item]).images[0]


def _black_radiograph() -> Radiograph:
    pixels = np.zeros((_BLACK_SIDE, _BLACK_SIDE), dtype=np.float32)
    return Radiograph(pixels, Provenance(format="array", bits=32, window="as given"), "black image")


def _signature(scorer: Scorer, with_images: bool) -> str:
    """The scorer's signature without the similarity, which each metric states itself."""
    parts = str(scorer.signature).split("|")
    left_out = ("vlscore", "C:", "sim:", "v:") + (() if with_images else ("img:", "views:"))
    return "|".join(part for part in parts if not part.startswith(left_out))
