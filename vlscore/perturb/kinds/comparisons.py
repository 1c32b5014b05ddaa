"""Kinds of perturbation that remove or add a comparison of a finding with a prior examination."""

import re
from collections.abc import Iterator
from functools import cache

from vlscore.findings import Attribute, Axis, Category, Finding, Sentence, load_lexicon
from vlscore.perturb.edits import (
    Chance,
    Change,
    Edit,
    Effect,
    ErrorCategory,
    Expected,
    Meaning,
    removed,
)
from vlscore.perturb.kinds.removals import remove_sentences
from vlscore.perturb.lexicons import DroppedWords, matching_form, statements
from vlscore.perturb.parsed_report import ParsedReport, topic_of
from vlscore.perturb.registry import Kind


class DropComparison(Kind):
    """Kind that removes the comparing words, or a sentence that only compares; findings remain."""

    name = "drop-comparison"
    description = "Leave out that a finding is stable, new, increased or decreased."
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.OMITTED_COMPARISON
    nothing = "the report has no comparison with a prior examination that can be removed"

    def changes(self, source: ParsedReport, chance: Chance) -> Iterator[Change]:
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
                if edits is not None:
                    yield Change(edits, "sentence:comparison", Meaning(Effect.NOT_COMPARED))
            elif (change := _without(source, chosen)) is not None:
                yield change


def _only_compares(source: ParsedReport, sentence: Sentence) -> bool:
    if sentence.category is not Category.COMPARISON or not sentence.changes or sentence.findings:
        return False
    return source.words_of(sentence).startswith(statements().compare.only_openings)


def _own_changes(finding: Finding) -> list[Attribute]:
    return [change for change in finding.on(Axis.CHANGE) if not change.inherited]


def _without(source: ParsedReport, finding: Finding) -> Change | None:
    """Return the change that removes every comparison of the finding, also where it is restated."""
    mentions = (finding, *source.restatements(finding))
    edits: set[Edit] = set()
    for mention in mentions:
        for attribute in _own_changes(mention):
            dropped = _dropped(source, mention, attribute)
            if dropped is None:
                return None
            edits.update(dropped)
    words = matching_form(_own_changes(finding)[0].span.of(source.text))
    meaning = Meaning(Effect.NOT_COMPARED, (finding.observation,), words)
    return Change(tuple(edits), f"dropped:{words} {finding.observation}", meaning)


def _dropped(source: ParsedReport, finding: Finding, attribute: Attribute) -> list[Edit] | None:
    """Return the edits of the first row of the table that fits; None where none does."""
    text, (start, end) = source.text, attribute.span
    sentence = source.sentences[finding.sentence].span
    for row, words_are, before_is, behind_is in _rows():
        words = words_are.fullmatch(matching_form(text[start:end]))
        before = before_is.search(text[sentence.start : start])
        behind = behind_is.match(text[end : sentence.end])
        if not (words and before and behind) or (row.attributive and finding.cue.start < start):
            continue
        first, last = start - len(before.group()), end + behind.end()
        if row.attributive and any(text[a.span.end : start] == ", " for a in finding.attributes):
            return [Edit(start - 2, end, "")]
        groups = {**words.groupdict(""), **before.groupdict("")}
        copulas = statements().compare.copulas
        put = row.put.format(**{k: copulas.get(v.lower(), v.lower()) for k, v in groups.items()})
        if put or not text[last : sentence.end].strip(" .;"):
            return [Edit(first, last, put)]
        return removed(text, first, last, opens=first == sentence.start)
    return None


_Row = tuple[DroppedWords, re.Pattern[str], re.Pattern[str], re.Pattern[str]]


@cache
def _rows() -> list[_Row]:
    """Return the rows of the table with their patterns."""
    table = statements().compare
    named = {
        "{adjectives}": "|".join(table.adjectives),
        "{not_before}": "|".join(table.not_before),
        "{tails}": table.tails,
    }
    found = []
    for row in table.drop:
        patterns = [row.words, f"(?:{row.before})$", row.behind]
        for name, pattern in named.items():
            patterns = [each.replace(name, pattern) for each in patterns]
        words, before, behind = (re.compile(each, re.IGNORECASE) for each in patterns)
        found.append((row, words, before, behind))
    return found


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

    def changes(self, source: ParsedReport, chance: Chance) -> Iterator[Change]:
        if any(s.changes or s.category is Category.COMPARISON for s in source.sentences):
            return
        for sentence in chance.shuffled(source.sentences):
            finding = _plain_finding(source, sentence)
            if finding is None:
                continue
            end = _END.search(source.text, *sentence.span)
            place = sentence.span.end if end is None else end.start()
            table = statements().compare
            known = load_lexicon().observations[finding.observation]
            lasts = known.lasting or known.region == "bones"
            is_lasting = lasts and not known.changing
            words = chance.pick(table.invented_for_lasting if is_lasting else table.invented)
            comma = " , " if source.is_tokenised else ", "
            meaning = Meaning(Effect.COMPARED, (finding.observation,), new=words.split()[0])
            edit = Edit(place, place, comma + words)
            yield Change((edit,), f"compared:{words} {finding.observation}", meaning)


def _plain_finding(source: ParsedReport, sentence: Sentence) -> Finding | None:
    """Return the only finding to which a comparison at the sentence's end can refer, or None."""
    if len(sentence.findings) != 1 or not source.pathologies(sentence):
        return None
    finding = sentence.findings[0]
    rest = source.text[finding.span.end : sentence.span.end].lower()
    words = re.findall(r"[\w']+", rest)
    plain = statements().negate.says_more.isdisjoint(words) and "," not in rest
    return finding if plain and not source.is_joined(sentence.index) else None
