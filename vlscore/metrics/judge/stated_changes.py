"""Changes that a report states: of which findings they are, and whether another report has them."""

from collections.abc import Iterable
from dataclasses import replace

from vlscore.findings import FindingChange, Polarity, Sentence, Span, TemporalChange
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


def agree(one: FindingChange, other: FindingChange) -> bool:
    """Return whether two changes have one direction: "resolved" is the end of "improved"."""
    growing = (one.change in GROWING) == (other.change in GROWING)
    return one.is_real and other.is_real and growing


def are_opposite(one: FindingChange | None, other: FindingChange | None) -> bool:
    """Return whether two changes have opposite directions: "smaller" for "larger"."""
    if one is None or other is None:
        return False
    return one.is_real and other.is_real and not agree(one, other)


def names_by_change(change: FindingChange | None) -> bool:
    """Return whether the words of a change themselves name what has changed.

    "The heart is larger" and "the heart is smaller" differ in the change, not in the finding.
    """
    if change is None:
        return False
    return change.finding is None or change.span.overlaps(change.finding.cue)


def is_of_presence(change: FindingChange, report: ReportStatements) -> bool:
    """Return whether the words of a change say only that a finding is there still: "residual"."""
    marks = report.findings.sentences[change.sentence].marks
    return any(m.name in _PRESENCE and change.span.covers(m.span) for m in marks)


def uncompared(report: ReportStatements) -> ReportStatements:
    """Return the statements of a report without changes since an earlier examination."""
    statements = tuple(replace(s, change=None) for s in report.statements)
    return replace(report, statements=statements, changes=())


def concept_of_change(
    change: FindingChange, report: ReportStatements, tables: JudgeTables
) -> str | None:
    """Return the concept of the finding that a change is of; None for a part of the chest."""
    if change.topic not in tables.of_observation:
        return None
    named, number = change.span, change.sentence
    if change.finding is not None:
        named, number = change.finding.span, change.finding.sentence
    return concept_of(change.topic, named, report.findings.sentences[number], tables)


def sides_of(change: FindingChange) -> frozenset[str]:
    """Return the sides of the finding that a change is of; none if it names none."""
    return frozenset(() if change.finding is None else change.finding.sides)


def may_share(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether two findings may be on one side: none names a side, or both the same one."""
    return not (one and other) or not one.isdisjoint(other)


def concepts_of(
    change: FindingChange, report: ReportStatements, tables: JudgeTables, with_topics: bool = True
) -> frozenset[str]:
    """Return the concepts that a change is about: of a part, all that its normality denies.

    Args: with_topics: whether findings in which the table of topics sees the part count, too.
    """
    if (concept := concept_of_change(change, report, tables)) is not None:
        return frozenset((concept,))
    parts = (change.topic, *(tables.topics.get(change.topic, ()) if with_topics else ()))
    denied = tables.lexicon.normal_of["normal"]
    known = (tables.of_observation[name] for part in parts for name in denied.get(part, ()))
    return frozenset((*parts, *known))


def may_be_one(one: frozenset[str], other: frozenset[str], tables: JudgeTables) -> bool:
    """Return whether a concept of one is a concept of the other, or its less exact name."""
    exact = tables.coarser.keys()
    if UNKNOWN in one | other:
        return True
    return not one.isdisjoint(other) or any(
        pair in exact for a in one for b in other for pair in ((a, b), (b, a))
    )


def states_of_part(report: ReportStatements, concept: str, tables: JudgeTables) -> bool:
    """Return whether a report states a change of a part of the chest in which a finding is."""
    return any(c.is_real and concept in concepts_of(c, report, tables) for c in _of_parts(report))


def is_said_of_part(
    statement: Statement, own: ReportStatements, report: ReportStatements, tables: JudgeTables
) -> bool:
    """Return whether a report says in other words what the change of a finding means.

    "The left base is better aerated" for "left basal atelectasis has improved", and "the opacity
    has cleared" for "clearing of the opacity".
    """
    if (change := statement.change) is None:
        return False
    marks = own.findings.sentences[change.sentence].marks
    clears = any(m.name == "clearing" and m.span.overlaps(change.span) for m in marks)
    has_cleared = any(
        c.change is TemporalChange.RESOLVED and c.topic in statement.observations
        for c in report.changes
    )
    return (clears and has_cleared) or any(
        agree(c, change) and statement.concept in concepts_of(c, report, tables)
        for c in _of_parts(report)
    )


def _of_parts(report: ReportStatements) -> list[FindingChange]:
    return [c for c in report.changes if c.finding is None]


def contradicts(
    report: ReportStatements, change: FindingChange, own: ReportStatements, tables: JudgeTables
) -> bool:
    """Return whether a report states the opposite of a change of the report `own`."""
    concepts = concepts_of(change, own, tables, with_topics=False) - {UNKNOWN}
    return any(
        are_opposite(c, change)
        and may_share(sides_of(c), sides_of(change))
        and may_be_one(concepts, concepts_of(c, report, tables, with_topics=False), tables)
        for c in report.changes
    )


def may_state(
    report: ReportStatements,
    change: FindingChange,
    own: ReportStatements,
    tables: JudgeTables,
    parts_too: bool = False,
) -> bool:
    """Return whether a report states a change of the report `own`, or has words that may.

    A device that is denied by name has been removed: "an LVAD has replaced the Impella".

    Args: parts_too: whether words about a finding may state a change of the part where it is.
    """
    concepts = concepts_of(change, own, tables)
    if any(
        agree(c, change) and may_be_one(concepts, concepts_of(c, report, tables), tables)
        for c in report.changes
    ):
        return True
    if not parts_too and concept_of_change(change, own, tables) is None:
        return False
    concepts -= {UNKNOWN}
    is_gone = change.change is TemporalChange.RESOLVED
    for sentence in report.findings.sentences:
        named = {
            concept_of(f.observation, f.span, sentence, tables): f.polarity is Polarity.NEGATIVE
            for f in sentence.findings
        }
        if is_gone and any(named.get(name) and tables.concepts[name].device for name in concepts):
            return True
        if may_be_one(concepts, frozenset(named), tables) and may_compare(
            report, sentence.span, change, tables
        ):
            return True
    return False


def may_compare(
    report: ReportStatements,
    line: Span,
    change: FindingChange,
    tables: JudgeTables,
    with_amounts: bool = True,
) -> bool:
    """Return whether a sentence has words that may state a change in the same direction.

    In "consolidation with a small effusion, larger", readers may give the change to either.

    Args:
        line: the characters of the sentence.
        with_amounts: whether words of amount may compare; "increased opacities" may be many.
    """
    within = [s for s in report.findings.sentences if line.covers(s.span)]
    is_less = change.change not in GROWING
    if is_less and any(m.name == "remainder" for s in within for m in s.marks):
        return True
    if change.change is TemporalChange.NEW and _was_placed(report, within, tables):
        return True
    words = tables.lexicon.lists
    turns = change.topic in words["better_with_more"]
    tokens = tables.lexicon.tokenize(line.of(report.findings.plain))
    found = tables.lexicon.trie.find(tokens)
    for match in (m for how in _LOOSE for m in found.get(how, ())):
        if match.entry in (None, TemporalChange.UNCHANGED):
            continue
        form = tokens[match.first].form
        if form in words["verbs_of_amount"] and not with_amounts:
            continue
        is_turned = turns and form in words["amounts"]
        is_growing = TemporalChange(match.entry) in GROWING
        if (is_growing != is_turned) != is_less:
            return True
    return False


def _was_placed(report: ReportStatements, within: Iterable[Sentence], tables: JudgeTables) -> bool:
    """Return whether something was placed in a sentence, or in one that names no device."""
    return any(
        any(m.name == "placed" for m in sentence.marks)
        for sentence in report.findings.sentences
        if sentence in within
        or not any(
            tables.concepts[tables.of_observation[f.observation]].device for f in sentence.findings
        )
    )
