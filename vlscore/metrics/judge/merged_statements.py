"""Which statements of one report are one finding, and which one is two.

In a sentence one of two findings is there ("atelectasis or pneumonia"), or one is a sign of the
other. A later sentence may explain the one before. In the report, what is said twice counts once.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from vlscore.findings import FindingChange, Sentence, Span
from vlscore.metrics.judge.judge_tables import JudgeTables, Position
from vlscore.metrics.judge.places import BOTH_SIDES, GREATER, Place
from vlscore.metrics.judge.statements import (
    Joints,
    ReportStatements,
    Statement,
    around,
    content_of,
    opens_with,
)

_LONGEST_BETWEEN = 60
#: Ranks between degrees that are hardly of one finding: "large" and "trace".
_FAR_DEGREE = 4
#: Families of levels that say of what a finding is, and not where.
_OF_BONES = frozenset(("bone", "ribs"))


def distinct_statements(
    text: str, sentence: Sentence, own: list[Statement], tables: JudgeTables
) -> list[Statement]:
    """Return a sentence's statements, each finding once.

    Two related ones of which one is there become one statement. One that a more exact one includes,
    or that is a sign of it, is merged into it.
    """
    stated, joints_of = own[:1], Joints(sentence)
    for new in own[1:]:
        old = stated[-1]
        is_alternative = _is_alternative(text, joints_of, old, new, tables)
        others = old.concepts - {new.concept}
        if is_alternative and all((name, new.concept) in tables.alternatives for name in others):
            graver, other = sorted(
                (old, new), key=lambda s: -tables.concepts[s.concept].severity[1]
            )
            merged = _merged(graver, other)
            also = (old.concepts | {new.concept}) - {merged.concept}
            stated[-1] = replace(merged, also=also, instead=old.instead, doubtful=old.doubtful)
        elif _is_explanation(joints_of, old, new, tables):
            stated[-1] = explained(old, new)
        else:
            before = old.instead | old.concepts if is_alternative else frozenset[str]()
            stated.append(replace(new, instead=before))
    kept = dict(enumerate(stated))
    wholes = {s.concept: _concepts_around(s.concept, stated, tables) for s in stated}
    for number, one in enumerate(stated):
        for position, other in kept.items() if wholes[one.concept] else ():
            if other.concept in wholes[one.concept] and _is_of(text, joints_of, one, other, tables):
                kept[position] = _merged(other, kept.pop(number))
                break
    return list(kept.values())


def _is_alternative(
    text: str, joints_of: Joints, old: Statement, new: Statement, tables: JudgeTables
) -> bool:
    """Return whether one of two findings is there: "atelectasis or pneumonia"."""
    if old.concept == new.concept or tables.concepts[new.concept].device:
        return False
    between = _between(old, new)
    if old.finding.span.overlaps(new.finding.span):  # "Tortuous or calcified aorta".
        between = around(old.finding.span, new.finding.span)
    words, joints = between.of(text), joints_of.within(between)
    joined = "or" in joints or not words.strip("/")
    listed = old.doubtful and new.doubtful and "comma" in joints
    return (joined or listed) and len(words) <= _LONGEST_BETWEEN and old.place.may_be(new.place)


def _concepts_around(
    concept: str, stated: Iterable[Statement], tables: JudgeTables
) -> frozenset[str]:
    """Return the concepts of a sentence into which a statement may be merged: most have none."""
    is_device = tables.concepts[concept].device
    return frozenset(
        other
        for other in {s.concept for s in stated}
        if (other, concept) not in tables.signs
        and ((concept, other) in tables.signs or (is_device and tables.concepts[other].device))
    )


def _is_of(
    text: str, joints_of: Joints, one: Statement, other: Statement, tables: JudgeTables
) -> bool:
    """Return whether a statement is a sign of another one, or its less exact name."""
    pair = one.concept, other.concept
    between = _between(one, other)
    words = between.of(text).strip()
    is_phrase = not words or words.replace("-", "").isalnum()
    if pair not in tables.signs and not is_phrase:
        return False
    joints = joints_of.within(between)
    # Parts of one noun phrase, with one word between them at most: "sclerotic osseous metastases".
    is_phrase = is_phrase and not (words and joints)
    is_first = one.finding.span < other.finding.span
    if not (one.place.may_be(other.place) or one.place.may_hold(other.place)):
        return False
    if is_phrase and is_first and all(tables.concepts[name].device for name in pair):
        return True  # The last words of "right jugular dialysis catheter" name the device.
    if pair not in tables.signs:
        return False
    if one.change and other.change and one.change.change is not other.change.change:
        return False  # "The opacity has improved, the effusion has not."
    is_coarser, is_sure = pair in tables.coarser, other.doubtful or not one.doubtful
    own, others = (tables.concepts[name].severity[1] for name in pair)
    is_milder = own < others + is_coarser
    if not (is_first or is_sure or is_milder or pair in tables.confusable):
        return False  # "Atelectasis, possibly a mass."
    # An opacity with an effusion is two findings, an effusion with an opacity is one.
    joined = not is_first or "with" not in joints if is_coarser else "with" in joints
    if joined or "sign" in joints or _is_mask(joints, words):
        return True
    return one.finding.span != other.finding.span and is_phrase


def _is_mask(joints: set[str], words: str) -> bool:
    return joints == {"mask"} and len(words.split()) == 1


def _between(one: Statement, other: Statement) -> Span:
    """Return the characters between the mentions of two statements."""
    first, second = sorted((one.finding.span, other.finding.span))
    return Span(first.end, second.start)


def explained(sign: Statement, new: Statement) -> Statement:
    """Return a sign that may be another finding instead."""
    also = (sign.also | new.concepts) - {sign.concept}
    return replace(sign, also=also, observations=sign.observations | new.observations)


def _is_explanation(
    joints_of: Joints, sign: Statement, new: Statement, tables: JudgeTables
) -> bool:
    """Return whether a doubted finding explains the one before: "nodules, possibly emboli"."""
    joints = joints_of.within(_between(sign, new))
    pair = sign.concept, new.concept
    explains = pair in tables.confusable and pair not in tables.signs
    return new.doubtful and explains and "sign" in joints and "with" not in joints


def _one_and_the_same(one: Statement, other: Statement) -> bool:
    """Return whether two statements are about one place, which both name."""
    same_sides = bool(one.place.sides) and one.place.sides == other.place.sides
    return same_sides and one.place.may_be(other.place) and not _other_size(one, other)


def _other_size(one: Statement, other: Statement) -> bool:
    return None not in (one.size, other.size) and one.size != other.size


def refers_back(
    stated: list[Statement], sentence: Sentence, new: Statement, tables: JudgeTables
) -> bool:
    """Return whether a statement is about one of the sentences before, and was merged into it.

    "Opacity in the left base. This may represent atelectasis." states one finding. "Findings are
    concerning for ..." explains any sentence before. "The tube" is the device of the sentence
    before, which has a more exact name.
    """
    sums_up, is_device = opens_with(sentence, "summary"), tables.concepts[new.concept].device
    is_placed = new.place.sides or new.place.levels.keys() - _OF_BONES
    may_explain = (new.doubtful or sums_up) and not is_placed
    for position, old in reversed([*enumerate(stated)] if may_explain else []):
        pair = old.concept, new.concept
        explains = pair[0] == pair[1] or pair in tables.signs or pair in tables.confusable
        if explains and (sums_up or old.finding.sentence == sentence.index - 1):
            stated[position] = explained(old, new)
            return True
    if not (stated and is_device) or opens_with(sentence, "another"):
        return False
    last = stated[-1]
    is_near = last.finding.sentence >= sentence.index - 1
    if is_near and (new.concept, last.concept) in tables.coarser:
        stated[-1] = replace(as_one(last, new), concept=last.concept)
        return True
    return False


def each_once(stated: Iterable[Statement], tables: JudgeTables) -> list[Statement]:
    """Return the statements of a report, each finding and place once, in the report's order.

    They are merged in an order of their content, exact names before those that may stand for them:
    the order of the report's sentences changes nothing, and saying a thing twice adds nothing.
    """
    general = Counter(name for name, _ in tables.coarser)
    merged: list[Statement] = []
    for each in sorted(stated, key=lambda s: (general[s.concept], content_of(s), s.finding.span)):
        _add(merged, each, tables)
    return sorted(merged, key=lambda s: s.finding.span)


def split_like(report: ReportStatements, other: ReportStatements) -> ReportStatements:
    """Return a report with a statement of both sides as two, if the other report has one of each.

    "Both effusions have increased" may be right of one effusion and wrong of the other.
    """
    apart = {(s.concept, *s.place.sides) for s in other.statements}
    stated: list[Statement] = []
    halves: list[Statement] = []
    for s in report.statements:
        if s.place.sides == BOTH_SIDES and all((s.concept, side) in apart for side in BOTH_SIDES):
            places = (Place(frozenset((side,)), s.place.levels) for side in sorted(BOTH_SIDES))
            halves += [replace(s, place=place) for place in places]
        else:
            stated.append(s)
    for half in halves:
        for position, one in enumerate(stated):
            if one.concept == half.concept and one.place.sides == half.place.sides:
                stated[position] = replace(as_one(one, half), finding=one.finding)
                break
        else:
            stated.append(half)
    return replace(report, statements=tuple(stated))


def _add(stated: list[Statement], new: Statement, tables: JudgeTables) -> None:
    """Add a statement, or merge it into the one that it repeats, in other words or not."""
    for position, old in enumerate(stated):
        if old.concept == new.concept and old.place.may_be(new.place) and not _other_size(old, new):
            one = as_one(old, new)
            if not (old.place.levels and new.place.levels):
                more = {k: v for k, v in one.place.levels.items() if k == GREATER}
                one = replace(one, place=Place(one.place.sides, more))
            stated[position] = one
            return
    for position, old in enumerate(stated):
        is_same = _one_and_the_same(old, new)
        if not is_same and {old.place.sides, new.place.sides} - {frozenset(), BOTH_SIDES}:
            continue  # Where a side is named, each may be another finding.
        for pair in ((old.concept, new.concept), (new.concept, old.concept)):
            known = tables.coarser.get(pair)
            if known and (known.same_across_sentences if is_same else known.same_without_place):
                stated[position] = replace(as_one(old, new), concept=pair[1])
                return
    stated.append(new)


def as_one(old: Statement, new: Statement) -> Statement:
    """Return two statements of a report as one: of two degrees, the graver.

    It is quoted where the graver degree stands, else where the finding stands first.
    """
    first, second = sorted((old, new), key=lambda s: (-(s.rank() or 0), s.finding.span))
    grades = (*second.grades.items(), *first.grades.items())
    return replace(
        _merged(first, second),
        grades=dict(sorted(grades, key=lambda each: each[1].rank)),
        size=max(old.size or 0, new.size or 0) or None,
        position=max(old.position, new.position, key=_badness_of),
        tips=old.tips | new.tips,
    )


def _badness_of(position: Position | None) -> int:
    """Return which of two positions of a device counts: the worse one, and any before none."""
    return 0 if position is None else 1 + ("good", "fair", "bad").index(position.level)


def _merged(old: Statement, new: Statement) -> Statement:
    """Return the first statement, with missing values taken from the second."""
    return replace(
        old,
        quoted=around(old.quoted, new.quoted) if old.line == new.line else old.quoted,
        place=old.place.joined(new.place),
        grades={**new.grades, **old.grades},
        size=new.size if old.size is None else old.size,
        change=max(old.change, new.change, key=_weight_of),
        doubtful=old.doubtful and new.doubtful,
        position=old.position or new.position,
        observations=old.observations | new.observations,
        also=old.also | new.also,
        instead=old.instead & new.instead,
        moved=old.moved or new.moved,
    )


def _weight_of(change: FindingChange | None) -> int:
    """Return which of two comparisons counts: a change before "unchanged", that before none."""
    return 0 if change is None else 1 + change.is_real
