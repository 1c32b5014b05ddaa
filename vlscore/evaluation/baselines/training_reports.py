"""Baselines that write what training reports say: frequent, random, or of the nearest image.

Pino 2022 (thesis; github.com/pdpino/medical-ai, models/report_generation/dummy): a model must beat
a constant report, a random one, and reports of frequent words or sentences, which are drawn by
their frequency, as many as a random training report has. The nearest image is found by the exact
search of `retrieval`.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from vlscore.data import Report
from vlscore.errors import InvalidStudy, InvalidTable
from vlscore.evaluation.baselines.baseline_base import (
    IMAGES,
    TRAIN,
    TRAIN_IMAGES,
    Baseline,
    Case,
    TrainingReports,
)
from vlscore.perturb import standard_normal_of
from vlscore.text import split_sections, split_sentences

if TYPE_CHECKING:
    from vlscore.embedding import StudyEmbedder

_SECTIONS = ("findings", "impression")


class Constant(Baseline):
    """The most frequent training report; of equally frequent ones the first.

    Blanks around and between words do not make another report.
    """

    name = "constant"
    description = "the most frequent training report"

    def fit(self, training: TrainingReports, embedder: "StudyEmbedder | None") -> Sequence[str]:
        """Find the report."""
        counts = Counter(" ".join(report.split()) for report in training.reports)
        ((self._report, self.times),) = counts.most_common(1)
        return [f"the report is the most frequent one, {self.times} of {len(training.reports)}"]

    def candidate(self, case: Case) -> str:
        """Return the same report for every study."""
        return self._report


class Normal(Constant):
    """The standard normal report of the training reports."""

    name = "normal"
    description = "a report of the training set's usual sentences for a normal study"

    def fit(self, training: TrainingReports, embedder: "StudyEmbedder | None") -> Sequence[str]:
        """Compose the report."""
        self._report = standard_normal_of(training.reports)
        return []


class Random(Baseline):
    """A training report drawn at random, with replacement; never the study's own.

    Another study's report of equal wording may be drawn.
    """

    name = "random"
    description = "a training report drawn at random"
    uses = ("seed",)

    def fit(self, training: TrainingReports, embedder: "StudyEmbedder | None") -> Sequence[str]:
        """Take the reports to draw from."""
        self._reports, self._own = training.reports, training.own
        # Reports are drawn in the order of the studies, so that no draw depends on later ones.
        self._rng = np.random.default_rng(self.settings.seed)
        self._rows: list[int] = []
        return []

    def candidate(self, case: Case) -> str:
        """Return the report that is drawn for the study's row."""
        while len(self._rows) <= case.position:
            own = self._own.get(len(self._rows), len(self._reports))
            row = int(self._rng.integers(len(self._reports) - (own < len(self._reports))))
            self._rows.append(row + (row >= own))
        return self._reports[self._rows[case.position]]


Draw = Callable[[np.random.Generator], str]


def _drawing(texts: Sequence[Sequence[str]], first: int) -> Draw:
    """Return what draws texts of the most frequent words or sentences, by their frequency.

    A drawn text is as long as a random one of the training texts. Parts are counted in any case
    and with any blanks, and written in their most frequent spelling.

    Args: texts: the parts of each. first: number of parts that are drawn from.
    """
    counts: Counter[str] = Counter()
    spellings: dict[str, Counter[str]] = {}
    for part in chain(*texts):
        shown = " ".join(part.split())
        counts[shown.casefold()] += 1
        spellings.setdefault(shown.casefold(), Counter())[shown] += 1
    if not counts:
        raise InvalidTable("no training report has a word; baselines cannot learn from them")
    most = counts.most_common(first)
    parts = [spellings[part].most_common(1)[0][0] for part, _ in most]
    total = sum(count for _, count in most)
    chances = [count / total for _, count in most]
    lengths = [len(text) for text in texts]

    def draw(rng: np.random.Generator) -> str:
        length = lengths[int(rng.integers(len(lengths)))]
        return " ".join(parts[k] for k in rng.choice(len(parts), size=length, p=chances))

    return draw


class TopWords(Baseline):
    """Frequent words, drawn by their frequency."""

    name = "top-words"
    description = "frequent words of the training reports, drawn by their frequency"
    uses = ("seed", "first")

    def fit(self, training: TrainingReports, embedder: "StudyEmbedder | None") -> Sequence[str]:
        """Count the words."""
        words = [report.split() for report in training.reports]
        self._words = _drawing(words, self.settings.first)
        return []

    def candidate(self, case: Case) -> str:
        """Return as many words as a random training report has."""
        return self._words(np.random.default_rng([self.settings.seed, case.position]))


class TopSentences(Baseline):
    """Frequent sentences, drawn by their frequency; of a whole report or section by section."""

    name = "top-sentences"
    description = "frequent sentences of the training reports, drawn by their frequency"
    uses = ("seed", "first", "by_section")

    def fit(self, training: TrainingReports, embedder: "StudyEmbedder | None") -> Sequence[str]:
        """Count the sentences. Raises: InvalidTable where no report has sections."""
        first = self.settings.first
        if not self.settings.by_section:
            self._sections = {"": _drawing([*map(_sentences, training.reports)], first)}
            return []
        found: dict[str, list[list[str]]] = {name: [] for name in _SECTIONS}
        for report in training.whole:
            for name, text in _sections_of(report).items():
                found[name].append(_sentences(text))
        self._sections = {name: _drawing(texts, first) for name, texts in found.items() if texts}
        if not self._sections:
            raise InvalidTable(
                "no training report has sections: columns findings and impression, or headings "
                'such as "FINDINGS:"; leave by_section out'
            )
        return [f"{len(texts)} training reports have {name}" for name, texts in found.items()]

    def candidate(self, case: Case) -> str:
        """Return as many sentences as a random training report, or its section, has."""
        rng = np.random.default_rng([self.settings.seed, case.position])
        drawn = {name: draw(rng) for name, draw in self._sections.items()}
        if not self.settings.by_section:
            return drawn[""]
        return "\n".join(f"{name.upper()}: {text}" for name, text in drawn.items())


def _sentences(text: str) -> list[str]:
    """Return the sentences of a text, each with a mark at its end."""
    shown = (sentence.text.strip() for sentence in split_sentences(text))
    return [each if each[-1] in ".!?" else f"{each}." for each in shown if each]


def _sections_of(report: Report) -> dict[str, str]:
    """Return findings and impression of a report, as far as it has them."""
    parts = report.parts
    if parts is None:
        found = split_sections(report.text)
        parts = {name: found.get(name) or "" for name in _SECTIONS}
    return {name: text for name in _SECTIONS if (text := parts.get(name, "").strip())}


class NearestImage(Baseline):
    """The report of the training study whose image is nearest by the cosine of an encoder."""

    name = "nearest-image"
    description = "the report of the training study whose image an encoder puts nearest"

    @property
    def needs(self) -> frozenset[str]:
        """Return reports and images for training, and images of the studies."""
        return frozenset({TRAIN, TRAIN_IMAGES, IMAGES})

    def fit(self, training: TrainingReports, embedder: "StudyEmbedder | None") -> Sequence[str]:
        """Take the training images to search."""
        from vlscore.retrieval import Corpus  # loads torch

        if training.images is None or not len(training.images):
            raise InvalidTable("no training study has both an image and a report")
        there = np.flatnonzero(np.isfinite(training.images).all(1)).tolist()
        places = {row: place for place, row in enumerate(there)}
        self._reports = [training.reports[row] for row in there]
        self._corpus = Corpus(np.ascontiguousarray(training.images[there]))
        self._own = {k: places[row] for k, row in training.own.items() if row in places}
        return []

    def candidate(self, case: Case) -> str:
        """Return the nearest study's report."""
        (found,) = self.candidates([case])
        if isinstance(found, InvalidStudy):
            raise found
        return found

    def candidates(self, cases: Sequence[Case]) -> list[str | InvalidStudy]:
        """Return the nearest studies' reports, the first of equally near ones.

        All cases are searched for at once.
        """
        from vlscore.retrieval import Cosine, search  # loads torch

        lacking = InvalidStudy("the study has no image that could be embedded")
        found: list[str | InvalidStudy] = [lacking] * len(cases)
        asked = [
            k
            for k, case in enumerate(cases)
            if case.image is not None and np.isfinite(case.image).all()
        ]
        if asked:
            images = np.stack([cases[k].image for k in asked])  # type: ignore[misc]
            own = [self._own.get(cases[k].position) for k in asked]
            barred = {k: () if row is None else (row,) for k, row in enumerate(own)}
            hits = search(self._corpus, Cosine(images, self._corpus), 1, barred).rows[:, 0]
            for k, hit in zip(asked, hits.tolist(), strict=True):
                found[k] = self._reports[hit] if hit >= 0 else lacking
        return found
