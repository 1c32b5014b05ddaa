"""Kinds of perturbation that reword or reorder a report, or replace or shorten normal statements.

- `Paraphrase` replaces a phrase by one of the same meaning.
- `ShuffleSentences` changes the order of sentences.
- `ReplaceUninformative` replaces a word without information by [UNK].
- `StandardNormal` replaces a normal report by the standard normal report.
- `UnmentionNegatives` removes sentences that only deny findings.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cache
from itertools import accumulate, pairwise

from vlscore.findings import Category, Sentence, Span
from vlscore.perturb.edits import (
    Chance,
    Change,
    Edit,
    Expected,
    replaced,
    with_capital,
)
from vlscore.perturb.kinds.removals import remove_sentences
from vlscore.perturb.lexicons import Equivalents, phrases_in, statements
from vlscore.perturb.parsed_report import ParsedReport
from vlscore.perturb.registry import Kind

_LAST_WORDS = re.compile(r"[\w-]+ [\w-]+\s*$|[\w-]+\s*$")
_NEXT_WORD = re.compile(r"\s*([\w-]+)")


class Paraphrase(Kind):
    """Kind that replaces one phrase by another of a group of equivalents (`statements.toml`)."""

    name = "paraphrase"
    description = "Replace a phrase by one that means the same."
    expected = Expected.INSIGNIFICANT
    nothing = "the report has no phrase of the table of equivalents"

    def changes(self, source: ParsedReport, chance: Chance) -> Iterator[Change]:
        words = source.text.lower()
        found = [
            (group, match)
            for group in statements().paraphrase.group
            if any(phrase in words for phrase in group.phrases)
            for match in _pattern(group.phrases).finditer(source.text)
        ]
        for group, match in chance.shuffled(found):
            sentence = _sentence_at(source, match.start())
            if sentence is None or not _fits(source.text, group, match, sentence):
                continue
            old = match.group()
            others = [phrase for phrase in group.phrases if phrase not in group.not_instead]
            options = [p for p in others if _may_stand(source, sentence, old.lower(), p)]
            if options:
                new = chance.pick(options)
                edits = replaced(source.text, *match.span(), with_capital(new, like=old))
                yield Change(tuple(edits), f"equivalent:{old.lower()}->{new}")


def _may_stand(source: ParsedReport, sentence: Sentence, old: str, new: str) -> bool:
    """Return whether the new phrase differs from the old, and repeats no word of the sentence."""
    brought = set(new.split()) - set(old.split()) - statements().paraphrase.repeatable
    rest = source.words_of(sentence).replace(old, " ", 1)
    return new != old and brought.isdisjoint(re.findall(r"[\w-]+", rest))


def _sentence_at(source: ParsedReport, place: int) -> Sentence | None:
    """Return the sentence that contains a character position of the report."""
    before = bisect_right(source.sentences, place, key=lambda sentence: sentence.span.start)
    sentence = source.sentences[before - 1] if before else None
    return sentence if sentence and place < sentence.span.end else None


def _fits(text: str, group: Equivalents, match: re.Match[str], sentence: Sentence) -> bool:
    opens = match.start() == sentence.span.start
    closes = not text[match.end() : sentence.span.end].strip(" .")
    if group.at == "start" and not opens:
        return False
    if group.at == "end" and not closes:
        return False
    if group.at == "sentence" and not (opens and closes):
        return False
    if group.before:
        following = _NEXT_WORD.match(text, match.end())
        if following is None or following.group(1).lower() not in group.before:
            return False
    if group.after:
        preceding = _LAST_WORDS.search(text, sentence.span.start, match.start())
        words = preceding.group().lower().split() if preceding else []
        return " ".join(words) in group.after or " ".join(words[-1:]) in group.after
    return True


@cache
def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(phrases, key=len, reverse=True)
    alternatives = "|".join(re.escape(phrase) for phrase in longest_first)
    return re.compile(rf"(?<![\w-])(?:{alternatives})(?![\w-])", re.IGNORECASE)


_TRIES = 4


class ShuffleSentences(Kind):
    """Kind that moves sentences within a paragraph; a dependent one moves with the previous."""

    name = "shuffle-sentences"
    description = "Put the sentences of a paragraph in another order."
    expected = Expected.INSIGNIFICANT
    nothing = "no paragraph has two sentences that can change places"

    def changes(self, source: ParsedReport, chance: Chance) -> Iterator[Change]:
        indices = range(len(source.sentences))
        is_tied = any(source.is_joined(k) or source.contains(k, "refers_anywhere") for k in indices)
        if source.has_labels or is_tied:
            return
        regions = [units for units in _regions(source) if len(units) > 1]
        for _ in range(_TRIES):
            edits = [edit for units in regions if (edit := _shuffled(source, units, chance))]
            if edits:
                order = f"order:{sum(map(len, regions))} sentences"
                yield Change(tuple(edits), order)


def _regions(source: ParsedReport) -> list[list[list[int]]]:
    """Return for each paragraph or list item its units: sentences that must move together."""
    regions: list[list[list[int]]] = []
    for sentence in source.sentences:
        index = sentence.index
        if source.opens_paragraph(index):
            regions.append([[index]])
        elif source.follows_previous(index) or not source.sentences[index - 1].span.of(
            source.text
        ).endswith((".", "!", "?")):
            regions[-1][-1].append(index)
        else:
            regions[-1].append([index])
    return regions


def _shuffled(source: ParsedReport, units: list[list[int]], chance: Chance) -> Edit | None:
    spans = [
        (source.sentences[unit[0]].span.start, source.sentences[unit[-1]].span.end)
        for unit in units
    ]
    order = chance.shuffled(range(len(spans)))
    if order == sorted(order):
        return None
    stop = " ." if source.is_tokenised else "."
    texts = [source.text[start:end] for start, end in spans]
    texts = [text if text.endswith((".", "!", "?")) else text + stop for text in texts]
    gaps = [source.text[a[1] : b[0]] for a, b in pairwise(spans)]
    parts = [texts[order[0]]]
    for gap, position in zip(gaps, order[1:], strict=True):
        parts += [gap if gap.isspace() else " ", texts[position]]
    edit = Edit(spans[0][0], spans[-1][1], "".join(parts))
    return None if edit.replacement == source.text[edit.start : edit.end] else edit


class ReplaceUninformative(Kind):
    """Kind that masks a word, preferably in a sentence with a finding, as other kinds change."""

    name = "replace-uninformative"
    description = "Replace a word without information by [UNK]; the control for changed words."
    expected = Expected.INSIGNIFICANT
    origin = "VLScore paper, section 4.2, kind 5 (133 of 979)"
    nothing = "the report has no word without information"

    def changes(self, source: ParsedReport, chance: Chance) -> Iterator[Change]:
        found = [(s.has_positive, word) for s in source.sentences for word in _idle(source, s)]
        for wanted in (True, False):
            for word in chance.shuffled([w for has_positive, w in found if has_positive is wanted]):
                yield Change((Edit(*word, "[UNK]"),), f"word:{word.of(source.text).lower()}")


def _idle(source: ParsedReport, sentence: Sentence) -> Iterator[Span]:
    """Yield words of the list outside every finding, attribute and rule of the sentence."""
    taken: list[tuple[int, int]] = [finding.cue for finding in sentence.findings]
    taken += [a.span for finding in sentence.findings for a in finding.attributes]
    taken += [rule.span for finding in sentence.findings for rule in finding.rules]
    taken.sort()
    # Furthest end of the spans up to each one, so that one comparison shows if a word is free.
    ends = list(accumulate((end for _, end in taken), max))
    for word in phrases_in(sentence.span.of(source.text)).get("uninformative", ()):
        span = Span(word.start + sentence.span.start, word.end + sentence.span.start)
        before = bisect_left(taken, (span.end, -1))
        if not before or ends[before - 1] <= span.start:
            yield span


_FEWEST = 2
_SILENT = {Category.TECHNIQUE, Category.COMMUNICATION}


class StandardNormal(Kind):
    """Kind that replaces a normal report by the standard normal one, which means the same."""

    name = "standard-normal"
    description = "Exchange a normal report for a standard normal report."
    expected = Expected.INSIGNIFICANT
    origin = "VLScore paper, section 4.2, kind 6 (207 of 979)"
    nothing = "the report is not normal throughout, or is the standard normal report"
    needs_standard_normal = True

    def changes(self, source: ParsedReport, chance: Chance) -> Iterator[Change]:
        if source.standard_normal is not None and is_normal(source):
            standard = source.styled(source.standard_normal)
            edit = Edit(0, len(source.text), standard)
            yield Change((edit,), "report:normal")


def is_normal(source: ParsedReport) -> bool:
    """Return whether every sentence states normality, or is not about the patient."""
    normal = [source.merely_denies(sentence) for sentence in source.sentences]
    return sum(normal) >= _FEWEST and all(
        denies or (sentence.category in _SILENT and source.says_nothing_clinical(sentence))
        for sentence, denies in zip(source.sentences, normal, strict=True)
    )


class UnmentionNegatives(Kind):
    """Kind that removes every sentence of denials and normality; positive findings remain."""

    name = "unmention-negatives"
    description = "Remove every sentence that only denies findings or states normality."
    expected = Expected.INSIGNIFICANT
    origin = "Pino's stress test, unmentioned against negative"
    nothing = "the report lacks sentences that only deny findings, or sentences that state findings"

    def changes(self, source: ParsedReport, chance: Chance) -> Iterator[Change]:
        denying = [s.index for s in source.sentences if source.merely_denies(s)]
        if source.has_labels or not any(source.pathologies(s) for s in source.sentences):
            return
        edits = remove_sentences(source, denying)
        if edits is not None:
            yield Change(edits, f"unmentioned:{len(denying)} sentences")
