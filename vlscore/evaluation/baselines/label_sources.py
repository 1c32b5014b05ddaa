"""Sources of the labels that templates need: the study's reference, a table, or an encoder."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from vlscore.core import file_digest
from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidStudy, InvalidTable
from vlscore.evaluation.baselines.baseline_base import (
    IMAGES,
    PROBE,
    REFERENCE,
    TRAIN,
    TRAIN_IMAGES,
    ZERO_SHOT,
    Array,
    Case,
    TrainingReports,
)
from vlscore.evaluation.label_agreement import read_labels
from vlscore.findings import chexpert_labels

# Values of a label that count as present: affirmed, and uncertain.
_PRESENT = (1, -1)


class LabelSource(ABC):
    """Source of the labels of a study.

    Attributes:
        name: for signatures.
        needs: as of a baseline.
    """

    name: str
    needs: frozenset[str] = frozenset()

    def fit(self, training: TrainingReports, embedder: StudyEmbedder | None) -> Sequence[str]:
        """Return prepare; return what a user should know."""
        return []

    @abstractmethod
    def present(self, case: Case) -> Collection[str]:
        """Return the labels that are present. Raises: InvalidStudy."""


class ReferenceLabels(LabelSource):
    """Labels of the study's own reference: an upper bound."""

    name = "reference-upper-bound"
    needs = frozenset({REFERENCE})

    def fit(self, training: TrainingReports, embedder: StudyEmbedder | None) -> Sequence[str]:
        """Return the note that no real system has these labels."""
        return [
            "labels are extracted from the references of the studies themselves, so results are an "
            "upper bound of what templates can reach"
        ]

    def present(self, case: Case) -> Collection[str]:
        """Return the labels that our extraction finds in the reference."""
        if case.reference is None:
            raise InvalidStudy("the study has no reference to take labels from")
        return _present(chexpert_labels(case.reference))


class TableLabels(LabelSource):
    """Labels of a classifier's table: one row a study, one column a label.

    Args:
        path: of the table; see `read_labels`.
        threshold: from which value on a label is present, where the table has probabilities.
    """

    def __init__(self, path: Path, threshold: float) -> None:
        self._path = path
        self._labels = read_labels(path, threshold=threshold)
        self.name = f"table@{file_digest(path)[:12]},threshold={threshold:g}"

    def fit(self, training: TrainingReports, embedder: StudyEmbedder | None) -> Sequence[str]:
        """Return the labels that the table lacks."""
        columns = sorted({name for labels in self._labels.values() for name in labels})
        return [f"{self._path} has the labels {', '.join(columns)}; all others count as absent"]

    def present(self, case: Case) -> Collection[str]:
        """Return the study's labels. Raises: InvalidStudy where the table lacks the study."""
        if case.id not in self._labels:
            raise InvalidStudy(f"{self._path} has no row for the study {case.id!r}")
        return _present(self._labels[case.id])


class ZeroShotLabels(LabelSource):
    """Labels for which the image is nearer to a positive sentence than to a negative one.

    After CheXzero (Tiu et al. 2022), which compares the cosines of two prompts with the image.

    Args: prompts: label -> (positive sentence, negative sentence); one without both is absent.
    """

    name = ZERO_SHOT
    needs = frozenset({IMAGES})

    def __init__(self, prompts: Mapping[str, tuple[str, str]]) -> None:
        self._prompts = {name: pair for name, pair in prompts.items() if all(pair)}

    def fit(self, training: TrainingReports, embedder: StudyEmbedder | None) -> Sequence[str]:
        """Embed the sentences."""
        assert embedder is not None
        texts = [text for pair in self._prompts.values() for text in pair]
        found = embedder.embed_texts(texts)
        for error in found.failures.values():
            raise error
        vectors = found.vectors.double().numpy()
        unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
        self._contrasts = unit[0::2] - unit[1::2]
        return []

    def present(self, case: Case) -> Collection[str]:
        """Return the labels whose positive sentence is nearer by cosine."""
        nearer = self._contrasts @ _image_of(case).astype(np.float64) > 0
        return [name for name, is_nearer in zip(self._prompts, nearer, strict=True) if is_nearer]


# Penalty of the probe's squared weights, on features of unit variance; not tuned.
_PENALTY = 1.0


class LinearProbe(LabelSource):
    """Logistic regression from image embeddings to the labels of the training reports.

    A label is predicted for the share of training images that has it: the threshold is that
    quantile of the training images' own scores.

    Args: names: of the labels.
    """

    name = PROBE
    needs = frozenset({TRAIN, TRAIN_IMAGES, IMAGES})

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def fit(self, training: TrainingReports, embedder: StudyEmbedder | None) -> Sequence[str]:
        """Fit one regression a label, with L2 penalty, on standardised embeddings."""
        if training.images is None or not len(training.images):
            raise InvalidTable("no training study has both an image and a report")
        images = training.images.astype(np.float64)
        self._mean, self._scale = images.mean(0), np.maximum(images.std(0), 1e-12)
        features = (images - self._mean) / self._scale
        found = [set(_present(chexpert_labels(report))) for report in training.reports]
        self._weights: dict[str, Array] = {}
        lacking = []
        for name in self._names:
            has_it = np.array([name in labels for labels in found])
            if has_it.all() or not has_it.any():
                lacking.append(name)
                continue
            weights = _regression(features, has_it)
            scores = features @ weights[:-1]
            threshold = np.sort(scores)[::-1][int(has_it.sum()) - 1]
            self._weights[name] = np.append(weights[:-1], -threshold)
        return [f"{name}: not in the training reports, so never present" for name in lacking]

    def present(self, case: Case) -> Collection[str]:
        """Return the labels that are predicted."""
        features = (_image_of(case).astype(np.float64) - self._mean) / self._scale
        return [
            n for n, weights in self._weights.items() if features @ weights[:-1] >= -weights[-1]
        ]


def _regression(features: Array, has_it: Array) -> Array:
    """Return weights and intercept (d + 1,) of an L2-penalised logistic regression.

    Args: features: (n, d) float64. has_it: (n,) bool.
    """
    from scipy.optimize import minimize

    signs = np.where(has_it, 1.0, -1.0)

    def loss(weights: Array) -> tuple[float, Array]:
        margins = signs * (features @ weights[:-1] + weights[-1])
        value = np.logaddexp(0, -margins).sum() + 0.5 * _PENALTY * weights[:-1] @ weights[:-1]
        pulls = -signs / (1 + np.exp(np.minimum(margins, 700)))
        slopes = features.T @ pulls + _PENALTY * weights[:-1]
        return float(value), np.append(slopes, pulls.sum())

    start = np.zeros(features.shape[1] + 1)
    found: Array = minimize(loss, start, jac=True, method="L-BFGS-B").x
    return found


def _image_of(case: Case) -> Array:
    if case.image is None or not np.isfinite(case.image).all():
        raise InvalidStudy("the study has no image that could be embedded")
    return case.image


def _present(labels: Mapping[str, int | None]) -> list[str]:
    return [name for name, value in labels.items() if value in _PRESENT]
