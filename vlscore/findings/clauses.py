"""Clauses of dictated text: between full stops that are said ("period"), or without punctuation."""

from itertools import pairwise

from vlscore.findings.lexicon import Lexicon
from vlscore.findings.tokens import Token

#: Words of a text without punctuation from which it is taken to be several clauses.
_LONGEST_CLAUSE = 15
#: Words of a part of the chest that stand before its name ("in *the left* upper lobe").
_BEFORE_PARTS = frozenset(
    (
        *("the", "left", "right", "l", "r", "lt", "rt", "both", "upper", "lower", "middle", "mid"),
        *("lateral", "medial", "anterior", "posterior", "bilateral"),
    )
)
#: Words that open a denial in a text without punctuation.
_DENYING = frozenset(("no", "nothing"))
_PUNCTUATION = frozenset((",", ".", ";", ":"))


def clauses_of(tokens: list[Token], lexicon: Lexicon) -> list[list[Token]]:
    """Return the clauses of a text with dictated full stops ("period"), or without punctuation."""
    if any(token.form == "period" for token in tokens):
        return [c for part in _sentences(tokens, lexicon) for c in _unpunctuated(part, lexicon)]
    return _unpunctuated(tokens, lexicon)


def _sentences(tokens: list[Token], lexicon: Lexicon) -> list[list[Token]]:
    """Return the parts of a text between the full stops that are dictated as "period"."""
    before, after = lexicon.grammar["before_period"], lexicon.grammar["after_period"]
    stops = [
        position
        for position, token in enumerate(tokens)
        if token.form == "period"
        and (position == 0 or tokens[position - 1].form not in before)
        and (position + 1 == len(tokens) or tokens[position + 1].form not in after)
    ]
    parts = [tokens[first + 1 : last] for first, last in pairwise((-1, *stops, len(tokens)))]
    return [part for part in parts if part] or [tokens]


def _unpunctuated(tokens: list[Token], lexicon: Lexicon) -> list[list[Token]]:
    """Return the clauses of a long text without any punctuation, as dictation may come; else all.

    A clause begins with "there is", with a denial, where a part of the chest gets a predicate, and
    behind a denied finding with a word that is not denied ("no effusion | calcified nodes").
    """
    if len(tokens) < _LONGEST_CLAUSE or not _PUNCTUATION.isdisjoint(t.form for t in tokens[:-1]):
        return [tokens]
    copulas, leads = lexicon.grammar["copulas"], lexicon.grammar["clause_leads"]
    found = lexicon.trie.find(tokens)
    starts = set()
    for match in found.get("subject", ()):
        first = match.first
        while first > 0 and tokens[first - 1].form in _BEFORE_PARTS:
            first -= 1
        is_said = match.last < len(tokens) and tokens[match.last].form in copulas
        if is_said and tokens[first - 1].form not in leads:
            starts.add(first)
    for position in range(1, len(tokens) - 1):
        form, after = tokens[position].form, tokens[position + 1].form
        opens = form == "there" and (after in copulas or after in ("has", "have"))
        if opens or (form in _DENYING and tokens[position - 1].form not in leads):
            starts.add(position)
    # "In the left base | there is": before the first statement nothing is parted.
    stated = [m.last for layer in ("mention", "normal") for m in found.get(layer, ())]
    denials = [p for p in starts if tokens[p].form in _DENYING]
    for position, token in enumerate(tokens[1:], start=1):
        before = tokens[position - 1].form
        if token.form in lexicon.grammar["clause_openers"] and before not in (*_DENYING, *leads):
            denied = max((p for p in starts if p < position), default=None)
            if denied in denials and any(denied < last <= position for last in stated):
                starts.add(position)
    cuts = [0, *sorted(s for s in starts if s >= min(stated, default=len(tokens)))]
    return [tokens[first:last] for first, last in pairwise((*cuts, len(tokens)))]
