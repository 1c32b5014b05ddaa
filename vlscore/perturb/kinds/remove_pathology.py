"""Remove the sentence that states a pathology."""

import re
from collections.abc import Iterator

from vlscore.findings import Category, Finding, Polarity
from vlscore.perturb.chance import Chance
from vlscore.perturb.coherence import told_elsewhere
from vlscore.perturb.kind import Kind
from vlscore.perturb.perturbation import Change, Edit, Effect, ErrorCategory, Expected, Meaning
from vlscore.perturb.reading import ReadReport, topic_of
from vlscore.perturb.removal import remove_sentences

# A report that says it again and again has no sentence whose loss leaves the finding out.
_MOST_SENTENCES = 3
_OTHERWISE = re.compile(
    r"^otherwise,?\s+(?=\w)|(?<=\bis )otherwise |(?<=\bare )otherwise |(?<=\bappear )otherwise ",
    re.IGNORECASE,
)


class RemovePathology(Kind):
    """Where other sentences state the same finding again, or refer back to it, they go with it."""

    name = "remove-pathology"
    description = "Remove the sentence that states a positive finding."
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.OMITTED_FINDING
    origin = "VLScore paper, section 4.2, kind 1 (238 of 979)"
    nothing = "no sentence states a positive finding that can be left out"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        if source.has_labels:
            return
        tried = set()
        for sentence in chance.shuffled(source.sentences):
            pathologies = source.pathologies(sentence)
            topics = frozenset(map(topic_of, pathologies))
            if not pathologies or topics in tried:
                continue
            tried.add(topics)
            gone = _all_that_tell(source, pathologies)
            if len(gone) > _MOST_SENTENCES or _is_missed(source, gone):
                continue
            edits = remove_sentences(source, gone)
            if edits is not None:
                sole = [edit for index in gone for edit in _sole(source, index + 1, gone)]
                names = tuple(dict.fromkeys(f.observation for f in _told(source, gone)))
                meaning = Meaning(Effect.LEFT_OUT, names)
                yield Change(tuple(sorted([*edits, *sole])), f"sentence:{'+'.join(names)}", meaning)


def _all_that_tell(source: ReadReport, findings: list[Finding]) -> set[int]:
    """The sentences that state the findings, speak of them, or recommend what to do about them."""
    stating = set[int]().union(*(source.sentences_stating(finding) for finding in findings))
    gone = stating.union(*(source.followers(index) for index in stating))
    return gone | {index + 1 for index in gone if _recommends(source, index + 1)}


def _is_missed(source: ReadReport, gone: set[int]) -> bool:
    """Whether what stays speaks of what goes: by another name, or as of something said before."""
    if any(told_elsewhere(source, f, gone) for f in _told(source, gone) if f.is_present):
        return True
    stays = [sentence for sentence in source.sentences if sentence.index not in gone]
    if any(sentence.category is Category.COMMUNICATION for sentence in stays):
        return True
    is_normal = not any(map(source.pathologies, stays))
    if is_normal and any(sentence.category is Category.RECOMMENDATION for sentence in stays):
        return True
    return any(
        index + 1 not in gone and source.leans(index + 1) and not _sole(source, index + 1, gone)
        for index in gone
    )


def _sole(source: ReadReport, index: int, gone: set[int]) -> list[Edit]:
    """Takes "otherwise" from the sentence that follows what went: there is nothing else now."""
    if index in gone or index == len(source.sentences) or source.opens_section(index):
        return []
    start, end = source.sentences[index].span
    word = _OTHERWISE.search(source.text[start:end])
    if word is None:
        return []
    first = source.text[start + word.end()]
    if word.start() > 0 or not word.group()[0].isupper():
        return [Edit(start + word.start(), start + word.end(), "")]
    return [Edit(start, start + word.end() + 1, first.upper())]


def _told(source: ReadReport, gone: set[int]) -> list[Finding]:
    told = [finding for index in sorted(gone) for finding in source.sentences[index].findings]
    return [finding for finding in told if finding.polarity is not Polarity.NEGATIVE]


def _recommends(source: ReadReport, index: int) -> bool:
    if index == len(source.sentences) or source.opens_paragraph(index):
        return False
    return source.sentences[index].category is Category.RECOMMENDATION
