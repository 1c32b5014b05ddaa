"""Changes of a report since an earlier examination, by finding.

Also of parts of the chest without a finding ("aeration has improved"), and of a finding that the
sentence before names ("This was not present before").
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from vlscore.findings.change_words import ENLARGING, WORDS_OF_CHANGE
from vlscore.findings.earlier_times import YEAR, earlier_times
from vlscore.findings.lexicon import Lexicon, load_lexicon
from vlscore.findings.modifiers import find_sizes
from vlscore.findings.types import (
    Attribute,
    Axis,
    Category,
    Finding,
    Polarity,
    ReportFindings,
    Sentence,
    Span,
    Status,
    TemporalChange,
)
from vlscore.text import plain_text


class FindingChange(NamedTuple):
    """Change of one finding, or part of the chest, since an earlier examination.

    Attributes:
        topic: the observation ("pleural_effusion"); without a finding the part ("heart", "lungs",
            "aeration"), or "examination" for the whole.
        change: the change; what is better with more of it is worse when it decreases.
        span: the words that state it.
        sentence: number of the sentence with these words.
        finding: the finding; None where the report mentions none.
    """

    topic: str
    change: TemporalChange
    span: Span
    sentence: int
    finding: Finding | None = None

    @property
    def is_real(self) -> bool:
        """Return whether anything has changed."""
        return self.change is not TemporalChange.UNCHANGED


#: The topic of a statement about the whole examination: "no interval change".
EXAMINATION = "examination"
#: The topic of a finding that the lexicon does not have.
OTHER = "other"
_SILENT = (Category.TECHNIQUE, Category.RECOMMENDATION, Category.COMMUNICATION, Category.HISTORY)
_LONGEST_BACK, _LONGEST_AROUND = 6, 3


def changes_of(report: ReportFindings, lexicon: Lexicon | None = None) -> tuple[FindingChange, ...]:
    """Return the changes that a report states since an earlier examination, in text order.

    A finding has one change; a device none for the better or worse, where it has only moved. A
    denied finding has none, unless it has resolved or its denial is a statement of normality ("the
    heart is normal and unchanged").

    >>> from vlscore.findings import extract
    >>> found = changes_of(extract("The effusion is larger than before. No new nodule."))
    >>> [(c.topic, str(c.change)) for c in found]
    [('pleural_effusion', 'worse')]
    """
    lexicon = lexicon or load_lexicon()
    found: list[FindingChange] = []
    for sentence in report.sentences:
        if sentence.changes and sentence.category not in _SILENT:
            found += _of_sentence(report, sentence, lexicon)
    return tuple(sorted((c for c in found if not _has_moved(c)), key=lambda c: c.span))


def speaks_of_earlier(report: ReportFindings, lexicon: Lexicon | None = None) -> bool:
    """Return whether a report compares with an earlier examination, or refers to one.

    >>> from vlscore.findings import extract
    >>> [speaks_of_earlier(extract(t)) for t in ("Stable nodule.", "No prior study. Old fracture.")]
    [True, False]
    """
    lexicon = lexicon or load_lexicon()
    if changes_of(report, lexicon):
        return True
    for sentence in report.sentences:
        if sentence.category in _SILENT:
            continue
        tokens = lexicon.tokenize(sentence.span.of(report.plain))
        if earlier_times(tokens, lexicon.trie.find(tokens).get("earlier", ()), lexicon):
            return True
    return False


def may_speak_of_earlier(text: str, lexicon: Lexicon | None = None) -> bool:
    """Return False for a report without any word of a change or an earlier time.

    It takes a sixth of the time of `extract`, and is True wherever `speaks_of_earlier` is.

    >>> [may_speak_of_earlier(t) for t in ("Small nodule.", "Stable nodule.")]
    [False, True]
    """
    lexicon = lexicon or load_lexicon()
    tokens = lexicon.tokenize(plain_text(text).text)
    times = lexicon.grammar["times"]
    return (
        not WORDS_OF_CHANGE.isdisjoint(lexicon.trie.find(tokens))
        or any(token.form in times or YEAR.fullmatch(token.form) for token in tokens)
        or len(find_sizes(tokens)) > 1
    )


def without_comparisons(report: ReportFindings) -> ReportFindings:
    """Return the findings without changes since an earlier examination.

    Findings that have resolved are left out: only an earlier examination shows them.
    """
    resolved = {
        c.finding for c in changes_of(report) if c.change is TemporalChange.RESOLVED and c.finding
    }
    sentences = []
    for sentence in report.sentences:
        findings = tuple(
            replace(f, attributes=tuple(a for a in f.attributes if a.axis is not Axis.CHANGE))
            for f in sentence.findings
            if f not in resolved
        )
        sentences.append(replace(sentence, findings=findings, changes=()))
    return ReportFindings(report.text, tuple(sentences))


def _has_moved(change: FindingChange) -> bool:
    """Return whether the words say that a device has moved: a tube "advanced since the prior"."""
    finding = change.finding
    is_device = finding is not None and finding.chexpert == "Support Devices"
    return is_device and change.change in ENLARGING


def _of_sentence(
    report: ReportFindings, sentence: Sentence, lexicon: Lexicon
) -> Iterator[FindingChange]:
    text, index = report.plain, sentence.index
    free = dict.fromkeys(
        a for a in sentence.changes if not _refers_back(text, sentence, a, lexicon)
    )
    for attribute in sentence.changes:
        if attribute not in free:
            yield from _of_antecedent(report, sentence, attribute)
    for finding in sentence.findings:
        change = finding.change
        own = [a for a in finding.on(Axis.CHANGE) if a.value == change]
        own = [a for a in own if not _refers_back(text, sentence, a, lexicon)]
        if change is None or not own or _is_of_part(text, sentence, finding, own[0], lexicon):
            continue
        for attribute in finding.on(Axis.CHANGE):
            free.pop(attribute._replace(inherited=False), None)
        if finding.status is not Status.CURRENT:
            continue
        if _is_denied(finding, change) and not _is_conceded(text, finding, own[-1].span, lexicon):
            stated = _stated_before(text, sentence, finding, own[-1].span)
            if stated is not None:
                yield FindingChange(stated.observation, change, own[-1].span, index, stated)
            continue
        if finding.polarity is Polarity.UNCERTAIN and own[0].span.end <= finding.span.start:
            continue  # "could be developing pneumonia" compares nothing
        span = max((a.span for a in own), key=lambda s: s.end - s.start)
        if finding.observation in lexicon.grammar["findings_better_with_more"]:
            change = _turned(change, span.of(text), lexicon)
        yield FindingChange(finding.observation, change, span, index, finding)
    yield from _shared(text, sentence, lexicon)
    yield from _shared_behind(text, sentence, lexicon)
    yield from _resolved_together(sentence)
    for attribute in free:
        stating = [f for f in sentence.findings if attribute.span.overlaps(f.cue)]
        if not stating:
            yield from _without_finding(report, sentence, attribute, lexicon)
        elif len(attribute.span.of(text).split()) > 1:  # not of "heart size is increased"
            change = TemporalChange(attribute.value)
            if stating[0].observation in lexicon.grammar["findings_better_with_more"]:
                change = _turned(change, attribute.span.of(text), lexicon)
            yield FindingChange(stating[0].observation, change, attribute.span, index, stating[0])


def _shared(text: str, sentence: Sentence, lexicon: Lexicon) -> Iterator[FindingChange]:
    """Find the changes of findings before another: "effusion and atelectasis are unchanged"."""
    for one, other in reversed(list(pairwise(sentence.findings))):
        change = other.change
        stated = [a for a in other.on(Axis.CHANGE) if a.span.start > other.span.end]
        if one.change is not None or not one.is_likely or change is None or not stated:
            continue
        between = _unqualified(text, one, other, lexicon)
        behind = text[other.span.end : stated[0].span.start].rstrip()
        joined = "and" in between or ("with" in between and behind.endswith(","))
        if joined and lexicon.grammar["joints_of_changed"].issuperset(between):
            yield FindingChange(one.observation, change, stated[0].span, sentence.index, one)


def _shared_behind(text: str, sentence: Sentence, lexicon: Lexicon) -> Iterator[FindingChange]:
    """Find the changes of findings behind another: "increase in effusion and edema".

    An adjective is shared where it is a change of amount and the next finding has no degree of its
    own: in "worsening effusion and mild edema" it may be of the effusion alone.
    """
    stated: Attribute | None = None
    for one, other in pairwise(sentence.findings):
        own = [a for a in one.on(Axis.CHANGE) if a.span.end <= one.cue.start]
        stated = own[0] if own else None if one.change is not None else stated
        are_there = one.polarity is other.polarity is Polarity.POSITIVE
        if stated is None or other.change is not None or not are_there:
            stated = None
            continue
        change = TemporalChange(stated.value)
        is_of_all = stated.span.of(text).lower().endswith((" in", " of"))
        is_of_all = is_of_all or text[stated.span.end :].lstrip().lower().startswith(("in ", "of "))
        between = _unqualified(text, one, other, lexicon)
        joints = lexicon.grammar["joints_behind_change"]
        joined = not {"and", "or", ","}.isdisjoint(between) and joints.issuperset(between)
        if not joined or not (is_of_all or (change in ENLARGING and other.severity is None)):
            stated = None
            continue
        yield FindingChange(other.observation, change, stated.span, sentence.index, other)


def _unqualified(text: str, one: Finding, other: Finding, lexicon: Lexicon) -> list[str]:
    """Return the words between two findings that say nothing of either."""
    qualified = [a.span for f in (one, other) for a in f.attributes]
    return [
        t.form
        for t in lexicon.tokenize(text[one.span.end : other.span.start])
        if not any(s.start <= one.span.end + t.start < s.end for s in qualified)
    ]


def _resolved_together(sentence: Sentence) -> Iterator[FindingChange]:
    """Find the other findings of a resolution: "removal of the tube and the catheter"."""
    for attribute in sentence.changes:
        if attribute.value != TemporalChange.RESOLVED:
            continue
        for finding in sentence.findings:
            denials = [r.span for r in finding.rules if r.name == "context:negated"]
            if finding.change is None and denials == [attribute.span]:
                change = TemporalChange.RESOLVED
                yield FindingChange(
                    finding.observation, change, attribute.span, sentence.index, finding
                )


def _is_denied(finding: Finding, change: TemporalChange) -> bool:
    """Return whether the finding has no change because it is denied: "no new nodule"."""
    if finding.normal:
        return change is TemporalChange.NEW
    return finding.polarity is Polarity.NEGATIVE and change is not TemporalChange.RESOLVED


def _stated_before(text: str, sentence: Sentence, denied: Finding, change: Span) -> Finding | None:
    """Return the finding that a change behind a denied one is of: "nodule, not solid, smaller"."""
    if change.start < denied.span.end or not text[: change.start].rstrip().endswith(","):
        return None
    before = [f for f in sentence.findings if f.span.end <= denied.span.start]
    stated = before[-1] if before else None
    return stated if stated and stated.is_likely and stated.change is None else None


def _is_conceded(text: str, finding: Finding, change: Span, lexicon: Lexicon) -> bool:
    """Return whether a word such as "although" separates a change from the finding before it.

    "The heart is not enlarged, although it has grown": the denial does not reach the change.
    """
    between = text[finding.span.end : change.start].lower().split()
    return not lexicon.grammar["concessions"].isdisjoint(between)


def _is_of_part(
    text: str, sentence: Sentence, finding: Finding, change: Attribute, lexicon: Lexicon
) -> bool:
    """Return whether the change is of a part named before it: "aeration has improved, no edema"."""
    if finding.polarity is not Polarity.NEGATIVE or finding.normal or change.value == "unchanged":
        return False
    denials = [r.span for r in finding.rules if r.name == "context:negated"]
    # In "interval resolution of the left lower lobe pneumonia", the change is the denial.
    if not denials or any(span.overlaps(change.span) for span in denials):
        return False
    if change.span.start > min(finding.span.start, *(span.start for span in denials)):
        return False
    return _part_of(text, sentence, change, lexicon) is not None


def _refers_back(text: str, sentence: Sentence, change: Attribute, lexicon: Lexicon) -> bool:
    """Return whether it is of the sentence before: "This was not seen before, and ..."."""
    before = text[sentence.span.start : change.span.start].lower()
    is_first = all(change.span.start < f.span.start for f in sentence.findings)
    refers = before.startswith(tuple(lexicon.grammar["refers_back"])) and not before.endswith(
        " of "
    )
    return is_first and refers and len(before.split()) <= _LONGEST_BACK


def _without_finding(
    report: ReportFindings, sentence: Sentence, attribute: Attribute, lexicon: Lexicon
) -> Iterator[FindingChange]:
    """Find what a change is about that belongs to no finding of its sentence."""
    text, change = report.plain, TemporalChange(attribute.value)
    part = _part_of(text, sentence, attribute, lexicon)
    if part is None and change is not TemporalChange.UNCHANGED:
        if not sentence.findings and _is_fragment(text, sentence, attribute):
            yield from _of_antecedent(report, sentence, attribute)
        elif change in ENLARGING:
            yield FindingChange(OTHER, change, attribute.span, sentence.index)
        return  # "no new abnormality": of what, nobody says
    if part in lexicon.grammar["topics_better_with_more"]:
        change = _turned(change, attribute.span.of(text), lexicon)
    yield FindingChange(part or EXAMINATION, change, attribute.span, sentence.index)


def _of_antecedent(
    report: ReportFindings, sentence: Sentence, attribute: Attribute
) -> Iterator[FindingChange]:
    """Find the last finding of the sentence before; if that compares it, another of its kind."""
    before = report.sentences[sentence.index - 1] if sentence.index else None
    meant = [f for f in before.findings if f.is_likely] if before else []
    if meant:
        last, change = meant[-1], TemporalChange(attribute.value)
        same = last if last.change is None else None
        yield FindingChange(last.observation, change, attribute.span, sentence.index, same)


def _is_fragment(text: str, sentence: Sentence, change: Attribute) -> bool:
    """Return whether a sentence is little more than a change: "Not present on the prior study."."""
    span = sentence.span
    around = text[span.start : change.span.start] + " " + text[change.span.end : span.end]
    return len(around.split()) <= _LONGEST_AROUND


def _part_of(text: str, sentence: Sentence, attribute: Attribute, lexicon: Lexicon) -> str | None:
    """Return the part of the chest in the sentence that is nearest to the words of change."""
    tokens = lexicon.tokenize(sentence.span.of(text))
    found = lexicon.trie.find(tokens)
    at = attribute.span.start - sentence.span.start
    parts = [*found.get("topic", ()), *found.get("subject", ())]
    parts = [m for m in parts if tokens[m.first].start < at] or parts
    nearest = min(
        parts, key=lambda m: (m.layer != "topic", abs(tokens[m.first].start - at)), default=None
    )
    return None if nearest is None else str(nearest.entry)


def _turned(change: TemporalChange, words: str, lexicon: Lexicon) -> TemporalChange:
    """Return the change of something that is better with more of it."""
    forms = [t.form for t in lexicon.tokenize(words)]
    phrases = {*forms, *map(" ".join, pairwise(forms))}
    if change not in ENLARGING or phrases.isdisjoint(lexicon.grammar["amounts"]):
        return change
    worse = change is TemporalChange.WORSE
    return TemporalChange.IMPROVED if worse else TemporalChange.WORSE
