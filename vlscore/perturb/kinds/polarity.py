"""Kinds of perturbation that add a finding, affirm a denied one, or deny an affirmed one."""

import re
from collections.abc import Iterator

from vlscore.findings import Category, Finding, Polarity, Sentence, load_lexicon, tokenize
from vlscore.perturb.edits import (
    Chance,
    Change,
    Edit,
    Effect,
    ErrorCategory,
    Expected,
    Meaning,
    article_for,
    with_capital,
)
from vlscore.perturb.lexicons import alike, false_findings, statements
from vlscore.perturb.parsed_report import ParsedReport
from vlscore.perturb.registry import Kind


class AddFalseFinding(Kind):
    """Kind that adds a finding that the report does not mention, nor a related one."""

    name = "add-false-finding"
    description = "Add a sentence that states a finding the report does not mention."
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.FALSE_FINDING
    nothing = "the report has no place for another finding, or mentions all of them"

    def changes(self, source: ParsedReport, chance: Chance) -> Iterator[Change]:
        places = [] if source.has_labels else _places(source)
        if not places:
            return
        for name, finding in chance.shuffled(false_findings().items()):
            named = finding.unless.union([name], alike().same.get(name, ()))
            if any(mentioned.observation in named for mentioned in source.findings):
                continue
            sentence = source.styled(chance.pick(finding.sentences))
            meaning = Meaning(Effect.STATED, (name,))
            for place in chance.shuffled(places):
                # Where the blank between two sentences was forgotten, ours has one on either side.
                after = " " if source.text[place : place + 1].isalnum() else ""
                edit = Edit(place, place, f" {sentence}{after}")
                yield Change((edit,), f"added:{name}", meaning)


def _places(source: ParsedReport) -> list[int]:
    """Return ends of clinical sentences after which another may follow; not after a summary."""
    last = len(source.sentences) - 1
    fit = [
        sentence
        for sentence in source.sentences
        if sentence.category is Category.CLINICAL
        and sentence.span.of(source.text).endswith((".", "!", "?"))
        and not source.is_joined(sentence.index)
        and (sentence.index == last or not source.follows_previous(sentence.index + 1))
    ]
    before = [s for s in fit if all(f.observation != "acute_abnormality" for f in s.findings)]
    return [sentence.span.end for sentence in before or fit]


class AffirmFinding(Kind):
    """Kind that affirms the finding of a sentence that only denies it, if no other mentions it."""

    name = "affirm-finding"
    description = "State a finding that the report denies."
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.FALSE_FINDING
    nothing = "no sentence denies exactly one finding that the report mentions only once"

    def changes(self, source: ParsedReport, chance: Chance) -> Iterator[Change]:
        for sentence in chance.shuffled(source.sentences):
            if (finding := _denied_alone(source, sentence)) is not None:
                edit = _assertion(source, sentence, finding)
                if edit is not None:
                    meaning = Meaning(Effect.STATED, (finding.observation,))
                    yield Change((edit,), f"stated:{finding.observation}", meaning)


def _denied_alone(source: ParsedReport, sentence: Sentence) -> Finding | None:
    """Return the only finding of a sentence that denies it."""
    if sentence.category is not Category.CLINICAL or len(sentence.findings) != 1:
        return None
    finding = sentence.findings[0]
    is_denied = finding.polarity is Polarity.NEGATIVE and not finding.normal
    is_named = is_denied and not load_lexicon().observations[finding.observation].generic
    return finding if is_named and not source.is_joined(sentence.index) else None


def _assertion(source: ParsedReport, sentence: Sentence, finding: Finding) -> Edit | None:
    text, table = source.text, statements().affirm
    start = sentence.span.start
    negation = re.search(table.negation, text[start : finding.cue.start], re.IGNORECASE)
    if negation is not None:
        return Edit(start + negation.start(1), start + negation.end(1), "")
    tail = text[finding.span.end : sentence.span.end].lower().rstrip(" .").strip()
    head = text[start : finding.span.start].lower()
    opening = max((o for o in table.openings if head.startswith(f"{o} ")), key=len, default=None)
    if opening is None or tail not in table.tails:
        return None
    words = head[len(opening) :].split()
    if not (table.omitted | table.retained).issuperset(words):
        return None
    named = " ".join([*(w for w in words if w in table.retained), finding.span.of(text)])
    last = named.lower().split()[-1]
    is_plural = last.endswith(table.plural_endings) and tokenize(last)[0].form != last
    is_counted = not is_plural and last not in table.uncounted
    evidence = table.openings[opening]
    stated = evidence + (f"{article_for(named)} {named}" if is_counted else named)
    # "Pneumonia is seen", "there is pneumonia", "there is evidence of effusions".
    if not tail.startswith(table.verbs):
        stated = f"{table.there[is_plural and not evidence]} {stated}"
    return Edit(start, finding.span.end, with_capital(stated, like=text[start:]))


class NegateFinding(Kind):
    """Kind that denies the finding of a sentence that only states it, if no other restates it."""

    name = "negate-finding"
    description = "Deny a finding that the report states."
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.OMITTED_FINDING
    nothing = "no sentence states exactly one finding that the report mentions only once"

    def changes(self, source: ParsedReport, chance: Chance) -> Iterator[Change]:
        for sentence in chance.shuffled(source.sentences):
            if len(sentence.findings) != 1 or not source.pathologies(sentence):
                continue
            finding = sentence.findings[0]
            edits = _denial(source, sentence, finding)
            if edits is not None:
                meaning = Meaning(Effect.DENIED, (finding.observation,))
                yield Change(edits, f"denied:{finding.observation}", meaning)


def _denial(source: ParsedReport, sentence: Sentence, finding: Finding) -> tuple[Edit, ...] | None:
    """Return the edits that deny a finding; None if the sentence says more than that it is there.

    The denial stands at the copula ("is not enlarged"), or before the finding ("no cardiomegaly").
    """
    text, table, start = source.text, statements().negate, sentence.span.start
    behind = text[max(finding.cue.end, finding.span.end) : sentence.span.end]
    if "," in behind or not table.says_more.isdisjoint(_words(behind)):
        return None
    copula = re.search(table.copula, text[start : finding.cue.start], re.IGNORECASE)
    if copula is not None:
        return (Edit(start + copula.start(1), finding.cue.start, f" {table.negation} "),)
    is_one = finding.span == finding.cue or re.search(table.naming, finding.cue.of(text).rstrip())
    if not is_one or _words(finding.span.of(text))[-1] in table.always_there:
        return None
    denied = _denied_head(text[start : finding.span.start])
    if denied is None:
        return None
    first = with_capital(denied, like=text[start:])
    if finding.span.start > start:
        return (Edit(start, finding.span.start, first),)
    is_short = text[start : start + 2].isupper()
    lowered = text[start : finding.span.end] if is_short else text[start].lower()
    return (Edit(start, start + len(lowered), first + lowered),)


def _denied_head(head: str) -> str | None:
    """Return the denial for the words before a finding; None if these contain more information."""
    table, words = statements().negate, _words(head)
    if "".join(words) != re.sub(r"[\s,]", "", head.lower()):
        return None
    openings = (" ".join(words[:count]) for count in range(min(len(words), 4), 0, -1))
    opening = next((words for words in openings if words in table.openings), "")
    rest = words[len(opening.split()) :]
    if not (table.omitted | table.retained).issuperset(rest):
        return None
    retained = [word for word in rest if word in table.retained]
    return " ".join([table.openings.get(opening, table.denial), *retained, ""])


def _words(text: str) -> list[str]:
    return re.findall(r"[\w'-]+", text.lower())
