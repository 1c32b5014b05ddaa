"""What stands elsewhere in a report and would belie a change, so that it had better not be made."""

import re
from collections.abc import Collection, Iterator

from vlscore.findings import Attribute, Category, Finding, Polarity, Sentence
from vlscore.perturb.denial import denial_of
from vlscore.perturb.lexicons import discourse
from vlscore.perturb.reading import ReadReport, heights, may_be_one, on_two_sides


def told_elsewhere(source: ReadReport, finding: Finding, changed: Collection[int]) -> bool:
    """Whether other sentences state or doubt it under another name, or its cause."""
    return any(other.polarity is not Polarity.NEGATIVE for other in _kin(source, finding, changed))


def denied_elsewhere(source: ReadReport, finding: Finding, changed: Collection[int]) -> bool:
    """Whether other sentences deny it, or call normal what it would be seen in."""
    denied = (
        other
        for other in source.findings
        if other.polarity is Polarity.NEGATIVE
        and other.sentence not in changed
        and not _denies_what_is_acute(source, other.sentence)
    )
    return any(may_be_one(other, finding) or _settles(other, finding) for other in denied)


def compared_elsewhere(source: ReadReport, finding: Finding, changed: Collection[int]) -> bool:
    """Whether other sentences compare with a prior, be it bones if it is one, else the chest."""
    is_bone = finding.observation in discourse().bones
    return any(
        sentence.changes and not sentence.normal and is_bone in _tells_of_bones(sentence)
        for sentence in source.sentences
        if sentence.index not in changed
    )


def names_side_elsewhere(source: ReadReport, side: str, changed: Collection[int]) -> bool:
    """Whether other sentences speak of that side: of bones where these do, else of the chest."""
    followers = {follower for index in changed for follower in source.followers(index)}
    speaking = (source.sentences[index] for index in followers.union(changed))
    told = set().union(*map(_tells_of_bones, speaking))
    return any(
        _speaks_of(source, sentence, side) and not told.isdisjoint(_tells_of_bones(sentence))
        for sentence in _others(source, changed)
    )


def names_zone_elsewhere(
    source: ReadReport, finding: Finding, zone: Attribute, changed: Collection[int]
) -> bool:
    """Whether other sentences speak of that zone in its words, or of its kin at that height."""
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
    """Whether two mentions may be of the same thing or of its cause, at no two places."""
    if may_be_one(one, other):
        return True
    related = discourse().kin.get(one.observation, frozenset())
    if other.observation not in related or on_two_sides(one, other):
        return False
    return not one.zones or not other.zones or not heights(one).isdisjoint(heights(other))


def _denies_what_is_acute(source: ReadReport, index: int) -> bool:
    """Whether a sentence denies what is acute in general: `consistency` makes room in it."""
    denial = denial_of(source.plain[index])
    return denial is not None and denial.only_acute


def _settles(normal: Finding, finding: Finding) -> bool:
    settled = discourse().settles.get(normal.observation, frozenset())
    return normal.normal and finding.observation in settled


def _kin(source: ReadReport, finding: Finding, changed: Collection[int]) -> Iterator[Finding]:
    """Mentions in other sentences that may speak of the same thing, at no other place."""
    for other in source.findings:
        if other.sentence not in changed and are_kin(other, finding):
            yield other


def _others(source: ReadReport, changed: Collection[int]) -> Iterator[Sentence]:
    """The sentences besides, without those that merely deny."""
    for sentence in source.sentences:
        is_told = sentence.category is not Category.TECHNIQUE and not sentence.normal
        if is_told and sentence.index not in changed:
            yield sentence


def _speaks_of(source: ReadReport, sentence: Sentence, side: str) -> bool:
    named = re.search(rf"\b{side}", source.words_of(sentence)) is not None
    return named or any(finding.side == side for finding in sentence.findings)


def _tells_of_bones(sentence: Sentence) -> set[bool]:
    """Whether of bones, of anything else, or, where no finding says, of either."""
    kinds = {finding.observation in discourse().bones for finding in sentence.findings}
    return kinds or {True, False}
