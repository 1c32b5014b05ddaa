"""Titles in a report, such as "FINDINGS:" or "### Findings", with the sections they begin."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from vlscore.text.line_ends import NARROW
from vlscore.text.plain import plain_text
from vlscore.text.stand_ins import BLANKS, JOINER
from vlscore.text.tables import WORDS, any_of
from vlscore.text.title_names import (
    is_sure_title,
    names_views,
    section_of_label,
    section_of_title,
)

_BLANKS = rf"[ \t{JOINER}]*"
_NUMBER = r"(?:(?:\(?\d{1,2}\u2060*[.):]|[A-Za-z][.)]|\(?[ivxIVX]{1,4}[.)]|[-–—*•●▪◦·>+=])[ \t]*)*"
_SYMBOLS = r"(?:[\u2190-\u2bff\U0001f300-\U0001faff][ \t]*)*"
# The tag of a DICOM attribute: "(0040,1002) Reason for ...".
_TAG = r"(?:\([\dA-Fa-f]{4},[\dA-Fa-f]{4}\)[ \t]*)?"
_OPENING = rf"{_BLANKS}{_SYMBOLS}{_TAG}(?:\|{_BLANKS})?{_NUMBER}[\"'“‘\[({{]?{_BLANKS}"
# "1:2" and "9:30" are no titles, "IMPRESSION:1. Normal." has one.
_NO_RATIO = r"(?!\d(?!\d?[.)]))"
# At the beginning of a line: before a colon, before a dash, or alone.
_LETTER = rf"(?:[^\W\d_]|[ ()/,&+.\-'\d{JOINER}]|(?<=\d):(?=\d\d))"
_ON_LINE = re.compile(
    rf"{_OPENING}(?P<name>[^\W\d_]{_LETTER}{{1,60}}?)(?P<closing>[\"'”’\])}}]?){_BLANKS}"
    rf"(?P<end>:+[-–—]?{_NO_RATIO}|[-–—=>]+(?=[ \t{JOINER}\n]|$)|;(?=\S)|\||(?=\t)"
    r"|(?<=[)\]])(?=[ \t])|\.?(?=\r?\n|$))"
)
# Inside a line, behind a full stop or behind another title.
_IN_LINE = re.compile(
    rf"{_BLANKS}[(\[]?{_NUMBER}(?P<name>[^\W\d_]+(?:[ /&,'-]+[^\W\d_]+){{0,5}}(?:\(s\))?){_BLANKS}:"
)
# In capitals, before a sentence that begins with a capital: "FINDINGS The lungs are clear."
_RUN_IN = re.compile(
    r"(?:^|(?<=[.!?:\n]))\s*(?P<name>[A-Z][A-Z /&]{5,40}[A-Z])(?=[ \t]+[A-Z][a-z])"
)
# In capitals before a colon, behind any word.
_CAPITALS = re.compile(r"(?<=\s)(?<![A-Z,] )(?P<name>[A-Z][A-Z /&,]{3,40}):")
_RATIO = re.compile(r"\d(?!\d?[.)])")
_LONGEST = 70
# Behind one of these a title may begin inside a line.
_BREAKS = (*".!?:;|\t", "  ", "- ", "– ", "— ", "/ ")
_SIGN = re.compile(r"[:\n\t–—=>)\]]|-[ \n]")
# Wet reads and final reports have titles without a colon, too; and a code of diagnoses (ICD-10)
# says why the examination was ordered: "J93.9 Pneumothorax".
_SURE = re.compile(
    rf"[ \t]*(?:(?P<wet>(?i:{any_of(WORDS.titles.first_reading)}))\b"
    rf"(?:[ \t]+(?i:{any_of(WORDS.titles.version)})[ \t]*#?\d+)?[ \t]*:?"
    rf"|(?P<final>{any_of(WORDS.titles.final)})[ \t]*:?(?=[ \t]*(?:\r?\n|$))"
    r"|(?P<code>[A-TV-Z]\d\d\.[\dA-Z]{1,4})\b[ \t]*[-–:]?)"
)


class Title(NamedTuple):
    """Title in a report; `start` and `end` are its place, with its number and colon.

    Attributes:
        words: as they stand, with single blanks.
        section: name of the section it begins; None where it is a title inside sections.
        names_views: whether it begins the findings by naming the examination or its views.
        on_line: whether it stands at the beginning of a line.
        has_colon: a title without one stands alone on its line, or before a dash.
    """

    words: str
    section: str | None
    start: int
    end: int
    on_line: bool = True
    has_colon: bool = True
    names_views: bool = False

    @property
    def is_upper(self) -> bool:
        """Return whether the title is written in capitals."""
        return self.words.isupper()


@lru_cache(512)
def titles_of(report: str) -> tuple[Title, ...]:
    """Return the titles of a report, in text order.

    Titles inside sections are returned if they are in capitals. Those of findings and impression
    need no colon where they stand alone on a line, or before a dash.

    >>> [(t.words, t.section) for t in titles_of("HEART: Big.\\nFindings -\\nImpression: Edema.")]
    [('HEART', None), ('Findings', 'findings'), ('Impression', 'impression')]
    """
    text, cuts = plain_text(report)
    titles = [title for match in _on_lines(text) for title in _title(match, True, cuts)]
    if ":" in text:
        ends = {title.end for title in titles}
        titles += [t for m in _in_lines(text, ends) for t in _title(m, False)]
    found: list[Title] = []
    for title in sorted(titles, key=lambda title: (title.start, -title.end)):
        if not found or title.start >= found[-1].end:
            found.append(title)
    return tuple(found)


def _on_lines(text: str) -> Iterator[re.Match[str]]:
    """Yield what may be a title at the beginning of a line."""
    start = 0
    while start >= 0:
        # Most lines are prose without a sign of a title.
        may_be = len(text) - start < _LONGEST or _SIGN.search(text, start, start + _LONGEST)
        if may_be and text[start : start + 1] != "\n":
            for pattern in (_SURE, _ON_LINE):
                if (match := pattern.match(text, start)) is not None:
                    yield match
        start = text.find("\n", start) + 1 or -1
    for match in _RUN_IN.finditer(text):
        if section_of_title(match["name"].lower()) is not None:
            yield match


def _in_lines(text: str, ends: set[int]) -> Iterator[re.Match[str]]:
    """Yield what may be a title before a colon inside a line, but those that end at `ends`."""
    colon = text.find(":")
    while colon >= 0:
        if colon + 1 not in ends and _RATIO.match(text, colon + 1) is None:
            least = max(0, colon - _LONGEST)
            stop = max(text.rfind(sign, least, colon) for sign in _BREAKS)
            if stop >= 0 and (match := _IN_LINE.fullmatch(text, stop + 1, colon + 1)) is not None:
                yield match
            elif text[colon - 2 : colon].isupper():
                yield from _CAPITALS.finditer(text, least, colon + 1)
        colon = text.find(":", colon + 1)


# Sections of which a title that names the views has words, too.
_OF_VIEWS, _OF_CODES = ("technique", "examination"), "indication"


def _title(match: re.Match[str], on_line: bool, headings: Sequence[int] = ()) -> Iterator[Title]:
    if match.re is _SURE:
        words = match[match.lastgroup or 0]
        section = _OF_CODES if match["code"] else section_of_title(words.upper())
        yield Title(words, section, *match.span())
        return
    words = " ".join(match["name"].replace(JOINER, "").split()).rstrip(" .-")
    has_colon = (
        match.re is not _ON_LINE or match["end"].startswith((":", "=")) or bool(match["closing"])
    )
    is_heading = match.start() in headings and section_of_label(words) is not None
    if not has_colon and not is_heading and not _stands_alone(match, words):
        return
    section = section_of_label(words) if is_heading else section_of_title(words)
    may_name_views = section is None or (section in _OF_VIEWS and " " in words)
    is_view = may_name_views and names_views(words)
    if is_view:
        section = "findings"
    # Views inside a line begin a section in capitals alone, if the report has any.
    if is_view and not words.isupper() and not on_line and not match.string.islower():
        return
    if section is None and not (words.isupper() and match.re is not _IN_LINE):
        return
    yield Title(words, section, *match.span(), on_line, has_colon, is_view)


def _stands_alone(match: re.Match[str], words: str) -> bool:
    """Return whether words without a colon are a title, and not a part of a sentence.

    "FINDINGS" may be the last line of wrapped prose, "No typical findings" a line of its own.
    """
    are_views = words.isupper() and " " in words and names_views(words.lower())
    leads_on = bool(match["end"].strip(".")) and section_of_label(words) is not None
    if not (are_views or is_sure_title(words) or (leads_on and section_of_title(words))):
        return False
    text, start = match.string, match.start()
    if text[start : match.start("name")].strip(BLANKS) or (leads_on and words[0].isupper()):
        return True
    if match["end"].strip("-–—.") or text[match.end() : match.end() + 1] == "\t":
        return True
    if not text.strip(BLANKS)[len(match.group().strip(BLANKS)) :]:
        return False
    above = text[text.rfind("\n", 0, max(0, start - 1)) + 1 : start].rstrip(BLANKS)
    if not above or above[-1] in ".!?:;":
        return True
    # A capital may stand alone below any short line.
    width = max(_width(text), NARROW) if words[0].isupper() else _width(text)
    return match["end"] != "." and len(above) + 1 + len(words.split()[0]) <= width


@lru_cache(4)
def _width(text: str) -> int:
    """Return the length of the longest line."""
    return max(map(len, text.split("\n")))
