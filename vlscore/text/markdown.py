"""Marks of markdown: emphasis, headings, rules, code."""

import re

from vlscore.text.stand_ins import BLANK, LINE, blanks, hidden, line_end
from vlscore.text.title_names import section_of_title

_RULE = re.compile(
    r"^[ \t]*(?:[-*=][ \t]?){3,}$|^[ \t]*_{5,}[ \t]*$|^[ \t]*(?:```|~~~)\w*[ \t]*$", re.M
)
_HEADING = re.compile(r"^[ \t]*(#{1,6})[ \t]+[^\n]*$", re.M)
_BOLD_LINE = re.compile(r"^[ \t]*(?:\*{2,3}|__)[^*\n]+(?:\*{2,3}|__)[ \t]*:?[ \t]*$", re.M)
_BOLD_BEHIND_BOLD = re.compile(r"(?<=[^\s*])\*\*[ \t]+(?=\*\*[^\s*])")
_BOLD_TITLE = re.compile(r"(\*{2,3}|__)(?P<name>[^\W\d_][^*_\n:]{3,60})\1(?=[ \t]+\w)")
# A block of Pandoc: ":::findings".
_BLOCK = re.compile(r"^:{3,}[ \t]*\{?\.?(?P<name>\w[\w -]*)?\}?[ \t]*$", re.M)
_HASHES = re.compile(
    r"^[ \t]*#{1,6}(?=[ \t])|(?<=[ \t])#{1,6}[ \t]*$|^#{1,6}(?=[A-Za-z])|(?<=[a-z:])#{1,6}$", re.M
)
# Signs between statements, not around words.
_BETWEEN = re.compile(r"(?<=\S)[ \t]+(?:\*{2,}|#{2,})[ \t]+(?=[A-Za-z])")
_STRONG = re.compile(r"\*{2,3}|~~|`+")
_APOSTROPHE = re.compile(r"(?<=[^\W_])`(?=[^\W_])")
_MARKED = re.compile(
    r"(?<![\w*])\*(?=[^\s*])(?P<star>[^*\n]{1,300}?)(?<=[^\s*])\*(?![\w*])"
    r"|(?<![\w_])__(?=[^\W_])(?P<double>[^_\n]{1,300}?)(?<=[^\s_])__(?![\w_])"
    r"|(?<![\w_])_(?=[^\W_])(?P<single>[^_\n]{1,300}?)(?<=[^\s_])_(?![\w_])"
)


def without_markdown(text: str) -> tuple[str, tuple[int, ...]]:
    """Return the text without marks of markdown, and where its headings begin and end."""
    text = _RULE.sub(blanks, text)
    lines = [*_HEADING.finditer(text), *_BOLD_LINE.finditer(text)]
    bold = [match.end() for match in _BOLD_BEHIND_BOLD.finditer(text)]
    cuts = tuple(
        sorted({*bold} | {place for line in lines for place in (line.start(), line.end())})
    )
    if "#" in text:
        text = _HASHES.sub(blanks, text)
    if ":::" in text:
        text = _BLOCK.sub(lambda match: f"{match['name'] or ''}:".rjust(len(match[0])), text)
    text = _BETWEEN.sub(line_end, text)
    text = _BOLD_TITLE.sub(_titled, text)
    text = _STRONG.sub(hidden, _APOSTROPHE.sub("'", text))
    return _MARKED.sub(_unmarked, text), cuts


def _titled(match: re.Match[str]) -> str:
    """Return a bold title of a section with a colon behind it."""
    begins_line = match.start() == 0 or match.string[match.start() - 1] == "\n"
    if section_of_title(match["name"]) is None or not (begins_line or match["name"][0].isupper()):
        return match.group()
    width = len(match[1])
    title = f"{match['name'].rstrip('?')}:".ljust(len(match["name"]) + width)
    return LINE + BLANK * (width - 1) + title


def _unmarked(match: re.Match[str]) -> str:
    inside: str = next(filter(None, match.groups()))
    marks = (match.end() - match.start() - len(inside)) // 2
    return BLANK * marks + inside + BLANK * marks
