"""Characters that were read in a wrong encoding, or are written as the numbers of their bytes."""

import re
from collections.abc import Mapping

from vlscore.text.stand_ins import BLANK, JOINER, LINE, blanks, hidden, line_end, shown_as

_LAST_BYTE, _FIRST_HIGH = 0x100, 0x80


def _byte_of(codec: str) -> dict[str, int]:
    """Return the byte for which each character beyond ASCII stands in an encoding."""
    return {
        character: byte
        for byte in range(_FIRST_HIGH, _LAST_BYTE)
        if (character := bytes((byte,)).decode(codec, "ignore"))
    }


# Encodings as which programs of Windows (with Latin-1) and of the Macintosh read UTF-8.
_WINDOWS = {**_byte_of("latin-1"), **_byte_of("cp1252")}
_MACINTOSH = _byte_of("mac-roman")


def _misread(byte_of: Mapping[str, int]) -> re.Pattern[str]:
    """Return the pattern of characters that were UTF-8 before an encoding was mistaken."""

    def among(first: int, last: int) -> str:
        return f"[{re.escape(''.join(c for c, byte in byte_of.items() if first <= byte <= last))}]"

    more = among(0x80, 0xBF)
    return re.compile(
        rf"(?:{among(0xC2, 0xDF)}{more}|{among(0xE0, 0xEF)}{more}{{2}}"
        rf"|{among(0xF0, 0xF4)}{more}{{3}})+"
    )


_MISREAD = tuple((_misread(byte_of), byte_of) for byte_of in (_WINDOWS, _MACINTOSH))
# What is left of a misread blank that does not divide where a program made its second half one.
_HALF_A_BLANK = re.compile(r"Â(?=\s|$)")


def without_misreading(text: str) -> str:
    """Return the text with the characters that were read in a wrong encoding, once or twice.

    >>> without_misreading("isnâ€™t").replace(JOINER, "")
    "isn't"
    """
    for pattern, byte_of in _MISREAD:
        text = pattern.sub(lambda match, byte_of=byte_of: _reread(match, byte_of), text)  # type: ignore[misc]
    return _HALF_A_BLANK.sub(blanks, text)


def _reread(match: re.Match[str], byte_of: Mapping[str, int]) -> str:
    characters = match.group()
    try:
        while all(character in byte_of for character in characters):
            characters = bytes(map(byte_of.__getitem__, characters)).decode()
    except UnicodeDecodeError:
        pass
    return match.group() if characters == match.group() else shown_as(characters, match)


_PERCENT = re.compile(r"(?:%[\dA-Fa-f]{2})+")
# Behind a number, "%" is a per cent.
_PERCENT_SURE = re.compile(r"(?<=[^\s\d])%(?:0[AaDd]|2\d|2[A-Fa-f]|3[A-Fa-f]|[C-F]\d)")
_MAIL = re.compile(r"(?:=[\dA-F]{2})+|=[ \t]*\n")
_MAIL_SURE = re.compile(
    r"=[C-F][\dA-F]=[89AB]|=20[^=\n]+=20"
    r"|(?<=[a-z])=(?:9\d|A0)(?=[a-z])|=(?:[23][A-F]|20$|[ \t]*\n(?=[a-z]))",
    re.MULTILINE,
)
_ESCAPED = re.compile(r"(?:\\{1,4}x[\dA-Fa-f]{2}){2,}|(?:\\'[\dA-Fa-f]{2})+")
_DIGITS = re.compile(r"[=%x'][\dA-Fa-f]{2}")


def without_byte_numbers(text: str) -> str:
    r"""Return the text with the characters that addresses, mails and programs write as bytes.

    >>> without_byte_numbers("isn%27t%20big").replace(JOINER, "").split()
    ["isn't", 'big']
    """
    is_sure = "%" in text and _PERCENT_SURE.search(text) is not None
    # A text without a blank has them as "+".
    if (is_sure or text.count("+") > 1) and not any(map(str.isspace, text)):
        text = text.replace("+", BLANK)
    if is_sure:
        text = _PERCENT.sub(_decoded, text)
    if "=" in text and _MAIL_SURE.search(text) is not None:
        text = _MAIL.sub(_decoded, text)
    return _ESCAPED.sub(_decoded, text) if "\\" in text else text


def _decoded(match: re.Match[str]) -> str:
    # A line that a mail divides goes on in the next one.
    if match.group().endswith("\n"):
        return JOINER * (match.end() - match.start())
    raw = bytes(int(digits[1:], 16) for digits in _DIGITS.findall(match.group()))
    try:
        characters = raw.decode()
    except UnicodeDecodeError:
        characters = raw.decode("cp1252", "replace")
    return shown_as(characters.replace("\r\n", LINE), match)


_RICH_SURE = re.compile(r"\\(?:rtf\d|pard?(?![a-z])|'[\dA-Fa-f]{2}|(?:[lr]quote|line)(?![a-z]))")
_RICH_TABLE = re.compile(
    r"\{\\(?:fonttbl|colortbl|stylesheet|info|\*)(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
)
_RICH_WORD = re.compile(r"\\u(-?\d{1,5}) ?\??|\\([a-z]{1,32})(?:-?\d{1,10})? ?|[{}]")
_RICH_SIGNS = {
    **dict.fromkeys(("lquote", "rquote"), "'"),
    **dict.fromkeys(("ldblquote", "rdblquote"), '"'),
    "endash": "–",
    "emdash": "—",
    "bullet": "•",
}
_RICH_LINES = frozenset(("par", "line", "row", "sect", "page"))
_RICH_CELLS = frozenset(("tab", "cell"))


def without_rich_text(text: str) -> str:
    """Return the text without the control words and groups of the Rich Text Format."""
    if _RICH_SURE.search(text) is None:
        return text
    return _RICH_WORD.sub(_poor, _ESCAPED.sub(_decoded, _RICH_TABLE.sub(blanks, text)))


def _poor(match: re.Match[str]) -> str:
    number, word = match.groups()
    if number:
        return shown_as(chr(int(number) % 0x10000), match)
    if word in _RICH_LINES:
        return line_end(match)
    if word in _RICH_CELLS:
        return BLANK * (match.end() - match.start() - 1) + "\t"
    return shown_as(_RICH_SIGNS[word], match) if word in _RICH_SIGNS else hidden(match)
