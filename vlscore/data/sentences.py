"""Sentences of a report with their positions in the text, and cleaning for encoders.

`split_sentences` divides a report. The functions `clean_*` reproduce, with every quirk, the
cleaning that encoders' authors trained with: GLoRIA's code (Huang et al. 2021), and after it
LIMITR's, MGCA's and the ConVIRT in MGCA's repository. A number and the period after it vanish ("4.2
cm" becomes "2 cm"), punctuation is removed, letters beyond ASCII are dropped, not folded ("naïve"
becomes "nave"). Any change here changes scores.
"""

import re
from itertools import pairwise
from typing import NamedTuple

import regex

from vlscore.data.reports import section_name

# After these a period ends no sentence. Lower case, without their last period.
_ABBREVIATIONS = frozenset(
    (
        *("dr", "drs", "mr", "mrs", "ms", "prof", "st", "vs", "cf", "approx", "ca", "fig", "figs"),
        *("est", "resp", "incl", "e.g", "eg", "i.e", "ie", "h.o", "s.p"),
    )
)
# After these a period ends a sentence only if a capitalised word follows ("at 9 a.m. No change").
_OFTEN_LAST = frozenset(
    (
        *("etc", "al", "a.m", "p.m", "m.d", "r.n", "p.a", "t.p.n", "p.o", "i.v", "l", "r", "lt"),
        *("rt", "sl", "slt", "mod", "min", "sm", "lg", "lge", "sev", "bilat", "prob", "poss"),
        *("hrt", "pulm", "vasc", "mult", "incr", "decr", "calc", "thor", "susp", "lat", "ant"),
        *("alv", "def", "interst", "subseg", "perihil", "degen", "tort", "elev", "adv", "nondispl"),
    )
)
_CAPITALISED = re.compile(r"[A-Z][a-z]|A ")
# After these a period ends no sentence if a number follows ("No. 3", "T. 12").
_BEFORE_NUMBER = frozenset(("no", "nos", "t", "l", "c", "vol", "p", "pp", "ser"))

# Periods, question or exclamation mark, with closing quotes, where a sentence may end.
_STOP = re.compile(r"[.!?]+[\"')\]]*(?=\s|$|[A-Z_])|;(?=\s)")
_LAST_WORD = re.compile(r"[^\s(\[\"']+$")
# The number or bullet of a list item, at the beginning of a line or of a sentence.
_BULLET = r"[-–—*•●▪◦‣·+>]"
_NUMBER = re.compile(rf"\s*(?:\(?Q?\d{{1,2}}[.)](?=\s|[A-Za-z])|{_BULLET}(?=\s))\s*")
# A box to tick, and a line that begins with one.
_BOX = r"(?:\[[ \t]{0,3}[xX✓✔]?[ \t]{0,3}\]|\([ \t]{0,3}[xX✓✔]?[ \t]{0,3}\)|[☐☑☒□■▢✓✔])"
_BOXED = re.compile(rf"\s*+(?:{_BULLET}\s++)?{_BOX}")
_NEXT_BOX = re.compile(rf"\s(?={_BOX})")
# A title and a colon; a section's title is no part of a sentence, a title inside a section is.
_HEADER = re.compile(r"[ \t\n]*([A-Za-z][A-Za-z /&,()\-]{2,40}?)[ \t]*:(?!\d)")
# A title in capitals inside a line begins a new sentence.
_TITLE = re.compile(r"(?<=[.!?\s])(?<![A-Z,] )(?=[A-Z][A-Z /&,]{3,40}:)")
# Lines that begin a new sentence, whatever came before: list items, labels ("Heart: ..."), rows of
# a table or of boxes; and lines that are a whole row, so that the next line begins one as well.
_WORDS = r"(?:[\w/&()]+[ \t]+){0,4}[\w/&()]+"
_LINE = re.compile(
    rf"[ \t]*+(?:(?P<row>\||(?:{_BULLET}[ \t]++)?{_BOX}|\S[^\n\t]*\t[ \t]*\S|{_WORDS}[ ]{{3,}}\S"
    rf"|{_WORDS}(?:[ \t]+[-–—=→][ \t]|\.{{4,}})|{_WORDS}[ \t]*\|)"
    rf"|(?P<item>\(?Q?\d{{1,2}}[.)]\s|{_BULLET}\s"
    rf"|[A-Z][A-Za-z /&,()\-]{{2,40}}:(?!\d)|{_WORDS}:(?!\d)))"
)
_LOWER = re.compile(r"[ \t]*[a-z]")
# A finding alone on its line, above labels that describe it ("Effusion", then "Side: left").
_BARE = re.compile(
    r"[ \t]*[A-Z][\w/]*(?:[ \t]+[\w/]+){0,3}[ \t\r]*\n(?=[ \t]+[A-Z][A-Za-z ]{2,30}:(?!\d))"
)
_BLANK = re.compile(r"[ \t\r]*(?:\n|$)")
# A short answer to a question ("Effusion? None."), which ends no sentence.
_ANSWER = re.compile(
    r"[ \t]*(?:N(?i:o)(?=[ \t]*(?:[.,;\n]|$))|N(?i:one|il)\b|Y(?i:es)\b"
    r"|(?:A|P|N)(?i:bsent|resent|ositive|egative)\b)"
)
_LONGEST_QUESTION = 60
# More dots than these lead from a label to its value ("Effusion ..... none").
_ELLIPSIS = 3


_ALPHANUMERIC = re.compile(r"[^\W_]")


class SentenceSpan(NamedTuple):
    """One sentence; `text` is exactly report[start:end]."""

    text: str
    start: int
    end: int


def split_sentences(report: str) -> list[SentenceSpan]:
    """Return the sentences of a report, in order, without list numbers and section headers.

    Decimals ("2.5 cm"), abbreviations ("Dr.", "e.g."), times, masks ("XXXX", "___") and wrapped
    lines do not end a sentence; the end of a list item, header or paragraph does. Capitals are not
    needed, nor a final period. Linear in the length of the text.

    >>> [s.text for s in split_sentences("1. Nodule of 2.5 cm.\\n2. no effusion . heart normal")]
    ['Nodule of 2.5 cm.', 'no effusion .', 'heart normal']
    """
    # Paragraphs, list items, rows of tables and texts after headers.
    cuts = {0, *_line_cuts(report), len(report)}
    if ":" in report:
        cuts.update(title.end() for title in _TITLE.finditer(report))
    blocks = pairwise(sorted(cuts))
    return [span for block in blocks for span in _sentences_of_block(report, *block)]


def _line_cuts(report: str) -> list[int]:
    """Return the starts of the lines that begin a new sentence."""
    cuts: list[int] = []
    end = report.find("\n")
    before = _LINE.match(report, 0, end) if end >= 0 else None
    while end >= 0:
        start = end + 1
        end = report.find("\n", start)
        line = _LINE.match(report, start, end if end >= 0 else len(report))
        if line is None and before is not None:
            line = _BARE.match(report, start)
        if line is not None and before is None and _LOWER.match(report, start):
            # A wrapped line of prose may hold a colon or a dash as well.
            line = None
        if (
            line is not None
            or (before is not None and before.lastgroup == "row")
            or _BLANK.match(report, start)
        ):
            cuts.append(start)
        before = line
    # A label that ends its line belongs to the line below it.
    return [cut for cut in cuts if not report[max(0, cut - 80) : cut].rstrip().endswith(":")]


def _sentences_of_block(report: str, start: int, end: int) -> list[SentenceSpan]:
    found: list[SentenceSpan] = []
    header = _HEADER.match(report, start, end)
    begin = header.end() if header and section_name(header.group(1)) else start
    if _BOXED.match(report, begin, end):
        boxes = [box.end() for box in _NEXT_BOX.finditer(report, begin, end)]
        for first, last in pairwise([begin, *boxes, end]):
            _append(found, report, first, last)
        return found
    for stop in _STOP.finditer(report, begin, end):
        if stop.start() < begin or not _ends_sentence(report, begin, stop):
            continue
        _append(found, report, begin, stop.end())
        begin = stop.end()
    _append(found, report, begin, end)
    return found


def _ends_sentence(report: str, begin: int, stop: re.Match[str]) -> bool:
    mark = stop.group()
    if mark == "?" and stop.start() - begin < _LONGEST_QUESTION:
        return _ANSWER.match(report, stop.end()) is None
    if not mark.startswith("."):
        return True
    if len(mark) > _ELLIPSIS:
        return _BLANK.match(report, stop.end()) is not None
    before = _LAST_WORD.search(report, max(begin, stop.start() - 40), stop.start())
    word = before.group().lower() if before else ""
    if not word:
        return True
    if word in _ABBREVIATIONS:
        return False
    after = report[stop.end() : stop.end() + 12].lstrip()
    if word in _OFTEN_LAST and after:
        return _CAPITALISED.match(after) is not None
    if word in _BEFORE_NUMBER and after[:1].isdigit():
        return False
    # Digits at the beginning number an item of a list.
    is_number = word.removeprefix("q").isdigit() and len(word) <= 3 and bool(after)
    if is_number and before is not None and not report[begin : before.start()].strip():
        return False
    # A single capital is an initial ("J. Smith") unless a new sentence begins after a real word.
    is_initial = len(word) == 1 and word.isalpha() and report[stop.start() - 1].isupper()
    return not (is_initial and after[:1].isupper())


def _append(found: list[SentenceSpan], report: str, start: int, end: int) -> None:
    number = _NUMBER.match(report, start, end)
    if number:
        start = number.end()
    text = report[start:end]
    start += len(text) - len(text.lstrip())
    text = text.strip()
    if text and _ALPHANUMERIC.search(text):
        found.append(SentenceSpan(text, start, start + len(text)))


# The authors' tokenizer matches words as this module does: combining marks are part of a word,
# "½" and "²" are not. The standard library's `re` differs.

_NUMBER_AND_PERIOD = re.compile(r"[0-9]+\.")
_WORD = regex.compile(r"\w+")


def clean_limitr(report: str) -> str:
    """Clean a report as LIMITR does: drop sentences without an ASCII word.

    >>> clean_limitr("1. Nodule of 4.2 cm.\\nNormal.")
    'nodule of 2 cm normal'
    """
    return " ".join(_sentences(report, fewest_words=1))


def clean_gloria(report: str) -> str:
    """Clean a report as GLoRIA does: drop sentences of a single word, too.

    >>> clean_gloria("Normal. Heart size is normal.")
    'heart size is normal'
    """
    return " ".join(_sentences(report, fewest_words=2))


def clean_mgca(report: str) -> str:
    """Clean a report as MGCA does, which is the same as GLoRIA's cleaning.

    MGCA leaves reports of fewer than three words out of its training; nothing is left out here.
    """
    return clean_gloria(report)


def _sentences(report: str, *, fewest_words: int) -> list[str]:
    cleaned = []
    for piece in _NUMBER_AND_PERIOD.split(report.replace("\n", " ")):
        for sentence in piece.split("."):
            words = _WORD.findall(sentence.replace("\ufffd\ufffd", " ").lower())
            if len(words) < fewest_words:
                continue
            ascii_words = [word.encode("ascii", "ignore").decode("ascii") for word in words]
            if any(ascii_words):
                cleaned.append(" ".join(word for word in ascii_words if word))
    return cleaned
