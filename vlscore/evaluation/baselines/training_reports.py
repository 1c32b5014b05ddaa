"""Baselines that write what training reports say: frequent, random, or of the nearest image.

Pino 2022 (thesis; github.com/pdpino/medical-ai, models/report_generation/dummy): a model must beat
a constant report, a random one, and reports of frequent words or sentences, which are drawn by
their frequency, as many as a random training report has. The nearest image is found by the exact
search of `retrieval`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vlscore.data import Report
from vlscore.errors import InvalidSetting, InvalidStudy, InvalidTable
from vlscore.evaluation.baselines.baseline_base import (
    BASELINE,
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
    from torch import Tensor

    from vlscore.embedding import StudyEmbedder
    from vlscore.retrieval import Corpus

CONSTANT, NORMAL, RANDOM = f"{BASELINE}constant", f"{BASELINE}normal", f"{BASELINE}random"
_SECTIONS = ("findings", "impression")


def constant_report(reports: Sequence[str]) -> tuple[str, int]:
    """Return the most frequent report and its number; of equally frequent ones the first.

    Blanks around and between words do not make another report.

    >>> constant_report(["Old fracture.", "Clear lungs.", "Clear  lungs."])
    ('Clear lungs.', 2)
    """
    counts = Counter(" ".join(report.split()) for report in reports)
    return counts.most_common(1)[0]


def random_reports(
    references: Sequence[str | None], train: Sequence[str] | None, seed: int
) -> list[str]:
    """Return for each study a report drawn at random, with replacement.

    Args:
        references: of the n studies, None for one without; drawn from where there is no `train`,
            and never the study's own. Another study's reference of equal wording may be drawn.
        train: reports of other studies.

    Raises: InvalidSetting where no other study has a reference.
    """
    if train is not None:
        return [train[k] for k in _drawn_rows(len(train), len(references), seed)]
    rng = np.random.default_rng(seed)
    texts = [text for text in references if text is not None]
    if len(texts) < 2:
        raise InvalidSetting(
            "baselines take the references of other studies, and there are none; give a table of "
            "reports (--train), or leave the baselines out"
        )
    drawn = []
    before = 0
    for text in references:
        is_usable = text is not None
        k = int(rng.integers(len(texts) - is_usable))
        drawn.append(texts[k + (is_usable and k >= before)])
        before += is_usable
    return drawn


def _drawn_rows(rows: int, count: int, seed: int) -> list[int]:
    """Return `count` numbers below `rows`; the first ones do not depend on `count`."""
    drawn: list[int] = np.random.default_rng(seed).integers(rows, size=count).tolist()
    return drawn


class Constant(Baseline):
    """The most frequent training report."""

    name = "constant"
    description = "the most frequent training report"

    def fit(self, training: TrainingReports, embedder: "StudyEmbedder | None") -> Sequence[str]:
        """Find the report."""
        self._report, times = constant_report(training.reports)
        return [f"the report is the most frequent one, {times} of {len(training.reports)}"]

    def candidate(self, case: Case) -> str:
        """Return the same report for every study."""
        return self._report


class Normal(Baseline):
    """The standard normal report of the training reports."""

    name = "normal"
    description = "a report of the training set's usual sentences for a normal study"

    def fit(self, training: TrainingReports, embedder: "StudyEmbedder | None") -> Sequence[str]:
        """Compose the report."""
        self._report = standard_normal_of(training.reports)
        return []

    def candidate(self, case: Case) -> str:
        """Return the same report for every study."""
        return self._report


class Random(Baseline):
    """A training report drawn at random."""

    name = "random"
    description = "a training report drawn at random"
    uses = ("seed",)

    def fit(self, training: TrainingReports, embedder: "StudyEmbedder | None") -> Sequence[str]:
        """Take the reports to draw from."""
        self._reports = training.reports
        # Reports are drawn in the order of the studies, as a comparison draws them.
        self._rows: list[int] = []
        return []

    def candidate(self, case: Case) -> str:
        """Return the report that is drawn for the study's row."""
        if case.position >= len(self._rows):
            count = 2 * case.position + 1000
            self._rows = _drawn_rows(len(self._reports), count, self.settings.seed)
        return self._reports[self._rows[case.position]]


@dataclass(frozen=True)
class _Frequent:
    """The most frequent words or sentences, and lengths of texts.

    Attributes:
        parts: the most frequent ones, in the spelling that is most frequent.
        chances: of each part; they sum to 1.
        lengths: number of parts of each training text.
    """

    parts: Sequence[str]
    chances: Sequence[float]
    lengths: Sequence[int]

    @classmethod
    def of(cls, texts: Sequence[Sequence[str]], first: int) -> "_Frequent":
        """Count the parts of texts, in any case and with any blanks; `first` remain."""
        counts: Counter[str] = Counter()
        spellings: dict[str, Counter[str]] = {}
        for text in texts:
            for part in text:
                shown = " ".join(part.split())
                counts[shown.casefold()] += 1
                spellings.setdefault(shown.casefold(), Counter())[shown] += 1
        if not counts:
            raise InvalidTable("no training report has a word; baselines cannot learn from them")
        most = counts.most_common(first)
        total = sum(count for _, count in most)
        return cls(
            [spellings[part].most_common(1)[0][0] for part, _ in most],
            [count / total for _, count in most],
            [len(text) for text in texts],
        )

    def draw(self, rng: np.random.Generator) -> str:
        """Return a text of parts drawn by their frequency, as long as a random training text."""
        length = self.lengths[int(rng.integers(len(self.lengths)))]
        drawn = rng.choice(len(self.parts), size=length, p=self.chances)
        return " ".join(self.parts[k] for k in drawn)


class TopWords(Baseline):
    """Frequent words, drawn by their frequency."""

    name = "top-words"
    description = "frequent words of the training reports, drawn by their frequency"
    uses = ("seed", "first")

    def fit(self, training: TrainingReports, embedder: "StudyEmbedder | None") -> Sequence[str]:
        """Count the words."""
        words = [report.split() for report in training.reports]
        self._words = _Frequent.of(words, self.settings.first)
        return []

    def candidate(self, case: Case) -> str:
        """Return as many words as a random training report has."""
        return self._words.draw(np.random.default_rng([self.settings.seed, case.position]))


class TopSentences(Baseline):
    """Frequent sentences, drawn by their frequency; of a whole report or section by section."""

    name = "top-sentences"
    description = "frequent sentences of the training reports, drawn by their frequency"
    uses = ("seed", "first", "by_section")

    def fit(self, training: TrainingReports, embedder: "StudyEmbedder | None") -> Sequence[str]:
        """Count the sentences. Raises: InvalidTable where no report has sections."""
        first = self.settings.first
        if not self.settings.by_section:
            self._sections = {"": _Frequent.of([*map(_sentences, training.reports)], first)}
            return []
        found: dict[str, list[list[str]]] = {name: [] for name in _SECTIONS}
        for report in training.whole:
            for name, text in _sections_of(report).items():
                found[name].append(_sentences(text))
        self._sections = {
            name: _Frequent.of(texts, first) for name, texts in found.items() if texts
        }
        if not self._sections:
            raise InvalidTable(
                "no training report has sections: columns findings and impression, or headings "
                'such as "FINDINGS:"; leave by_section out'
            )
        return [f"{len(texts)} training reports have {name}" for name, texts in found.items()]

    def candidate(self, case: Case) -> str:
        """Return as many sentences as a random training report, or its section, has."""
        rng = np.random.default_rng([self.settings.seed, case.position])
        drawn = {name: part.draw(rng) for name, part in self._sections.items()}
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


NEAREST = f"{BASELINE}nearest-image"


def nearest_rows(
    corpus: "Corpus",
    images: NDArray[np.float32],
    excluded: Mapping[int, Sequence[int]] | None = None,
) -> list[int | None]:
    """Return for each of q images the row of the corpus with the largest cosine.

    Args:
        images: (q, d) float32; nan where there is none.
        excluded: image -> rows that it must not find.
    Returns: q rows, the first of equal ones; None where there is nothing to find.
    """
    from vlscore.retrieval import Cosine, search  # loads torch

    found: list[int | None] = [None] * len(images)
    asked = np.flatnonzero(np.isfinite(images).all(1)).tolist()
    barred = {k: (excluded or {}).get(row, ()) for k, row in enumerate(asked)}
    hits = search(corpus, Cosine(images[asked], corpus), 1, barred)
    for row, hit in zip(asked, hits.rows[:, 0].tolist(), strict=True):
        found[row] = hit if hit >= 0 else None
    return found


def nearest_reports(vectors: "Tensor", references: Sequence[str | None]) -> list[str | None]:
    """Return for each of n studies the reference of the other study whose image is nearest.

    Args:
        vectors: (n, d) embeddings of images; nan where a study has none.
        references: of the same studies, None for one without.
    Returns: n reports; None for a study without an image, or where no other study has both.
    """
    from vlscore.retrieval import Corpus

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

    def fit(self, training: TrainingReports, embedder: "StudyEmbedder | None") -> Sequence[str]:
        """Take the training images to search."""
        from vlscore.retrieval import Corpus

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
