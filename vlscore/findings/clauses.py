"""Clauses of dictated text: between full stops that are said ("period"), or without punctuation."""

from collections.abc import Sequence
from itertools import pairwise

from vlscore.findings.lexicon import Lexicon
from vlscore.findings.tokens import Match, Token

#: Words of a text without punctuation from which it is taken to be several clauses.
_LONGEST_CLAUSE = 15
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
    found = lexicon.trie.find(tokens)
    stated = [m.last for layer in ("mention", "normal") for m in found.get(layer, ())]
    starts = _starts(tokens, found.get("subject", ()), lexicon)
    starts |= _behind_denials(tokens, starts, stated, lexicon)
    # "In the left base | there is": before the first statement nothing is parted.
    cuts = [0, *sorted(s for s in starts if s >= min(stated, default=len(tokens)))]
    return [tokens[first:last] for first, last in pairwise((*cuts, len(tokens)))]


def _starts(tokens: list[Token], parts: Sequence[Match], lexicon: Lexicon) -> set[int]:
    """Return where a clause begins with "there is", a denial, or a part that gets a predicate."""
    grammar = lexicon.grammar
    copulas, leads = grammar["copulas"], grammar["clause_leads"]
    starts = set()
    for part in parts:
        first = part.first
        while first > 0 and tokens[first - 1].form in grammar["before_parts"]:
            first -= 1
        is_said = part.last < len(tokens) and tokens[part.last].form in copulas
        if is_said and tokens[first - 1].form not in leads:
            starts.add(first)
    for position in range(1, len(tokens) - 1):
        form, after = tokens[position].form, tokens[position + 1].form
        opens = form == "there" and (after in copulas or after in ("has", "have"))
        if opens or (form in grammar["denying"] and tokens[position - 1].form not in leads):
            starts.add(position)
    return starts


def _behind_denials(
    tokens: list[Token], starts: set[int], stated: Sequence[int], lexicon: Lexicon
) -> set[int]:
    """Return where a clause begins behind a denied finding: "no effusion | calcified nodes".

    Args: starts: of the other clauses. stated: ends of the findings and normal statements.
    """
    denying = lexicon.grammar["denying"]
    no_start = denying | lexicon.grammar["clause_leads"]
    begun: set[int] = set()
    clause = 0
    for position, (before, token) in enumerate(pairwise(tokens), start=1):
        if token.form in lexicon.grammar["clause_openers"] and before.form not in no_start:
            is_denial = clause > 0 and tokens[clause].form in denying
            if is_denial and any(clause < last <= position for last in stated):
                begun.add(position)
        if position in starts or position in begun:
            clause = position
    return begun
