"""Leave out how a finding compares with a prior examination."""

import re
from collections.abc import Iterator
from functools import cache

from vlscore.findings import Attribute, Axis, Category, Finding, Sentence
from vlscore.perturb.chance import Chance
from vlscore.perturb.kind import Kind
from vlscore.perturb.perturbation import (
    Change,
    Edit,
    ErrorCategory,
    Expected,
    change_of,
)
from vlscore.perturb.removal import remove_sentences
from vlscore.perturb.source import Source
from vlscore.perturb.tables import comparisons, matching_form
from vlscore.perturb.wording import removed

_COPULA = re.compile(r"\b(is|are|was|were|remains?|appears?)\s+(?:\w+ly\s+)?$", re.IGNORECASE)
_SEEN = {"remains": "is", "remain": "are", "appears": "is", "appear": "are"}
_NEXT_WORD = re.compile(r"\s+([\w-]+)")
_COMMA = re.compile(r"\s*,?\s*(?:(?:which|and|that) (?:is|are|remains?) |and )?$")


class DropComparison(Kind):
    """The words that compare go, or the sentence that only compares; the finding stays."""

    name = "drop-comparison"
    description = "Leave out that a finding is stable, new, increased or decreased."
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.OMITTED_COMPARISON
    nothing = "the report does not compare with a prior examination in words that can go"

    def changes(self, source: Source, chance: Chance) -> Iterator[Change]:
        proposals: list[Change | None] = []
        for sentence in source.sentences:
            if _only_compares(source, sentence):
                edits = remove_sentences(source, [sentence.index])
                proposals.append(change_of(edits or (), "sentence:comparison"))
            proposals += [_without(source, f) for f in sentence.findings if f.is_present]
        yield from (change for change in chance.shuffled(proposals) if change)


def _only_compares(source: Source, sentence: Sentence) -> bool:
    if sentence.category is not Category.COMPARISON or not sentence.changes or sentence.findings:
        return False
    said, table = source.words_of(sentence), comparisons()
    opens = any(said.startswith(words) for words in table.only_openings)
    return opens and not any(words in said for words in table.only_without)


def _without(source: Source, finding: Finding) -> Change | None:
    """The change that drops every comparison of the finding, here and where it is restated."""
    if not any(not attribute.inherited for attribute in finding.on(Axis.CHANGE)):
        return None
    edits: set[Edit] = set()
    for mention in (finding, *source.restatements(finding)):
        for attribute in mention.on(Axis.CHANGE):
            if attribute.inherited:
                continue
            dropped = _dropped(source, mention, attribute)
            if dropped is None:
                return None
            edits.update(dropped)
    words = matching_form(finding.on(Axis.CHANGE)[0].span.of(source.text))
    return change_of(edits, f"dropped:{words} {finding.observation}")


def _dropped(source: Source, finding: Finding, attribute: Attribute) -> list[Edit] | None:
    text, table = source.text, comparisons()
    start, end = attribute.span
    words = matching_form(attribute.span.of(text))
    sentence = source.sentences[finding.sentence].span
    opens = start == sentence.start
    if words in table.shorter and not opens:
        shorter = table.shorter[words]
        return [Edit(start, end, shorter)] if shorter else removed(text, start, end)
    if words in table.leading:
        return removed(text, start, end, opens=True) if opens else None
    if words not in table.adjectives:
        return None
    copula = _COPULA.search(text, sentence.start, start)
    tail = _tail().match(text, end, sentence.end)
    if tail is not None:
        if copula is not None:
            verb = copula.group(1).lower()
            return [Edit(copula.start(1), tail.end(1), f"{_SEEN.get(verb, verb)} seen")]
        comma = _COMMA.search(text, max(sentence.start, start - 20), start)
        from_ = start if comma is None else comma.start()
        return [Edit(from_, tail.end(1), "")] if from_ > sentence.start else None
    following = _NEXT_WORD.match(text, end)
    if copula is not None or following is None or following.group(1).lower() in table.not_before:
        return None
    return removed(text, start, end, opens=opens) if finding.cue.start > start else None


@cache
def _tail() -> re.Pattern[str]:
    """What may stand between the comparing words and the end of their sentence."""
    return re.compile(rf"({comparisons().tails})\s*[.;]*\s*$", re.IGNORECASE)
