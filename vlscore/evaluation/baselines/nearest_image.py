"""The report of the study whose image is nearest, by the exact search of `retrieval`."""

from collections.abc import Mapping, Sequence

import numpy as np
from torch import Tensor

from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidStudy, InvalidTable
from vlscore.evaluation.baselines.baseline_base import (
    BASELINE,
    IMAGES,
    TRAIN,
    TRAIN_IMAGES,
    Array,
    Baseline,
    Case,
    TrainingReports,
)
from vlscore.retrieval import Corpus, Cosine, search

NEAREST = f"{BASELINE}nearest-image"


def nearest_rows(
    corpus: Corpus, images: Array, excluded: Mapping[int, Sequence[int]] | None = None
) -> list[int | None]:
    """Return for each of q images the row of the corpus with the largest cosine.

    Args:
        images: (q, d) float32; nan where there is none.
        excluded: image -> rows that it must not find.
    Returns: q rows, the first of equal ones; None where there is nothing to find.
    """
    found: list[int | None] = [None] * len(images)
    asked = np.flatnonzero(np.isfinite(images).all(1)).tolist()
    barred = {k: (excluded or {}).get(row, ()) for k, row in enumerate(asked)}
    hits = search(corpus, Cosine(images[asked], corpus.norms), 1, barred)
    for row, hit in zip(asked, hits.rows[:, 0].tolist(), strict=True):
        found[row] = hit if hit >= 0 else None
    return found


def nearest_reports(vectors: Tensor, references: Sequence[str | None]) -> list[str | None]:
    """Return for each of n studies the reference of the other study whose image is nearest.

    Args:
        vectors: (n, d) embeddings of images; nan where a study has none.
        references: of the same studies, None for one without.
    Returns: n reports; None for a study without an image, or where no other study has both.
    """
    images = vectors.float().numpy()
    has_both = np.isfinite(images).all(1) & np.array([text is not None for text in references])
    rows = np.flatnonzero(has_both)
    places = {int(row): k for k, row in enumerate(rows)}
    # A study never finds itself.
    own = {row: [place] for row, place in places.items()}
    corpus = Corpus(np.ascontiguousarray(images[rows]))
    found = nearest_rows(corpus, images, own)
    return [None if k is None else references[rows[k]] for k in found]


class NearestImage(Baseline):
    """The report of the training study whose image is nearest by the cosine of an encoder."""

    name = "nearest-image"
    description = "the report of the training study whose image an encoder puts nearest"

    @property
    def needs(self) -> frozenset[str]:
        """Return reports and images for training, and images of the studies."""
        return frozenset({TRAIN, TRAIN_IMAGES, IMAGES})

    def fit(self, training: TrainingReports, embedder: StudyEmbedder | None) -> Sequence[str]:
        """Take the training images to search."""
        if training.images is None or not len(training.images):
            raise InvalidTable("no training study has both an image and a report")
        self._reports = training.reports
        self._corpus = Corpus(training.images)
        return []

    def candidate(self, case: Case) -> str:
        """Return the nearest study's report."""
        (found,) = self.candidates([case])
        if isinstance(found, InvalidStudy):
            raise found
        return found

    def candidates(self, cases: Sequence[Case]) -> list[str | InvalidStudy]:
        """Return the nearest studies' reports; all cases are searched for at once."""
        empty = np.full(self._corpus.dim, np.nan, dtype=np.float32)
        images = [empty if case.image is None else case.image for case in cases]
        rows = nearest_rows(self._corpus, np.stack(images)) if cases else []
        lacking = InvalidStudy("the study has no image that could be embedded")
        return [lacking if row is None else self._reports[row] for row in rows]
