"""Statements of a report for the rule judge: each a concept with side, level, grade and size."""

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from vlscore.findings import (
    Attribute,
    Axis,
    Finding,
    FindingChange,
    Polarity,
    ReportFindings,
    Sentence,
    SeverityLevel,
    Side,
    Span,
    Status,
    TemporalChange,
    changes_of,
    extract,
    severity_level,
    tokenize,
)
from vlscore.metrics.judge.judge_tables import JudgeTables, Position

_NUMBER = re.compile(r"\d{1,4}(?:\.\d{1,4})?")
_TIP = re.compile(r"\btip\b")
#: Where the leads of a pacemaker end.
_OF_LEADS = re.compile(r"atri|ventric|sinus|\b(?:ra|rv)\b", re.IGNORECASE)
#: A size or position behind it is that of an earlier image: "12 mm, previously 20 mm".
_EARLIER = re.compile(r"\b(?:(?:previously|formerly)(?: \w+){0,3}|from) $", re.IGNORECASE)
_DIMENSIONS = re.compile(
    r"(?:\d{1,4}(?:\.\d{1,4})?\s?(?:cm|mm)?\s?(?:x|by|×)\s?){1,2}$", re.IGNORECASE
)
#: Ribs by number: "7th rib", "fourth through seventh ribs", "ribs 5-9".
_ORDINALS = (
    *("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"),
    *("tenth", "eleventh", "twelfth"),
)
_WORD_OF_RIB = rf"(?:{'|'.join(_ORDINALS)}|(?:1[0-2]|[1-9])(?:st|nd|rd|th)?)\b"
_SEVERAL = rf"{_WORD_OF_RIB}(?:\s?(?:,|-|and|&|to|through|,\s?and)\s?{_WORD_OF_RIB})*"
_RIBS = re.compile(rf"\b{_SEVERAL}(?:\s\w+){{0,2}}?\sribs?\b|\bribs?\s{_SEVERAL}", re.IGNORECASE)
_RIB = re.compile(rf"\b({'|'.join(_ORDINALS)}|1[0-2]|[1-9])", re.IGNORECASE)
#: "Right greater than left", "R>L", "worse on the left".
_MORE = (
    r"(?:greater|more|larger|worse|bigger|denser|heavier|(?:more|most) \w+|predominantly|mainly)"
)
_GREATER = re.compile(
    rf"\b(?P<more>left|right|l|r|lt|rt)(?:[ -]side\w*)?\s?(?:>|{_MORE}\s(?:than|>))"
    rf"|\b{_MORE}\s(?:so\s)?(?:on|at|in)\sthe\s(?P<on>left|right)\b",
    re.IGNORECASE,
)
#: Between the first and the last rib of a range.
_TO = re.compile(r"-|\bto\b|\bthrough\b", re.IGNORECASE)
_BOTH = frozenset(("left", "right"))
#: Words between a sign and what it is a sign of ("opacity consistent with pneumonia").
_LINK = re.compile(
    r"\b(?:consistent|compatible|keeping|represent\w*|reflect\w*|suggest\w*|indicat\w*|favor\w*"
    r"|favour\w*|likely|probabl\w*|possibl\w*|due to|related|from|concern\w*|worrisome|suspicious"
    r"|diagnostic|consider\w*|may be|could be|causing|contain\w*|with|w)\b|\?",
    re.IGNORECASE,
)
#: Reports whose statements are remembered: several candidates share a reference.
_REMEMBERED = 2048
#: Beginning of a sentence about all findings before it.
_SUMS_UP = re.compile(r"(?:the |these )?(?:findings?|appearances?)\b", re.IGNORECASE)
#: Words before several findings of which any may be there.
_DIFFERENTIAL = re.compile(r"\b(?:differential|considerations? include|ddx)\b", re.IGNORECASE)
#: Concept of shadows that are no finding of the patient.
_HARMLESS = "shadow"
#: Scales of words.toml that do not grade a finding.
_NO_GRADES = frozenset(("number", "age"))
#: Words whose singular states that there is one, and the rank of "single".
_ONE = ("granuloma", "nodule", "mass")
_SINGLE = 1
#: What stands between two findings of which one is there: a word, a mask (XXXX) for it, or nothing
#: where words are stuck together. "c/w" and "w/" are no such words.
_OR = re.compile(r"\b(?:or|versus|vs|and/or|andor)\b|(?<!\b\w)/|\?|^\s*x{4}\s*$|^$", re.IGNORECASE)
_ITEM = re.compile(r"\s*,[^,.;:]*$")
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
    def concepts(self) -> frozenset[str]:
        """Return every concept that it may be."""
        return self.also | {self.concept}

    def words(self, text: str) -> str:
        """Return the words of the mention with those that qualify it."""
        return self.quote(text).of(text)

    def quote(self, text: str) -> Span:
        """Return the characters from the first to the last word about the finding."""
        return Span(min(s.start for s in self.marks), max(s.end for s in self.marks))


@dataclass(frozen=True, slots=True)
class ReportStatements:
    """Statements of one report, its findings as extracted, and their changes."""

    text: str
    statements: tuple[Statement, ...]
    findings: ReportFindings
    changes: tuple[FindingChange, ...]


@lru_cache(_REMEMBERED)
def statements_of(report: str, tables: JudgeTables) -> ReportStatements:
    """Return the statements of a report about this patient now, each finding and place once."""
    found = extract(report, tables.lexicon)
    changes = changes_of(found, tables.lexicon)
    changed = {change.finding: change for change in changes if change.finding is not None}
    stated: list[Statement] = []
    for sentence in found.sentences:
        own = [
            each
            for finding in sentence.findings
            if _is_stated(finding, tables)
            and not _has_resolved(changed.get(finding))
            and not _explains_away(report, sentence, finding, tables)
            for each in _sided(
                _statement(report, found, sentence, finding, changed.get(finding), tables), tables
            )
        ]
        before = found.sentences[sentence.index - 1].span if sentence.index else None
        for statement in _exact_ones(report, own, tables):
            if not _explains(report, stated, before, statement, tables):
                _add(stated, statement, tables)
    return ReportStatements(report, tuple(stated), found, changes)


def _is_of_differential(text: str, sentence: Sentence, finding: Finding) -> bool:
    """Return whether a finding is one of several that are considered."""
    return bool(_DIFFERENTIAL.search(text, sentence.span.start, finding.span.start))


def _explains_away(text: str, sentence: Sentence, finding: Finding, tables: JudgeTables) -> bool:
    """Return whether a harmless shadow explains a density: "it represents a skin fold"."""
    return tables.of_observation[finding.observation] == _HARMLESS and bool(
        _LINK.search(text, sentence.span.start, finding.span.start)
    )


def _has_resolved(change: FindingChange | None) -> bool:
    return change is not None and change.change is TemporalChange.RESOLVED


def _is_stated(finding: Finding, tables: JudgeTables) -> bool:
    if finding.polarity is Polarity.NEGATIVE:
        return False
    if finding.status is Status.CURRENT:
        return True
    concept = tables.concepts[tables.of_observation[finding.observation]]
    return finding.status is Status.HISTORICAL and concept.after_treatment


def _statement(
    text: str,
    found: ReportFindings,
    sentence: Sentence,
    finding: Finding,
    change: FindingChange | None,
    tables: JudgeTables,
) -> Statement:
    concept = _concept_of(finding.span.of(text), finding.observation, tables)
    grade, number, age = _grades(text, finding, tables)
    device, old = tables.concepts[concept].device, tables.concepts[concept].old
    placed = _position(text, found, sentence, finding, tables) if device else None
    if finding.observation == "pacemaker" and placed and _OF_LEADS.search(placed[1].of(text)):
        placed = None  # a lead in the heart is where it belongs
    return Statement(
        concept=concept,
        span=finding.span,
        line=sentence.span,
        last_line=sentence.span,
        sides=_sides(finding),
        levels=frozenset(level for zone in finding.zones for level in tables.levels.get(zone, ()))
        | _ribs(text, sentence.span, finding)
        | _greater_side(text, sentence.span, finding),
        rank=None if grade is None else grade.rank,
        grade=None if grade is None else grade.value,
        number=number,
        age=age,
        sizes=() if device else _sizes(text, finding),
        change=change,
        doubtful=finding.status is Status.CURRENT
        and (not finding.is_likely or _is_of_differential(text, sentence, finding)),
        position=None if placed is None else placed[0],
        old=old is not None and bool(old.search(text, *sentence.span)),
        finding=finding,
        observations=frozenset((finding.observation,)),
        marks=(
            finding.span,
            *(() if placed is None else placed[1:]),
            *(
                a.span
                for a in finding.attributes
                # Words of change are quoted by the errors of comparison.
                if a.axis is not Axis.CHANGE and not a.inherited and sentence.span.covers(a.span)
            ),
        ),
    )


def _sided(statement: Statement, tables: JudgeTables) -> list[Statement]:
    """Return the statement; one for each side with a grade ("large left, small right")."""
    own = [
        a
        for a in statement.finding.attributes
        if a.axis in (Axis.SIDE, Axis.SEVERITY) and not a.inherited and a.value != "bilateral"
    ]
    sides = [a for a in own if a.axis is Axis.SIDE]
    grades = [level for a in own if a.axis is Axis.SEVERITY and (level := _level(a, tables))]
    if (
        [a.value for a in sides] not in (["left", "right"], ["right", "left"])
        or len(grades) != 2
        or [own[0].axis, own[1].axis] != [own[2].axis, own[3].axis]
    ):
        return [statement]
    return [
        replace(statement, sides=frozenset((side.value,)), rank=level.rank, grade=level.value)
        for side, level in zip(sides, grades, strict=True)
    ]


def _level(attribute: Attribute, tables: JudgeTables) -> SeverityLevel | None:
    level = severity_level(attribute.value, tables.lexicon)
    return None if level is None or level.scale in _NO_GRADES else level


def _grades(
    text: str, finding: Finding, tables: JudgeTables
) -> tuple[SeverityLevel | None, int | None, int | None]:
    """Return the first grade, and the ranks of the first number and of the first age."""
    grade = None
    ranks: dict[str, int] = {}
    for attribute in finding.attributes:
        if attribute.axis is Axis.SEVERITY:
            level = severity_level(attribute.value, tables.lexicon)
            if level is not None and level.scale in _NO_GRADES:
                ranks.setdefault(level.scale, level.rank)
            else:
                grade = grade or level
    number = ranks.get("number")
    if number is None and finding.span.of(text).lower().endswith(_ONE):
        number = _SINGLE
    return grade, number, ranks.get("age")


@lru_cache(_REMEMBERED)
def _concept_of(words: str, observation: str, tables: JudgeTables) -> str:
    """Return the concept of a mention."""
    for refinement in tables.refined.get(observation, ()):
        if refinement.pattern.search(words):
            return refinement.concept
    return tables.of_observation[observation]


def _sizes(text: str, finding: Finding) -> tuple[float, ...]:
    """Return sizes in millimetres, largest first, with the first dimensions of "3.2 x 2.8 cm"."""
    sizes = []
    for attribute in finding.on(Axis.SIZE):
        if _EARLIER.search(text[: attribute.span.start]):
            continue
        size = float(attribute.value)
        sizes.append(size)
        last = _NUMBER.match(text, attribute.span.start)
        before = _DIMENSIONS.search(text[: attribute.span.start])
        if last is not None and before is not None and float(last[0]) > 0:
            factor = size / float(last[0])
            sizes += [float(number) * factor for number in _NUMBER.findall(before[0])]
    return tuple(sorted(sizes, reverse=True))


def _position(
    text: str, found: ReportFindings, sentence: Sentence, finding: Finding, tables: JudgeTables
) -> tuple[Position, Span] | None:
    """Return the first position that is said of a device, and its words; None without one.

    The words from the device to the next finding are searched first, for the last device with the
    next sentence, if that is about its tip. Without a position there, it is the first one of the
    sentence, which several devices then share.
    """
    start, end = sentence.span
    later = [f.span.start for f in sentence.findings if f.span.start > finding.span.end]
    devices = [f for f in sentence.findings if _is_device(f, tables)]
    following = next(iter(found.sentences[sentence.index + 1 : sentence.index + 2]), None)
    if finding is devices[-1] and following is not None:
        opening = following.span.of(text)[:24].lower()
        tells = _TIP.search(opening) is not None or opening.startswith(
            ("it ", "this ", "withdraw", "recommend")
        )
        if tells and not any(_is_device(f, tables) for f in following.findings):
            end = following.span.end
    own = Span(finding.span.start, min(later, default=end) if finding is not devices[-1] else end)
    return _first_position(text, own, tables) or _first_position(text, Span(start, end), tables)


def _is_device(finding: Finding, tables: JudgeTables) -> bool:
    return tables.concepts[tables.of_observation[finding.observation]].device


def _first_position(text: str, span: Span, tables: JudgeTables) -> tuple[Position, Span] | None:
    words = span.of(text)
    tokens = tokenize(words)
    matches = tables.positions.find(tokens).get("position", ())
    current = [m for m in matches if not _EARLIER.search(words[: tokens[m.first].start])]
    first = min(current, key=lambda m: m.entry, default=None)
    if first is None:
        return None
    begin, end = tokens[first.first].start, tokens[first.last - 1].end
    return first.entry, Span(span.start + begin, span.start + end)


def _ribs(text: str, line: Span, finding: Finding) -> frozenset[str]:
    """Return "ribs 7" for each rib that is named by its number next to the finding."""
    if "rib" not in finding.zones:
        return frozenset()
    named: set[int] = set()
    for match in _RIBS.finditer(text, *line):
        numbers = [_rib_number(word) for word in _RIB.findall(match[0])]
        if _TO.search(match[0]) and len(numbers) == 2:
            numbers = list(range(numbers[0], numbers[1] + 1))
        named.update(numbers)
    return frozenset(f"ribs {number}" for number in named)


def _greater_side(text: str, line: Span, finding: Finding) -> frozenset[str]:
    """Return "greater left" or "greater right" for a finding of both sides, where one has more."""
    if finding.side is not Side.BILATERAL:
        return frozenset()
    match = _GREATER.search(text, *line)
    if match is None:
        return frozenset()
    side = (match["more"] or match["on"]).lower()
    return frozenset(("greater left" if side.startswith("l") else "greater right",))


def _rib_number(word: str) -> int:
    return int(word) if word.isdecimal() else 1 + _ORDINALS.index(word.lower())


def _sides(finding: Finding) -> frozenset[str]:
    side = finding.side
    if side is None:
        return frozenset()
    return _BOTH if str(side) == "bilateral" else frozenset((str(side),))


def _exact_ones(text: str, own: list[Statement], tables: JudgeTables) -> list[Statement]:
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
                    or _LINK.search(_between(text, one, other))
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
        if (
            old.concept != new.concept
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


def _explains(
    text: str, stated: list[Statement], before: Span | None, new: Statement, tables: JudgeTables
) -> bool:
    """Merge a doubted statement without a place into a sign of it in the sentence before.

    "Opacity in the left base. This may represent atelectasis." states one finding. "Findings are
    concerning for ..." explains any sentence before. Returns whether it was merged.
    """
    places = [level for level in new.levels if not level.startswith(("bone", "ribs"))]
    if not new.doubtful or new.sides or places or new.sizes:
        return False
    sums_up = _SUMS_UP.match(text, new.line.start) is not None
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
    if not one.sides or one.sides != other.sides or (one.sizes and other.sizes):
        return False
    return not levels_conflict(one, other)


def _other_size(one: Statement, other: Statement) -> bool:
    return bool(one.sizes and other.sizes) and one.sizes[0] != other.sizes[0]


def _add(stated: list[Statement], new: Statement, tables: JudgeTables) -> None:
    """Add a statement, or merge it into the one that it repeats, in other words or not."""
    for position, old in enumerate(stated):
        if old.concept == new.concept and _same_place(old, new) and not _other_size(old, new):
            levels = old.levels | new.levels if old.levels and new.levels else frozenset[str]()
            stated[position] = replace(_merged(old, new), levels=levels)
            return
    for position, old in enumerate(stated):
        known = tables.repeated if _one_and_the_same(old, new) else tables.anywhere
        if known is tables.anywhere and (old.sides or new.sides):
            continue
        if (old.concept, new.concept) in known:
            stated[position] = replace(_merged(old, new), concept=new.concept)
            return
        if (new.concept, old.concept) in known:
            stated[position] = _merged(old, new)
            return
    stated.append(new)


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
