"""Errors about changes since an earlier examination.

After ReXVal's two categories: a false comparison states a change that the reference does not state,
an omitted one leaves out, or contradicts, a change that the reference states. "Unchanged" is no
change: a report that says so where the other is silent has no error.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from vlscore.findings import FindingChange, Polarity, Span, TemporalChange
from vlscore.metrics.judge.compared_reports import ComparedReports
from vlscore.metrics.judge.judge_tables import JudgeTables
from vlscore.metrics.judge.judgement import SIGNIFICANT, ErrorItem, Quote
from vlscore.metrics.judge.statement_pairs import StatementPair
from vlscore.metrics.judge.statement_reading import concept_of
from vlscore.metrics.judge.statements import ReportStatements, Statement, around
from vlscore.perturb import ErrorCategory

#: A change that a clinician acts on, as far as the finding itself is acted on; others count less.
_GROWING = (TemporalChange.NEW, TemporalChange.WORSE)
_MOST = {True: 3, False: 2}
#: Topic of a change of something that the extraction does not know.
_UNKNOWN = "other"
#: Layers of words that may compare.
_LOOSE = ("change", "comparative", "event", "disease")
#: Marks of words that say that a finding is there still.
_PRESENCE = ("still there", "remainder")


class ChangeErrors:
    """Errors about the changes of two reports: of pairs, and of what has no partner."""

    def __init__(self, case: ComparedReports, pairs: Iterable[StatementPair]) -> None:
        self._case = case
        #: Words of change that are an error already: 0 or 1 (candidate, reference), and their span.
        self._charged: set[tuple[int, Span]] = set()
        #: Words of change on which both reports agree for one of the findings that share them.
        self._agreed: set[tuple[int, Span]] = set()
        for pair in pairs:
            stated, true = pair.candidate.change, pair.reference.change
            if stated is not None and true is not None and _error(stated, true) is None:
                self._agreed |= {(0, stated.span), (1, true.span)}

    def of(self, pair: StatementPair) -> Iterator[ErrorItem]:
        """Return the error about the change of a finding that both reports state."""
        candidate, reference, tables = self._case.candidate, self._case.reference, self._case.tables
        stated = _stated(pair.candidate.change, candidate)
        true = _stated(pair.reference.change, reference)
        category = _error(stated, true)
        if category is None:
            return
        if stated is not None and true is None and (0, stated.span) in self._agreed:
            return
        if stated is None and true is not None and (1, true.span) in self._agreed:
            return
        if stated is None and _may_state(candidate, pair.candidate.line, true, tables):
            return
        compares = any(c.is_real for c in reference.changes)
        line, named = pair.reference.line, 0 if compares else pair.reference.finding.span.start
        if true is None and _may_state(reference, line, stated, tables, named):
            return
        # "The left base is worse" is compared with what the other report says of that part.
        concept = frozenset((pair.reference.concept,))
        if stated is None and _speaks_of_part(candidate, concept, tables):
            return
        if self._is_charged(pair):
            return
        wrong = stated if stated is not None and stated.is_real else true
        assert wrong is not None
        full, is_omitted = self._case.severity(pair.reference).level, stated is None
        severity = full if _contradict(stated, true) else _severity(wrong, full, is_omitted)
        yield replace(
            self._case.error_of(pair, category, severity, "change", _reason(stated, true)),
            candidate=_quote_with(candidate, pair.candidate, _span_of(pair.candidate.change)),
            reference=_quote_with(reference, pair.reference, _span_of(pair.reference.change)),
        )

    def of_device(self, pair: StatementPair) -> Iterator[ErrorItem]:
        """Return the error of a device that one report alone says has been moved."""
        stated, true = pair.candidate.moved, pair.reference.moved
        if (stated is None) == (true is None):
            return
        category, reason = ErrorCategory.FALSE_COMPARISON, "says that it was moved"
        if stated is None:
            category, reason = ErrorCategory.OMITTED_COMPARISON, "does not say that it was moved"
        severity = min(_MOST[False], self._case.severity(pair.reference).level)
        yield replace(
            self._case.error_of(pair, category, severity, "line", reason),
            candidate=_quote_with(self._case.candidate, pair.candidate, stated),
            reference=_quote_with(self._case.reference, pair.reference, true),
        )

    def _is_charged(self, pair: StatementPair) -> bool:
        """Return whether the same words are an error already: "A and B have increased"."""
        changes = {
            (k, c.span)
            for k, c in enumerate((pair.candidate.change, pair.reference.change))
            if c is not None and c.is_real
        }
        known = bool(changes & self._charged)
        self._charged |= changes
        return known

    def of_candidate(self, kept: Iterable[Statement]) -> Iterator[ErrorItem]:
        """Return the errors of changes that the candidate states alone.

        They are of parts, of what has resolved, and of `kept`: statements without a partner that
        are no false finding.
        """
        report, other, tables = self._case.candidate, self._case.reference, self._case.tables
        own = [s.change for s in kept if s.change is not None and s.change.is_real]
        lone = [*_lone(report), *own]
        for change, concept in _without_partner(lone, report, other, tables):
            if _is_charged_as_finding(change, report, other, tables):
                continue
            # "The left base is worse" where the reference says so of a finding there.
            parts = _concepts_of(change, report, tables) - {_UNKNOWN}
            if concept is None and _is_said(other, change, parts, tables):
                continue
            line = report.findings.sentences[change.sentence].span
            yield self._lone_error(
                ErrorCategory.FALSE_COMPARISON,
                change,
                concept,
                line,
                self._case.lines.rewritten(line),
            )

    def of_reference(self, alone: Iterable[Statement]) -> Iterator[ErrorItem]:
        """Return the errors of changes that the candidate leaves out.

        Args: alone: statements without a partner; the omission of a new finding is one error.
        """
        report, other, tables = self._case.reference, self._case.candidate, self._case.tables
        own = [
            s.change
            for s in alone
            if s.change is not None
            and s.change.is_real
            and s.change.change is not TemporalChange.NEW
            and not names_by_change(s.change)
            and not self._is_contradicted(s)
        ]
        # What the candidate states of the same part is wrong, and one error already.
        lone = [
            change
            for change in (*_lone(report), *own)
            if not names_by_change(change)
            or not speaks_of(other, _named(change, report, tables) - {_UNKNOWN}, tables)
        ]
        for change, concept in _without_partner(lone, report, other, tables):
            if not _is_charged_as_finding(change, report, other, tables):
                line = report.findings.sentences[change.sentence].span
                omitted = ErrorCategory.OMITTED_COMPARISON
                yield self._lone_error(omitted, change, concept, None, line.of(report.text))

    def _is_contradicted(self, statement: Statement) -> bool:
        """Return whether the candidate states the opposite change there, which is one error."""
        return any(
            _contradict(other.change, statement.change)
            and other.place.may_be_near(statement.place)
            and _may_be_one(statement.concepts, other.concepts, self._case.tables)
            for other in self._case.candidate.statements
        )

    def _lone_error(
        self,
        category: ErrorCategory,
        change: FindingChange,
        concept: str | None,
        line: Span | None,
        correction: str,
    ) -> ErrorItem:
        """Return an error about a change that one report states alone."""
        is_omitted = category is ErrorCategory.OMITTED_COMPARISON
        report = self._case.reference if is_omitted else self._case.candidate
        quote = Quote(change.span.of(report.text), change.span)
        full = self._case.tables.concepts[concept].severity[1] if concept else SIGNIFICANT
        return ErrorItem(
            category,
            _severity(change, full, is_omitted),
            (concept or change.topic).replace("_", " "),
            None if is_omitted else quote,
            quote if is_omitted else None,
            line,
            correction,
            _reason(None, change) if is_omitted else _reason(change, None),
        )


def names_by_change(change: FindingChange | None) -> bool:
    """Return whether the words of a change themselves name what has changed.

    "The heart is larger" and "the heart is smaller" differ in the change, not in the finding.
    """
    if change is None or not change.is_real:
        return False
    return change.finding is None or change.span.overlaps(change.finding.cue)


def _speaks_of_part(
    report: ReportStatements, concepts: frozenset[str], tables: JudgeTables
) -> bool:
    """Return whether a report states a change of a part in which a finding is."""
    changes = (c for c in report.changes if c.is_real and c.finding is None)
    return any(concepts & (_concepts_of(c, report, tables) - {_UNKNOWN}) for c in changes)


def speaks_of(report: ReportStatements, concepts: frozenset[str], tables: JudgeTables) -> bool:
    """Return whether a report states a change of one of some concepts or parts."""
    return any(c.is_real and concepts & _concepts_of(c, report, tables) for c in report.changes)


def _was_placed(report: ReportStatements, line: Span, tables: JudgeTables) -> bool:
    """Return whether something was placed in a sentence, or in one that names no other device."""
    for sentence in report.findings.sentences:
        placed = any(m.name == "placed" for m in sentence.marks)
        concepts = (tables.of_observation[f.observation] for f in sentence.findings)
        is_of_other = any(tables.concepts[name].device for name in concepts)
        if placed and (line.covers(sentence.span) or not is_of_other):
            return True
    return False


def is_said_of_part(
    statement: Statement, own: ReportStatements, report: ReportStatements, tables: JudgeTables
) -> bool:
    """Return whether a report says in other words what the change of a finding means.

    "The left base is better aerated" for "left basal atelectasis has improved", and "the opacity
    has cleared" for "clearing of the opacity".
    """
    if (change := statement.change) is None:
        return False
    agreeing = [c for c in report.changes if _agree(c, change)]
    marks = own.findings.sentences[change.sentence].marks
    clears = any(m.name == "clearing" and m.span.overlaps(change.span) for m in marks)
    return any(
        statement.concept in tables.topics.get(c.topic, ())
        if c.finding is None
        else clears and c.change is TemporalChange.RESOLVED and c.topic in statement.observations
        for c in agreeing
    )


def uncompared(report: ReportStatements) -> ReportStatements:
    """Return the statements of a report without changes since an earlier examination."""
    statements = tuple(replace(s, change=None) for s in report.statements)
    return replace(report, statements=statements, changes=())


def _error(stated: FindingChange | None, true: FindingChange | None) -> ErrorCategory | None:
    """Return the error of a change that a candidate states of a finding; None without one."""
    if stated is not None and stated.is_real:
        same = true is not None and _agree(stated, true)
        return None if same else ErrorCategory.FALSE_COMPARISON
    if true is not None and true.is_real:
        return ErrorCategory.OMITTED_COMPARISON
    return None


def _stated(change: FindingChange | None, report: ReportStatements) -> FindingChange | None:
    """Return the change; None if its words say only that the finding is there ("residual")."""
    if change is None or change.is_real:
        return change
    return None if _is_of_presence(change, report) else change


def _is_of_presence(change: FindingChange, report: ReportStatements) -> bool:
    """Return whether the words of a change say only that a finding is there still: "residual"."""
    marks = report.findings.sentences[change.sentence].marks
    there = (m.span for m in marks if m.name in _PRESENCE)
    return any(span.covers(change.span) or change.span.covers(span) for span in there)


def _may_state(
    report: ReportStatements,
    line: Span,
    change: FindingChange | None,
    tables: JudgeTables,
    named: int = 0,
) -> bool:
    """Return whether a sentence states a change in the same direction, or has words that may.

    In "consolidation with a small effusion, larger", readers may give the change to either.

    Args:
        line: the characters of the sentence.
        named: the character at which it names the finding; words of amount before it compare
            nothing ("increased interstitial opacities").
    """
    if change is None or not change.is_real:
        return False
    said = {m.name for s in report.findings.sentences for m in s.marks if line.covers(m.span)}
    if "remainder" in said and change.change not in _GROWING:
        return True
    if change.change is TemporalChange.NEW and _was_placed(report, line, tables):
        return True
    if any(c.is_real and _agree(c, change) and line.covers(c.span) for c in report.changes):
        return True
    words = tables.lexicon.lists
    turns = change.topic in words["better_with_more"]
    tokens = tables.lexicon.tokenize(line.of(report.findings.plain))
    found = tables.lexicon.trie.find(tokens)
    for match in (m for how in _LOOSE for m in found.get(how, ())):
        if match.entry in (None, TemporalChange.UNCHANGED):
            continue
        first = tokens[match.first]
        if first.form in words["verbs_of_amount"] and line.start + first.start < named:
            continue
        is_growing = TemporalChange(match.entry) in _GROWING
        is_turned = turns and first.form in words["amounts"]
        if (is_growing != is_turned) == (change.change in _GROWING):
            return True
    return False


def _severity(change: FindingChange, full: int, is_omitted: bool = False) -> int:
    """Return the severity of an error about a change that one report states alone.

    A change that is left out has 2 at most, as a change for the better: RadPref's radiologists
    hardly rate a report lower for it.

    Args: full: severity of leaving out the finding itself.
    """
    return min(full, _MOST[not is_omitted and change.change in _GROWING])


def _contradict(stated: FindingChange | None, true: FindingChange | None) -> bool:
    """Return whether two changes have opposite directions: "smaller" for "larger"."""
    if stated is None or true is None:
        return False
    return stated.is_real and true.is_real and not _agree(stated, true)


def _reason(stated: FindingChange | None, true: FindingChange | None) -> str:
    """Return the reason of an error, a sentence."""
    if stated is None:
        return f"does not say: {true and true.change}"
    says = f"says: {true.change}" if true else "does not"
    return f"says: {stated.change}; the reference {says}"


def _agree(one: FindingChange, other: FindingChange) -> bool:
    """Return whether two changes have one direction: "resolved" is the end of "improved"."""
    growing = (one.change in _GROWING) == (other.change in _GROWING)
    return one.is_real and other.is_real and growing


def _span_of(change: FindingChange | None) -> Span | None:
    return None if change is None else change.span


def _quote_with(report: ReportStatements, statement: Statement, compared: Span | None) -> Quote:
    """Return the words of a finding with those that compare it, or these where they stand apart."""
    span = statement.quoted
    if compared is not None:
        span = around(span, compared) if statement.line.covers(compared) else compared
    return Quote(span.of(report.text), span)


def _is_charged_as_finding(
    change: FindingChange, report: ReportStatements, other: ReportStatements, tables: JudgeTables
) -> bool:
    """Return whether only the other report states the finding that has resolved: one error."""
    concepts = _concepts_of(change, report, tables)
    is_still_there = any(s.concept in concepts and _is_at(change, s) for s in report.statements)
    is_there = (
        _may_be_one(concepts, s.concepts, tables) for s in other.statements if _is_at(change, s)
    )
    return change.change is TemporalChange.RESOLVED and not is_still_there and any(is_there)


def _is_at(change: FindingChange, statement: Statement) -> bool:
    """Return whether a change may be of the side of a statement."""
    sides = () if change.finding is None else change.finding.sides
    return not sides or not statement.place.sides or not statement.place.sides.isdisjoint(sides)


def _lone(report: ReportStatements) -> list[FindingChange]:
    """Return the changes of what a report does not state as a finding: parts, what has resolved.

    "No residual effusion" denies it, and states no change.
    """
    return [
        c
        for c in report.changes
        if c.is_real
        and (
            c.finding is None
            or (
                (c.finding.polarity is Polarity.NEGATIVE or c.change is TemporalChange.RESOLVED)
                and not _is_of_presence(c, report)
            )
        )
    ]


def _without_partner(
    lone: Iterable[FindingChange],
    report: ReportStatements,
    other: ReportStatements,
    tables: JudgeTables,
) -> Iterable[tuple[FindingChange, str | None]]:
    """Return the changes that the other report does not state of the same part, with the concepts.

    Words of change count once, but once for each device: two tubes that "are out" are two. What
    several sentences say of one finding counts once, too.
    """
    theirs = [(c, _concepts_of(c, other, tables)) for c in other.changes]
    left: dict[tuple[Span, str | None], tuple[FindingChange, str | None]] = {}
    for change in lone:
        concept = _concept_of(change, report, tables)
        own = _concepts_of(change, report, tables)
        is_stated = any(_agree(change, c) and _may_be_one(own, of, tables) for c, of in theirs)
        named = frozenset((concept,)) if concept else frozenset[str]()
        if not is_stated and not _is_said(other, change, named, tables):
            is_device = concept is not None and tables.concepts[concept].device
            left[change.span, concept if is_device else None] = change, concept
    once: dict[tuple[str, bool], tuple[FindingChange, str | None]] = {}
    for change, concept in left.values():
        once.setdefault((concept or change.topic, change.change in _GROWING), (change, concept))
    return once.values()


def _is_said(
    report: ReportStatements, change: FindingChange, concepts: frozenset[str], tables: JudgeTables
) -> bool:
    """Return whether a sentence about the same finding or part has words that may state the change.

    A device that is denied by name has been removed: "an LVAD has replaced the Impella".
    """
    is_removed = change.change is TemporalChange.RESOLVED
    for sentence in report.findings.sentences:
        for finding in sentence.findings if is_removed else ():
            name = concept_of(finding.observation, finding.span, sentence, tables)
            is_denied = finding.polarity is Polarity.NEGATIVE and name in concepts
            if is_denied and tables.concepts[name].device:
                return True
        named = {tables.of_observation[f.observation] for f in sentence.findings}
        if change.finding is None and change.topic in tables.of_observation:
            tokens = tables.lexicon.tokenize(sentence.span.of(report.findings.plain))
            found = tables.lexicon.trie.find(tokens)
            named = {str(m.entry) for how in ("subject", "topic") for m in found.get(how, ())}
        is_named = _may_be_one(concepts, frozenset(named), tables)
        if is_named and _may_state(report, sentence.span, change, tables):
            return True
    return False


def _may_be_one(one: frozenset[str], other: frozenset[str], tables: JudgeTables) -> bool:
    """Return whether a concept of one is a concept of the other, or its less exact name."""
    exact = tables.coarser.keys()
    if _UNKNOWN in one | other:
        return True
    return not one.isdisjoint(other) or any(
        pair in exact for a in one for b in other for pair in ((a, b), (b, a))
    )


def _concept_of(change: FindingChange, report: ReportStatements, tables: JudgeTables) -> str | None:
    """Return the concept of the finding that a change is of; None for a part of the chest."""
    if change.topic not in tables.of_observation:
        return None
    named, number = change.span, change.sentence
    if change.finding is not None:
        named, number = change.finding.span, change.finding.sentence
    return concept_of(change.topic, named, report.findings.sentences[number], tables)


def _concepts_of(
    change: FindingChange, report: ReportStatements, tables: JudgeTables
) -> frozenset[str]:
    """Return the concepts that a change is about: of a part, all that its normality denies."""
    parts = tables.topics.get(change.topic, ())
    return _named(change, report, tables, parts)


def _named(
    change: FindingChange, report: ReportStatements, tables: JudgeTables, parts: Iterable[str] = ()
) -> frozenset[str]:
    """Return the concept of a change; for parts of the chest, those that they deny when normal."""
    known = tables.of_observation
    if (concept := _concept_of(change, report, tables)) is not None:
        return frozenset((concept,))
    parts = (change.topic, *parts)
    denied = tables.lexicon.normal_of["normal"]
    return frozenset((*parts, *(known[name] for part in parts for name in denied.get(part, ()))))
