"""Deny a finding that the report states."""

import re
from collections.abc import Iterator
from functools import lru_cache

from vlscore.findings import Finding, Polarity, Sentence, extract
from vlscore.perturb.chance import Chance
from vlscore.perturb.coherence import told_elsewhere
from vlscore.perturb.kind import Kind
from vlscore.perturb.lexicons import denials
from vlscore.perturb.perturbation import Change, Edit, Effect, ErrorCategory, Expected, Meaning
from vlscore.perturb.reading import ReadReport
from vlscore.perturb.wording import with_capital

_WORDS = re.compile(r"[\w'-]+")
# "the heart is mildly (enlarged)", but not "there is mild (cardiomegaly)".
_COPULA = re.compile(
    r"(?<!\bthere )\b(?:is|are|appears?|was|were)((?: (?:\w+ly|somewhat|borderline|now))*) $",
    re.IGNORECASE,
)
_NAMING = re.compile(r"(?:tion|ment|ity|ing|ence) of$", re.IGNORECASE)


class NegateFinding(Kind):
    """Only sentences that state one finding and no more, which no other sentence states again."""

    name = "negate-finding"
    description = "Deny a finding that the report states."
    expected = Expected.SIGNIFICANT
    category = ErrorCategory.OMITTED_FINDING
    nothing = "no sentence states one finding and nothing else, once"

    def changes(self, source: ReadReport, chance: Chance) -> Iterator[Change]:
        for sentence in chance.shuffled(source.sentences):
            if len(sentence.findings) != 1 or not source.pathologies(sentence):
                continue
            finding = sentence.findings[0]
            if any(source.restatements(finding)) or source.followers(sentence.index):
                continue
            if told_elsewhere(source, finding, {sentence.index}):
                continue
            edits = _denial(source, sentence, finding)
            if edits is not None and _denies(source, sentence, finding, edits):
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
    """What denies in place of the words before a finding; None where they say more than that."""
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


def _denies(
    source: ReadReport, sentence: Sentence, finding: Finding, edits: tuple[Edit, ...]
) -> bool:
    """Whether the changed sentence reads as a denial of the finding, and of nothing else."""
    start = sentence.span.start
    said = sentence.span.of(source.text)
    for edit in reversed(edits):
        said = said[: edit.start - start] + edit.replacement + said[edit.end - start :]
    found = extract(said).findings
    return bool(found) and all(f.polarity is Polarity.NEGATIVE for f in found)


@lru_cache(4096)
def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(text)]
