"""Words that name an earlier examination or time."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from vlscore.findings.lexicon import Lexicon
from vlscore.findings.tokens import Match, Token

YEAR = re.compile(r"(?:19|20)\d\d")


class EarlierTime(NamedTuple):
    """Words that name an earlier examination or time, at tokens [first, last)."""

    first: int
    last: int


def earlier_times(
    tokens: Sequence[Token], named: Sequence[Match], lexicon: Lexicon
) -> list[EarlierTime]:
    """Return the words that name an earlier examination or time, in text order."""
    words = lexicon.grammar
    # "No prior study" names none; "not on the prior study" does.
    denials = words["denials"] - {"not"}
    ranges = [
        (m.first, m.last)
        for m in named
        if denials.isdisjoint(t.form for t in tokens[max(0, m.first - 2) : m.first])
    ]
    for position in range(1, len(tokens)):
        first = position - 1
        if tokens[first].form.isdecimal() and first > 0:
            first -= 1  # "since 5 April"
        if tokens[first].form in words["before_earlier"] and (
            (tokens[position].form in words["times"] and not _is_of_history(tokens, position))
            or YEAR.fullmatch(tokens[position].form)
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
