"""The standard normal report of a corpus: its most frequent normal sentences.

Source: Dawidowicz, Hirsch, Tal, "VLScore", NeurIPS 2024, section 4.2 and Figure 2; the recipe is
`perturbations/standard_normal.toml`.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from vlscore.core import entries_of, entry_of, read_table, resource_path
from vlscore.findings import Category, Polarity, Sentence, extract
from vlscore.perturb.lexicons import phrases_in

_OF_ONE_STUDY = re.compile(r"[\d:;]")
# Most distinct sentences in memory; beyond this, those that occurred once are removed.
_REMEMBERED = 200_000


class NormalTopic(NamedTuple):
    """Topic of a normal report."""

    name: str
    denies: frozenset[str]
    may_deny: frozenset[str]
    default: str


class Recipe(NamedTuple):
    """Recipe of the standard normal report."""

    topics: tuple[NormalTopic, ...]
    least_often: int
    most_words: int
    without: frozenset[str]


@cache
def recipe() -> Recipe:
    """Return the recipe in `perturbations/standard_normal.toml`."""
    file = "standard_normal.toml"
    table = read_table(resource_path("perturbations", file))
    topics = tuple(entries_of(NormalTopic, table.pop("topic"), file))
    return entry_of(Recipe, table, file, topics=topics)


def standard_normal_of(reports: Iterable[str]) -> str:
    """Return the standard normal report of a corpus: its most common sentence on each topic.

    A topic without such a sentence has the default of `perturbations/standard_normal.toml`.

    >>> standard_normal_of([]).split(". ")[0]
    'The heart is normal in size'
    """
    counts: Counter[str] = Counter()
    denied: dict[str, frozenset[str]] = {}
    for report in reports:
        findings = extract(report)
        for sentence in findings.sentences:
            words = _normal_sentence(findings.text, sentence)
            if words is not None:
                counts[words] += 1
                denied[words] = frozenset(f.observation for f in sentence.findings)
        if len(counts) > _REMEMBERED:
            counts = Counter({words: n for words, n in counts.items() if n > 1})
            denied = {words: denied[words] for words in counts}
    found = []
    for topic in recipe().topics:
        fit = [
            (-count, words)
            for words, count in counts.items()
            if count >= recipe().least_often
            and topic.denies <= denied[words] <= topic.denies | topic.may_deny
        ]
        found.append(f"{min(fit)[1]}." if fit else topic.default)
    return " ".join(found)


def _normal_sentence(text: str, sentence: Sentence) -> str | None:
    """Return a normal sentence without its period; None if it is none, or is of one study only."""
    if sentence.category is not Category.CLINICAL or not sentence.normal or not sentence.findings:
        return None
    if any(f.polarity is not Polarity.NEGATIVE for f in sentence.findings):
        return None
    words = " ".join(sentence.span.of(text).split()).rstrip(" .")
    each = words.lower().replace(",", " ").split()
    if len(each) > recipe().most_words or not recipe().without.isdisjoint(each):
        return None
    return None if "hedges" in phrases_in(words) or _OF_ONE_STUDY.search(words) else words


@cache
def default_standard_normal() -> str:
    """Return the sentences that replace a normal report where there is no corpus."""
    return standard_normal_of([])
