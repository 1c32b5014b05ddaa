"""ConText: which triggers reach which mentions (Harkema et al. 2009, after Chapman et al. 2001).

A forward trigger governs what follows it in the sentence, a backward one what precedes it, up to
a terminating phrase, another trigger or the limit of its own scope. Pseudo-triggers hide the
triggers they contain.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from vlscore.findings.lexicon import Trigger
from vlscore.findings.phrases import Match
from vlscore.findings.tokens import Token
from vlscore.findings.types import Polarity, Status

_DOUBT = ("uncertain", "probable")
_NEW_STATEMENT = (*_DOUBT, "asserted")
_ALTERNATIVE = Trigger("probable", True, 0, False)
_LOOKALIKE = Trigger("negated", False, 0, False)
_HEDGED_LOOKALIKE = Trigger("uncertain", False, 0, False)
_LONGEST_ALTERNATIVE = 5
_PARTING = frozenset((",", ";", ".", ":", "is", "are", "no", "not", "with", "without", "but"))
_VERBS = frozenset(("is", "are", "was", "were", "remain", "remains", "persist", "persists", "has"))
_STATUSES = {
    "historical": Status.HISTORICAL,
    "hypothetical": Status.HYPOTHETICAL,
    "other": Status.OTHER,
}


class Assertion(NamedTuple):
    """What the triggers make of one mention, and the triggers that did."""

    polarity: Polarity
    status: Status
    triggers: tuple[Match, ...]


class Scope(NamedTuple):
    """Tokens [first, last) that a trigger governs."""

    first: int
    last: int
    trigger: Match


def find_triggers(found: dict[str, list[Match]]) -> list[Match]:
    """Triggers and boundaries of a sentence in text order; a boundary hides no trigger."""
    both = (*found.get("trigger", ()), *found.get("boundary", ()))
    return sorted(both, key=lambda match: (match.first, match.last))


def scopes(
    tokens: Sequence[Token], triggers: Sequence[Match], breaks: frozenset[str]
) -> list[Scope]:
    """The token range each trigger governs."""
    result = []
    for position, trigger in enumerate(triggers):
        rule = trigger.entry
        if rule.effect in ("pseudo", "terminate", "asserted"):
            continue
        if rule.forward:
            end = _forward_end(tokens, triggers, position, breaks)
            if rule.scope:
                end = min(end, trigger.last + rule.scope)
            if trigger.first == 0 and rule.effect == "negated" and tokens[0].form == "without":
                end = min(end, _clause_end(tokens, triggers, trigger.last))
            result.append(Scope(trigger.last, end, trigger))
        else:
            start = _backward_start(triggers, position)
            if rule.scope:
                # "opacity, atelectasis versus scar": a short scope ends at the comma before.
                least = max(start, trigger.first - rule.scope)
                commas = (
                    p for p in range(trigger.first - 2, least - 1, -1) if tokens[p].form == ","
                )
                start = next(commas, least)
            result.append(Scope(start, trigger.first, trigger))
    return result


def _forward_end(
    tokens: Sequence[Token], triggers: Sequence[Match], position: int, breaks: frozenset[str]
) -> int:
    own = triggers[position]
    for later in triggers[position + 1 :]:
        if later.first < own.last:
            continue
        rule = later.entry
        if rule.effect == "terminate" and later.first == own.last:
            continue  # "not certain if there is": the boundary belongs to the trigger
        if rule.effect == "terminate" or rule.ends_scope:
            return later.first
        if not rule.forward:
            continue
        after_break = tokens[later.first - 1].form in breaks
        if own.entry.effect in _DOUBT and rule.effect == "negated":
            return later.first
        if own.entry.effect == "negated" and after_break and rule.effect in _NEW_STATEMENT:
            return later.first
        if own.entry.effect in _STATUSES and rule.effect == "negated" and after_break:
            return later.first
    return len(tokens)


def lookalikes(found: dict[str, list[Match]], triggers: Sequence[Match]) -> list[Scope]:
    """What is said to be an artifact or a shadow: denied, or in doubt where a hedge says so."""
    result = []
    for match in found.get("lookalike", ()):
        before = [t for t in triggers if t.last <= match.first]
        hedged = any(
            t.entry.effect in _DOUBT and match.first - 1 <= t.last and t.first < match.last
            for t in triggers
        )
        trigger = match._replace(entry=_HEDGED_LOOKALIKE if hedged else _LOOKALIKE)
        result.append(Scope(_backward_start([*before, match], len(before)), match.first, trigger))
    return result


def alternatives(tokens: Sequence[Token], places: Sequence[tuple[int, int]]) -> list[Scope]:
    """Findings joined by "or" or "and/or": one of them is there, so each is in doubt.

    `places` are the token ranges of the findings, in text order.
    """
    result = []
    for (first, last), (next_first, next_last) in pairwise(places):
        joint = [tokens[p].form for p in range(last, next_first)]
        if "or" not in joint or len(joint) > _LONGEST_ALTERNATIVE or not _PARTING.isdisjoint(joint):
            continue
        at = last + joint.index("or")
        begin = at - 1 if at > last and joint[at - last - 1] == "and" else at
        trigger = Match(begin, at + 1, "trigger", _ALTERNATIVE)
        result += [Scope(first, last, trigger), Scope(next_first, next_last, trigger)]
    return result


def _clause_end(tokens: Sequence[Token], triggers: Sequence[Match], first: int) -> int:
    """Where an opening "without ..." ends if a clause with a verb follows its comma."""
    comma = next((p for p in range(first, len(tokens)) if tokens[p].form == ","), len(tokens))
    verbs = any(tokens[p].form in _VERBS for p in range(comma, len(tokens)))
    listed = any(tokens[p].form in ("or", "nor") for p in range(comma, len(tokens)))
    return comma if verbs and not listed else len(tokens)


def _backward_start(triggers: Sequence[Match], position: int) -> int:
    for earlier in reversed(triggers[:position]):
        rule = earlier.entry
        if earlier.last <= triggers[position].first and (
            rule.effect == "terminate" or rule.ends_scope
        ):
            return int(earlier.last)
    return 0


def assess(scope_list: Sequence[Scope], first: int, last: int) -> Assertion:
    """Polarity and status of the mention at tokens [first, last)."""
    reaching = [s.trigger for s in scope_list if s.first <= first and last <= s.last]
    if not reaching:
        return Assertion(Polarity.POSITIVE, Status.CURRENT, ())
    effects = {trigger.entry.effect for trigger in reaching}
    polarity = Polarity.POSITIVE
    if "negated" in effects:
        polarity = Polarity.NEGATIVE
    elif not effects.isdisjoint(_DOUBT):
        polarity = Polarity.UNCERTAIN
    status = next((_STATUSES[e] for e in _STATUSES if e in effects), Status.CURRENT)
    return Assertion(polarity, status, tuple(sorted(set(reaching), key=lambda t: t.first)))
