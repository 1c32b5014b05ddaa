"""Changes that a report states: of which finding or part, and whether another one agrees."""

from collections.abc import Iterable
from dataclasses import replace

from vlscore.findings import FindingChange, Polarity, Span, TemporalChange
from vlscore.metrics.judge.judge_tables import JudgeTables
from vlscore.metrics.judge.statement_reading import concept_of
from vlscore.metrics.judge.statements import ReportStatements, Statement

#: Changes for the worse.
GROWING = (TemporalChange.NEW, TemporalChange.WORSE)
#: Topic of a change of something that the extraction does not know.
UNKNOWN = "other"
#: Layers of words that may compare.
_LOOSE = ("change", "comparative", "event", "disease")
#: Marks of words that say that a finding is there still.
_PRESENCE = ("still there", "remainder")


def names_by_change(change: FindingChange | None) -> bool:
    """Return whether the words of a change themselves name what has changed.

    "The heart is larger" and "the heart is smaller" differ in the change, not in the finding.
    """
    if change is None or not change.is_real:
        return False
    return change.finding is None or change.span.overlaps(change.finding.cue)


def speaks_of_part(report: ReportStatements, concepts: frozenset[str], tables: JudgeTables) -> bool:
    """Return whether a report states a change of a part in which a finding is."""
    changes = (c for c in report.changes if c.is_real and c.finding is None)
    return any(concepts & (concepts_of(c, report, tables) - {UNKNOWN}) for c in changes)


def speaks_of(report: ReportStatements, concepts: frozenset[str], tables: JudgeTables) -> bool:
    """Return whether a report states a change of one of some concepts or parts."""
    return any(c.is_real and concepts & concepts_of(c, report, tables) for c in report.changes)


def is_said_of_part(
    statement: Statement, own: ReportStatements, report: ReportStatements, tables: JudgeTables
) -> bool:
    """Return whether a report says in other words what the change of a finding means.

    "The left base is better aerated" for "left basal atelectasis has improved", and "the opacity
    has cleared" for "clearing of the opacity".
    """
    if (change := statement.change) is None:
        return False
    agreeing = [c for c in report.changes if agree(c, change)]
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


def is_of_presence(change: FindingChange, report: ReportStatements) -> bool:
    """Return whether the words of a change say only that a finding is there still: "residual"."""
    marks = report.findings.sentences[change.sentence].marks
    there = (m.span for m in marks if m.name in _PRESENCE)
    return any(span.covers(change.span) or change.span.covers(span) for span in there)


def _was_placed(report: ReportStatements, line: Span, tables: JudgeTables) -> bool:
    """Return whether something was placed in a sentence, or in one that names no other device."""
    for sentence in report.findings.sentences:
        placed = any(m.name == "placed" for m in sentence.marks)
        concepts = (tables.of_observation[f.observation] for f in sentence.findings)
        is_of_other = any(tables.concepts[name].device for name in concepts)
        if placed and (line.covers(sentence.span) or not is_of_other):
            return True
    return False


def may_state(
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
    if "remainder" in said and change.change not in GROWING:
        return True
    if change.change is TemporalChange.NEW and _was_placed(report, line, tables):
        return True
    if any(c.is_real and agree(c, change) and line.covers(c.span) for c in report.changes):
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
        is_growing = TemporalChange(match.entry) in GROWING
        is_turned = turns and first.form in words["amounts"]
        if (is_growing != is_turned) == (change.change in GROWING):
            return True
    return False


def agree(one: FindingChange, other: FindingChange) -> bool:
    """Return whether two changes have one direction: "resolved" is the end of "improved"."""
    growing = (one.change in GROWING) == (other.change in GROWING)
    return one.is_real and other.is_real and growing


def lone_changes(report: ReportStatements) -> list[FindingChange]:
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
                and not is_of_presence(c, report)
            )
        )
    ]


def without_partner(
    lone: Iterable[FindingChange],
    report: ReportStatements,
    other: ReportStatements,
    tables: JudgeTables,
) -> Iterable[tuple[FindingChange, str | None]]:
    """Return the changes that the other report does not state of the same part, with the concepts.

    Words of change count once, but once for each device: two tubes that "are out" are two. What
    several sentences say of one finding counts once, too.
    """
    theirs = [(c, concepts_of(c, other, tables)) for c in other.changes]
    left: dict[tuple[Span, str | None], tuple[FindingChange, str | None]] = {}
    for change in lone:
        concept = _concept_of(change, report, tables)
        own = concepts_of(change, report, tables)
        is_stated = any(agree(change, c) and may_be_one(own, of, tables) for c, of in theirs)
        named = frozenset((concept,)) if concept else frozenset[str]()
        if not is_stated and not is_said(other, change, named, tables):
            is_device = concept is not None and tables.concepts[concept].device
            left[change.span, concept if is_device else None] = change, concept
    once: dict[tuple[str, bool], tuple[FindingChange, str | None]] = {}
    for change, concept in left.values():
        once.setdefault((concept or change.topic, change.change in GROWING), (change, concept))
    return once.values()


def is_said(
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
        is_named = may_be_one(concepts, frozenset(named), tables)
        if is_named and may_state(report, sentence.span, change, tables):
            return True
    return False


def may_be_one(one: frozenset[str], other: frozenset[str], tables: JudgeTables) -> bool:
    """Return whether a concept of one is a concept of the other, or its less exact name."""
    exact = tables.coarser.keys()
    if UNKNOWN in one | other:
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


def concepts_of(
    change: FindingChange,
    report: ReportStatements,
    tables: JudgeTables,
    *,
    with_topics: bool = True,
) -> frozenset[str]:
    """Return the concepts that a change is about: of a part, all that its normality denies.

    Args: with_topics: whether findings in which the table of topics sees the part count, too.
    """
    known = tables.of_observation
    if (concept := _concept_of(change, report, tables)) is not None:
        return frozenset((concept,))
    parts = (change.topic, *(tables.topics.get(change.topic, ()) if with_topics else ()))
    denied = tables.lexicon.normal_of["normal"]
    return frozenset((*parts, *(known[name] for part in parts for name in denied.get(part, ()))))
