"""Embedding the images of studies and pairs of their reports, each image and text once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import torch
from torch import Tensor

from vlscore._signature import Signature
from vlscore.embedding import StudyEmbedder, StudyViews
from vlscore.errors import InvalidStudy, VLScoreError
from vlscore.meta.pairs import Pair
from vlscore.metrics import EmbeddingTriples
from vlscore.studies import StudyImages

STUDIES_AT_ONCE = 64


@dataclass(eq=False)
class StudyVectors:
    """Embeddings of the images of studies.

    Attributes:
        vectors: study id -> (d,) float32.
        failures: study id -> why it has none.
        black: (d,) of an image whose pixels are all 0; None where no image was embedded.
    """

    vectors: dict[str, Tensor] = field(default_factory=dict)
    failures: dict[str, VLScoreError] = field(default_factory=dict)
    black: Tensor | None = None

    def update(self, other: "StudyVectors") -> None:
        """Take over what was embedded elsewhere."""
        self.vectors.update(other.vectors)
        self.failures.update(other.failures)


@dataclass(frozen=True, eq=False)
class EmbeddedPairs:
    """Embeddings of n pairs.

    Attributes:
        images: (n, d), of each pair's study; None where none were given.
        originals, perturbed: (n, d), of the reports.
        failures: position of a pair -> why it has no embeddings.
        truncated: how many distinct reports the encoder did not read to the end.
        signature: what the embeddings depend on.
        C: constant of VLScore; None where nobody stated one.
        studies: embeddings of the images by study, for showing a pair another image.
    """

    images: Tensor | None
    originals: Tensor
    perturbed: Tensor
    failures: dict[int, VLScoreError]
    truncated: int
    signature: Signature
    C: float | None
    studies: StudyVectors

    def triples(self, candidates: Tensor, images: Tensor | None = None) -> EmbeddingTriples:
        """The originals as references, with these candidates and, if given, other images."""
        i = self.images if images is None else images
        return EmbeddingTriples(
            i, candidates, self.originals, self.signature, self.C, self.failures
        )


def embed_images(
    embedder: StudyEmbedder, images: Mapping[str, StudyImages], *, workers: int = 0
) -> Iterator[StudyVectors]:
    """Embed the images of studies, a stretch of studies at a time."""
    waiting = iter(images.items())
    with embedder.decoder(workers) as decoder:
        while chunk := list(islice(waiting, STUDIES_AT_ONCE)):
            shown = [
                embedder.begin(StudyViews(study.images, study.views), decoder) for _, study in chunk
            ]
            embedded = embedder.embed_studies(shown)
            names = [study_id for study_id, _ in chunk]
            yield StudyVectors(
                {
                    name: embedded.vectors[row].clone()
                    for row, name in enumerate(names)
                    if row not in embedded.failures
                },
                {names[row]: error for row, error in embedded.failures.items()},
            )


def embed_pairs(
    pairs: Sequence[Pair],
    embedder: StudyEmbedder,
    images: Mapping[str, StudyImages] | StudyVectors | None = None,
    *,
    C: float | None = None,
    workers: int = 0,
) -> EmbeddedPairs:
    """Embed every pair; what fails is listed, never raised.

    Args:
        images: by study id, or embedded already; None where only texts are compared.
        C: constant of VLScore; default: the encoder's.
        workers: processes that decode images; 0 decodes in this one.
    """
    texts = list(dict.fromkeys(t for pair in pairs for t in (pair.original, pair.perturbed)))
    found = embedder.embed_texts(texts)
    row_of = {text: row for row, text in enumerate(texts)}
    originals = [row_of[pair.original] for pair in pairs]
    perturbed = [row_of[pair.perturbed] for pair in pairs]
    failures: dict[int, VLScoreError] = {}
    for position, rows in enumerate(zip(originals, perturbed, strict=True)):
        for row in rows:
            if row in found.failures:
                failures.setdefault(position, found.failures[row])
    studies = _studies(embedder, images, {pair.study_id for pair in pairs}, workers)
    vectors: Tensor | None = None
    if images is not None:
        vectors = torch.full((len(pairs), embedder.dim), torch.nan)
        for position, pair in enumerate(pairs):
            if pair.study_id in studies.vectors:
                vectors[position] = studies.vectors[pair.study_id]
                continue
            error = studies.failures.get(pair.study_id)
            failures.setdefault(
                position,
                error or InvalidStudy(f"study {pair.study_id}: no image is given for it"),
            )
    return EmbeddedPairs(
        images=vectors,
        originals=found.vectors[originals],
        perturbed=found.vectors[perturbed],
        failures=dict(sorted(failures.items())),
        truncated=int(found.truncated.sum()),
        signature=embedder.signature,
        C=embedder.C if C is None else C,
        studies=studies,
    )


def _studies(
    embedder: StudyEmbedder,
    images: Mapping[str, StudyImages] | StudyVectors | None,
    wanted: set[str],
    workers: int,
) -> StudyVectors:
    if images is None:
        return StudyVectors()
    if isinstance(images, StudyVectors):
        return images
    studies = StudyVectors(black=embedder.embed_black())
    needed = {name: study for name, study in images.items() if name in wanted}
    for part in embed_images(embedder, needed, workers=workers):
        studies.update(part)
    return studies
