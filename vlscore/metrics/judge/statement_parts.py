"""Parts of a statement: one for each place of which something else is said."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, groupby, pairwise
from typing import Any

from vlscore.findings import (
    Attribute,
    Axis,
    FindingChange,
    Sentence,
    SeverityLevel,
    Span,
    TemporalChange,
    severity_level,
)
from vlscore.metrics.judge.judge_tables import JudgeTables
from vlscore.metrics.judge.places import BOTH_SIDES, Place
from vlscore.metrics.judge.statements import DEGREE, REMAINDER, Statement, marks_in

#: Scales of words.toml whose words are no degrees of a finding.
_NO_DEGREES = ("number", "age")


def split_by_place(
    sentence: Sentence, statement: Statement, tables: JudgeTables
) -> list[Statement]:
    """Return one statement for each place, where each has its own degree or change; else the whole.

    "Large left, small right" are two, and so is "worse in the upper lobe, better in the lower
    lobe". Of "the left effusion is larger, on the right it has cleared", only that of the left is
    returned.
    """
    said = _said_of_places(sentence, statement, tables)
    whole, shared = Place(), list[Attribute]()
    if len(said) > 1 and (not said[0][1] or said[0][0] == Place(BOTH_SIDES)):
        # "Bilateral, larger on the right, smaller on the left"
        (whole, shared), *said = said
    apart = all(
        (one.sides and other.sides and one.sides.isdisjoint(other.sides))
        or one.differs_in_levels(other)
        for (one, _), (other, _) in combinations(said, 2)
    )
    if len(said) < 2 or not apart or not all(own for _, own in said):
        return [statement]
    if not said[-1][0].sides:  # "The right lower lobe, now also the middle lobe"
        whole = Place(whole.sides or said[0][0].sides, whole.levels)
    parts = (
        _of_place(statement, sentence, place.joined(whole), [*own, *shared], tables)
        for place, own in said
    )
    return [each for each in parts if not has_resolved(each.change)]


def _said_of_places(
    sentence: Sentence, statement: Statement, tables: JudgeTables
) -> list[tuple[Place, list[Attribute]]]:
    """Return the places that a statement names one by one, each with the words that are said of it.

    Words between two places are of the one from which no "and" or comma parts them. Else they are
    of the next one, if a place ends the statement ("small on the left, large on the right").
    """
    words = [
        a
        for a in statement.finding.attributes
        if a.axis in (Axis.SIDE, Axis.ZONE, Axis.SEVERITY, Axis.CHANGE) and not a.inherited
    ]
    runs = [
        (is_place, part)
        for is_place, run in groupby(words, key=lambda a: a.axis in (Axis.SIDE, Axis.ZONE))
        for part in (_in_clauses(sentence, [*run]) if is_place else [[*run]])
    ]
    named = [run for is_place, run in runs if is_place]
    stated: list[list[Attribute]] = [[] for _ in named]
    at = -1
    for is_place, run in runs if named else ():
        if is_place:
            at += 1
            continue
        for word in run:
            is_before = at < 0 or (
                at + 1 < len(named) and _is_listed(sentence, named[at][-1], word)
            )
            is_behind = at + 1 < len(named) and not _is_listed(sentence, word, named[at + 1][0])
            stated[at + (is_before or (is_behind and runs[-1][0]))].append(word)
    of_place: dict[tuple[Any, ...], tuple[Place, list[Attribute]]] = {}
    for run, own in zip(named, stated, strict=True):
        place = Place(sides_in(run), levels_of((a for a in run if a.axis is Axis.ZONE), tables))
        key = place.sides, frozenset(place.levels.items())
        of_place.setdefault(key, (place, []))[1].extend(own)
    return list(of_place.values())


def _in_clauses(sentence: Sentence, words: list[Attribute]) -> list[list[Attribute]]:
    """Return words of place in runs without a comma: "left and right" is one of them."""
    runs = [words[:1]]
    for one, other in pairwise(words):
        between = Span(one.span.end, other.span.start)
        if "comma" in marks_in(sentence, between, "joint"):
            runs.append([])
        runs[-1].append(other)
    return runs


def sides_in(words: Iterable[Attribute]) -> frozenset[str]:
    """Return the sides that words name; "worse on the right" names the right, and perhaps both."""
    named = [a for a in words if a.axis is Axis.SIDE]
    ones = [a.span for a in named if a.value != "bilateral"]
    sides = {
        a.value
        for a in named
        if a.value != "bilateral" or not any(span.overlaps(a.span) for span in ones)
    }
    return BOTH_SIDES if "bilateral" in sides else frozenset(sides)


def _is_listed(sentence: Sentence, one: Attribute, next_one: Attribute) -> bool:
    """Return whether "and" or a comma stands between two words, in the order of the text."""
    between = Span(one.span.end, next_one.span.start)
    return not {"and", "comma"}.isdisjoint(marks_in(sentence, between, "joint"))


def _of_place(
    statement: Statement,
    sentence: Sentence,
    place: Place,
    said: list[Attribute],
    tables: JudgeTables,
) -> Statement:
    """Return a statement of one place, with the degree, age and number that are said of it."""
    grades = {kind: level for kind, level in statement.grades.items() if kind != DEGREE}
    grades |= levels_said((a for a in said if a.axis is Axis.SEVERITY), sentence, tables)
    changes = [a for a in said if a.axis is Axis.CHANGE]
    change = statement.change
    if change is not None and changes:
        value = TemporalChange(changes[0].value)
        change = change._replace(change=value, span=changes[0].span)
    elif any(a.axis is Axis.CHANGE and not a.inherited for a in statement.finding.attributes):
        change = None  # It is of another place.
    return replace(statement, place=place, grades=grades, change=change)


def has_resolved(change: FindingChange | None) -> bool:
    """Return whether a change says that the finding has gone."""
    return change is not None and change.change is TemporalChange.RESOLVED


def levels_of(zones: Iterable[Attribute], tables: JudgeTables) -> dict[str, frozenset[str]]:
    """Return the levels of zones by their families."""
    levels: dict[str, frozenset[str]] = {}
    for zone in zones:
        for family, own in tables.levels.get(zone.value, ()):
            levels[family] = levels.get(family, frozenset()) | {own}
    return levels


def levels_said(
    words: Iterable[Attribute], sentence: Sentence, tables: JudgeTables
) -> dict[str, SeverityLevel]:
    """Return the levels that words of severity state by kind, of each kind the first.

    In "mild edema has progressed to moderate" the last degree is that of today.
    """
    grades: dict[str, SeverityLevel] = {}
    for word in words:
        level = severity_level(word.value, tables.lexicon)
        if level is not None:
            kind = level.scale if level.scale in _NO_DEGREES else DEGREE
            if kind not in grades or level.scale == REMAINDER:
                grades[kind] = level
    return grades
