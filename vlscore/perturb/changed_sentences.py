"""Views of a changed report for the check of consistency.

`ChangedReport` has the touched sentences and the others. The functions below it find statements in
other sentences that would contradict a change, so that the change must not be made.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cached_property

from vlscore.findings import Attribute, Category, Finding, Polarity, Sentence
from vlscore.perturb.edits import Change, Edit, apply_edits
from vlscore.perturb.lexicons import discourse
from vlscore.perturb.parsed_report import ReadReport, heights, may_be_one, on_two_sides
from vlscore.perturb.plaintext import PlainSentence, Topic, bare, denial_of, sides_in, spared


class ChangedReport:
    """Report with one change, in the views that the rules of `effects` need.

    Attributes:
        perturbed: the text after the change.
        edits: of the change.
        follow_ups: edits that the rules add, of other sentences that must change too.
    """

    def __init__(self, report: ReadReport, change: Change) -> None:
        self.report, self.edits = report, change.edits
        self.perturbed = apply_edits(report.text, change.edits)
        self.follow_ups: list[Edit] = []

    @cached_property
    def sentences(self) -> list[PlainSentence]:
        return self.report.plain

    @cached_property
    def touched(self) -> list[PlainSentence]:
        """Return the sentences with an edit in them."""
        return [s for s in self.sentences if any(_is_in(edit, s) for edit in self.edits)]

    @cached_property
    def others(self) -> list[PlainSentence]:
        touched = {sentence.number for sentence in self.touched}
        return [s for s in self.sentences if s.number not in touched]

    @cached_property
    def after(self) -> list[str]:
        """Return the text of the touched sentences after the change."""
        return [apply_edits(s.text, self.edits_of(s)).lower() for s in self.touched]

    def edits_of(self, sentence: PlainSentence) -> list[Edit]:
        """Return the edits of one sentence, in characters of it, with what they do there."""
        return [part for edit in self.edits if (part := clipped(edit, sentence))]

    @cached_property
    def changed_words(self) -> str:
        """Return the words around the edits, after the change."""
        return " ".join([*self.after, *(edit.replacement.lower() for edit in self.edits)])

    @cached_property
    def place(self) -> str:
        """Return the words of the changed sentences, which name the place of the finding."""
        return " ".join(sentence.text for sentence in self.touched)

    def repetition(self) -> str | None:
        """Return a message if a changed sentence now duplicates another one, else None."""
        own = Counter(bare(sentence.text) for sentence in self.touched)
        for sentence, after in zip(self.touched, self.after, strict=True):
            said = bare(after)
            if not said or said == bare(sentence.text):
                continue
            if self.report.plain_counts[said] > own[said]:
                return f"the change would repeat a sentence of the report: {said!r}"
        return None

    def make_room(self, topic: Topic | None, place: int) -> Iterator[str]:
        """Edit general denials that contradict a finding at `place`; yield reasons if it fails."""
        for sentence in self.others:
            before = self.sentences[sentence.number - 1] if sentence.number else None
            denial = denial_of(sentence, before)
            if denial is None:
                continue
            # "The right lung is clear" does not describe the left one.
            is_of_organs = denial.systems and not denial.only_acute
            sides = sides_in(sentence.text) if is_of_organs else frozenset()
            if len(sides) == 1 and sides != sides_in(self.changed_words):
                continue
            covers = denial.covers(topic) if topic else not (denial.systems or denial.only_acute)
            beside = topic is not None and denial.wants_otherwise(topic)
            if not covers and not (beside and sentence.start >= place):
                continue
            edit = spared(self.report.text, sentence) if sentence.start >= place else None
            if edit is None and not covers:
                continue
            if edit is None:
                yield f"another sentence would contradict the change: {quoted(sentence)}"
                return
            self.add_follow_up(edit)

    def add_follow_up(self, edit: Edit) -> None:
        """Add a follow-up edit in another sentence; ignore duplicates and empty edits."""
        if edit not in self.follow_ups and (edit.replacement or edit.start < edit.end):
            self.follow_ups.append(edit)


def clipped(edit: Edit, sentence: PlainSentence) -> Edit | None:
    """Return the part of an edit within one sentence."""
    start, end = max(edit.start, sentence.start), min(edit.end, sentence.end)
    if start > end:
        return None
    replacement = edit.replacement if edit.start >= sentence.start else ""
    return Edit(start - sentence.start, end - sentence.start, replacement)


def _is_in(edit: Edit, sentence: PlainSentence) -> bool:
    if edit.start == edit.end:
        return sentence.start < edit.start < sentence.end or (
            edit.start == sentence.end and not edit.replacement.strip().endswith((".", "!", "?"))
        )
    return edit.start < sentence.end and sentence.start + sentence.lead < edit.end


def quoted(sentence: PlainSentence) -> str:
    """Return the beginning of a sentence, for a reason."""
    said = " ".join(sentence.text.split())
    return repr(said if len(said) <= 70 else said[:67] + "...")


def affirmed_elsewhere(source: ReadReport, finding: Finding, changed: Collection[int]) -> bool:
    """Return whether other sentences state the finding under another name, or its cause."""
    return any(other.polarity is not Polarity.NEGATIVE for other in _kin(source, finding, changed))


def denied_elsewhere(source: ReadReport, finding: Finding, changed: Collection[int]) -> bool:
    """Return whether other sentences deny the finding, or call its organ normal."""
    for other in source.findings:
        if other.polarity is not Polarity.NEGATIVE or other.sentence in changed:
            continue
        settled = discourse().settles.get(other.observation, frozenset())
        settles = other.normal and finding.observation in settled
        # `consistent` makes room in a sentence that denies what is acute in general.
        denial = denial_of(source.plain[other.sentence])
        if (settles or may_be_one(other, finding)) and (denial is None or not denial.only_acute):
            return True
    return False


def compared_elsewhere(source: ReadReport, finding: Finding, changed: Collection[int]) -> bool:
    """Return whether other sentences about the same region compare with a prior."""
    is_bone = finding.observation in discourse().bones
    return any(
        sentence.changes and not sentence.normal and is_bone in _is_of_bones(sentence)
        for sentence in source.sentences
        if sentence.index not in changed
    )


def names_side_elsewhere(source: ReadReport, side: str, changed: Collection[int]) -> bool:
    """Return whether other sentences about the same region name that side."""
    followers = {follower for index in changed for follower in source.followers(index)}
    speaking = (source.sentences[index] for index in followers.union(changed))
    regions = set().union(*map(_is_of_bones, speaking))
    return any(
        (
            re.search(rf"\b{side}", source.words_of(sentence)) is not None
            or any(finding.side == side for finding in sentence.findings)
        )
        and not regions.isdisjoint(_is_of_bones(sentence))
        for sentence in _others(source, changed)
    )


def names_zone_elsewhere(
    source: ReadReport, finding: Finding, zone: Attribute, changed: Collection[int]
) -> bool:
    """Return whether other sentences name that zone, or a related finding at its height."""
    words = zone.span.of(source.text).lower()
    if any(
        words in source.words_of(sentence)
        for sentence in _others(source, changed)
        if not sentence.findings
    ):
        return True
    near = {zone.value} | discourse().levels.get(zone.value, frozenset())
    return any(
        other.polarity is not Polarity.NEGATIVE and near & heights(other)
        for other in _kin(source, finding, changed)
    )


def are_kin(one: Finding, other: Finding) -> bool:
    """Return whether two mentions may be of the same finding or its cause, at the same place."""
    if may_be_one(one, other):
        return True
    related = discourse().kin.get(one.observation, frozenset())
    if other.observation not in related or on_two_sides(one, other):
        return False
    return not one.zones or not other.zones or not heights(one).isdisjoint(heights(other))


def _kin(source: ReadReport, finding: Finding, changed: Collection[int]) -> Iterator[Finding]:
    """Return mentions in other sentences that may mean the same finding at the same place."""
    for other in source.findings:
        if other.sentence not in changed and are_kin(other, finding):
            yield other


def _others(source: ReadReport, changed: Collection[int]) -> Iterator[Sentence]:
    """Yield the sentences besides, without those that merely deny."""
    for sentence in source.sentences:
        is_clinical = sentence.category is not Category.TECHNIQUE and not sentence.normal
        if is_clinical and sentence.index not in changed:
            yield sentence


def _is_of_bones(sentence: Sentence) -> set[bool]:
    """Return whether a sentence is about bones, other organs, or (without a finding) either."""
    kinds = {finding.observation in discourse().bones for finding in sentence.findings}
    return kinds or {True, False}
