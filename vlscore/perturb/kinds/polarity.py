"""Kinds of perturbation that add a finding, affirm a denied one, or deny an affirmed one."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from vlscore.findings import Category, Finding, Polarity, Sentence, extract
from vlscore.perturb.changed_sentences import affirmed_elsewhere, denied_elsewhere
from vlscore.perturb.edits import (
    Chance,
    Change,
    Edit,
    Effect,
    ErrorCategory,
    Expected,
    Meaning,
    apply_edits,
    article_for,
    with_capital,
)
from vlscore.perturb.lexicons import FalseFinding, assertions, denials, discourse, false_findings
from vlscore.perturb.parsed_report import ReadReport
from vlscore.perturb.registry import Kind


class AddFalseFinding(Kind):
    """Kind that adds a finding that the report does not mention, nor a related one."""

    name = "add-false-finding"
    description = "Add a sentence that states a finding the report does not mention."
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.FALSE_FINDING
    nothing = "the report has no place for another finding, or mentions all of them"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        places = [] if source.has_labels else _places(source)
        if not places:
            return
        for finding in chance.shuffled(false_findings()):
            if _is_mentioned(source, finding):
                continue
            sentence = source.styled(chance.pick(finding.sentences))
            meaning = Meaning(Effect.STATED, (finding.observation,))
            for place in chance.shuffled(places):
                # Where the blank between two sentences was forgotten, ours has one on either side.
                after = " " if source.text[place : place + 1].isalnum() else ""
                edit = Edit(place, place, f" {sentence}{after}")
                yield Change((edit,), f"added:{finding.observation}", meaning)


def _is_mentioned(source: ReadReport, finding: FalseFinding) -> bool:
    related = discourse().families.get(finding.observation, frozenset())
    return any(
        mentioned.observation in finding.unless or mentioned.observation in related
        for mentioned in source.findings
    )


def _places(source: ReadReport) -> list[int]:
    """Return ends of clinical sentences after which another may follow; not after a summary."""
    last = len(source.sentences) - 1
    fit = [
        sentence
        for sentence in source.sentences
        if sentence.category is Category.CLINICAL
        and sentence.span.of(source.text).endswith((".", "!", "?"))
        and not source.is_joined(sentence.index)
        and (sentence.index == last or not source.keeps_its_place(sentence.index + 1))
    ]
    before = [s for s in fit if all(f.observation != "acute_abnormality" for f in s.findings)]
    return [sentence.span.end for sentence in before or fit]


# "The heart is not enlarged."
_NOT = re.compile(r"\b(?:is|are|appears?) (not (?:\w+ly )?)$", re.IGNORECASE)
_PLURAL = re.compile(r"(?<![sui])s$|ices$|ces$")
_GENERIC = {"acute_abnormality", "bone_abnormality", "lesion", "parenchymal_change"}


class AffirmFinding(Kind):
    """Kind that affirms the finding of a sentence that only denies it, if no other mentions it."""

    name = "affirm-finding"
    description = "State a finding that the report denies."
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.FALSE_FINDING
    nothing = "no sentence denies exactly one finding that the report mentions only once"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        for sentence in chance.shuffled(source.sentences):
            finding = _denied_alone(source, sentence)
            if finding is None:
                continue
            edit = _assertion(source, sentence, finding)
            if edit is not None and any(
                found.is_present and found.observation == finding.observation
                for found in _findings_after(source, sentence, edit)
            ):
                meaning = Meaning(Effect.STATED, (finding.observation,))
                yield Change((edit,), f"stated:{finding.observation}", meaning)


def _denied_alone(source: ReadReport, sentence: Sentence) -> Finding | None:
    """Return the only finding of a sentence that denies it, if it is not mentioned elsewhere."""
    if sentence.category is not Category.CLINICAL or len(sentence.findings) != 1:
        return None
    finding = sentence.findings[0]
    if finding.polarity is not Polarity.NEGATIVE or finding.normal:
        return None
    same = [other for other in source.findings if other.observation == finding.observation]
    if (
        len(same) > 1
        or finding.observation in _GENERIC
        or denied_elsewhere(source, finding, {sentence.index})
    ):
        return None
    return None if source.is_joined(sentence.index) else finding


def _assertion(source: ReadReport, sentence: Sentence, finding: Finding) -> Edit | None:
    text, table = source.text, assertions()
    start = sentence.span.start
    negation = _NOT.search(text, start, finding.cue.start)
    if negation is not None:
        return Edit(*negation.span(1), "")
    tail = text[finding.span.end : sentence.span.end].lower().rstrip(" .").strip()
    head = text[start : finding.span.start].lower()
    opening = max((o for o in table.openings if head.startswith(f"{o} ")), key=len, default=None)
    if opening is None or tail not in table.tails:
        return None
    words = head[len(opening) :].split()
    if any(word not in table.dropped and word not in table.kept for word in words):
        return None
    mention = finding.span.of(text)
    named = " ".join([*(word for word in words if word in table.kept), mention])
    stated = _stated(table.openings[opening], named, tail)
    return Edit(start, finding.span.end, with_capital(stated, like=text[start:]))


def _stated(opening: str, named: str, tail: str) -> str:
    last = named.lower().split()[-1]
    is_plural = _PLURAL.search(last) is not None
    counted = not is_plural and last not in assertions().uncounted
    noun = f"{article_for(named)} {named}" if counted else named
    if opening == "there is evidence of":
        opening = "evidence of" if tail.startswith(("is ", "are ")) else opening
        return f"{opening} {noun}"
    if tail.startswith(("is ", "are ")):
        return noun
    return f"there {'are' if is_plural else 'is'} {noun}"


def _findings_after(source: ReadReport, sentence: Sentence, *edits: Edit) -> Sequence[Finding]:
    """Return the findings that the extractor reads in a sentence after edits."""
    start = sentence.span.start
    own = [edit._replace(start=edit.start - start, end=edit.end - start) for edit in edits]
    return extract(apply_edits(sentence.span.of(source.text), own)).findings


_WORDS = re.compile(r"[\w'-]+")
# "the heart is mildly (enlarged)", but not "there is mild (cardiomegaly)".
_COPULA = re.compile(
    r"(?<!\bthere )\b(?:is|are|appears?|was|were)((?: (?:\w+ly|somewhat|borderline|now))*) $",
    re.IGNORECASE,
)
_NAMING = re.compile(r"(?:tion|ment|ity|ing|ence) of$", re.IGNORECASE)


class NegateFinding(Kind):
    """Kind that denies the finding of a sentence that only states it, if no other restates it."""

    name = "negate-finding"
    description = "Deny a finding that the report states."
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.OMITTED_FINDING
    nothing = "no sentence states exactly one finding that the report mentions only once"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        for sentence in chance.shuffled(source.sentences):
            if len(sentence.findings) != 1 or not source.pathologies(sentence):
                continue
            finding = sentence.findings[0]
            if any(source.restatements(finding)) or source.followers(sentence.index):
                continue
            if affirmed_elsewhere(source, finding, {sentence.index}):
                continue
            edits = _denial(source, sentence, finding)
            if edits is None:
                continue
            found = _findings_after(source, sentence, *edits)
            if found and all(f.polarity is Polarity.NEGATIVE for f in found):
                meaning = Meaning(Effect.DENIED, (finding.observation,))
                yield Change(edits, f"denied:{finding.observation}", meaning)


def _denial(source: ReadReport, sentence: Sentence, finding: Finding) -> tuple[Edit, ...] | None:
    text = source.text
    after = text[max(finding.cue.end, finding.span.end) : sentence.span.end]
    if "," in after or not denials().more.isdisjoint(_words(after)):
        return None
    copula = _COPULA.search(text, sentence.span.start, finding.cue.start)
    if copula is not None:
        return (Edit(copula.start(1), finding.cue.start, " not "),)
    if finding.span != finding.cue and not _NAMING.search(finding.cue.of(text).rstrip()):
        return None
    if _words(finding.span.of(text))[-1] in denials().always_there:
        return None
    head = Edit(sentence.span.start, finding.span.start, "")
    denied = _denied_head(text[head.start : head.end])
    if denied is None:
        return None
    first = with_capital(denied, like=text[head.start :])
    rest = finding.span.of(text)
    if head.end > head.start:
        return (head._replace(replacement=first),)
    lowered = rest if rest[:2].isupper() else rest[:1].lower()
    return (Edit(head.start, head.start + len(lowered), first + lowered),)


def _denied_head(head: str) -> str | None:
    """Return the denial for the words before a finding; None if these contain more information."""
    table = denials()
    words = _words(head)
    if "".join(words) != re.sub(r"[\s,]", "", head.lower()):
        return None
    opening = ""
    for count in range(min(len(words), 4), 0, -1):
        if " ".join(words[:count]) in table.openings:
            opening, words = " ".join(words[:count]), words[count:]
            break
    if any(word not in table.dropped and word not in table.kept for word in words):
        return None
    kept = [word for word in words if word in table.kept]
    return " ".join([table.openings.get(opening, "no"), *kept, ""])


@lru_cache(4096)
def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(text)]
