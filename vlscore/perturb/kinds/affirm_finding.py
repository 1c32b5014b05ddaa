"""State a finding that the report denies."""

import re
from collections.abc import Iterator

from vlscore.findings import Category, Finding, Polarity, Sentence, extract
from vlscore.perturb.chance import Chance
from vlscore.perturb.coherence import denied_elsewhere
from vlscore.perturb.kind import Kind
from vlscore.perturb.lexicons import assertions
from vlscore.perturb.perturbation import Change, Edit, Effect, ErrorCategory, Expected, Meaning
from vlscore.perturb.reading import ReadReport
from vlscore.perturb.wording import article_for, with_capital

# "The heart is not enlarged."
_NOT = re.compile(r"\b(?:is|are|appears?) (not (?:\w+ly )?)$", re.IGNORECASE)
_PLURAL = re.compile(r"(?<![sui])s$|ices$|ces$")
_GENERIC = {"acute_abnormality", "bone_abnormality", "lesion", "parenchymal_change"}


class AffirmFinding(Kind):
    """Only sentences that deny one finding and no more, of which no other sentence speaks."""

    name = "affirm-finding"
    description = "State a finding that the report denies."
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.FALSE_FINDING
    nothing = "no sentence denies one finding and nothing else, once"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        for sentence in chance.shuffled(source.sentences):
            finding = _denied_alone(source, sentence)
            if finding is None:
                continue
            edit = _assertion(source, sentence, finding)
            if edit is not None and _states(source, sentence, finding, edit):
                meaning = Meaning(Effect.STATED, (finding.observation,))
                yield Change((edit,), f"stated:{finding.observation}", meaning)


def _denied_alone(source: ReadReport, sentence: Sentence) -> Finding | None:
    """The one finding of a sentence, where it is denied there and mentioned nowhere else."""
    if sentence.category is not Category.CLINICAL or len(sentence.findings) != 1:
        return None
    finding = sentence.findings[0]
    if finding.polarity is not Polarity.NEGATIVE or finding.normal:
        return None
    alone = source.count(finding.observation) == 1 and finding.observation not in _GENERIC
    if not alone or denied_elsewhere(source, finding, {sentence.index}):
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


def _states(source: ReadReport, sentence: Sentence, finding: Finding, edit: Edit) -> bool:
    """Whether the changed sentence reads as a statement of the finding."""
    start = sentence.span.start
    said = sentence.span.of(source.text)
    said = said[: edit.start - start] + edit.replacement + said[edit.end - start :]
    return any(f.is_present and f.observation == finding.observation for f in extract(said))
