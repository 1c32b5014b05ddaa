"""Baseline "templates": labels of a study become sentences of a report.

Pino et al. 2021 (Clinically Correct Report Generation from Chest X-rays using Templates) and Pino
2022; rules as in github.com/pdpino/medical-ai, models/report_generation/templates/models.py.
"""

import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from vlscore.core import file_digest
from vlscore.embedding import StudyEmbedder
from vlscore.errors import InvalidLexicon
from vlscore.evaluation.baselines.baseline_base import (
    PROBE,
    REFERENCE,
    ZERO_SHOT,
    Baseline,
    BaselineSettings,
    Case,
    TrainingReports,
)
from vlscore.evaluation.baselines.label_sources import (
    LabelSource,
    LinearProbe,
    ReferenceLabels,
    TableLabels,
    ZeroShotLabels,
)
from vlscore.findings import CHEXPERT_LABELS

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
