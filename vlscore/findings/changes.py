"""Changes of a report since an earlier examination, by finding.

Also of parts of the chest without a finding ("aeration has improved"), and of a finding that the
sentence before names ("This was not present before").
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from vlscore.errors import InvalidReport
from vlscore.findings.change_words import ENLARGING
from vlscore.findings.lexicon import Lexicon
from vlscore.findings.tokens import Match, Token
from vlscore.findings.types import (
    Attribute,
    Axis,
    Category,
    Comparison,
    Finding,
    Polarity,
    ReportFindings,
    Sentence,
    Span,
    Status,
    TemporalChange,
)


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
#: The topics of statements about findings of the sentence before, which are lists of words: all of
#: them ("both have increased"), the first and the last one ("the former", "the latter").
_REFERRING = _ALL, _FIRST, _LAST = "of_all", "of_first", "of_last"
#: The topic of a finding that the lexicon does not have.
OTHER = "other"
_SILENT = (Category.TECHNIQUE, Category.RECOMMENDATION, Category.COMMUNICATION, Category.HISTORY)
_LONGEST_BACK, _LONGEST_AROUND = 6, 3


def changes_of(report: ReportFindings) -> tuple[FindingChange, ...]:
    """Return the changes that a report states since an earlier examination, in text order.

    A finding has one change. A device becomes neither better nor worse: such words say that it has
    moved, which is no change here. A denied finding has none, unless it has resolved or its denial
    is a statement of normality ("the heart is normal and unchanged").

    >>> from vlscore.findings import extract
    >>> found = changes_of(extract("The effusion is larger than before. No new nodule."))
    >>> [(c.topic, str(c.change)) for c in found]
    [('pleural_effusion', 'worse')]
    """
    if not isinstance(report, ReportFindings):
        kind = type(report).__name__
        raise InvalidReport(f"changes_of takes what extract returns for a report, not a {kind}")
    found: list[FindingChange] = []
    for sentence in report.sentences:
        if not sentence.comparisons or sentence.category in _SILENT:
            continue
        for topic, change, span, number in sentence.comparisons:
            finding = None if number is None else sentence.findings[number]
            if topic is None or topic in _REFERRING:
                for each in referred(report.sentences[: sentence.index], topic, span):
                    # What is compared already is another one of its kind.
                    is_open = each.change in (None, TemporalChange.UNCHANGED)
                    of = each.observation, change, span, sentence.index, each if is_open else None
                    found.append(FindingChange(*of))
            else:
                found.append(FindingChange(topic, change, span, sentence.index, finding))
    real = (c for c in found if not (_is_device(c.finding) and c.change in ENLARGING))
    return tuple(sorted(real, key=lambda c: c.span))


def _is_device(finding: Finding | None) -> bool:
    return finding is not None and finding.chexpert == "Support Devices"


def referred(before: Sequence[Sentence], topic: str | None, words: Span) -> list[Finding]:
    """Return the findings of the sentences `before` of which a change without a finding is.

    They are of the sentence right before, or of the one before a sentence that refers to them, too.
    What has gone by these words is among them.
    """
    sentences = list(before[-2:])
    while len(sentences) > 1 and not sentences[-1].findings and sentences[-1].comparisons:
        sentences.pop()
    if topic is not None and topic not in _REFERRING:
        return []
    found = [
        f
        for f in (sentences[-1].findings if sentences else ())
        if f.is_likely or any(rule.span == words for rule in f.rules)
    ]
    return found if topic == _ALL else found[:1] if topic == _FIRST else found[-1:]


def speaks_of_earlier(report: ReportFindings) -> bool:
    """Return whether a report compares with an earlier examination, or refers to one.

    >>> from vlscore.findings import extract
    >>> [speaks_of_earlier(extract(t)) for t in ("Stable nodule.", "No prior study. Old fracture.")]
    [True, False]
    """
    clinical = (s for s in report.sentences if s.category not in _SILENT)
    return any(s.names_earlier for s in clinical) or bool(changes_of(report))


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
        sentences.append(replace(sentence, findings=findings, changes=(), comparisons=()))
    return ReportFindings(report.text, tuple(sentences))


class StatedChanges:
    """The findings and parts of the chest of one statement, of which its changes may be."""

    def __init__(
        self,
        tokens: Sequence[Token],
        found: dict[str, list[Match]],
        findings: Sequence[Finding],
        lexicon: Lexicon,
    ) -> None:
        self._tokens, self._found, self._findings = tokens, found, findings
        self._lists = lists = lexicon.lists
        self._conjunctions = {",", *lists["and"], *lists["or"]}
        self._joints = lists["joints"] | lists["and"] | {","}

    def of(self, changes: Sequence[Attribute]) -> Iterator[Comparison]:
        """Find what each change is of; a change may be of several findings."""
        free = dict.fromkeys(changes)
        for attribute in [a for a in changes if self._refers_back(a)]:
            del free[attribute]
            yield Comparison(None, TemporalChange(attribute.value), attribute.span)
        spans = {a.span for a in free}
        for number, finding in enumerate(self._findings):
            change = finding.change
            stated = [a for a in finding.on(Axis.CHANGE) if a.span in spans]
            own = [a for a in stated if a.value == change]
            if not own:
                continue
            for attribute in stated:
                free.pop(attribute._replace(inherited=False), None)
            if not _compares_nothing(finding, own[0]):
                yield self._of_finding(number, max(own, key=lambda a: a.span.end - a.span.start))
        yield from self._shared_ahead()
        yield from self._shared_behind()
        yield from self._shared_likewise(changes)
        for attribute in free:
            stating = [n for n, f in enumerate(self._findings) if attribute.span.overlaps(f.cue)]
            if any(self._findings[n].cue.covers(attribute.span) for n in stating) and (
                attribute.value == TemporalChange.RESOLVED
            ):
                continue  # "the breast has been removed" is what is found
            if not stating:
                yield from self._without_finding(attribute)
            elif len(self._forms(*attribute.span)) > 1:  # not of "heart size is increased"
                for number in stating:
                    yield self._of_finding(number, attribute)

    def _forms(self, start: int, end: int) -> list[str]:
        return [token.form for token in self._tokens if start <= token.start and token.end <= end]

    def _of_finding(self, number: int, attribute: Attribute) -> Comparison:
        return self._of_topic(self._findings[number].observation, attribute, number)

    def _of_topic(self, topic: str, attribute: Attribute, number: int | None = None) -> Comparison:
        """Return a change; one of amount is turned round if more of the topic is better."""
        change = TemporalChange(attribute.value)
        if topic in self._lists["better_with_more"] and change in ENLARGING:
            forms = self._forms(*attribute.span)
            forms += [*map(" ".join, pairwise(forms))]
            is_state = not self._lists["states_of_more"].isdisjoint(forms)
            if not is_state and not self._lists["amounts"].isdisjoint(forms):
                worse = change is TemporalChange.WORSE
                change = TemporalChange.IMPROVED if worse else TemporalChange.WORSE
        return Comparison(topic, change, attribute.span, number)

    def _shared_ahead(self) -> Iterator[Comparison]:
        """Find the changes of findings before another: "effusion and edema are unchanged".

        In a list of several, "and" stands before the last one alone.
        """
        lists, shared = self._lists, None
        in_list = False
        for number, (one, other) in reversed(list(enumerate(pairwise(self._findings)))):
            stated = [a for a in other.on(Axis.CHANGE) if a.span.start > other.span.end]
            if stated:
                change = other.change or TemporalChange(stated[0].value)
                shared, in_list = stated[0]._replace(value=change), False
            elif not in_list:
                shared = None
            if shared is None or one.change is not None or not one.is_likely:
                in_list = False
                continue
            between = self._unqualified(one, other)
            behind = self._forms(other.span.end, shared.span.start)
            said = self._forms(other.span.end, shared.span.end)
            is_of_all = not lists["of_all"].isdisjoint(said)
            # "Effusion with atelectasis, unchanged", "effusion with atelectasis has decreased"
            is_of_both = behind[-1:] == [","] or not lists["verbs_of_clauses"].isdisjoint(said[:1])
            with_ = is_of_both and not lists["with"].isdisjoint(between)
            # In "small effusion, and edema has cleared" the comma ends a clause.
            ends = {",", *lists["and"]}.intersection(between)
            ends_clause = len(ends) > 1 and not self._in_list(number) and not is_of_all
            joined = is_of_all or with_ or not (lists["and"].isdisjoint(between) or ends_clause)
            in_list = in_list or is_of_all
            joints = self._joints | lists["with"]
            in_list = (joined or (in_list and "," in between)) and joints.issuperset(between)
            # "The opacity, which may be a pneumonia, has grown"
            is_aside = between[:1] == behind[:1] == [","] and not joints.issuperset(between)
            if (in_list or is_aside) and not (
                # "There is an effusion, and edema has resolved" has two verbs.
                lists["verbs_of_clauses"].intersection(said[:1])
                and lists["verbs_of_clauses"].intersection(self._clause_before(one))
            ):
                yield Comparison(one.observation, TemporalChange(shared.value), shared.span, number)

    def _in_list(self, number: int) -> bool:
        """Return whether a comma stands between a finding and the one before it."""
        pair = self._findings[max(0, number - 1) : number + 1]
        return len(pair) == 2 and "," in self._unqualified(*pair)

    def _clause_before(self, finding: Finding) -> list[str]:
        """Return the words of a finding's clause that stand before it."""
        forms = self._forms(0, finding.span.start)
        begins = [n for n, form in enumerate(forms, start=1) if form in self._conjunctions]
        return forms[begins[-1] if begins else 0 :]

    def _shared_behind(self) -> Iterator[Comparison]:
        """Find the changes of findings behind another: "increase in effusion and edema".

        An adjective is shared where it is a change of amount and the next finding has no degree of
        its own: in "worsening effusion and mild edema" it may be of the effusion alone.
        """
        stated: Attribute | None = None
        for number, (one, other) in enumerate(pairwise(self._findings), start=1):
            own = [a for a in one.on(Axis.CHANGE) if a.span.end <= one.cue.start]
            stated = own[0] if own else None if one.change is not None else stated
            both = one.polarity is other.polarity is Polarity.POSITIVE
            if stated is None or other.change is not None or not both:
                stated = None
                continue
            change, (start, end) = TemporalChange(stated.value), stated.span
            last = {*self._forms(start, end)[-1:], *self._forms(end, other.span.start)[:1]}
            between = self._unqualified(one, other)
            is_of_all = not self._lists["of"].isdisjoint(last)
            joints = self._joints | self._conjunctions
            joints |= self._lists["of"] if is_of_all else frozenset()
            joined = not self._conjunctions.isdisjoint(between) and joints.issuperset(between)
            # "Increase in the effusion, small pneumothorax"
            is_listed = is_of_all and not self._lists["and"].isdisjoint(between)
            is_graded = other.severity is not None and not is_listed
            if not joined or is_graded or not (is_of_all or change in ENLARGING):
                stated = None
                continue
            yield Comparison(other.observation, change, stated.span, number)

    def _shared_likewise(self, changes: Sequence[Attribute]) -> Iterator[Comparison]:
        """Find the changes that hold for a further finding: "edema has cleared, *as have* ..."."""
        for words in self._found.get("likewise", ()):
            start, end = self._tokens[words.first].start, self._tokens[words.last - 1].end
            before = [a for a in changes if a.span.end <= start]
            behind = [(n, f) for n, f in enumerate(self._findings) if f.span.start >= end]
            for number, finding in behind if before else ():
                if finding.change is not None or not finding.is_likely:
                    break
                yield self._of_finding(number, before[-1])

    def _unqualified(self, one: Finding, other: Finding) -> list[str]:
        """Return the words between two findings that say nothing of either."""
        qualified = [a.span for f in (one, other) for a in f.attributes]
        return [
            t.form
            for t in self._tokens
            if one.span.end <= t.start
            and t.end <= other.span.start
            and not any(s.start <= t.start < s.end for s in qualified)
        ]

    def _refers_back(self, change: Attribute) -> bool:
        """Return whether it is of the sentence before: "This was not seen before, and ..."."""
        before = [f for f in self._forms(0, change.span.start) if f[0].isalnum()]
        return (
            not self._lists["anaphors"].isdisjoint(before[:1])
            and before[-1] not in self._lists["of"]
            and len(before) <= _LONGEST_BACK
            and all(change.span.start < f.span.start for f in self._findings)
        )

    def _without_finding(self, attribute: Attribute) -> Iterator[Comparison]:
        """Find what a change is about that belongs to no finding of its statement."""
        change, part = TemporalChange(attribute.value), self._nearest_part(attribute)
        if part is not None or change is TemporalChange.UNCHANGED:
            yield self._of_topic(part or EXAMINATION, attribute)
            return
        start, end = attribute.span
        around = [
            t for t in self._tokens if (t.end <= start or end <= t.start) and t.form[0].isalnum()
        ]
        of = [t for form in self._forms(0, end) for t in _REFERRING if form in self._lists[t]]
        if not self._findings and (
            of[-1:] in ([_FIRST], [_LAST]) or len(around) <= _LONGEST_AROUND
        ):
            yield Comparison(of[-1] if of else None, change, attribute.span)
        elif change in ENLARGING:  # "no new abnormality": of what, nobody says
            yield Comparison(OTHER, change, attribute.span)

    def _nearest_part(self, attribute: Attribute) -> str | None:
        """Return the part of the chest that is nearest to the words of change."""
        at = attribute.span.start
        parts = [*self._found.get("topic", ()), *self._found.get("subject", ())]
        starts = [(m.layer != "topic", self._tokens[m.first].start, m.entry) for m in parts]
        starts = [each for each in starts if each[1] < at] or starts
        nearest = min(starts, key=lambda each: (each[0], abs(each[1] - at)), default=None)
        return None if nearest is None else str(nearest[2])


def _compares_nothing(finding: Finding, change: Attribute) -> bool:
    """Return whether a finding has no change, whatever the words: "no new nodule"."""
    if finding.status is not Status.CURRENT:
        return True
    if finding.normal:
        return change.value == TemporalChange.NEW
    if finding.polarity is Polarity.UNCERTAIN:
        # "Could be developing pneumonia" compares nothing.
        return change.span.end <= finding.span.start
    return finding.polarity is Polarity.NEGATIVE and change.value != TemporalChange.RESOLVED
