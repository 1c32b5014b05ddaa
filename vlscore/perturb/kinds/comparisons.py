"""Kinds of perturbation that remove or add a comparison of a finding with a prior examination."""

import re
from collections.abc import Collection, Iterator
from functools import cache

from vlscore.findings import Attribute, Axis, Category, Finding, Sentence, Span
from vlscore.perturb.changed_sentences import are_kin, compared_elsewhere, denied_elsewhere
from vlscore.perturb.edits import (
    Chance,
    Change,
    Edit,
    Effect,
    ErrorCategory,
    Expected,
    Meaning,
    change_of,
    removed,
)
from vlscore.perturb.kinds.removals import remove_sentences
from vlscore.perturb.lexicons import comparisons, denials, matching_form
from vlscore.perturb.parsed_report import ReadReport, topic_of
from vlscore.perturb.registry import Kind

_COPULA = re.compile(r"\s+(is|are|was|were|remains?|appears?)\s+(?:\w+ly\s+)?$", re.IGNORECASE)
_SEEN = {"remains": "is", "remain": "are", "appears": "is", "appear": "are"}
_THE = re.compile(r"\s*(?:the|this|these|that|those)\b", re.IGNORECASE)
_NEXT_WORD = re.compile(r"\s+([\w-]+)")
_RELATIVE = re.compile(r"\b(?:which|that)$", re.IGNORECASE)
_PRIOR = re.compile(r"\b(?:previous(?:ly)?|prior|interval|again|redemonstrat\w*)\b", re.IGNORECASE)
_COMMA = re.compile(r"\s*,?\s*(?:(?:which|and|that) (?:is|are|remains?) |and |but )?$")


class DropComparison(Kind):
    """Kind that removes the comparing words, or a sentence that only compares; findings remain."""

    name = "drop-comparison"
    description = "Leave out that a finding is stable, new, increased or decreased."
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.OMITTED_COMPARISON
    nothing = "the report has no comparison with a prior examination that can be removed"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        comparing: list[Sentence | Finding] = [
            sentence for sentence in source.sentences if _only_compares(source, sentence)
        ]
        compared = [f for f in source.findings if f.is_present and _own_changes(f)]
        comparing += {topic_of(finding): finding for finding in compared}.values()
        for chosen in chance.shuffled(comparing):
            if isinstance(chosen, Sentence):
                if any(s.changes for s in source.sentences if s is not chosen):
                    continue
                edits = remove_sentences(source, [chosen.index])
                change = change_of(edits or (), "sentence:comparison", Meaning(Effect.NOT_COMPARED))
            else:
                change = _without(source, chosen)
            if change is not None:
                yield change


def _only_compares(source: ReadReport, sentence: Sentence) -> bool:
    if sentence.category is not Category.COMPARISON or not sentence.changes or sentence.findings:
        return False
    said, table = source.words_of(sentence), comparisons()
    opens = any(said.startswith(words) for words in table.only_openings)
    return opens and not any(words in said for words in table.only_without)


def _own_changes(finding: Finding) -> list[Attribute]:
    return [change for change in finding.on(Axis.CHANGE) if not change.inherited]


def _without(source: ReadReport, finding: Finding) -> Change | None:
    """Return the change that removes every comparison of the finding, also where it is restated."""
    mentions = (finding, *source.restatements(finding))
    telling = {mention.sentence for mention in mentions}
    if compared_elsewhere(source, finding, telling) or denied_elsewhere(source, finding, telling):
        return None
    edits: set[Edit] = set()
    for mention in mentions:
        for attribute in _own_changes(mention):
            dropped = _dropped(source, mention, attribute)
            if dropped is None:
                return None
            edits.update(dropped)
    if any(_still_compares(source, index, finding, edits) for index in telling):
        return None
    words = matching_form(_own_changes(finding)[0].span.of(source.text))
    meaning = Meaning(Effect.NOT_COMPARED, (finding.observation,), words)
    return change_of(edits, f"dropped:{words} {finding.observation}", meaning)


def _still_compares(
    source: ReadReport, index: int, finding: Finding, edits: Collection[Edit]
) -> bool:
    """Return whether other words than the removed ones compare the finding or a related one."""
    sentence = source.sentences[index]
    words = [Span(*word.span()) for word in _PRIOR.finditer(source.text, *sentence.span)]
    kin = (other for other in sentence.findings if are_kin(other, finding))
    words += [change.span for other in kin for change in _own_changes(other)]
    return not all(
        any(edit.start < word.end and edit.end > word.start for edit in edits) for word in words
    )


def _dropped(source: ReadReport, finding: Finding, attribute: Attribute) -> list[Edit] | None:
    text, table = source.text, comparisons()
    start, end = attribute.span
    words = matching_form(attribute.span.of(text))
    sentence = source.sentences[finding.sentence].span
    opens = start == sentence.start
    if words in table.shorter and not opens:
        shorter = table.shorter[words]
        return [Edit(start, end, shorter)] if shorter else removed(text, start, end)
    said = sentence.of(text).lower()
    if words in table.leading:
        return _leading_dropped(text, start, end) if opens and " or " not in said else None
    if words not in table.adjectives:
        return None
    tail = _tail().match(text, end, sentence.end)
    if tail is not None:
        edit = _predicate_dropped(text, sentence.start, start, tail.end(1))
        last = text[sentence.start : edit.start].split()[-1:]
        return [edit] if last and last[0].lower() not in table.not_after else None
    following = _NEXT_WORD.match(text, end)
    if following is None or following.group(1).lower() in table.not_before:
        return None
    if _RELATIVE.search(text, sentence.start, start - 1):
        return None
    is_predicate = _COPULA.search(text, sentence.start, start) is not None
    if is_predicate or finding.cue.start < start or not table.besides.isdisjoint(said.split()):
        return None
    if any(text[other.span.end : start] == ", " for other in finding.attributes):
        return [Edit(start - 2, end, "")]
    return removed(text, start, end, opens=opens)


def _leading_dropped(text: str, start: int, end: int) -> list[Edit] | None:
    """Return the edits for a comparison before a noun: "Interval increase in size of".

    None if the noun was mentioned before ("the effusion"), which cannot begin a statement.
    """
    rest = re.compile(rf"\s+{comparisons().leading_rest}", re.IGNORECASE).match(text, end)
    end = end if rest is None else rest.end()
    return None if _THE.match(text, end) else removed(text, start, end, opens=True)


def _predicate_dropped(text: str, sentence: int, start: int, end: int) -> Edit:
    """Return the edit for a comparison at a sentence's end, such as ", stable from prior"."""
    copula = _COPULA.search(text, sentence, start)
    if copula is None or _RELATIVE.search(text, sentence, copula.start()):
        comma = _COMMA.search(text, sentence, start)
        return Edit(start if comma is None else comma.start(), end, "")
    verb = copula.group(1).lower()
    if text[sentence : sentence + 6].lower() == "there ":
        return Edit(copula.start(), end, "")
    return Edit(copula.start(1), end, f"{_SEEN.get(verb, verb)} seen")


@cache
def _tail() -> re.Pattern[str]:
    """Return a pattern for the text between comparing words and the end of their sentence."""
    return re.compile(rf"({comparisons().tails})\s*[.;]*\s*$", re.IGNORECASE)


_END = re.compile(r"\s*[.]+$")


class InventComparison(Kind):
    """Kind that adds a comparison to a sentence of one finding, in reports without comparisons."""

    name = "invent-comparison"
    description = (
        "Say that a finding is new, increased, decreased or unchanged since a prior examination."
    )
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.FALSE_COMPARISON
    nothing = "the report already has a comparison, or no sentence states exactly one finding"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        if any(s.changes or s.category is Category.COMPARISON for s in source.sentences):
            return
        for sentence in chance.shuffled(source.sentences):
            finding = _plain_finding(source, sentence)
            if finding is None:
                continue
            end = _END.search(source.text, *sentence.span)
            place = sentence.span.end if end is None else end.start()
            table = comparisons()
            is_lasting = finding.observation in table.lasting
            words = chance.pick(table.invented_for_lasting if is_lasting else table.invented)
            comma = " , " if source.is_tokenised else ", "
            meaning = Meaning(Effect.COMPARED, (finding.observation,), new=words.split()[0])
            edit = Edit(place, place, comma + words)
            yield Change((edit,), f"compared:{words} {finding.observation}", meaning)


def _plain_finding(source: ReadReport, sentence: Sentence) -> Finding | None:
    """Return the only finding to which a comparison at the sentence's end can refer, or None."""
    if len(sentence.findings) != 1 or not source.pathologies(sentence):
        return None
    finding = sentence.findings[0]
    rest = source.text[finding.span.end : sentence.span.end].lower()
    words = re.findall(r"[\w']+", rest)
    plain = denials().more.isdisjoint(words) and "," not in rest
    plain = plain and comparisons().old.isdisjoint(source.words_of(sentence).split())
    return finding if plain and not source.is_joined(sentence.index) else None
