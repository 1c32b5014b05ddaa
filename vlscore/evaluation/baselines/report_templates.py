"""Baseline "templates": labels of a study become sentences of a report.

The labels are read from the study's reference or from a table, or an encoder predicts them.

Pino et al. 2021 (Clinically Correct Report Generation from Chest X-rays using Templates) and Pino
2022; rules as in github.com/pdpino/medical-ai, models/report_generation/templates/models.py.
"""

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vlscore.core import file_digest, unit_rows
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
# Penalty of the probe's squared weights, on features of unit variance; not tuned.
_PENALTY = 1.0
_NEEDS = {
    REFERENCE: frozenset({REFERENCE}),
    ZERO_SHOT: frozenset({IMAGES}),
    PROBE: frozenset({TRAIN, TRAIN_IMAGES, IMAGES}),
}
TEMPLATES = Path(__file__).with_name("templates") / "chest.toml"

# Returns the labels that are present in a study. Raises: InvalidStudy.
Present = Callable[[Case], Collection[str]]


class Templates(Baseline):
    """Sentences for the labels of a study."""

    name = "templates"
    description = "fixed sentences for the labels of a study (Pino 2022)"
    uses = ("labels", "threshold", "style", "templates")

    def __init__(self, settings: BaselineSettings) -> None:
        super().__init__(settings)
        self._file = settings.templates or TEMPLATES
        self.sentences, self._groups = read_templates(self._file)

    @property
    def needs(self) -> frozenset[str]:
        """Return what the source of the labels needs."""
        return _NEEDS.get(self.settings.labels, frozenset())

    def facts(self) -> dict[str, str]:
        """Return style, labels and the digests of files."""
        name = self.settings.labels
        if name == REFERENCE:
            name = "reference-upper-bound"
        elif name not in _NEEDS and self._table:
            name = f"table@{file_digest(name)[:12]},threshold={self.settings.threshold:g}"
        return {
            "style": self.settings.style,
            "labels": name,
            "templates": file_digest(self._file)[:12],
        }

    @cached_property
    def _table(self) -> Mapping[str, Mapping[str, int | None]]:
        """Return the labels of a classifier's table: one row a study, one column a label."""
        return read_labels(Path(self.settings.labels), threshold=self.settings.threshold)

    def fit(self, training: TrainingReports, embedder: StudyEmbedder | None) -> Sequence[str]:
        """Prepare the source of the labels."""
        labels = self.settings.labels
        if labels == REFERENCE:
            self._present: Present = _of_reference
            return [
                "labels are extracted from the references of the studies themselves, so results "
                "are an upper bound of what templates can reach"
            ]
        if labels == ZERO_SHOT:
            assert embedder is not None
            self._present = zero_shot(self.sentences, embedder)
            return []
        if labels == PROBE:
            self._present, lacking = linear_probe(list(self.sentences), training)
            return [f"{name}: not in the training reports, so never present" for name in lacking]
        self._present = self._of_table
        columns = sorted({name for found in self._table.values() for name in found})
        return [f"{labels} has the labels {', '.join(columns)}; all others count as absent"]

    def _of_table(self, case: Case) -> Collection[str]:
        if case.id not in self._table:
            raise InvalidStudy(f"{self.settings.labels} has no row for the study {case.id!r}")
        return _present(self._table[case.id])

    def candidate(self, case: Case) -> str:
        """Return the sentences for the study's labels."""
        return self.report(self._present(case))

    def report(self, present: Collection[str]) -> str:
        """Return the sentences for the labels that are present.

        Style grouped: those of all groups that hold, then those of the labels in none of them.

        >>> templates = Templates(BaselineSettings())
        >>> templates.report(["Edema"]) == Templates(BaselineSettings(style="single")).report([])
        False
        """
        written, done = [], frozenset[str]()
        for there, absent, sentence in self._groups if self.settings.style == "grouped" else ():
            if there <= set(present) and not absent & set(present):
                written.append(sentence)
                done |= there | absent
        single = [
            stated if name in present else denied
            for name, (stated, denied) in self.sentences.items()
            if name not in done
        ]
        return " ".join(sentence for sentence in (*written, *single) if sentence)


def _of_reference(case: Case) -> Collection[str]:
    """Return the labels that our extraction finds in the study's own reference."""
    if case.reference is None:
        raise InvalidStudy("the study has no reference to take labels from")
    return _present(chexpert_labels(case.reference))


def zero_shot(prompts: Mapping[str, tuple[str, str]], embedder: StudyEmbedder) -> Present:
    """Return labels for which the image is nearer to a positive sentence than to a negative one.

    After CheXzero (Tiu et al. 2022), which compares the cosines of two prompts with the image.

    Args: prompts: label -> (positive sentence, negative sentence); one without both is absent.
    """
    names = [name for name, pair in prompts.items() if all(pair)]
    found = embedder.embed_texts([text for name in names for text in prompts[name]])
    for error in found.failures.values():
        raise error
    unit = unit_rows(found.vectors.double().numpy())
    contrasts = unit[0::2] - unit[1::2]

    def present(case: Case) -> Collection[str]:
        nearer = contrasts @ _image_of(case) > 0
        return [name for name, is_nearer in zip(names, nearer, strict=True) if is_nearer]

    return present


def linear_probe(names: Sequence[str], training: TrainingReports) -> tuple[Present, list[str]]:
    """Fit logistic regressions from image embeddings to the labels of the training reports.

    One regression a label, with L2 penalty, on standardised embeddings. A label is predicted for
    the share of training images that has it: the threshold is that quantile of the training
    images' own scores.

    Args: names: of the labels.
    Returns: what predicts labels, and the labels that the training reports lack.
    """
    if training.images is None or not len(training.images):
        raise InvalidTable("no training study has both an image and a report")
    images = training.images.astype(np.float64)
    mean, scale = images.mean(0), np.maximum(images.std(0), 1e-12)
    features = (images - mean) / scale
    found = [set(_present(chexpert_labels(report))) for report in training.reports]
    fitted: dict[str, tuple[NDArray[np.float64], float]] = {}
    for name in names:
        has_it = np.array([name in labels for labels in found])
        if has_it.any() and not has_it.all():
            weights = _regression(features, has_it)[:-1]
            scores = np.sort(features @ weights)[::-1]
            fitted[name] = weights, float(scores[int(has_it.sum()) - 1])

    def present(case: Case) -> Collection[str]:
        own = (_image_of(case) - mean) / scale
        return [name for name, (weights, least) in fitted.items() if own @ weights >= least]

    return present, [name for name in names if name not in fitted]


def _regression(features: NDArray[np.float64], has_it: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return weights and intercept (d + 1,) of an L2-penalised logistic regression.

    Args: features: (n, d) float64. has_it: (n,) bool.
    """
    from scipy.optimize import minimize

    signs = np.where(has_it, 1.0, -1.0)

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margins = signs * (features @ weights[:-1] + weights[-1])
        value = np.logaddexp(0, -margins).sum() + 0.5 * _PENALTY * weights[:-1] @ weights[:-1]
        pulls = -signs / (1 + np.exp(np.minimum(margins, 700)))
        slopes = features.T @ pulls + _PENALTY * weights[:-1]
        return float(value), np.append(slopes, pulls.sum())

    start = np.zeros(features.shape[1] + 1)
    found: NDArray[np.float64] = minimize(loss, start, jac=True, method="L-BFGS-B").x
    return found


def _image_of(case: Case) -> NDArray[np.float64]:
    if case.image is None or not np.isfinite(case.image).all():
        raise InvalidStudy("the study has no image that could be embedded")
    return case.image.astype(np.float64)


def _present(labels: Mapping[str, int | None]) -> list[str]:
    return [name for name, value in labels.items() if value in _PRESENT]


Sentences = dict[str, tuple[str, str]]
Group = tuple[frozenset[str], frozenset[str], str]


def read_templates(path: Path = TEMPLATES) -> tuple[Sentences, list[Group]]:
    """Return the templates of a file (the bundled one by default).

    Returns: label -> its sentences for a study where it is present and one where it is absent; and
        groups (labels that are present, labels that are absent, one sentence for them all), in the
        order in which they are tried.
    Raises: InvalidLexicon, naming the file and the entry, where it cannot be used.
    """
    labels: Sentences = {}
    groups = []
    try:
        with path.open("rb") as stream:
            content = tomllib.load(stream)
        for entry in content.get("label", ()):
            name, *texts = (entry.get(field) for field in ("name", "present", "absent"))
            if not all(isinstance(text, str) for text in (name, *texts)):
                raise ValueError(f"[[label]] {name!r}: name, present and absent are texts")
            _check([name], CHEXPERT_LABELS, "[[label]]")
            if name in labels:
                raise ValueError(f"two entries have the name {name}")
            labels[name] = texts[0], texts[1]
        if not labels:
            raise ValueError("it has no [[label]]")
        for entry in content.get("group", ()):
            sides, text = [entry.get(s, []) for s in ("present", "absent")], entry.get("sentence")
            if not isinstance(text, str) or not all(isinstance(side, list) for side in sides):
                raise ValueError(
                    "[[group]]: sentence is a text; present and absent are lists of labels"
                )
            _check([name for side in sides for name in side], labels, f"the group {text!r}")
            groups.append((frozenset(sides[0]), frozenset(sides[1]), text))
    except OSError as error:
        raise InvalidLexicon(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise InvalidLexicon(f"{path}: {error}") from None
    return labels, groups


def _check(names: Collection[str], known: Collection[str], where: str) -> None:
    if unknown := sorted(set(names) - set(known)):
        raise ValueError(f"{where}: no label {', '.join(unknown)}; there are {', '.join(known)}")
