"""Words and numbers that a tokenizer divided: "isn ' t", "1. 2 cm", "w / o"."""

import re
from functools import lru_cache

from vlscore.text.stand_ins import BLANK, JOINER, joined
from vlscore.text.tables import WORDS, any_of

_DIVIDED_NUMBER = re.compile(rf"\d(?:[ {JOINER}]*[.·][ {JOINER}]+\d|[ {JOINER}]+\.\d|[,·]\d)")


# A tokenizer leaves no comma or full stop at a word, and divides "well-aerated" into three.
_CLOSED = re.compile(r"[^\W\d_][,.](?:\s|$)")
_HYPHEN = re.compile(r"(?<=[a-z]) - (?=[a-z])")

_LAST_WORDS = re.compile(r"[^\W\d_]+")
# Behind these begins the first item of a list, so that "2. 17 mm nodule" may be its second.
_FIRST_ITEM = re.compile(r"(?:^|[.:;!?\n])[ \t]*1[.)][ \t]")
_LETTER_BEFORE = re.compile(r"[^\W_][ \t]*$|[x×*(–-][ \t]*$")

_GAP = rf"[ {JOINER}]*"
_N, _NOT = WORDS.divided.negated
_CONTRACTION = re.compile(
    rf"(?<=[a-z]) {_N}{_GAP}'{_GAP}{_NOT}\b|(?<={_N}){_GAP}'{_GAP}{_NOT}(?!\w)"
    rf"|(?<=[a-z]){_GAP}'{_GAP}(?:{any_of(WORDS.divided.contractions)})(?!\w)",
    re.IGNORECASE,
)
# An apostrophe that a program doubled, or could not write.
_LOST = re.compile(
    rf"(?<=[^\W\d_])(?:''|\ufffd|\?)(?=(?:{any_of((*WORDS.divided.contractions, _NOT))})(?!\w))",
    re.IGNORECASE,
)
_PART = any_of(WORDS.divided.short)
_SHORT = re.compile(rf"(?<![\w/])(?:(?:{_PART}) ?/ ?(?:{_PART})(?![\w/])|w /)", re.IGNORECASE)
_DECIMAL = re.compile(rf"(?<![\w.,])(\d{{1,3}})({_GAP}[.·]{_GAP}|[,])(\d{{1,2}})(?!\d)")
_SIZE = re.compile(
    rf"(?:\s*(?:{any_of(WORDS.sizes.between)})?\s*\d+(?:{_GAP}[.,·]{_GAP}\d+)?){{0,2}}"
    rf"\s*-?\s*(?:{any_of(WORDS.sizes.units)})(?!\w)",
    re.IGNORECASE,
)
_NEVER_LAST = any_of(a for a in WORDS.abbreviations.never if a.isalpha() and len(a) > 1)
_LETTERS = "|".join(rf"{a[0]} \. ?{a[-1]}(?: \.)?(?!\w)" for a in WORDS.divided.letters)
_ABBREVIATION = re.compile(
    rf"(?<![\w.])(?:{_NEVER_LAST}) \.(?=\s)|(?<![\w.])(?:{_LETTERS})", re.IGNORECASE
)


def with_whole_words(text: str) -> str:
    """Return the text with divided contractions, short forms and decimals in one piece."""
    if "'" in text and (" '" in text or "' " in text or f"'{JOINER}" in text or " n't" in text):
        text = _CONTRACTION.sub(joined, text)
    if "\ufffd" in text or "''" in text or "?" in text:
        text = _LOST.sub(lambda match: "'" + JOINER * (len(match.group()) - 1), text)
    if " /" in text or "/ " in text:
        text = _SHORT.sub(joined, text).replace("+ / -", f"+{JOINER}/{JOINER}-")
    if _DIVIDED_NUMBER.search(text) is not None:
        text = _DECIMAL.sub(_decimal, text)
    if " ." in text:
        text = _ABBREVIATION.sub(joined, text)
        if " - " in text and text.islower() and _CLOSED.search(text) is None:
            text = _HYPHEN.sub(joined, text)
    return text


@lru_cache(4)
def _first_item(text: str) -> int:
    """Return where the first item of a numbered list stands; behind the text without one."""
    item = _FIRST_ITEM.search(text)
    return len(text) if item is None else item.start()


def _decimal(match: re.Match[str]) -> str:
    """Return a number in one piece if it is one: it has a unit, or begins with a zero."""
    whole, mark, rest = match.groups()
    if mark == ".":
        return match.group()
    text, start = match.string, match.start()
    is_size = _SIZE.match(text, match.end()) is not None
    if not is_size and (whole != "0" or mark == ","):
        return match.group()
    # At the beginning of a sentence, "1. 2 cm nodule" may be an item of a list.
    is_inside = _LETTER_BEFORE.search(text[max(0, start - 4) : start]) is not None
    if not (is_inside or mark.startswith(BLANK) or text.islower()):
        return match.group()
    if whole != "1" and _first_item(text) < start:
        return match.group()
    before = _LAST_WORDS.findall(text[max(0, start - 24) : start].lower())[-2:]
    if BLANK in mark and not WORDS.lines.numbered.isdisjoint(before):
        return match.group()
    return whole + re.sub("[.,·]", ".", mark).replace(BLANK, JOINER) + rest
