"""Plain form of a report, in which markup, escapes and divided words are replaced at their places.

Reports come with what programs put into them: entities, tags and markdown, literal "\\n", other
line ends, blanks of tokenizers, marks of language models. The plain text has as many characters as
the report, so that a place in one is the same place in the other. What a mark stands for is
written where the mark stands: a line break for `<br>`, an apostrophe for `&apos;`. `JOINER` fills
the rest of its characters: the plain form of "isn ' t" is "isn't" with two of them.
`without_joiners` removes these.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from vlscore.text.divided_words import with_whole_words
from vlscore.text.encodings import without_misreading
from vlscore.text.escapes import DICTATED, STEPS
from vlscore.text.markdown import without_markdown
from vlscore.text.records import may_have_records
from vlscore.text.stand_ins import BLANK, CHARACTERS, JOINER


class PlainText(NamedTuple):
    """Plain form of a report.

    Attributes:
        text: as many characters as the report.
        cuts: places where a statement begins for certain, besides the ends of lines and sentences.
    """

    text: str
    cuts: tuple[int, ...] = ()


@lru_cache(512)
def plain_text(report: str) -> PlainText:
    """Return the plain form of a report, of the same length.

    >>> plain_text("No edema.<br>Heart isn&apos;t large").text.replace(JOINER, "")
    "No edema.   \\nHeart isn't large"
    """
    text = report
    if not report.isascii():
        text = without_misreading(report)
        if len(_WORD_PIECE.findall(text)) > 1:
            text = _CONTINUED.sub(JOINER, text)
        text = text.translate(CHARACTERS)
    cuts: tuple[int, ...] = ()
    if (
        _ODD.search(text) is not None
        or any(sign in text for sign in _ODD_SIGNS)
        or may_have_records(text)
    ):
        text = text.translate(CHARACTERS)
        for signs, replace in STEPS:
            if any(sign in text for sign in signs):
                text = replace(text)
        # Marks of markdown, and where its headings begin and end.
        if any(sign in text for sign in ("*", "_", "#", "---", "===", "`", ":::")):
            text, cuts = without_markdown(text)
    text = with_whole_words(text)
    return PlainText(report if text == report else _without_columns(text, report), cuts)


def has_marks(report: str, start: int, end: int) -> bool:
    """Return whether characters of a report are marks of markup, escapes or divided words.

    >>> has_marks("No <b>edema</b>.", 3, 6), has_marks("No <b>edema</b>.", 6, 11)
    (True, False)
    """
    text = plain_text(report).text
    return text is not report and text[start:end] != report[start:end].translate(CHARACTERS)


# Without one of these a report has no marks.
_ODD = re.compile(r"[\r\x0b\x0c\x1c-\x1f\0&<\\%^~|#@*_`\]}=+]")
_ODD_SIGNS = (
    '","',
    '", ',
    "', '",
    "‖",
    "/n",
    "//",
    "---",
    "B-",
    "b-",
    "U+",
    ".+",
    "!!",
    ":::",
    "/no",
    ", -",
    ": -",
    ": '",
    ': "',
    *DICTATED,
)
# Pieces of words, of which the first one has a sign: "▁card io meg aly".
_WORD_PIECE = re.compile(r" [▁Ġ][^\W_]")
_CONTINUED = re.compile(r"(?<=[^\W_]) (?=[^\W_▁Ġ])")
_WIDE = re.compile(r"(?<=[^\s]) {2,}(?=\S)")


def _without_columns(text: str, report: str) -> str:
    """Return the text with one blank where marks left several, which would look like columns."""

    def narrow(match: re.Match[str]) -> str:
        start, end = match.span()
        return match.group() if report[start:end].isspace() else BLANK + JOINER * (end - start - 1)

    return _WIDE.sub(narrow, text)
