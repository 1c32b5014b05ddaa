"""Readability of a report as a school grade; it does not depend on image or reference.

No direction is better in itself: lower is easier. An empty report has the grade 0; a report of one
or two words counts as one sentence.

Grades are computed by textstat, which needs NLTK's cmudict for syllables; nothing is downloaded.
textstat counts syllables even for Dale-Chall, which does not need them, and downloads cmudict if it
is absent; its import loads all of NLTK and SciPy's statistics, which takes a second. So this file
computes Dale-Chall by textstat's rules for words and sentences, from its file of familiar words.
"""

import re
from collections.abc import Iterable, Set
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from vlscore.errors import MissingDependency
from vlscore.metrics.batch import Batch, Bounds, Values
from vlscore.metrics.library.words import ReferenceCounts, has_corpus, how_to_get
from vlscore.metrics.metric import Metric, parameter

# textstat's rules: an apostrophe belongs to a word only within a contraction; a sentence of at most
# two words does not count.
_NO_CONTRACTION = re.compile(r"'(?![tsd]|ve|ll|re)")
_NO_WORD = re.compile(r"[^\w\s\']")
_SENTENCE = re.compile(r"\b[^.!?]+[.!?]*")


class _ReadingGrade(Metric):
    """Base of the grades."""

    higher_is_better = False
    has_direction = False
    bounds: ClassVar[Bounds] = (0.0, None)
    uses_reference = False
    library = "textstat"
    extra = "readability"


class FleschKincaid(_ReadingGrade):
    """Grade that textstat computes from syllables."""

    name = "flesch-kincaid"
    title = "Flesch-Kincaid"
    description = (
        "reading grade from words per sentence and syllables per word; lower is easier, not better"
    )
    citation = "Kincaid et al. 1975, Derivation of new readability formulas, Navy report 8-75"
    bounds: ClassVar[Bounds] = (None, None)
    function: ClassVar[str] = "flesch_kincaid_grade"

    def missing(self) -> str | None:
        if (reason := super().missing()) is not None or has_corpus("cmudict"):
            return reason
        return f"{self.name} counts syllables by the corpus cmudict: {how_to_get('cmudict')}"

    def compute(self, batch: Batch) -> Values:
        if (reason := self.missing()) is not None:
            # Checked first, because textstat itself would download the corpus.
            raise MissingDependency(reason)
        grade = getattr(self._module("textstat").textstat, self.function)
        return np.array([grade(text) for text in batch.candidates])


class GunningFog(FleschKincaid):
    """Grade that textstat computes from long words."""

    name = "gunning-fog"
    title = "Gunning fog"
    description = (
        "reading grade from words per sentence and the share of unfamiliar long words; "
        "lower is easier, not better"
    )
    citation = "Gunning 1952, The Technique of Clear Writing"
    bounds = (0.0, None)
    function = "gunning_fog"


class DaleChall(_ReadingGrade):
    """Dale and Chall's formula, with its addition above 5 % difficult words."""

    name = "dale-chall"
    title = "Dale-Chall"
    description = (
        "reading grade from words per sentence and the share of unfamiliar words; "
        "lower is easier, not better"
    )
    citation = "Dale, Chall 1948, A formula for predicting readability; textstat's word list"

    def compute(self, batch: Batch) -> Values:
        familiar = self._familiar(batch)
        return np.array([self._grade(text, familiar) for text in batch.candidates])

    def _grade(self, text: str, familiar: Set[str]) -> float:
        words = _words(text)
        if not words:
            return 0.0
        hard = 100 * sum(word.lower() not in familiar for word in words) / len(words)
        lengths = [len(_words(sentence)) for sentence in _SENTENCE.findall(text)]
        sentences = max(1, sum(length > 2 for length in lengths))
        grade: float = 0.1579 * hard + 0.0496 * len(words) / sentences
        return grade + 3.6365 if hard > 5 else grade

    def _familiar(self, batch: Batch) -> Set[str]:
        # Found without importing it.
        package = find_spec("textstat")
        if package is None or package.origin is None:
            raise MissingDependency(self._how_to_install())
        return _listed(Path(package.origin).parent / "resources" / "en" / "easy_words.txt")


class DaleChallClinical(DaleChall):
    """Dale-Chall with words that are familiar to radiologists."""

    name = "dale-chall-clinical"
    title = "Dale-Chall (clinical)"
    description = (
        "Dale-Chall with words that are frequent in the run's references counted as familiar; "
        "lower is easier, not better"
    )
    citation = "Rawat 2022 (improved Dale-Chall); after Dale, Chall 1948"

    share: float = parameter(
        0.1,
        "a word in more than this share of the references is familiar; our default",
        above=0.0,
    )
    is_fitted = True

    def fit(self, references: Iterable[str], state: Any = None) -> Any:
        known = state or ReferenceCounts()
        for text in references:
            known.add({word.lower() for word in _words(text)})
        return known

    def _familiar(self, batch: Batch) -> Set[str]:
        known: ReferenceCounts = batch.fitted
        least = self.share * known.references
        return super()._familiar(batch) | {w for w, n in known.counts.items() if n > least}


def _words(text: str) -> list[str]:
    return _NO_WORD.sub("", _NO_CONTRACTION.sub("", text)).split()


@cache
def _listed(path: Path) -> frozenset[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return frozenset(line.strip().lower() for line in lines if line.strip())
