"""Statements of a report: its sentences, list items and lines, with their places in the text.

A statement ends at a full stop, at the end of a list item, title or paragraph, and at the end of a
line, unless the line is wrapped prose. The words are those of the plain text, so that a tag or a
literal line break ends one as well.
"""

import re
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from vlscore.text.boxes import BOX_SIGN
from vlscore.text.line_ends import BULLET, SURE_BULLET, line_cuts
from vlscore.text.list_items import list_cuts
from vlscore.text.plain import plain_text
from vlscore.text.stand_ins import BLANKS, INVISIBLE, JOINER
from vlscore.text.tables import ANSWERS, WORDS, any_of
from vlscore.text.titles import titles_of

_CAPITALISED = re.compile(r"[A-Z][a-z]|A ")
# Periods, question or exclamation mark, with closing quotes, where a sentence may end. A blank may
# be missing behind it before a capital, a bullet, or a number.
_STOP = re.compile(
    rf"[.!?]+[\"')\]>{JOINER}]*(?=\s|$|[A-Z_•●▪◦(\[])|;(?=\s|[A-Z])|…+(?=\s+[A-Z]|\s*$)"
    r"|\.(?=[a-z]{3}|\d|[*–—-])"
)
# Several metrics, and the facts of a table of systems, read the same reports.
_REMEMBERED = 4096
# What stands before a full stop without a blank behind it, in front of a small letter or a number.
_SMALL_WORD = re.compile(r"[a-z]{3}")
_BEHIND_A_STOP = ("", " ", "\n")
_SHORT_FORMS = frozenset(word for words in WORDS.abbreviations for word in words)
# Longer words are no abbreviations.
_LONGEST_SHORT = 9
# The number or bullet of a list item, at the beginning of a line or of a sentence.
_NUMBER = re.compile(
    rf"[\s{JOINER}]*(?:\(?Q?\d{{1,2}}[.)](?=\s|[A-Za-z])|{BULLET}(?=[\s{JOINER}])(?!{JOINER}/)"
    rf"|{SURE_BULLET}(?=\w|\s)|\(?(?:[a-h]|i{{1,3}}|iv|vi{{0,3}})\)(?=\s)|#\d{{1,2}}[:.)]?(?=\s))[\s{JOINER}]*"
)
_BOXED = re.compile(rf"\s*+(?:{BULLET}\s++)?{BOX_SIGN}")
_NEXT_BOX = re.compile(rf"\s(?={BOX_SIGN})")
_BLANK = re.compile(r"[ \t\r]*(?:\n|$)")
# A short answer to a question ("Effusion? None."), which ends no sentence.
_ANSWERS = any_of(ANSWERS)
_ANSWER = re.compile(
    rf"[ \t{JOINER}]*(?:[-–—=>→:]+[ \t{JOINER}]*)?(?:{BOX_SIGN}"
    rf"|(?i:{_ANSWERS}|{any_of(WORDS.lines.denying)})(?=[ \t]*(?:[.,;\n]|$))"
    rf"|(?=[A-Z])(?i:(?!(?:{any_of(WORDS.lines.denying)})\b)(?:{_ANSWERS})\b))"
)
_YES_OR_NO = re.compile(
    rf"[ \t]*(?i:{any_of((*WORDS.lines.affirming, *WORDS.lines.refuting))})[ \t]*(?:[.,;\n]|$)"
)
_LONGEST_QUESTION = 60
# A question mark before a word, which it doubts ("opacity ?pneumonia"); it ends no sentence.
_YES, _NO = any_of(WORDS.lines.affirming), any_of(WORDS.lines.refuting)
_DOUBTED = re.compile(rf"(?<![^\s(,/])\?(?=\s?(?!(?:{_YES}|{_NO})\b)[a-z])", re.IGNORECASE)
# What such a question mark is read as; a trigger of context.toml.
_DOUBT = "¿"
# More dots than these lead from a label to its value ("Effusion ..... none").
_ELLIPSIS = 3
_ALPHANUMERIC = re.compile(r"[^\W_]")


class SentenceSpan(NamedTuple):
    """One sentence; `text` is exactly report[start:end]."""

    text: str
    start: int
    end: int


def with_doubts(text: str) -> str:
    """Return the text with other signs for question marks that doubt the word behind them."""
    return _DOUBTED.sub(_DOUBT, text) if "?" in text else text


def split_sentences(report: str) -> list[SentenceSpan]:
    """Return the sentences of a report, in order, without list numbers and section titles.

    Decimals ("2.5 cm"), abbreviations ("Dr.", "e.g."), times, masks ("XXXX", "___") and wrapped
    lines do not end a sentence; the end of a list item, title, paragraph, or of a line that is not
    wrapped does. Capitals are not needed, nor a final period. Linear in the length of the text.

    >>> [s.text for s in split_sentences("1. Nodule of 2.5 cm.\\n2. no effusion . heart normal")]
    ['Nodule of 2.5 cm.', 'no effusion .', 'heart normal']
    """
    spans = _spans(report)
    if not report.isascii():
        spans = [(_with_invisible(report, start), end) for start, end in spans]
    return [SentenceSpan(report[start:end], start, end) for start, end in spans]


def _with_invisible(report: str, start: int) -> int:
    """Return where a word begins with the byte order mark or the like before it."""
    while start > 0 and report[start - 1] in INVISIBLE:
        start -= 1
    return start


@lru_cache(_REMEMBERED)
def _spans(report: str) -> list[tuple[int, int]]:
    plain = plain_text(report)
    text = plain.text
    titles = titles_of(report)
    # Paragraphs, list items, rows of tables and texts after titles.
    cuts = {0, *plain.cuts, *line_cuts(text), *list_cuts(text), len(text)}
    # Where a sentence begins behind its section's title; titles inside sections belong to it.
    begins = {}
    for title in titles:
        cuts.difference_update(range(title.start, title.end))
        cuts.add(title.start)
        if title.section is not None:
            cuts.add(title.end)
            begins[title.start] = title.end
    found: list[tuple[int, int]] = []
    for start, end in pairwise(sorted(cuts)):
        begin = begins.get(start, start)
        if begin < end and not text[begin:end].isspace():
            _add_block(found, text, begin, end)
    return found


def _add_block(found: list[tuple[int, int]], text: str, begin: int, end: int) -> None:
    if _BOXED.match(text, begin, end):
        boxes = [box.end() for box in _NEXT_BOX.finditer(text, begin, end)]
        for first, last in pairwise([begin, *boxes, end]):
            _append(found, text, first, last)
        return
    for stop in _STOP.finditer(text, begin, end):
        if stop.start() < begin or not _ends_sentence(text, begin, stop, end):
            continue
        _append(found, text, begin, stop.end())
        begin = stop.end()
    _append(found, text, begin, end)


def _ends_sentence(text: str, begin: int, stop: re.Match[str], end: int) -> bool:
    mark = stop.group()
    if mark == "." and text[stop.end() : stop.end() + 1] in _BEHIND_A_STOP:
        word = text[text.rfind(" ", begin, stop.start()) + 1 : stop.start()].lower()
        if len(word) > 1 and word.isalpha() and word not in _SHORT_FORMS:
            return True
    if JOINER in mark:
        mark = mark.replace(JOINER, "")
    if mark == "?" and _DOUBTED.match(text, stop.start()) is not None:
        return False
    if mark == "?" and stop.start() - begin < _LONGEST_QUESTION:
        return _ANSWER.match(text, stop.end(), end) is None
    if not mark.startswith("."):
        return True
    after = text[stop.end() : stop.end() + 1]
    if after and not (after.isspace() or after.isupper() or after in "_•●▪◦(["):
        return _SMALL_WORD.fullmatch(text, stop.start() - 3, stop.start()) is not None
    if len(mark) > _ELLIPSIS or (
        len(mark) == _ELLIPSIS and _YES_OR_NO.match(text, stop.end(), end) is not None
    ):
        return _BLANK.match(text, stop.end()) is not None
    word = _word_before(text, begin, stop.start())
    if not word or len(word) > _LONGEST_SHORT:
        return True
    if word in WORDS.abbreviations.never:
        return False
    after = text[stop.end() : stop.end() + 12].lstrip()
    if word in WORDS.abbreviations.often and after:
        return _CAPITALISED.match(after) is not None
    if word in WORDS.abbreviations.before_number and after[:1].isdigit():
        return False
    # Digits at the beginning number an item of a list.
    is_number = word.removeprefix("q").isdigit() and len(word) <= 3 and bool(after)
    if is_number and not text[begin : stop.start() - len(word)].strip():
        return False
    # A single capital is an initial ("J. Smith") unless a new sentence begins after a real word.
    is_initial = len(word) == 1 and word.isalpha() and text[stop.start() - 1].isupper()
    return not (is_initial and after[:1].isupper())


def _word_before(text: str, begin: int, place: int) -> str:
    """Return the word that ends at a place, in lower case; "" behind a blank."""
    words = text[max(begin, place - 40) : place].replace(JOINER, "")
    if not words or words[-1].isspace():
        return ""
    word = words.split()[-1]
    for sign in "([\"'":
        if sign in word:
            word = word[word.rindex(sign) + 1 :]
    return word.lower()


def _append(found: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    words = text[start:end].lstrip(BLANKS)
    start = end - len(words)
    # Most sentences begin with a word.
    if not words[:1].isalpha() or ")" in words[:5] or words[:1] == "Q":
        number = _NUMBER.match(text, start, end)
        if number:
            words = text[number.end() : end].lstrip(BLANKS)
            start = end - len(words)
    words = words.rstrip(BLANKS)
    if words and _ALPHANUMERIC.search(words):
        found.append((start, start + len(words)))
