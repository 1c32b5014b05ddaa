"""What the words of a report say of one finding: sides, places, grade, sizes, position."""

import re
from collections.abc import Iterator, Sequence

from vlscore.findings import (
    Attribute,
    Axis,
    Finding,
    Match,
    ReportFindings,
    Sentence,
    SeverityLevel,
    Side,
    Span,
    Token,
    find_sizes,
    severity_level,
    tokenize,
)
from vlscore.metrics.judge.judge_tables import JudgeTables, Position
from vlscore.text import JOINER

_NUMBER = re.compile(r"\d{1,4}(?:\.\d{1,4})?")
_TIP = re.compile(r"\btip\b")
#: A size or position behind it is that of an earlier image: "12 mm, previously 20 mm".
_EARLIER = re.compile(r"\b(?:(?:previously|formerly)(?: \w+){0,3}|from) $", re.IGNORECASE)
#: Between an earlier grade and the present one.
_NOW = re.compile(
    r"[^.;,]*\b(?:progressed|increased|worsened|enlarged|grown|improved|decreased|changed)\b"
    r"[^.;,]*\bto (?:a )?",
    re.IGNORECASE,
)
#: Before a bad position that is denied: "without kinking".
_DENIAL = re.compile(r"\b(?:no|without) (?:\w+ )?$", re.IGNORECASE)
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
#: Scales of words.toml that do not grade a finding.
_NO_GRADES = frozenset(("number", "age"))
#: Words whose singular states that there is one, and the rank of "single".
_ONE = ("granuloma", "nodule", "mass")
_SINGLE = 1


def level_of(attribute: Attribute, tables: JudgeTables) -> SeverityLevel | None:
    """Return the grade of a severity word; None for words of number and age."""
    level = severity_level(attribute.value, tables.lexicon)
    return None if level is None or level.scale in _NO_GRADES else level


def grades_of(
    text: str, finding: Finding, tables: JudgeTables
) -> tuple[SeverityLevel | None, int | None, int | None]:
    """Return the first grade, and the ranks of the first number and of the first age.

    In "mild edema has progressed to moderate" the last grade is the present one.
    """
    grade = None
    end = 0
    ranks: dict[str, int] = {}
    for attribute in finding.attributes:
        if attribute.axis is Axis.SEVERITY:
            level = severity_level(attribute.value, tables.lexicon)
            if level is not None and level.scale in _NO_GRADES:
                ranks.setdefault(level.scale, level.rank)
            elif grade is None or _NOW.fullmatch(text, end, attribute.span.start):
                grade, end = level, attribute.span.end
    number = ranks.get("number")
    if number is None and finding.span.of(text).lower().endswith(_ONE):
        number = _SINGLE
    return grade, number, ranks.get("age")


def sizes_of(text: str, finding: Finding) -> tuple[float, ...]:
    """Return sizes in millimetres, largest first, with the first dimensions of "3.2 x 2.8 cm"."""
    sizes = []
    for attribute in finding.on(Axis.SIZE):
        words_before = text[: attribute.span.start].replace(JOINER, "")
        if _EARLIER.search(words_before):
            continue
        size = float(attribute.value)
        sizes.append(size)
        last = _NUMBER.match(attribute.span.of(text).replace(JOINER, ""))
        before = _DIMENSIONS.search(words_before)
        if last is not None and before is not None and float(last[0]) > 0:
            factor = size / float(last[0])
            sizes += [float(number) * factor for number in _NUMBER.findall(before[0])]
    return tuple(sorted(sizes, reverse=True))


def position_of(
    text: str,
    found: ReportFindings,
    sentence: Sentence,
    finding: Finding,
    device: str,
    tables: JudgeTables,
) -> tuple[Position, list[Span]] | None:
    """Return the first position that is said of a device, and the words of all; None without one.

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
    # "Right mainstem intubation": words before the first finding are its own.
    begin = start if finding is sentence.findings[0] else finding.span.start
    own = Span(begin, min(later, default=end) if finding is not devices[-1] else end)
    return _positions_in(text, own, device, tables) or _positions_in(
        text, Span(start, end), device, tables
    )


def _is_device(finding: Finding, tables: JudgeTables) -> bool:
    return tables.concepts[tables.of_observation[finding.observation]].device


def _is_said(position: Position, before: str) -> bool:
    """Return whether the report states a position of today: not "previously ...", "without ..."."""
    is_denied = position.level == "bad" and _DENIAL.search(before) is not None
    return _EARLIER.search(before) is None and not is_denied


def _positions_in(
    text: str, span: Span, device: str, tables: JudgeTables
) -> tuple[Position, list[Span]] | None:
    words = span.of(text)
    tokens = tokenize(words)
    found = tables.positions.find(tokens)
    said = [
        m
        for m in (
            *found.get("position", ()),
            *_distances(tokens, found.get("distance", ()), device),
        )
        if m.entry is not None
        and device not in m.entry.excepted
        and _is_said(m.entry, words[: tokens[m.first].start])
    ]
    if not said:
        return None
    spans = [
        Span(span.start + tokens[m.first].start, span.start + tokens[m.last - 1].end) for m in said
    ]
    return min(m.entry for m in said), spans


def _distances(tokens: Sequence[Token], measured: Sequence[Match], device: str) -> Iterator[Match]:
    """Find distances at which the tip of a device does not lie well: "1 cm above the carina"."""
    sizes = {size.last: size for size in find_sizes(tokens)}
    for match in measured:
        position, measured_device, (low, high) = match.entry
        size = sizes.get(match.first)
        if size and device == measured_device and not low <= size.millimetres < high:
            yield Match(size.first, match.last, "position", position)


def ribs_of(text: str, line: Span, finding: Finding) -> frozenset[str]:
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


def greater_side(text: str, line: Span, finding: Finding) -> frozenset[str]:
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
