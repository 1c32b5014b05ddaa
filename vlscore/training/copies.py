"""Changed copies of reports, for an objective that compares a report with its copies.

A copy has changes of known significance: perturbations of `vlscore.perturb`, and sentences of other
reports that the extractor reads as the same, or as different in one respect. Changes are found once
and held as edits; new texts are made from them in every step.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from vlscore.core import check_word
from vlscore.findings import Span
from vlscore.perturb import (
    KINDS,
    Edit,
    ErrorCategory,
    Expected,
    ParsedReport,
    alike,
    apply_edits,
    perturbations_of,
    remove_sentences,
)
from vlscore.training.equal_sentences import (
    SentenceFacts,
    SentencePlace,
    SentenceTable,
    differences,
    is_device,
    states_one_finding,
)

# Changes that can be left out of training, to test whether an encoder notices them all the same.
OMISSION, FALSE, LOCATION, SEVERITY, COMPARISON = SIGNIFICANT = (
    "omission", "false-finding", "location", "severity", "comparison",
)  # fmt: skip
INSIGNIFICANT = "insignificant"
_CATEGORIES = {
    ErrorCategory.OMITTED_FINDING: OMISSION,
    ErrorCategory.FALSE_FINDING: FALSE,
    ErrorCategory.WRONG_LOCATION: LOCATION,
    ErrorCategory.WRONG_SEVERITY: SEVERITY,
    ErrorCategory.FALSE_COMPARISON: COMPARISON,
    ErrorCategory.OMITTED_COMPARISON: COMPARISON,
}
_OF_ATTRIBUTES = (LOCATION, SEVERITY, COMPARISON)
# Left out, because replacing the whole by a normal report is a change of unknown size.
_LEFT_OUT = ("standard-normal",)
_PER_REPORT = 3
_TRIES = 8
# Share of a copy's unchanged sentences that are reworded, and the share of such copies.
_EXCHANGED, _IN_OTHER_WORDS = 0.5, 0.3
_MOST_CHANGES = 4
# Share of insignificant copies that are reworded by sentences of the corpus.
_REWORDED = 0.7


class Copy(NamedTuple):
    """Changed copy of a report.

    Attributes:
        text: text of the copy.
        changes: number of significant changes; -1 if the report allows no such copy.
        visible: whether one image can show the change; one image cannot show a comparison with
            earlier images.
    """

    text: str
    changes: int
    visible: bool


class Rewrite(NamedTuple):
    """Edits of a report that together make one change.

    Attributes:
        edits: edits for `vlscore.perturb.apply_edits`.
        touched: numbers of the sentences that they change.
        categories: of SIGNIFICANT; empty where the change is insignificant.
    """

    edits: tuple[Edit, ...]
    touched: frozenset[int]
    categories: tuple[str, ...] = ()


@dataclass(frozen=True)
class _ReportSource:
    """Report with the places of its sentences, its rewrites, and the findings it mentions."""

    text: str
    places: Sequence[SentencePlace]
    rewrites: Mapping[str, Sequence[Rewrite]]
    mentioned: frozenset[str]


class ReportCopies:
    """Copies of the reports of a corpus; `find_copies` makes it.

    Args:
        sources: what each report allows.
        table: every sentence of the corpus, by its content.
        without: a member of SIGNIFICANT that no copy has; "" for none.
    """

    # One change; one or several changes; none that is significant.
    COUNT = 3

    def __init__(
        self, sources: Sequence[_ReportSource], table: SentenceTable, without: str
    ) -> None:
        self._sources, self._table = sources, table
        self._categories = [each for each in SIGNIFICANT if each != without]
        self._singles = [
            number for number, content in enumerate(table.contents) if states_one_finding(content)
        ]
        self._alike: dict[Any, list[int]] = defaultdict(list)
        for number, content in enumerate(table.contents):
            if len(content[0]) == 1 and not content[1]:
                self._alike[_topic(content)].append(number)

    def words(self) -> list[str]:
        """Return texts with every word that copies may contain and reports may lack."""
        return [
            edit.replacement
            for source in self._sources
            for rewrites in source.rewrites.values()
            for rewrite in rewrites
            for edit in rewrite.edits
            if edit.replacement
        ]

    def draw(self, row: int, chance: np.random.Generator) -> list[Copy]:
        """Draw `COUNT` copies of one report.

        Args: row: number of the report in the corpus.
        """
        source = self._sources[row]
        several = int(chance.integers(1, _MOST_CHANGES + 1))
        text = source.text
        if chance.random() < _REWORDED:
            text = self._text(source, [], float(chance.uniform(0.3, 1.0)), chance)
        changed = [self._changed(source, count, chance) for count in (1, several)]
        if text == source.text:
            return [*changed, self._insignificant(source, chance)]
        return [*changed, Copy(text, 0, False)]

    def _changed(self, source: _ReportSource, count: int, chance: np.random.Generator) -> Copy:
        chosen: list[Rewrite] = []
        left = count
        for _ in range(_TRIES + count):
            found = self._one(source, chance)
            if found is None or len(found.categories) > left:
                continue
            if all(_go_together(found, other) for other in chosen):
                chosen.append(found)
                left -= len(found.categories)
            if not left:
                break
        if not chosen:
            return Copy(source.text, -1, False)
        visible = any(name != COMPARISON for each in chosen for name in each.categories)
        share = _EXCHANGED if chance.random() < _IN_OTHER_WORDS else 0.0
        text = self._text(source, chosen, share, chance)
        return Copy(text, count - left, visible)

    def _one(self, source: _ReportSource, chance: np.random.Generator) -> Rewrite | None:
        """Return a significant change; all categories have the same probability."""
        category = _pick(self._categories, chance)
        from_corpus = chance.random() < 0.5
        if from_corpus and category in _OF_ATTRIBUTES:
            return self._differing(source, category, chance)
        if from_corpus and category == FALSE:
            return self._borrowed(source, chance)
        known = source.rewrites.get(category)
        return _pick(known, chance) if known else None

    def _differing(
        self, source: _ReportSource, category: str, chance: np.random.Generator
    ) -> Rewrite | None:
        """Return a change to a corpus sentence that differs in one respect or two."""
        usable = [
            (row, place)
            for row, place in enumerate(source.places)
            if place.content >= 0 and states_one_finding(self._table.contents[place.content], True)
        ]
        if not usable:
            return None
        row, place = _pick(usable, chance)
        content = self._table.contents[place.content]
        for _ in range(_TRIES):
            number = _pick(self._alike[_topic(content)], chance)
            found = differences(content, self._table.contents[number])
            if category in found and len(found) < 3 and set(found) <= set(self._categories):
                text = _pick(self._table.texts[number], chance)
                return Rewrite(
                    (Edit(place.span.start, place.span.end, text),), frozenset([row]), found
                )
        return None

    def _borrowed(self, source: _ReportSource, chance: np.random.Generator) -> Rewrite | None:
        """Return a corpus sentence with a finding that the report does not mention."""
        if not self._singles or not source.places:
            return None
        for _ in range(_TRIES):
            number = _pick(self._singles, chance)
            observation = self._table.contents[number][0][0][0]
            if observation not in source.mentioned:
                text = _pick(self._table.texts[number], chance)
                place = _pick(source.places, chance).span.end
                return Rewrite((Edit(place, place, f" {text}"),), frozenset(), (FALSE,))
        return None

    def _insignificant(self, source: _ReportSource, chance: np.random.Generator) -> Copy:
        known = source.rewrites.get(INSIGNIFICANT)
        if not known:
            return Copy(source.text, -1, False)
        return Copy(apply_edits(source.text, _pick(known, chance).edits), 0, False)

    def _text(
        self,
        source: _ReportSource,
        chosen: Sequence[Rewrite],
        share: float,
        chance: np.random.Generator,
    ) -> str:
        """Return the report with these changes, and a share of its other sentences reworded."""
        edits = [edit for rewrite in chosen for edit in rewrite.edits]
        touched = frozenset[int]().union(*(rewrite.touched for rewrite in chosen))
        for row, place in enumerate(source.places):
            if row in touched or place.content < 0 or chance.random() >= share:
                continue
            edit = Edit(
                place.span.start, place.span.end, _pick(self._table.texts[place.content], chance)
            )
            if not any(_overlap(edit, other) for other in edits):
                edits.append(edit)
        return apply_edits(source.text, sorted(edits))


def find_copies(reports: Sequence[str], *, without: str = "") -> ReportCopies:
    """Find every change that the reports of a corpus allow, in some 5 ms a report.

    Args: without: a member of SIGNIFICANT to leave out, "" for none.

    Raises: InvalidSetting for an unknown `without`.
    """
    if without:
        check_word("without", without, SIGNIFICANT)
    table = SentenceTable()
    kinds = [kind for kind in KINDS.values() if kind.name not in _LEFT_OUT]
    families = alike().same
    known: dict[str, _ReportSource] = {}
    for text in reports:
        if text in known:
            continue
        report = ParsedReport.read(text)
        rewrites: dict[str, list[Rewrite]] = defaultdict(list)
        for rewrite in _rewrites(report, kinds):
            rewrites[rewrite.categories[0] if rewrite.categories else INSIGNIFICANT].append(rewrite)
        mentioned = {finding.observation for finding in report.findings}
        mentioned = mentioned.union(*(families.get(each, ()) for each in mentioned))
        known[text] = _ReportSource(text, table.add(report), rewrites, frozenset(mentioned))
    return ReportCopies([known[text] for text in reports], table, without)


def _rewrites(report: ParsedReport, kinds: Sequence[Any]) -> Iterable[Rewrite]:
    spans = [sentence.span for sentence in report.sentences]
    for kind in kinds:
        is_significant = kind.expected is Expected.SIGNIFICANT
        if is_significant and kind.category not in _CATEGORIES:
            continue
        categories = (_CATEGORIES[kind.category],) if is_significant else ()
        for found in perturbations_of(report, kind, 0, _PER_REPORT, report.text):
            yield Rewrite(found.edits, _touched(found.edits, spans), categories)
    for sentence in report.sentences:
        # `remove-pathology` does not remove devices.
        if sentence.findings and all(map(is_device, sentence.findings)):
            edits = remove_sentences(report, [sentence.index])
            if edits:
                yield Rewrite(edits, frozenset([sentence.index]), (OMISSION,))


def _touched(edits: Sequence[Edit], spans: Sequence[Span]) -> frozenset[int]:
    """Return the sentences that edits change; an insertion after a sentence changes none."""
    return frozenset(
        row
        for row, (start, end) in enumerate(spans)
        for edit in edits
        # An insertion has length 0, and counts as part of the character after it.
        if edit.start < end and max(edit.end, edit.start + 1) > start
    )


def _go_together(one: Rewrite, other: Rewrite) -> bool:
    """Return whether two changes can be combined in one copy and still count as two."""
    if any(_overlap(a, b) for a in one.edits for b in other.edits):
        return False
    if one.categories == other.categories == (FALSE,):
        # They were found independently, so both may state the same finding.
        return False
    if one.touched.isdisjoint(other.touched):
        return True
    of_attributes = {*one.categories, *other.categories} <= set(_OF_ATTRIBUTES)
    return of_attributes and set(one.categories).isdisjoint(other.categories)


def _overlap(one: Edit, other: Edit) -> bool:
    if one.start == other.start:
        return True
    return one.start < other.end and other.start < one.end


def _topic(content: SentenceFacts) -> tuple[str, ...]:
    """Return the values that two sentences about the same finding share."""
    observation, polarity, status, *_, device = content[0][0]
    return observation, polarity, status, str(device)


def _pick(options: Sequence[Any], chance: np.random.Generator) -> Any:
    return options[int(chance.integers(len(options)))]
