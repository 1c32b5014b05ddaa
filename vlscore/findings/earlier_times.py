"""Words that name an earlier examination or time, and those of change that belong to them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from vlscore.findings.lexicon import Lexicon
from vlscore.findings.phrases import Match
from vlscore.findings.tokens import Token

#: Where a statement ends.
STOPS = frozenset((".", ";", ":"))
_YEAR = re.compile(r"(?:19|20)\d\d")
#: Tokens between an earlier examination and a word of change behind it.
_REACH_BACK = 25


class EarlierTime(NamedTuple):
    """Words that name an earlier examination or time, at tokens [first, last)."""

    first: int
    last: int


def earlier_times(
    tokens: Sequence[Token], named: Sequence[Match], lexicon: Lexicon
) -> list[EarlierTime]:
    """Return the words that name an earlier examination or time, in text order."""
    words = lexicon.changes
    # "No prior study" names none; "not on the prior study" does.
    denials = words.denials - {"not"}
    ranges = [
        (m.first, m.last)
        for m in named
        if denials.isdisjoint(t.form for t in tokens[max(0, m.first - 2) : m.first])
    ]
    for position in range(1, len(tokens)):
        first = position - 1
        if tokens[first].form.isdecimal() and first > 0:
            first -= 1  # "since 5 April"
        if tokens[first].form in words.before and (
            (tokens[position].form in words.earlier and not _is_of_history(tokens, position))
            or _YEAR.fullmatch(tokens[position].form)
        ):
            ranges.append((first, position + 1))
    merged: list[EarlierTime] = []
    for first, last in sorted(ranges):
        if merged and first < merged[-1][1]:
            first, last = merged[-1].first, max(last, merged.pop().last)
        merged.append(EarlierTime(first, last))
    return merged


def _is_of_history(tokens: Sequence[Token], position: int) -> bool:
    """Return whether "prior" tells of the history, not of a film: "with prior sternotomy"."""
    if tokens[position].form not in ("prior", "previous") or tokens[position - 1].form != "with":
        return False
    following = [token.form for token in tokens[position + 1 : position + 2]]
    return bool(following) and following[0].isalpha() and following[0] not in ("and", "but")


def time_after(
    tokens: Sequence[Token],
    word: Match,
    earlier: Sequence[EarlierTime],
    simple: Sequence[Match],
    reach: int,
) -> EarlierTime | None:
    """Return the next earlier time after a word, unless another statement begins before it."""
    for time in earlier:
        if time.last <= word.last or time.first - word.last > reach:
            continue
        between = range(word.last, max(time.first, word.last))
        if any(tokens[p].form in STOPS for p in between):
            return None
        if any(word.last <= s.first <= time.first for s in simple):
            return None
        return time
    return None


def has_time_before(
    tokens: Sequence[Token],
    word: Match,
    earlier: Sequence[EarlierTime],
    simple: Sequence[Match],
) -> bool:
    """Return whether an earlier time precedes the word: "Since the previous image, ... larger"."""
    if any(t.form == "than" for t in tokens[word.last : word.last + 2]):
        return False
    for first, last in earlier:
        if last > word.first or word.first - last > _REACH_BACK:
            continue
        between = range(last, word.first)
        if any(tokens[p].form in (".", ";") for p in between):
            continue
        # "unchanged since the prior study, the right side is larger": that time belongs to another.
        if not any(s.first < first and first - s.last <= 3 for s in simple):
            return True
    return False
