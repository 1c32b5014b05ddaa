"""Statements of a report for the rule judge, and which of them are one finding.

Each is a concept with side, level, grade and size.
"""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from vlscore.findings import (
    Axis,
    Finding,
    FindingChange,
    Polarity,
    ReportFindings,
    Span,
    TemporalChange,
)
from vlscore.metrics.judge.judge_tables import JudgeTables, Position

#: Words between a sign and what it is a sign of ("opacity consistent with pneumonia").
LINK = re.compile(
    r"\b(?:consistent|compatible|keeping|represent\w*|reflect\w*|suggest\w*|indicat\w*|favor\w*"
    r"|favour\w*|likely|probabl\w*|possibl\w*|due to|related|from|concern\w*|worrisome|suspicious"
    r"|diagnostic|consider\w*|may be|could be|causing|contain\w*|betray\w*|reveal\w*|point\w*"
    r"|explain\w*|mean\w*|which is|that is|with|w)\b|\?",
    re.IGNORECASE,
)
#: Between the words of one noun phrase: "sclerotic osseous metastases".
_ONE_WORD = re.compile(r"\s*(?!and\b|or\b|no\b)\w*\s*", re.IGNORECASE)
#: Beginning of a sentence about all findings before it.
_SUMS_UP = re.compile(
    r"(?:the |these |this )?(?:findings?|appearances?|features?|pattern)\b", re.IGNORECASE
)
#: What stands between two findings of which one is there: a word, a mask (XXXX) for it, or nothing
#: where words are stuck together. "c/w" and "w/" are no such words.
_OR = re.compile(r"\b(?:or|versus|vs|and/or|andor)\b|(?<!\b\w)/|\?|^\s*x{4}\s*$|^$", re.IGNORECASE)
_MASK = re.compile(r"\s*x{4}\s*", re.IGNORECASE)
_ITEM = re.compile(r"\s*,[^,.;:]*$")
BOTH_SIDES = frozenset(("left", "right"))
_END = re.compile(r"[.;]\s")
_LONGEST_BETWEEN = 60


@dataclass(frozen=True, slots=True)
class Statement:
    """Statement of one finding in a report.

    Attributes:
        concept: a key of the tables' concepts.
        span: characters of its mention in the report.
        line: characters of its sentence.
        last_line: characters of the last sentence that states it.
        sides: "left", "right", both, or empty if the report names no side.
        levels: places by family ("level lower", "aorta ascending"); empty if the report names none.
        rank: rank of the severity word on its scale, 1 to 7; None without such a word.
        grade: that word's value.
        number: rank of the number of findings ("single", "several"); None without such a word.
        age: rank of the finding's age ("old", "acute"); None without such a word.
        sizes: millimetres, largest first.
        change: change since an earlier examination; None without a comparison.
        doubtful: whether the report states it as uncertain.
        position: position of a device.
        old: whether its words mark it as old.
        finding: its first mention.
        observations: all observations by which the report names it.
        also: concepts that it may be instead ("atelectasis or pneumonia").
        marks: characters of all words about it in its sentence, of what is merged into it, too.
    """

    concept: str
    span: Span
    line: Span
    last_line: Span
    sides: frozenset[str]
    levels: frozenset[str]
    rank: int | None
    grade: str | None
    number: int | None
    age: int | None
    sizes: tuple[float, ...]
    change: FindingChange | None
    doubtful: bool
    position: Position | None
    old: bool
    finding: Finding
    observations: frozenset[str]
    also: frozenset[str] = frozenset()
    marks: tuple[Span, ...] = ()

    @property
    def bones(self) -> frozenset[str]:
        """Return the bones that it names."""
        return frozenset(level for level in self.levels if level.startswith("bone"))

    @property
    def concepts(self) -> frozenset[str]:
        """Return every concept that it may be."""
        return self.also | {self.concept}

    def words(self, text: str) -> str:
        """Return the words of the mention with those that qualify it."""
        return self.quote().of(text)

    def quote(self) -> Span:
        """Return the characters from the first to the last word about the finding."""
        return Span(min(s.start for s in self.marks), max(s.end for s in self.marks))


@dataclass(frozen=True)
class ReportStatements:
    """Statements of one report, its findings as extracted, and their changes."""

    text: str
    statements: tuple[Statement, ...]
    findings: ReportFindings
    changes: tuple[FindingChange, ...]

    @cached_property
    def denied(self) -> frozenset[str]:
        """Return the observations that the report denies by name, and not of one side alone."""
        return frozenset(
            f.observation
            for f in self.findings
            if f.polarity is Polarity.NEGATIVE
            and not f.normal
            and all(a.inherited for a in f.on(Axis.SIDE))
        )

    @cached_property
    def resolved(self) -> frozenset[str]:
        """Return the observations that the report calls resolved, and states nowhere else."""
        gone = {c.topic for c in self.changes if c.change is TemporalChange.RESOLVED}
        return frozenset(gone.difference(*(s.observations for s in self.statements)))


def distinct_statements(text: str, own: list[Statement], tables: JudgeTables) -> list[Statement]:
    """Return a sentence's statements, each finding once.

    Two of which one is there become one statement. One that a more exact one includes, or that is
    a sign of it, is merged into it.
    """
    if len(own) < 2:
        return own
    stated = _either_one(text, own, tables)
    kept: dict[int, Statement] = dict(enumerate(stated))
    for number, one in enumerate(stated):
        for position, other in kept.items():
            if (
                position != number
                and (one.concept, other.concept) in tables.signs
                and (other.concept, one.concept) not in tables.signs
                and (_same_place(one, other) or one.finding.observation in tables.lexicon.midline)
                and (
                    (one.concept, other.concept) in tables.coarser
                    or LINK.search(_between(text, one, other))
                    or _MASK.fullmatch(_between(text, one, other))
                    or (one.span != other.span and _ONE_WORD.fullmatch(_between(text, one, other)))
                )
            ):
                kept[position] = _merged(other, kept.pop(number))
                break
    return list(kept.values())


def _either_one(text: str, own: list[Statement], tables: JudgeTables) -> list[Statement]:
    """Return the statements; of findings joined by "or" or "versus", one with both concepts."""
    joined = own[:1]
    for new in own[1:]:
        old = joined[-1]
        between = _between(text, old, new)
        if old.span.end > new.span.start:  # The mentions overlap: "tortuous or calcified aorta".
            between = Span(min(old.span.start, new.span.start), new.span.end).of(text)
        # "Opacity XXXX atelectasis": the masked words interpret the sign.
        is_sign = _MASK.fullmatch(between) and (old.concept, new.concept) in tables.signs
        if (
            old.concept != new.concept
            and not is_sign
            and len(between) <= _LONGEST_BETWEEN
            and (_OR.search(between) or (old.doubtful and new.doubtful and _ITEM.match(between)))
            and not _END.search(between)
            and not tables.concepts[new.concept].device
            and _same_place(old, new)
        ):
            first, second = sorted(
                (old, new), key=lambda s: -tables.concepts[s.concept].severity[1]
            )
            joined[-1] = replace(
                _merged(first, second), also=old.also | {second.concept}, doubtful=old.doubtful
            )
        else:
            joined.append(new)
    return joined


def _between(text: str, one: Statement, other: Statement) -> str:
    """Return the words between the mentions of two statements."""
    first, second = sorted((one.span, other.span))
    return text[first.end : second.start]


def merge_explanation(
    text: str, stated: list[Statement], before: Span | None, new: Statement, tables: JudgeTables
) -> bool:
    """Merge a doubted statement without a place into a sign of it in the sentence before.

    "Opacity in the left base. This may represent atelectasis." states one finding. "Findings are
    concerning for ..." explains any sentence before. Returns whether it was merged.
    """
    places = [level for level in new.levels if not level.startswith(("bone", "ribs"))]
    sums_up = _SUMS_UP.match(text, new.line.start) is not None
    if not (new.doubtful or sums_up) or new.sides or places or new.sizes:
        return False
    for position in reversed(range(len(stated))):
        sign = stated[position]
        pair = sign.concept, new.concept
        explains = sign.concept == new.concept or pair in tables.signs or pair in tables.kin
        if (sums_up or sign.last_line == before) and explains:
            also = (sign.also | new.concepts) - {sign.concept}
            observations = sign.observations | new.observations
            stated[position] = replace(sign, also=also, observations=observations)
            return True
    return False


def _same_place(one: Statement, other: Statement) -> bool:
    """Return whether two statements of one report may be about the same place."""
    if one.sides and other.sides and one.sides != other.sides:
        return False
    return not levels_conflict(one, other)


def levels_conflict(one: Statement, other: Statement) -> bool:
    """Return whether two statements name different places of one family."""
    if not one.levels or not other.levels:
        return False
    families: dict[str, set[str]] = {}
    for level in one.levels:
        families.setdefault(level.split()[0], set()).add(level)
    return any(
        (named := {level for level in other.levels if level.split()[0] == family})
        and own.isdisjoint(named)
        for family, own in families.items()
    )


def _one_and_the_same(one: Statement, other: Statement) -> bool:
    """Return whether two statements are about one place, which both name."""
    if not one.sides or one.sides != other.sides or _other_size(one, other):
        return False
    return not levels_conflict(one, other)


def _other_size(one: Statement, other: Statement) -> bool:
    return bool(one.sizes and other.sizes) and one.sizes[0] != other.sizes[0]


def content_of(statement: Statement) -> tuple[Any, ...]:
    """Return what a statement says, in an order that puts the more exact one first.

    Statements that are sorted by it have the same order wherever their sentences stand.
    """
    change = statement.change
    return (
        not statement.sides,
        not statement.levels,
        statement.concept,
        sorted(statement.sides),
        sorted(statement.levels),
        [-size for size in statement.sizes],
        -(statement.rank or 0),
        statement.grade or "",
        -(statement.number or 0),
        -(statement.age or 0),
        "" if change is None else str(change.change),
        statement.doubtful,
        -1 if statement.position is None else statement.position.order,
        statement.old,
        sorted(statement.observations),
        sorted(statement.also),
    )


def each_once(stated: Iterable[Statement], tables: JudgeTables) -> list[Statement]:
    """Return the statements of a report, each finding and place once, in the report's order.

    They are merged in an order of their content, exact names before those that may stand for them:
    the order of the report's sentences changes nothing, and saying a thing twice adds nothing.
    """
    general = Counter(name for name, _ in tables.coarser)
    merged: list[Statement] = []
    for each in sorted(stated, key=lambda s: (general[s.concept], content_of(s), s.span)):
        _add(merged, each, tables)
    return sorted(merged, key=lambda s: s.span)


def _add(stated: list[Statement], new: Statement, tables: JudgeTables) -> None:
    """Add a statement, or merge it into the one that it repeats, in other words or not."""
    for position, old in enumerate(stated):
        if old.concept == new.concept and _same_place(old, new) and not _other_size(old, new):
            levels = old.levels | new.levels if old.levels and new.levels else frozenset[str]()
            stated[position] = replace(_as_one(old, new), levels=levels)
            return
    for position, old in enumerate(stated):
        known = tables.repeated if _one_and_the_same(old, new) else tables.anywhere
        if known is tables.anywhere and {old.sides, new.sides} - {frozenset(), BOTH_SIDES}:
            continue  # Where a side is named, each may be another finding.
        if (old.concept, new.concept) in known:
            stated[position] = replace(_as_one(old, new), concept=new.concept)
            return
        if (new.concept, old.concept) in known:
            stated[position] = replace(_as_one(old, new), concept=old.concept)
            return
    stated.append(new)


def _as_one(old: Statement, new: Statement) -> Statement:
    """Return two statements of a report as one: of two degrees, the graver.

    It is quoted where the graver degree stands, else where the finding stands first.
    """
    first, second = sorted((old, new), key=lambda s: (-(s.rank or 0), s.span))
    return replace(
        _merged(first, second),
        levels=old.levels | new.levels,
        number=max(old.number or 0, new.number or 0) or None,
        age=max(old.age or 0, new.age or 0) or None,
        sizes=max(old.sizes, new.sizes),
        position=max(old.position, new.position, key=_badness_of),
        old=old.old or new.old,
        last_line=max(old.last_line, new.last_line),
    )


def _badness_of(position: Position | None) -> int:
    """Return which of two positions of a device counts: the worse one, and any before none."""
    return 0 if position is None else 1 + ("good", "fair", "bad").index(position.level)


def _merged(old: Statement, new: Statement) -> Statement:
    """Return the first statement, with missing values taken from the second."""
    return replace(
        old,
        sides=old.sides or new.sides,
        levels=old.levels or new.levels,
        rank=new.rank if old.rank is None else old.rank,
        grade=old.grade or new.grade,
        number=new.number if old.number is None else old.number,
        age=new.age if old.age is None else old.age,
        sizes=old.sizes or new.sizes,
        change=max(old.change, new.change, key=_weight_of),
        doubtful=old.doubtful and new.doubtful,
        position=old.position or new.position,
        observations=old.observations | new.observations,
        also=old.also | new.also,
        last_line=new.last_line,
        marks=old.marks + new.marks if old.line == new.line else old.marks,
    )


def _weight_of(change: FindingChange | None) -> int:
    """Return which of two comparisons counts: a change before "unchanged", that before none."""
    return 0 if change is None else 1 + change.is_real
