"""The sentences that RaTEScore reads one at a time: RuSH's, cut where spaCy's tokens begin."""

import re
from itertools import pairwise
from typing import NamedTuple

from vlscore.annotators.rush import Span, sentence_spans

# Shorter ones are not read: numbers of lists, lone points.
_SHORTEST = 3
_WORDS_AND_BLANKS = re.compile(r"\s+|\S+")
# Where spaCy 3.7 cuts English words, as far as reports use it. Its lists of abbreviations are not
# here: 625 real and generated reports, and three times as many into which punctuation and line
# breaks were thrown, are cut as with the whole of it.
_BEFORE_A_WORD = re.compile(r"[%=—–,:;!?¿¡()\[\]{}<>_#*&'\"“”‘’`´…$£€]|\+(?!\d)|\.\.+")
_BEHIND_A_WORD = re.compile(r"(?:[,:;!?¿¡()\[\]{}<>_#*&'\"“”‘’`´…$£€—–.]|(?<=\d)\+|['’][sS])$")
_WITHIN_A_WORD = re.compile(
    r"(?<=[a-z'\"])\.(?=[A-Z'\"])|(?<=[A-Za-z]),(?=[A-Za-z])|(?<=[A-Za-z0-9])[:<>=/](?=[A-Za-z])"
    r"|(?<=[A-Za-z])(?:--?|—|–|~)(?=[A-Za-z])|(?<=\d)[+\-*^](?=[\d-])|\.\.+|…"
)


class _Token(NamedTuple):
    begin: int
    is_blank: bool


def sentences(text: str) -> list[str]:
    """The sentences of a report, without the blanks around them; none of an empty one.

    As `medspacy.load(medspacy_enable=["medspacy_pyrush"])` of medspaCy 1.3.1 cuts them, of which
    RaTEScore leaves out those that are shorter than three characters.
    """
    tokens = _tokens(text)
    begins = sorted({0, *_first_tokens(tokens, sentence_spans(text))})
    cuts = [*(tokens[k].begin if k else 0 for k in begins), len(text)]
    parts = (text[a:b].strip() for a, b in pairwise(cuts))
    return [part for part in parts if len(part) >= _SHORTEST]


def _first_tokens(tokens: list[_Token], spans: list[Span]) -> set[int]:
    """Positions of the tokens with which a sentence, or what stands between two, begins."""
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


def _tokens(text: str) -> list[_Token]:
    found = []
    for match in _WORDS_AND_BLANKS.finditer(text):
        begin, end, word = match.start(), match.end(), match.group()
        if word.isspace():
            # One blank behind a word belongs to it; further ones are a token of their own.
            begin += word[0] == " " and begin > 0
            if begin < end:
                found.append(_Token(begin, True))
        else:
            found.extend(_Token(begin + k, False) for k in _cuts(word))
    return found


def _cuts(word: str) -> list[int]:
    """Where the tokens of a word without blanks begin."""
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
