"""Items of a list inside a line: where a statement begins behind a bullet, number or other sign."""

import re
from collections.abc import Iterator

from vlscore.text.boxes import BOX_SIGN, SIGNS
from vlscore.text.line_ends import SURE_BULLET
from vlscore.text.stand_ins import JOINER
from vlscore.text.tables import ANSWERS, WORDS, any_of

_SURE_BULLET = re.compile(rf"(?<=\S)[ \t]*{SURE_BULLET}")
_CAPITALISED = re.compile(r"[A-Z][a-z]")
_LEADING = re.compile(rf"[ \t{JOINER}]*(?P<sign>[-–—*+>])[ \t]")
# Signs between statements, most of them between blanks; a label and its value have them, too.
_BETWEEN = re.compile(
    r"[ \t]+(?P<sign>[^\w\s,.;:?!()\[\]{}'\"&%<=±×°@])(?P=sign){0,2}[ \t]+|[ \t]+(?P<at>@)@[ \t]+"
    r"|[ \t]*(?P<bar>[|\\^¬])[ \t]*|(?P<tab>\t)[ \t]*|(?P<gap> )  +"
)
# Without one of these a text has no such sign.
_RARE = re.compile(r"[^\w ,.;:?!()'\"\n\[\]{}&%<=±×°/-]")
_COMMON = (" - ", " / ", "-- ", "// ", "   ")
# These may stand between two things that are denied together.
_JOINTS = frozenset("-–—/+→")
# Signs that stand between cells, or a label and its value, as well.
_UNSURE = _JOINTS | frozenset("|\t *>=~" + SIGNS)
_STOP = re.compile(r"[.;:]")
_ANSWERS_LAST = re.compile(
    rf"\w[ \t]+(?i:{any_of((*WORDS.lines.affirming, *WORDS.lines.refuting))})[.,]?$"
)
# An answered question in front of another: "Edema? N  Effusion? Y", "edema=0 effusion=1".
_ANSWERED = re.compile(
    rf"[?=:.](?:(?<!\.)|(?<=\.{{3}}))[ \t]*(?:(?i:{any_of(ANSWERS)}|[01])\b|{BOX_SIGN})"
    r"(?:[.,;][ \t]*|[ \t]+)(?:(?=[^\n?=.:]{1,60}[?=])|(?=[A-Z]\w+(?: \w+){0,3}(?::|\.{3})))"
)
_OPENING_WORD = re.compile(r"[^\W\d_]+")
_OPENING = re.compile(rf"(?:{any_of(WORDS.lines.stating)})\s+\S", re.IGNORECASE)
_ITEM_NUMBER = re.compile(
    r"(?:(?<=\s)|(?<=^)|(?<=[:.;,])|(?=\())"
    r"(?:#?(?P<strict>\d{1,2}|[A-H]\.)[/-]?(?=[ \t]+[A-Z][a-z])|[(\[]?"
    r"(?:(?P<number>\d{1,2})|(?P<letter>[a-h])|(?P<roman>[ivx]{1,4}))"
    r"(?:[.)\]:](?=[ \t]*[^\W\d_]|[ \t])|-(?=[ \t])))"
)
_ROMAN = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")


def list_cuts(text: str) -> list[int]:
    """Return where items of a list begin inside a line: "1) a 2) b", "- a - b"."""
    cuts = []
    if not text.isascii():
        cuts += [match.start() for match in _SURE_BULLET.finditer(text)]
    may_have_signs = _RARE.search(text) is not None or any(sign in text for sign in _COMMON)
    start = 0 if may_have_signs else -1
    while start >= 0:
        end = text.find("\n", start)
        stop = end if end >= 0 else len(text)
        cuts += _divided_by_signs(text, start, stop)
        start = end + 1 or -1
    if any(text.count(mark) > 1 for mark in ("?", "=", ":", "...")):
        cuts += [match.end() for match in _ANSWERED.finditer(text)]
    if _NUMBERED.search(text) is not None:
        cuts += _numbered(text)
    return cuts


# Without a second item there is no list.
_NUMBERED = re.compile(r"(?<![\w.])(?:2(?:[.)\]:/-]+(?!\d)|[ \t]+[A-Z])|(?:b|ii|B)(?:[.)]|- ))")


def _divided_by_signs(text: str, start: int, end: int) -> Iterator[int]:
    """Yield where statements begin that one sign divides in a line."""
    titled = text.rfind(": ", start, min(end, start + 60)) + 1 or start
    for first in {start, titled}:
        if (leading := _LEADING.match(text, first, end)) is not None:
            yield from _dashed(text, leading, end)
            return
    places: dict[str, list[tuple[int, int]]] = {}
    for match in _BETWEEN.finditer(text, start, end):
        places.setdefault(match[match.lastgroup or 0], []).append(match.span())
    for sign, found in places.items():
        begins = [start, *(behind for _, behind in found)]
        ends = [*(place for place, _ in found), end]
        parts = [text[a:b].strip() for a, b in zip(begins, ends, strict=True)]
        is_sure = sign not in _UNSURE and all(part[:1].isupper() for part in parts)
        if is_sure or _are_statements(parts, sign in _JOINTS):
            yield from begins[1:]
            return


def _are_statements(parts: list[str], may_be_joined: bool) -> bool:
    """Return whether the parts of a line are statements.

    Each has a capital, and one opens as a statement; without capitals there are three or more, and
    one opens as a statement: a later one, where the sign may join words. Or each ends in a short
    answer.
    """
    if not all(map(_OPENING_WORD.match, parts)):
        return False
    if all(map(_ANSWERS_LAST.search, parts)):
        return True
    opens = [_OPENING.match(part) is not None for part in parts]
    if all(part[0].isupper() for part in parts):
        return any(opens)
    return len(parts) > 2 and any(opens[may_be_joined:]) and not any(map(_STOP.search, parts[:-1]))


def _dashed(text: str, leading: re.Match[str], end: int) -> Iterator[int]:
    """Yield the places of a bullet's sign between blanks, in the line that begins with it."""
    line = text[leading.end() : end]
    sign = re.escape(leading["sign"])
    answers = any_of(ANSWERS)
    # "- Effusion - none": the dash leads to an answer, not to another item.
    item = (
        rf"(?<=\S)[ \t]+{sign}[ \t]+(?!(?i:{answers})(?:[ \t]*(?:[.,;]|$)|[ \t]+{sign}))(?=(\w+))"
    )
    is_cased = _CAPITALISED.search(line) is not None
    for match in re.finditer(item, line):
        if not (is_cased and match.group(1).islower()):
            yield leading.end() + match.start()


def _numbered(text: str) -> Iterator[int]:
    """Yield the starts of items whose numbers run 1, 2, 3, or a, b, c, inside lines."""
    runs: dict[str, list[int]] = {}
    for match in _ITEM_NUMBER.finditer(text):
        kind = match.lastgroup or ""
        value = _value(kind, match[kind])
        run = runs.setdefault(kind, [])
        if value == 1:
            yield from run[1:]
            runs[kind] = [match.start()]
        elif run and value == len(run) + 1:
            run.append(match.start())
    for run in runs.values():
        yield from run[1:]


def _value(kind: str, sign: str) -> int:
    """Return the number that numbers an item, as a number or letter; 0 where it is none."""
    if kind == "roman":
        return _ROMAN.index(sign) if sign in _ROMAN else 0
    return int(sign) if sign.isdecimal() else ord(sign[0].lower()) - ord("a") + 1
