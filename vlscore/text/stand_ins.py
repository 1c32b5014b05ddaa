"""Stand-ins of equal length: what is written where a mark or sign of a report stands."""

import re

#: Stands for a character of the report that is to be ignored inside a word (U+2060, word joiner).
JOINER = "\u2060"
BLANK, LINE = " ", "\n"
#: Characters of a plain text that are no part of a sentence at its ends.
BLANKS = " \t\n\r\x0b\x0c\x1c\x1d\x1e\x1f" + JOINER
#: Characters that are not seen: soft hyphen, zero-width blanks, forms of emoji, byte order mark.
INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufe0e\ufe0f\ufeff"
_LINES = "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029¶↵⏎␊␤Ċ"
_WIDE_SIGNS = "：；，．。、！？（）［］｛｝【】"
# Characters of Windows that were read as Latin-1; 0x85 ends a line there.
_WINDOWS = {k: c for k in range(0x80, 0xA0) if (c := bytes((k,)).decode("cp1252", "ignore"))}
#: Characters beyond ASCII, and rare line ends, that are written as more common ones.
CHARACTERS = {
    **{k: "'" if c in "‘’" else c for k, c in _WINDOWS.items()},
    **dict.fromkeys(map(ord, _LINES), LINE),
    **dict.fromkeys(
        (0, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000, 0x2581, 0x120), BLANK
    ),
    **dict.fromkeys(map(ord, INVISIBLE), JOINER),
    **dict.fromkeys(map(ord, "‘’‛´ʼ＇"), "'"),
    **dict.fromkeys(map(ord, "‐‑−﹣－"), "-"),
    **dict.fromkeys(map(ord, "⊖⊝➖"), "✗"),
    **dict.fromkeys(map(ord, "⊕➕"), "✓"),
    **dict.fromkeys(map(ord, "⏐¦│┃∣ǀ"), "|"),
    ord("＋"): "+",
    0x20E3: ".",
    **dict(zip(map(ord, _WIDE_SIGNS), ":;,..,!?()[]{}[]", strict=True)),
}


def line_end(match: re.Match[str]) -> str:
    """Return a line end at the last of the characters."""
    return BLANK * (match.end() - match.start() - 1) + LINE


def titled(words: str, match: re.Match[str], colon: str = ":") -> str:
    """Return a title at the end of the characters, in a line that begins with them."""
    return LINE + (words + colon).rjust(match.end() - match.start() - 1)


def blanks(match: re.Match[str]) -> str:
    """Return as many blanks."""
    return BLANK * (match.end() - match.start())


def hidden(match: re.Match[str]) -> str:
    """Return as many blanks, or joiners between two letters or digits."""
    text, (start, end) = match.string, match.span()
    inside = text[start - 1 : start].isalnum() and text[end : end + 1].isalnum()
    return (JOINER if inside else BLANK) * (end - start)


def joined(match: re.Match[str]) -> str:
    """Return the words with joiners for the blanks between them."""
    return match.group().replace(BLANK, JOINER)


def shown_as(characters: str, match: re.Match[str]) -> str:
    """Return one or two characters for the longer way in which they are written."""
    width = match.end() - match.start()
    characters = "\n" if characters == "\r" else characters.translate(CHARACTERS)
    if characters == LINE:
        return line_end(match)
    if characters == JOINER:
        return JOINER * width
    if characters.isspace() or len(characters) > width:
        return BLANK * width
    joins = characters[-1].isalnum() or characters[-1] in "'-/.,_%"
    return characters + (JOINER if joins else BLANK) * (width - len(characters))


def without_joiners(text: str) -> tuple[str, list[int]]:
    """Return a text without joiners, and the place in `text` of each character that is left."""
    places = [place for place, character in enumerate(text) if character != JOINER]
    return text.replace(JOINER, ""), places
