"""Splitter of clinical text into sentences: RuSH, nine hundred patterns over characters.

RuSH is Shi et al. 2016; the algorithm here is that of the packages PyFastNER 1.0.10 and PyRuSH
1.0.13 (Apache License 2.0 and MIT License), with the English rules of medspaCy 1.3.1, which
`rush_rules.tsv` holds unchanged (Apache License 2.0). RaTEScore's released code cuts reports with
them, but they cannot be installed together with NumPy 2 under every Python that vlscore runs on.

A pattern marks the begin or the end of a sentence, or forbids such a mark. In it "\\d" is a digit,
"\\C" and "\\c" an upper and a lower case letter, "(" and ")" the begin and end of the mark;
"+" repeats the symbol before it as often as possible. The head of the file lists all symbols.

`sentences` returns the sentences that RaTEScore reads: RuSH's, cut where spaCy's tokens begin.
"""

import re
import string
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

_RULES = Path(__file__).with_name("rush_rules.tsv")
_BEGIN_MARK, _END_MARK = "stbegin", "stend"
# The key of a node of the trie at which a pattern ends; no single character.
_ENDS_HERE = "<END>"
_MOST_REPEATS = 50
# A rest of a text with at most this many characters belongs to the sentence before it.
_SHORT = 5
_BLANKS = " \t\xa0"
_LAST_OF_A_SENTENCE = '.!?)]"'

_IS: dict[str, Callable[[str], bool]] = {
    "s": _BLANKS.__contains__,
    "n": "\n\r".__contains__,
    "(": "(".__eq__,
    ")": ")".__eq__,
    "\\": "\\".__eq__,
    "d": str.isdigit,
    "C": str.isupper,
    "c": str.islower,
    "p": string.punctuation.__contains__,
    "a": lambda c: not c.isspace(),
    "u": lambda c: c > "~" and c != "\xa0",
    "w": lambda c: c > "~" or c.isspace(),
}
_REPEATABLE = frozenset("sndCcpauw")

_Node = dict[str, Any]


class CharacterRange(NamedTuple):
    """Span of characters of a text, from `begin` up to, not including, `end`."""

    begin: int
    end: int


def sentence_spans(text: str) -> list[CharacterRange]:
    """Return the sentences of a text, in order; characters between them may belong to none."""
    begins, ends = _marks(text)
    found: list[CharacterRange] = []
    begin, is_open, end, seen = 0, False, 0, 0
    for i, mark in enumerate(begins):
        is_last = i == len(begins) - 1
        if not is_open:
            begin = mark.begin
            if begin < end:
                continue
            is_open = True
        elif mark.begin < end:
            continue
        _take_gap(found, text, begin)
        for k in range(seen, len(ends)):
            is_last_end = k == len(ends) - 1
            if not is_last and not is_last_end and begins[i + 1].begin < ends[k].begin + 1:
                break
            seen, end = k, ends[k].begin + 1
            while end >= 1 and text[end - 1].isspace():
                end -= 1
            if end < begin:
                continue
            if not is_open:
                found[-1] = CharacterRange(begin, end)
                continue
            found.append(CharacterRange(begin, end))
            is_open = False
            if not (is_last or (not is_last_end and begins[i + 1].begin > ends[k + 1].end)):
                break
    return _with_both_ends(found, text, ends)


class _SentenceMarks:
    """Marks of one kind. Of two that overlap the wider one counts, of equal ones the first."""

    def __init__(self) -> None:
        self.marks: list[tuple[CharacterRange, bool]] = []
        # (begin, end, position among the marks), as PyFastNER's tree of intervals holds them.
        self._taken: list[tuple[int, int, int]] = []

    def add(self, mark: CharacterRange, counts: bool) -> None:
        begin, end = mark
        overlapping = [
            (b, e, position)
            for b, e, position in self._taken
            if not (e <= begin or b >= end) or begin == end == b or b == e == begin
        ]
        if not overlapping:
            # PyFastNER enters the first mark one character short.
            last = end if self.marks else max(end - 1, begin)
            self._taken.append((begin, last, len(self.marks)))
            self.marks.append((mark, counts))
            return
        # PyFastNER's tree balances itself by the C library's random numbers, so that which of
        # several it answers with depends on the texts read before. Mostly it is the rightmost.
        position = max(overlapping, key=lambda each: each[0])[2]
        known = self.marks[position][0]
        if end - begin > known.end - known.begin:
            self.marks[position] = (mark, counts)
            same = next((each for each in self._taken if each[:2] == (begin, end)), None)
            if same is not None:
                self._taken.remove(same)
            self._taken.append((begin, end, position))


def _marks(text: str) -> tuple[list[CharacterRange], list[CharacterRange]]:
    """Return the begins and ends of sentences, without the forbidden marks."""
    kept = {_BEGIN_MARK: _SentenceMarks(), _END_MARK: _SentenceMarks()}
    trie = _trie()
    for position in range(len(text)):
        _match(trie, text, kept, CharacterRange(position, 0), position)
    begins, ends = (
        [mark for mark, counts in kept[kind].marks if counts] for kind in (_BEGIN_MARK, _END_MARK)
    )
    return begins, ends


def _match(
    node: _Node,
    text: str,
    kept: dict[str, _SentenceMarks],
    mark: CharacterRange,
    at: int,
    key: str = " ",
    is_class: bool = False,
) -> None:
    """Follow every pattern below a node of the trie, from one position of the text.

    The order of these steps decides which of two equally wide marks is found first.

    Args:
        mark: the mark so far; an end of 0 means that it ends where the pattern ends.
        key: the last match, a character or the name of a class of characters.
    """

    def on(
        below: _Node, position: int, key: str, is_class: bool = False, mark: CharacterRange = mark
    ) -> None:
        _match(below, text, kept, mark, position, key, is_class)

    if at == len(text):
        _match_at_the_end(node, text, kept, mark, key, is_class)
        return
    this = text[at]
    for name, below in node.get("\\", {}).items():
        if name == "b":
            if at == 0:
                on(below, at, name, True)
        elif name in _IS and _IS[name](this):
            on(below, at + 1, name, True)
    if key != "\\":
        if "(" in node:
            on(node["("], at, "(", mark=CharacterRange(at, mark.end))
        if ")" in node:
            on(node[")"], at, ")", mark=CharacterRange(mark.begin, at))
    if _ENDS_HERE in node:
        _keep(node, kept, mark, at)
    if this in node and this not in "()":
        on(node[this], at + 1, this)
    if "+" not in node:
        return
    on(node["+"], at, "+")
    is_again = (_IS[key] if key in _REPEATABLE else None) if is_class else key.__eq__
    if is_again is not None:
        last = min(len(text), at + _MOST_REPEATS)
        while at < last and is_again(text[at]):
            at += 1
        on(node["+"], at, "+")


def _match_at_the_end(
    node: _Node,
    text: str,
    kept: dict[str, _SentenceMarks],
    mark: CharacterRange,
    key: str,
    is_class: bool,
) -> None:
    """Follow the patterns that can still match after the last character."""
    at = len(text)
    if _ENDS_HERE in node:
        _keep(node, kept, mark, at)
    elif "e" in node.get("\\", {}):
        _keep(node["\\"]["e"], kept, mark, at)
    elif ")" in node:
        below = node[")"]
        if _ENDS_HERE in below:
            _keep(below, kept, CharacterRange(mark.begin, at), at)
        elif "e" in below.get("\\", {}):
            _match(below["\\"], text, kept, CharacterRange(mark.begin, at), at)
    elif "+" in node:
        _match(node["+"], text, kept, mark, at, key, is_class)


def _keep(node: _Node, kept: dict[str, _SentenceMarks], mark: CharacterRange, at: int) -> None:
    begin, end = sorted((mark.begin, mark.end or at))
    for kind, counts in node.get(_ENDS_HERE, {}).items():
        kept[kind].add(CharacterRange(begin, end), counts)


@lru_cache(maxsize=1)
def _trie() -> _Node:
    trie: _Node = {}
    for line in _RULES.read_text(encoding="utf-8").splitlines():
        cells = line.split("\t")
        if len(cells) < 3 or line.startswith(("#", "@")):
            continue
        pattern, score, kind = cells[:3]
        node = trie
        for character in pattern:
            node = node.setdefault(character, {})
        # Patterns with an odd score only forbid other marks.
        node.setdefault(_ENDS_HERE, {})[kind.strip()] = float(score) % 2 == 0
    return trie


def _take_gap(found: list[CharacterRange], text: str, begin: int) -> None:
    """Add the text before a sentence: as a sentence of its own, or as the end of the previous."""
    gap = _trimmed(text, found[-1].end if found else 0, begin)
    if gap is not None and gap.end - gap.begin > _SHORT:
        found.append(gap)
    elif gap is not None and found:
        found[-1] = CharacterRange(found[-1].begin, gap.end)


def _with_both_ends(
    found: list[CharacterRange], text: str, ends: Sequence[CharacterRange]
) -> list[CharacterRange]:
    """Return the sentences, with the text before the first and after the last one."""
    if not found:
        whole = _trimmed(text, 0, len(text))
        return [whole] if whole is not None and whole.end - whole.begin > _SHORT else []
    before = _trimmed(text, 0, found[0].begin)
    if before is not None and ends and found[0].begin <= ends[0].begin:
        found[0] = CharacterRange(before.begin, found[0].end)
    elif before is not None:
        found.insert(0, before)
    behind = _trimmed(text, found[-1].end, len(text))
    if behind is not None and behind.end - behind.begin > _SHORT:
        found.append(behind)
    elif behind is not None:
        found[-1] = CharacterRange(found[-1].begin, behind.end)
    return found


def _trimmed(text: str, begin: int, end: int) -> CharacterRange | None:
    """Return the span from the first non-blank character to the last that can end a sentence."""
    first = next((k for k in range(begin, end) if not text[k].isspace()), None)
    if first is None:
        return None
    for last in range(end - 1, first, -1):
        if text[last].isalnum() or text[last] in _LAST_OF_A_SENTENCE:
            return CharacterRange(first, last + 1)
    return None


# Shorter sentences are not read: numbers of lists, single periods.
_SHORTEST = 3
_WORDS_AND_BLANKS = re.compile(r"\s+|\S+")
# Where spaCy 3.7 cuts English words, as far as reports use it. Its lists of abbreviations are not
# here: 625 real and generated reports, and three times as many with random punctuation and line
# breaks inserted, are cut in the same places without them.
_BEFORE_A_WORD = re.compile(r"[%=—–,:;!?¿¡()\[\]{}<>_#*&'\"“”‘’`´…$£€]|\+(?!\d)|\.\.+")
_BEHIND_A_WORD = re.compile(r"(?:[,:;!?¿¡()\[\]{}<>_#*&'\"“”‘’`´…$£€—–.]|(?<=\d)\+|['’][sS])$")
_WITHIN_A_WORD = re.compile(
    r"(?<=[a-z'\"])\.(?=[A-Z'\"])|(?<=[A-Za-z]),(?=[A-Za-z])|(?<=[A-Za-z0-9])[:<>=/](?=[A-Za-z])"
    r"|(?<=[A-Za-z])(?:--?|—|–|~)(?=[A-Za-z])|(?<=\d)[+\-*^](?=[\d-])|\.\.+|…"
)


class _RushToken(NamedTuple):
    begin: int
    is_blank: bool


def sentences(text: str) -> list[str]:
    """Return the sentences of a report, without the blanks around them; none for an empty one.

    They equal those of `medspacy.load(medspacy_enable=["medspacy_pyrush"])` of medspaCy 1.3.1,
    without sentences shorter than three characters, which RaTEScore leaves out.
    """
    tokens = _tokens(text)
    begins = sorted({0, *_first_tokens(tokens, sentence_spans(text))})
    cuts = [*(tokens[k].begin if k else 0 for k in begins), len(text)]
    parts = (text[a:b].strip() for a, b in pairwise(cuts))
    return [part for part in parts if len(part) >= _SHORTEST]


def _first_tokens(tokens: list[_RushToken], spans: list[CharacterRange]) -> set[int]:
    """Return the positions of the tokens that begin a sentence, or a text between two of them."""
    found: set[int] = set()
    k = t = 0
    while t < len(tokens):
        at = tokens[t].begin
        if k < len(spans) - 1 and spans[k].end <= at < spans[k + 1].begin:
            behind = t
            while behind < len(tokens) and tokens[behind].begin < spans[k + 1].begin:
                behind += 1
            found.add(next((i for i in range(t, behind) if tokens[i].is_blank), t))
            t = behind
            continue
        while k < len(spans) and at >= spans[k].end:
            k += 1
        if k == len(spans):
            if tokens[t].is_blank:
                found.add(t)
        elif at >= spans[k].begin:
            if at == spans[k].begin:
                found.add(t)
            if t + 1 < len(tokens) and tokens[t + 1].begin >= spans[k].end:
                found.add(t + 1)
        t += 1
    return found


def _tokens(text: str) -> list[_RushToken]:
    found = []
    for match in _WORDS_AND_BLANKS.finditer(text):
        begin, end, word = match.start(), match.end(), match.group()
        if word.isspace():
            # One blank after a word belongs to it; further blanks are a token of their own.
            begin += word[0] == " " and begin > 0
            if begin < end:
                found.append(_RushToken(begin, True))
        else:
            found.extend(_RushToken(begin + k, False) for k in _cuts(word))
    return found


def _cuts(word: str) -> list[int]:
    """Return the positions at which the tokens of a word without blanks begin."""
    begin, end, cuts = 0, len(word), {0}
    while begin < end and (before := _BEFORE_A_WORD.match(word, begin, end)):
        begin = before.end()
        cuts.add(begin)
    while begin < end and (behind := _BEHIND_A_WORD.search(word, begin, end)):
        end = behind.start()
        cuts.add(end)
    for within in _WITHIN_A_WORD.finditer(word, begin, end):
        cuts.update((within.start(), within.end()))
    return sorted(cut for cut in cuts if cut < len(word))
