"""Ends of lines: where a sentence ends without a full stop, and where it continues."""

import re
from functools import cached_property

from vlscore.text.boxes import BOX_SIGN
from vlscore.text.stand_ins import BLANKS, JOINER
from vlscore.text.tables import WORDS

BLANK_LINE = re.compile(r"\n[ \t\r]*\n")
BULLET = r"[-–—*•●▪◦‣·+>➢➤►▶◆◇★❖✦⁃∙⁌⁍☞☛🔹🔸👉📌]"
#: Bullets and circled numbers that begin an item wherever they stand.
SURE_BULLET = r"[•●▪◦‣➢➤►▶◆◇★❖✦⁃∙⁌⁍☞☛🔹🔸👉📌\uf0b7\u2460-\u2473\u2776-\u2793]"
# Lines that begin a new sentence, whatever came before: list items, labels ("Heart: ..."), rows of
# a table or of boxes; and lines that are a whole row, so that the next line begins one as well.
_WORDS = r"(?:[\w/&()]+[ \t]+){0,4}[\w/&()]+"
_LINE = re.compile(
    rf"[ \t]*+(?:(?P<row>\||(?:{BULLET}[ \t]++)?{BOX_SIGN}|\S[^\n\t]*\t[ \t]*\S|{_WORDS}[ ]{{3,}}\S"
    rf"|{_WORDS}(?:[ \t]+[-–—=→][ \t]|\.{{4,}}|[ \t]*\||[ \t]*{BOX_SIGN}(?<!-)))"
    rf"|(?P<item>\(?Q?\d{{1,2}}[.)]\s|\(?(?:[a-hA-H]|[ivx]{{1,4}})\)\s|[ivx]{{1,4}}\.\s|#\d|{BULLET}\s"
    rf"|[A-Z][A-Za-z /&,()\-]{{2,40}}[:=](?!\d)|{_WORDS}[:=](?!\d)))",
    re.MULTILINE,
)
_LOWER = re.compile(r"[ \t]*[a-z]")
_LAST_WORD = re.compile(r"[^\W\d_]+$")
# The words that begin a line or follow a full stop.
_OPENING = re.compile(rf"(?:^|\n|[.!?][ \t\n]+)[\s{JOINER}]*(?:{BULLET}[ \t]+)?(?P<word>[^\W\d_]+)")
# Words of a line that may be a finding with its answer.
_LONGEST_ANSWERED = 3
_ENDED = re.compile(r"[.!?;:…][\"')\]]*$")
_OPEN_END = re.compile(r"[,(/&–—-]$")
# A sentence that ends inside a line: the report is prose.
_INNER_STOP = re.compile(r"[^\W\d_]{3} ?[.!?][ \t]+[^\W_]")
#: Narrower lines are short statements, not wrapped prose.
NARROW = 30


def line_cuts(text: str) -> list[int]:
    """Return the starts of the lines that begin a new statement."""
    end = text.find("\n")
    if end < 0:
        return []
    cuts: list[int] = []
    prose = _WrappedProse(text)
    first = 0
    before = _LINE.match(text, 0, end)
    while end >= 0:
        start = end + 1
        above = text[first:end].strip(BLANKS)
        end = text.find("\n", start)
        stop = end if end >= 0 else len(text)
        if start == stop:
            cuts.append(start)
            before, first = None, start
            continue
        below = text[start:stop].strip(BLANKS)
        line = _LINE.match(text, start, stop)
        if line is not None and before is None and above and _LOWER.match(text, start):
            # A wrapped line of prose may hold a colon or a dash as well.
            line = None
        if (
            line is not None
            or (before is not None and before.lastgroup == "row")
            or not below
            or not prose.continues(above, below)
        ):
            cuts.append(start)
        before = line
        first = start
    # A label that ends its line belongs to the line below it.
    return [cut for cut in cuts if not text[max(0, cut - 80) : cut].rstrip().endswith(":")]


class _WrappedProse:
    """Decides whether a sentence continues behind the end of a line.

    Prose that was wrapped at a width has full lines: none could have taken the first word of the
    next one. Where capitals show where sentences begin, a small letter continues one.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def continues(self, above: str, below: str) -> bool:
        """Return whether a sentence continues from one line to the next.

        Args: above, below: the lines without blanks at their ends; `below` is not empty.
        """
        if not above or _ENDED.search(above) is not None or _is_unfinished(above):
            return True
        word = below.split(maxsplit=1)[0]
        is_full = len(above) + 1 + len(word) > self._width
        if self._is_cased:
            if word[0].islower():
                return is_full or word not in WORDS.lines.stating
            if word[0] == "(":
                return True
        if _OPEN_END.search(above) is not None and not (self._is_cased and word.istitle()):
            return True
        return is_full and self._width >= NARROW and self._is_prose

    @cached_property
    def _width(self) -> int:
        return max(len(line.strip(BLANKS)) for line in self._text.split("\n"))

    @cached_property
    def _is_prose(self) -> bool:
        return _INNER_STOP.search(self._text) is not None

    @cached_property
    def _is_cased(self) -> bool:
        """Return whether capitals show where sentences begin."""
        words = [match["word"] for match in _OPENING.finditer(self._text)]
        capitals = sum(word.istitle() for word in words)
        return capitals > 1 or (capitals == 1 and len(words) < 3)


def _is_unfinished(line: str) -> bool:
    """Return whether a line ends with a word that ends no sentence, as "of"; "Edema no" may."""
    last = _LAST_WORD.search(line.lower())
    if last is None or last.group() not in WORDS.lines.unfinished:
        return False
    return last.group() not in WORDS.lines.denying or len(line.split()) > _LONGEST_ANSWERED
