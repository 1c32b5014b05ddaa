"""Baseline "templates": labels of a study become sentences of a report.

The labels are read from the study's reference or from a table, or an encoder predicts them.

Pino et al. 2021 (Clinically Correct Report Generation from Chest X-rays using Templates) and Pino
2022; rules as in github.com/pdpino/medical-ai, models/report_generation/templates/models.py.
"""

import tomllib
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.core import file_digest
from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidLexicon, InvalidStudy, InvalidTable
from vlscore.evaluation.baselines.baseline_base import (
    IMAGES,
    PROBE,
    REFERENCE,
    TRAIN,
    TRAIN_IMAGES,
    ZERO_SHOT,
    Baseline,
    BaselineSettings,
    Case,
    TrainingReports,
)
from vlscore.evaluation.label_tables import read_labels
from vlscore.findings import CHEXPERT_LABELS, chexpert_labels

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
        """Prepare the source of labels; return what a user should know."""
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
        self._weights: dict[str, NDArray[np.float32]] = {}
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


def _regression(features: NDArray[np.float32], has_it: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return weights and intercept (d + 1,) of an L2-penalised logistic regression.

    Args: features: (n, d) float64. has_it: (n,) bool.
    """
    from scipy.optimize import minimize

    signs = np.where(has_it, 1.0, -1.0)

    def loss(weights: NDArray[np.float32]) -> tuple[float, NDArray[np.float32]]:
        margins = signs * (features @ weights[:-1] + weights[-1])
        value = np.logaddexp(0, -margins).sum() + 0.5 * _PENALTY * weights[:-1] @ weights[:-1]
        pulls = -signs / (1 + np.exp(np.minimum(margins, 700)))
        slopes = features.T @ pulls + _PENALTY * weights[:-1]
        return float(value), np.append(slopes, pulls.sum())

    start = np.zeros(features.shape[1] + 1)
    found: NDArray[np.float32] = minimize(loss, start, jac=True, method="L-BFGS-B").x
    return found


def _image_of(case: Case) -> NDArray[np.float32]:
    if case.image is None or not np.isfinite(case.image).all():
        raise InvalidStudy("the study has no image that could be embedded")
    return case.image


def _present(labels: Mapping[str, int | None]) -> list[str]:
    return [name for name, value in labels.items() if value in _PRESENT]


TEMPLATES = Path(__file__).with_name("templates") / "chest.toml"


@dataclass(frozen=True)
class LabelSentences:
    """Sentences of one label, for a study where it is present and one where it is absent."""

    name: str
    present: str
    absent: str


@dataclass(frozen=True)
class SentenceGroup:
    """One sentence for several labels at once."""

    present: frozenset[str]
    absent: frozenset[str]
    sentence: str


@dataclass(frozen=True)
class ReportTemplates:
    """Sentences of a file of templates.

    Attributes:
        labels: one entry a label, in the order of their sentences.
        groups: in the order in which they are tried.
    """

    labels: tuple[LabelSentences, ...]
    groups: tuple[SentenceGroup, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return names of the labels."""
        return tuple(label.name for label in self.labels)

    def single(self, present: Collection[str]) -> str:
        """Return one sentence a label. Args: present: names of the labels that are present."""
        return self._joined(present, [], frozenset())

    def grouped(self, present: Collection[str]) -> str:
        """Return the sentences of all groups that hold, then those of the labels in none of them.

        >>> heart = LabelSentences("Cardiomegaly", "Large heart.", "Normal heart.")
        >>> edema = LabelSentences("Edema", "Edema.", "No edema.")
        >>> normal = SentenceGroup(frozenset(), frozenset({"Cardiomegaly", "Edema"}), "All normal.")
        >>> templates = ReportTemplates((heart, edema), (normal,))
        >>> templates.grouped([]), templates.grouped(["Edema"])
        ('All normal.', 'Normal heart. Edema.')
        """
        written, done = [], frozenset[str]()
        for group in self.groups:
            if group.present <= set(present) and not group.absent & set(present):
                written.append(group.sentence)
                done |= group.present | group.absent
        return self._joined(present, written, done)

    def _joined(
        self, present: Collection[str], written: Sequence[str], done: Collection[str]
    ) -> str:
        single = [
            label.present if label.name in present else label.absent
            for label in self.labels
            if label.name not in done
        ]
        return " ".join(sentence for sentence in (*written, *single) if sentence)


def read_templates(path: Path = TEMPLATES) -> ReportTemplates:
    """Return the templates of a file (the bundled one by default).

    Raises: InvalidLexicon, naming the file and the entry, where it cannot be used.
    """
    try:
        with path.open("rb") as stream:
            content = tomllib.load(stream)
        labels = tuple(_label(entry) for entry in content.get("label", ()))
        groups = tuple(_group(entry) for entry in content.get("group", ()))
        names = [label.name for label in labels]
        if not labels:
            raise ValueError("it has no [[label]]")
        if twice := {name for name in names if names.count(name) > 1}:
            raise ValueError(f"two entries have the name {', '.join(sorted(twice))}")
        for group in groups:
            _check(group.present | group.absent, names, f"the group {group.sentence!r}")
    except OSError as error:
        raise InvalidLexicon(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise InvalidLexicon(f"{path}: {error}") from None
    return ReportTemplates(labels, groups)


def _label(entry: Any) -> LabelSentences:
    texts = [entry.get(field) for field in ("name", "present", "absent")]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f"[[label]] {texts[0]!r}: name, present and absent are texts")
    _check([texts[0]], CHEXPERT_LABELS, "[[label]]")
    return LabelSentences(*texts)


def _group(entry: Any) -> SentenceGroup:
    sides = [entry.get(side, []) for side in ("present", "absent")]
    if not isinstance(entry.get("sentence"), str) or not all(isinstance(s, list) for s in sides):
        raise ValueError("[[group]]: sentence is a text; present and absent are lists of labels")
    present, absent = map(frozenset, sides)
    return SentenceGroup(present, absent, entry["sentence"])


def _check(names: Collection[str], known: Collection[str], where: str) -> None:
    if unknown := sorted(set(names) - set(known)):
        raise ValueError(f"{where}: no label {', '.join(unknown)}; there are {', '.join(known)}")


class Templates(Baseline):
    """Sentences for the labels of a study."""

    name = "templates"
    description = "fixed sentences for the labels of a study (Pino 2022)"
    uses = ("labels", "threshold", "style", "templates")

    def __init__(self, settings: BaselineSettings) -> None:
        super().__init__(settings)
        self._sentences = read_templates(settings.templates or TEMPLATES)

    @property
    def needs(self) -> frozenset[str]:
        """Return what the source of the labels needs."""
        return self._source.needs

    def facts(self) -> dict[str, str]:
        """Return style, labels and the digests of files."""
        return {
            "style": self.settings.style,
            "labels": self._source.name,
            "templates": file_digest(self.settings.templates or TEMPLATES)[:12],
        }

    @cached_property
    def _source(self) -> LabelSource:
        labels, names = self.settings.labels, self._sentences.names
        if labels == REFERENCE:
            return ReferenceLabels()
        if labels == ZERO_SHOT:
            prompts = {s.name: (s.present, s.absent) for s in self._sentences.labels}
            return ZeroShotLabels(prompts)
        if labels == PROBE:
            return LinearProbe(names)
        return TableLabels(Path(labels), self.settings.threshold)

    def fit(self, training: TrainingReports, embedder: StudyEmbedder | None) -> Sequence[str]:
        """Prepare the source of the labels."""
        return self._source.fit(training, embedder)

    def candidate(self, case: Case) -> str:
        """Return the sentences for the study's labels."""
        present = self._source.present(case)
        sentences = self._sentences
        is_grouped = self.settings.style == "grouped"
        return sentences.grouped(present) if is_grouped else sentences.single(present)
