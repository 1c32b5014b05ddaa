"""Items of a list inside a line."""

import re
from collections.abc import Iterator

from vlscore.text.stand_ins import JOINER
from vlscore.text.tables import text_tables

_SURE_BULLET = re.compile(r"(?<=\S)[ \t]*[•●▪◦‣➢➤►]")
_CAPITALISED = re.compile(r"[A-Z][a-z]")
_LEADING = re.compile(rf"[ \t{JOINER}]*(?P<sign>[-–—*+>])[ \t]")
_ITEM_NUMBER = re.compile(
    r"(?:(?<=\s)|(?<=^)|(?<=[:.;,]))[(\[]?"
    r"(?:(?P<number>\d{1,2})|(?P<letter>[a-h])|(?P<roman>[ivx]{1,4}))"
    r"[.)\]:](?=[ \t]*[^\W\d_]|[ \t])"
)
_ROMAN = ("", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")


def list_cuts(text: str) -> list[int]:
    """Return where items of a list begin inside a line: "1) a 2) b", "- a - b", "• a • b"."""
    cuts = []
    if not text.isascii():
        cuts += [match.start() for match in _SURE_BULLET.finditer(text)]
    start = 0
    while start >= 0:
        if (leading := _LEADING.match(text, start)) is not None:
            cuts += _dashed(text, leading)
        start = text.find("\n", start) + 1 or -1
    if ")" in text or "1." in text or "1]" in text or "1:" in text:
        cuts += _numbered(text)
    return cuts


def _dashed(text: str, leading: re.Match[str]) -> Iterator[int]:
    """Yield the places of a bullet's sign between blanks, in the line that begins with it."""
    end = text.find("\n", leading.end())
    line_end = end if end >= 0 else len(text)
    line = text[leading.end() : line_end]
    sign = re.escape(leading["sign"])
    answers = "|".join(sorted(text_tables().answers))
    # "- Effusion - none": the dash leads to an answer, not to another item.
    item = rf"(?<=\S)[ \t]+{sign}[ \t]+(?!(?i:{answers})[ \t]*(?:[.,;]|{sign}|$))(?=(\w+))"
    is_cased = _CAPITALISED.search(line) is not None
    for match in re.finditer(item, line):
        if not (is_cased and match.group(1).islower()):
            yield leading.end() + match.start()


def _numbered(text: str) -> Iterator[int]:
    """Yield the starts of items whose numbers run 1, 2, 3, or a, b, c, inside lines."""
    runs: dict[str, list[int]] = {}
    for match in _ITEM_NUMBER.finditer(text):
        for kind, value in _values(match).items():
            run = runs.setdefault(kind, [])
            if value == 1:
                yield from run[1:]
                runs[kind] = [match.start()]
            elif run and value == len(run) + 1:
                run.append(match.start())
    for run in runs.values():
        yield from run[1:]


def _values(match: re.Match[str]) -> dict[str, int]:
    """Return the number of an item by the kind of its sign."""
    if match["number"]:
        return {"number": int(match["number"])}
    if match["letter"]:
        return {"letter": ord(match["letter"]) - ord("a") + 1}
    return {"roman": _ROMAN.index(match["roman"])} if match["roman"] in _ROMAN else {}
