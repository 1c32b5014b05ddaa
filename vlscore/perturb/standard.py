"""The standard normal report, made from what a corpus says most often of normal chests.

Source: Dawidowicz, Hirsch, Tal, "VLScore", NeurIPS 2024, section 4.2 and Figure 2; the recipe is
`perturbations/standard_normal.toml`.
"""

import re
from collections import Counter
from functools import cache
from typing import NamedTuple

from vlscore._resources import resource_path
from vlscore.findings import Category, Polarity, ReportFindings, Sentence
from vlscore.perturb.lexicons import discourse, read_file

_OF_ONE_STUDY = re.compile(r"[\d:;]")
# Sentences said once so far may be forgotten when there are more different ones than this.
_REMEMBERED = 200_000


class Topic(NamedTuple):
    """One thing that a normal report says."""

    name: str
    denies: frozenset[str]
    settles: frozenset[str]
    default: str


class Recipe(NamedTuple):
    """How the standard normal report is made."""

    topics: tuple[Topic, ...]
    least_often: int
    most_words: int
    without: frozenset[str]


@cache
def recipe() -> Recipe:
    """The recipe in `perturbations/standard_normal.toml`."""
    table = read_file(resource_path("perturbations", "standard_normal.toml"))
    topics = [
        Topic(
            entry["name"],
            frozenset(entry["denies"]),
            frozenset(entry["settles"]),
            entry["default"],
        )
        for entry in table["topic"]
    ]
    return Recipe(
        tuple(topics), table["least_often"], table["most_words"], frozenset(table["without"])
    )


class NormalSentences:
    """Counts the normal sentences of a corpus, in bounded memory."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._denied: dict[str, frozenset[str]] = {}

    def add(self, findings: ReportFindings) -> None:
        """Count the sentences of one report."""
        for sentence in findings.sentences:
            said = _said(findings.text, sentence)
            if said is None:
                continue
            self._counts[said] += 1
            self._denied[said] = frozenset(f.observation for f in sentence.findings)
        if len(self._counts) > _REMEMBERED:
            self._forget()

    def report(self) -> str:
        """The standard normal report of what was counted; the defaults where nothing was.

        >>> NormalSentences().report().split(". ")[0]
        'The heart is normal in size'
        """
        return " ".join(self._most_common(topic) or topic.default for topic in recipe().topics)

    def _most_common(self, topic: Topic) -> str | None:
        fit = [
            (-count, said)
            for said, count in self._counts.items()
            if count >= recipe().least_often
            and topic.denies <= self._denied[said] <= topic.denies | topic.settles
        ]
        return f"{min(fit)[1]}." if fit else None

    def _forget(self) -> None:
        self._counts = Counter({said: n for said, n in self._counts.items() if n > 1})
        self._denied = {said: self._denied[said] for said in self._counts}


def _said(text: str, sentence: Sentence) -> str | None:
    """A normal sentence without its period; None if it is none, or is of one study only."""
    if sentence.category is not Category.CLINICAL or not sentence.normal or not sentence.findings:
        return None
    if any(f.polarity is not Polarity.NEGATIVE for f in sentence.findings):
        return None
    said = " ".join(sentence.span.of(text).split()).rstrip(" .")
    words = said.lower().replace(",", " ").split()
    if not discourse().not_merely_denying.isdisjoint(words):
        return None
    if len(words) > recipe().most_words or not recipe().without.isdisjoint(words):
        return None
    return None if _OF_ONE_STUDY.search(said) else said


@cache
def default_standard_normal() -> str:
    """What stands for a normal report where no corpus is at hand."""
    return NormalSentences().report()
