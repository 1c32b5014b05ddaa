"""Readability of a report as a school grade; it does not depend on image or reference.

No direction is better in itself. `higher_is_better` is False by convention: lower is easier. An
empty report has the grade 0; a report of one or two words counts as one sentence.

Grades are computed by textstat, which needs NLTK's cmudict for syllables; nothing is downloaded.
textstat counts syllables even for Dale-Chall, which does not need them, and downloads cmudict if it
is absent. So this file computes Dale-Chall from textstat's words, sentences and word list.
"""

from collections.abc import Callable, Iterable, Set
from pathlib import Path
from typing import Any

from vlscore.core import file_digest
from vlscore.errors import InvalidSetting, MissingDependency
from vlscore.metrics.batch import Batch, Computed
from vlscore.metrics.library.words import ReferenceCounts, has_corpus, how_to_get
from vlscore.metrics.metric import Metric, Parameter
from vlscore.metrics.networks.model_files import loaded_once
from vlscore.metrics.provider import Provider, one_column

_LANGUAGE = "en_US"
_WITH_SYLLABLES = {"flesch-kincaid": "flesch_kincaid_grade", "gunning-fog": "gunning_fog"}
_CLINICAL = "dale-chall-clinical"


class WordCounts(ReferenceCounts):
    """Number of references in which each word occurs."""

    def frequent(self, share: float) -> frozenset[str]:
        """Return the words that occur in more than this share of the references."""
        least = share * self.references
        return frozenset(word for word, count in self.counts.items() if count > least)


class TextstatProvider(Provider):
    """Provider of grades; words have no punctuation, sentences of one or two words do not count."""

    library = "textstat"
    extra = "readability"

    def is_fitted(self, metric: Metric) -> bool:
        return metric.name == _CLINICAL and metric.settings["words"] is None

    def fit(self, metric: Metric, references: Iterable[str], state: Any = None) -> Any:
        known = state or WordCounts()
        for text in references:
            known.add({word.lower() for word in self._words(text)})
        return known

    def compute(self, metric: Metric, batch: Batch) -> Computed:
        grade = self._grade(metric, batch.fitted)
        return one_column([grade(text) for text in batch.candidates])

    def missing(self, metric: Metric) -> str | None:
        reason = super().missing(metric)
        if reason is not None or metric.name not in _WITH_SYLLABLES:
            return reason
        if not has_corpus("cmudict"):
            return f"{metric.name} counts syllables by the corpus cmudict: {how_to_get('cmudict')}"
        return None

    def conventions(self, metric: Metric) -> dict[str, str]:
        named = metric.settings.get("words")
        return (
            {"words": f"{Path(str(named)).name}@{file_digest(_file(named))[:8]}"} if named else {}
        )

    def _grade(self, metric: Metric, fitted: Any) -> Callable[[str], float]:
        if metric.name in _WITH_SYLLABLES:
            if (reason := self.missing(metric)) is not None:
                # Checked first, because textstat itself would download the corpus.
                raise MissingDependency(reason)
            counted: Callable[[str], float] = getattr(
                self._module("textstat").textstat, _WITH_SYLLABLES[metric.name]
            )
            return counted
        familiar: Set[str] = self._module("textstat.backend.utils").get_lang_easy_words(_LANGUAGE)
        if self.is_fitted(metric):
            familiar = familiar | fitted.frequent(metric.settings["share"])
        elif metric.name == _CLINICAL:
            familiar = familiar | _listed(_file(metric.settings["words"]))
        return lambda text: self._dale_chall(text, familiar)

    def _dale_chall(self, text: str, familiar: Set[str]) -> float:
        """Compute Dale and Chall's formula, with its addition above 5 % difficult words."""
        words = self._words(text)
        if not words:
            return 0.0
        hard = 100 * sum(word.lower() not in familiar for word in words) / len(words)
        sentences: int = self._module("textstat").textstat.sentence_count(text)
        grade: float = 0.1579 * hard + 0.0496 * len(words) / sentences
        return grade + 3.6365 if hard > 5 else grade

    def _words(self, text: str) -> list[str]:
        return list(self._module("textstat.backend.selections").list_words(text))


def _file(named: Any) -> Path:
    path = Path(str(named)).expanduser()
    if not path.is_file():
        raise InvalidSetting(f"words={named}: there is no file {path}")
    return path


@loaded_once(lambda path: (path,), maxsize=4)
def _listed(path: Path) -> frozenset[str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSetting(f"{path} is not a readable list of words ({error})") from None
    return frozenset(line.strip().lower() for line in lines if line.strip())


def _grade(
    name: str,
    title: str,
    description: str,
    citation: str,
    low: float | None,
    parameters: tuple[Parameter, ...] = (),
) -> Metric:
    return Metric(
        provider=TextstatProvider(),
        name=name,
        title=title,
        description=f"{description}; lower is easier, not better",
        higher_is_better=False,
        bounds=(low, None),
        uses_reference=False,
        citation=citation,
        parameters=parameters,
    )


FLESCH_KINCAID = _grade(
    "flesch-kincaid",
    "Flesch-Kincaid",
    "reading grade from words a sentence and syllables a word",
    "Kincaid et al. 1975, Derivation of new readability formulas, Navy report 8-75",
    None,
)


GUNNING_FOG = _grade(
    "gunning-fog",
    "Gunning fog",
    "reading grade from words a sentence and the share of long words that are not familiar",
    "Gunning 1952, The Technique of Clear Writing",
    0.0,
)


DALE_CHALL = _grade(
    "dale-chall",
    "Dale-Chall",
    "reading grade from words a sentence and the share of words that are not familiar",
    "Dale, Chall 1948, A formula for predicting readability; textstat's word list",
    0.0,
)


DALE_CHALL_CLINICAL = _grade(
    "dale-chall-clinical",
    "Dale-Chall (clinical)",
    "Dale-Chall where words that are frequent in the run's references are familiar too",
    "Rawat 2022 (improved Dale-Chall); after Dale, Chall 1948",
    0.0,
    (
        Parameter(
            "share",
            0.1,
            "a word in more than this share of the references is familiar; our default",
            above=0.0,
        ),
        Parameter(
            "words",
            None,
            "a file of familiar words, one a line, instead of those of the references",
            kind=str,
        ),
    ),
)
