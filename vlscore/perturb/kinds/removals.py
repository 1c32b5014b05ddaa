"""Kinds of perturbation that remove sentences: `RemovePathology` and `RemoveInsignificant`.

`remove_sentences` removes sentences so that the rest of the report shows no gap.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from vlscore.findings import Category, Polarity, Sentence, load_lexicon
from vlscore.perturb.edits import Chance, Change, Edit, Effect, ErrorCategory, Expected, Meaning
from vlscore.perturb.parsed_report import ParsedReport, topic_of
from vlscore.perturb.registry import Kind

_DIGITS = re.compile(r"\d{1,2}")


def remove_sentences(source: ParsedReport, indices: Collection[int]) -> tuple[Edit, ...] | None:
    """Return the edits that remove the sentences of these numbers, or None.

    The number of a list item is removed with the whole item, and later items are renumbered. None
    if a section or the report would have no sentence left, if half a sentence would be left, or if
    the next sentence refers to a removed one.
    """
    gone = sorted(set(indices))
    if not gone or len(gone) == len(source.sentences):
        return None
    opened = [k for k in range(len(source.sentences)) if k in source.section_openings]
    sections = (range(*bounds) for bounds in pairwise([*opened, len(source.sentences)]))
    if any(map(source.is_joined, gone)) or any(set(gone).issuperset(each) for each in sections):
        return None
    after = {index + 1 for index in gone}.difference(gone, [len(source.sentences)])
    if any(source.continues_previous(index) or source.refers_to_previous[index] for index in after):
        return None
    edits = [_removal(source, first, last) for first, last in _runs(source, gone)]
    edits += _renumbering(source, edits)
    return tuple(sorted(edits))


def _runs(source: ParsedReport, gone: Sequence[int]) -> list[tuple[int, int]]:
    """Return first and last of each run of adjacent sentences within one section."""
    runs = [[gone[0], gone[0]]]
    for before, index in pairwise(gone):
        if index == before + 1 and index not in source.section_openings:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return [(first, last) for first, last in runs]


def _removal(source: ParsedReport, first: int, last: int) -> Edit:
    start, end = source.sentences[first].span.start, source.sentences[last].span.end
    following = last + 1
    goes_on = following < len(source.sentences) and following not in source.section_openings
    if goes_on and not source.opens_paragraph(following):
        return Edit(start, source.sentences[following].span.start, "")
    if first in source.section_openings and goes_on:
        number = source.number_start(following)
        there = source.sentences[following].span.start if number is None else number
        here = source.number_start(first)
        return Edit(start if here is None else here, there, "")
    return Edit(source.end_of_previous(first), end, "")


def _renumbering(source: ParsedReport, edits: Sequence[Edit]) -> list[Edit]:
    """Return edits that renumber the list items after the removed ones."""
    found: list[Edit] = []
    lost = 0
    for index in range(len(source.sentences)):
        place = source.number_start(index)
        if place is None:
            lost = 0 if index in source.section_openings else lost
            continue
        digits = _DIGITS.search(source.text, place, source.sentences[index].span.start)
        if digits is None:
            continue
        number = int(digits.group())
        if number == 1:
            lost = 0
        if any(edit.start <= digits.start() and digits.end() <= edit.end for edit in edits):
            lost += 1
        elif lost and number > lost:
            found.append(Edit(*digits.span(), str(number - lost)))
    return found


# If a report repeats a finding often, removing one sentence does not remove the finding.
_MOST_SENTENCES = 3


class RemovePathology(Kind):
    """Kind that removes a positive finding, with all sentences that restate or refer to it."""

    name = "remove-pathology"
    description = "Remove the sentence that states a positive finding."
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.OMITTED_FINDING
    origin = "VLScore paper, section 4.2, kind 1 (238 of 979)"
    nothing = "no sentence states a positive finding that can be removed"

    def changes(self, source: ParsedReport, chance: Chance) -> Iterator[Change]:
        if source.has_labels:
            return
        tried = set()
        for sentence in chance.shuffled(source.sentences):
            pathologies = source.pathologies(sentence)
            topics = frozenset(map(topic_of, pathologies))
            if not pathologies or topics in tried:
                continue
            tried.add(topics)
            # The sentences that state the findings, refer to them, or give recommendations.
            stating = set[int]().union(*map(source.sentences_stating, pathologies))
            gone = stating.union(*map(source.followers, stating))
            gone |= {index + 1 for index in gone if _recommends(source, index + 1)}
            edits = remove_sentences(source, gone) if len(gone) <= _MOST_SENTENCES else None
            if edits is not None:
                found = [f for index in sorted(gone) for f in source.sentences[index].findings]
                affirmed = (f for f in found if f.polarity is not Polarity.NEGATIVE)
                names = tuple(dict.fromkeys(finding.observation for finding in affirmed))
                yield Change(edits, f"sentence:{'+'.join(names)}", Meaning(Effect.LEFT_OUT, names))


def _recommends(source: ParsedReport, index: int) -> bool:
    if index == len(source.sentences) or source.opens_paragraph(index):
        return False
    return source.sentences[index].category is Category.RECOMMENDATION


_WITHOUT_FINDINGS = {
    Category.TECHNIQUE,
    Category.COMMUNICATION,
    Category.HISTORY,
    Category.RECOMMENDATION,
}
# Their headings must not be left above other sentences.
_HEADED = {Category.TECHNIQUE, Category.HISTORY, Category.COMPARISON}


class RemoveInsignificant(Kind):
    """Kind that removes a sentence without a finding, on which no other sentence depends."""

    name = "remove-insignificant"
    description = "Remove a sentence on technique, communication, history or recommendations."
    expected = Expected.INSIGNIFICANT
    origin = "VLScore paper, section 4.2, kind 2 (119 of 979)"
    nothing = "no sentence is only about technique, communication, history or recommendations"

    def changes(self, source: ParsedReport, chance: Chance) -> Iterator[Change]:
        for sentence in chance.shuffled(source.sentences):
            index, category = sentence.index, sentence.category
            is_headed = category in _HEADED and ":" in source.texts_before[index]
            is_meant = category in _WITHOUT_FINDINGS or source.contains(
                index, "administrative", "no_prior"
            )
            is_silent = is_meant and source.says_nothing_clinical(sentence)
            if not is_silent or is_headed or source.followers(index) or _asks(source, sentence):
                continue
            edits = remove_sentences(source, [sentence.index])
            if edits is not None:
                yield Change(edits, f"sentence:{category}")


def _asks(source: ParsedReport, sentence: Sentence) -> bool:
    """Return whether a sentence asks for an examination, or for what a serious finding needs."""
    if source.contains(sentence.index, "examinations"):
        return True
    if sentence.category is not Category.RECOMMENDATION:
        return False
    # What is recommended answers to the sentence itself, or to those right before it.
    near = source.sentences[max(0, sentence.index - 2) : sentence.index + 1]
    stated = (f for each in near for f in each.findings if f.polarity is not Polarity.NEGATIVE)
    known = load_lexicon().observations
    return any(known[finding.observation].serious for finding in stated)
