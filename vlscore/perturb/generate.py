"""Perturbations of one report (`perturb_report`), and the standard normal report of a corpus.

The standard normal report is made from the most frequent normal sentences of a corpus. Source:
Dawidowicz, Hirsch, Tal, "VLScore", NeurIPS 2024, section 4.2 and Figure 2; the recipe is
`perturbations/standard_normal.toml`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from vlscore.core import entries_of, entry_of, read_table, resource_path
from vlscore.findings import Category, Polarity, Sentence, extract
from vlscore.perturb.consistency import consistent
from vlscore.perturb.edits import Chance, Perturbation, PerturbationSettings, apply_edits
from vlscore.perturb.lexicons import phrases_in
from vlscore.perturb.parsed_report import ReadReport
from vlscore.perturb.registry import AnyKind, Kind, NeedsStandardNormal, kinds_named

_OF_ONE_STUDY = re.compile(r"[\d:;]")
# Most distinct sentences in memory; beyond this, those that occurred once are removed.
_REMEMBERED = 200_000


class NormalTopic(NamedTuple):
    """Topic of a normal report."""

    name: str
    denies: frozenset[str]
    settles: frozenset[str]
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
            and topic.denies <= denied[words] <= topic.denies | topic.settles
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


# After so many refusals on end a kind gives a report up, so that time stays linear in its length.
# Of 2,708 real reports none has more than 42.
_MOST_REFUSALS = 200


def perturb_report(
    report: str,
    kinds: Iterable[AnyKind] | AnyKind | None = None,
    seed: int = 0,
    *,
    per_report: int = 1,
    study_id: str = "",
    standard_normal: str | None = None,
) -> Iterator[Perturbation]:
    """Yield changed copies of a report, each with one targeted change.

    Args:
        report: free text; what it allows decides what is generated, which may be nothing.
        kinds, seed, per_report: see `PerturbationSettings`.
        study_id: goes into the records.
        standard_normal: text that stands for a normal report; default: the recipe's own.

    Raises: UnknownName for an unknown kind; InvalidSetting for an object that is none, or where
        `per_report` is below 1; InvalidReport where the report is no text.

    >>> report = "Small left pleural effusion. Heart size is normal."
    >>> for p in perturb_report(report, ["change-location"]):
    ...     print(p.perturbed, "|", p.rule)
    Small right pleural effusion. Heart size is normal. | side:left->right pleural_effusion
    """
    settings = PerturbationSettings(kinds=kinds, seed=seed, per_report=per_report)
    chosen = kinds_named(settings.kinds)
    source = ReadReport.read(report, standard_normal or default_standard_normal())
    for kind in chosen:
        yield from perturbations_of(source, kind, seed, per_report, study_id)


def perturbations_of(
    source: ReadReport,
    kind: Kind,
    seed: int,
    per_report: int,
    study_id: str,
    refused: list[str] | None = None,
) -> Iterator[Perturbation]:
    """Return at most `per_report` different changes of one kind, each checked against the report.

    Args:
        refused: list to which the reasons of refused changes are added.
    """
    chance = Chance(seed, study_id, kind.name)
    found = _distinct(source, kind, chance, study_id, [] if refused is None else refused)
    return islice(found, per_report)


def _distinct(
    source: ReadReport, kind: Kind, chance: Chance, study_id: str, refused: list[str]
) -> Iterator[Perturbation]:
    if source.is_foreign:
        return
    seen = {source.squeezed}
    on_end = 0
    for proposed in kind.changes(source, chance):
        change, reason = consistent(source, proposed)
        if change is None:
            refused.append(reason)
            on_end += 1
            if on_end == _MOST_REFUSALS:
                return
            continue
        on_end = 0
        edits = change.edits
        if source.is_upper_case:
            edits = tuple(e._replace(replacement=e.replacement.upper()) for e in edits)
        perturbed = apply_edits(source.text, edits)
        key = " ".join(perturbed.split())
        if key in seen or not key:
            continue
        seen.add(key)
        yield Perturbation(
            study_id=study_id,
            kind=kind.name,
            expected=kind.expected,
            category=kind.category,
            original=source.text,
            perturbed=perturbed,
            edits=edits,
            rule=change.rule,
        )


def why_nothing(source: ReadReport, kind: Kind, refused: Sequence[str] = ()) -> str:
    """Return a message why a kind found nothing to change, or why its changes were refused.

    Args:
        refused: reasons that `perturbations_of` has added.
    """
    if refused:
        return refused[0]
    if not source.sentences:
        return "the report has no sentence"
    if source.is_foreign:
        return "the report is not in English"
    if isinstance(kind, NeedsStandardNormal) and source.standard_normal is None:
        return "there is no standard normal report"
    return kind.nothing
