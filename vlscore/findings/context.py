"""ConText: which triggers reach which mentions (Harkema et al. 2009, after Chapman et al. 2001).

A forward trigger governs what follows it in the sentence, a backward one what precedes it, up to
a terminating phrase, another trigger or the limit of its own scope. Pseudo-triggers hide the
triggers they contain.

`find_denials` finds summary statements, which deny findings without their names: "normal chest",
"no acute bony abnormality". The extraction assigns at most one finding to such a statement, but it
denies every finding of its region: "the lungs are clear" contradicts a nodule in another sentence.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple, cast

from vlscore.findings.compositions import PatternMatcher
from vlscore.findings.lexicon import Effect, Lexicon, Trigger
from vlscore.findings.mentions import NormalSubject
from vlscore.findings.tokens import Match, Token
from vlscore.findings.types import Denial, Polarity, Span, Status

_DOUBT = ("uncertain", "probable")
_NEW_STATEMENT = (*_DOUBT, "asserted")
_ALTERNATIVE = Trigger("probable", True, 0, False)
_LOOKALIKE = Trigger("negated", False, 0, False)
_HEDGED_LOOKALIKE = Trigger("uncertain", False, 0, False)
_LONGEST_ALTERNATIVE = 5
_STATUSES = {
    "historical": Status.HISTORICAL,
    "hypothetical": Status.HYPOTHETICAL,
    "other": Status.OTHER,
}


class Assertion(NamedTuple):
    """Polarity and status of one mention, with the triggers that set them."""

    polarity: Polarity
    status: Status
    triggers: tuple[Match, ...]


class Scope(NamedTuple):
    """Tokens [first, last) that a trigger governs."""

    first: int
    last: int
    trigger: Match


def find_triggers(
    tokens: Sequence[Token], found: dict[str, list[Match]], lexicon: Lexicon
) -> list[Match]:
    """Triggers and boundaries of a sentence in text order; a boundary hides no trigger.

    Rows of `context.toml` make further ones, of layer "composed". As with phrases, the longest one
    counts: what a row makes hides the triggers inside it, unless it ends a scope.
    """
    triggers, boundaries = list(found.get("trigger", ())), list(found.get("boundary", ()))
    composed = list(_composed(tokens, found, lexicon))
    longer = [
        match
        for match in composed
        if (effect := match.entry.effect) == "pseudo"
        or (match.layer == "composed" and effect != "terminate")
    ]
    triggers = [t for t in triggers if not any(each.covers(t) for each in longer)]
    for match in composed:
        if match.layer == "either" and any(each.covers(match) for each in longer):
            continue
        (boundaries if match.entry.effect == "terminate" else triggers).append(match)
    # In "no infiltrate that would suggest" nothing ends at "that", and in "no enlargement of the
    # heart is seen" nothing at "the heart is".
    hidden = {p for t in triggers if t.entry.effect == "pseudo" for p in range(t.first, t.last)}
    named = {p for m in found.get("mention", ()) for p in range(m.first + 1, m.last)}
    boundaries = [
        b
        for b in boundaries
        if b.first not in named and not hidden.issuperset(range(b.first, b.last))
    ]
    # ", cardiomegaly" ends what precedes; the name is of what follows.
    names = found.get("mention", ())
    boundaries = [
        b._replace(last=b.first + 1) if any(b.covers(name) for name in names) else b
        for b in boundaries
    ]
    return sorted((*triggers, *boundaries), key=lambda match: (match.first, match.last))


def _composed(
    tokens: Sequence[Token], found: dict[str, list[Match]], lexicon: Lexicon
) -> Iterator[Match]:
    """Find the triggers and boundaries that rows make of several words."""
    triggers, either = found.get("trigger", ()), found.get("either", ())
    free = [m for m in either if not any(_continues(t, m) for t in triggers)]
    backward = sorted((*free, *(t for t in triggers if not t.entry.forward)))
    governing = [t for t in triggers if t.entry.forward and t.entry.effect in ("negated", *_DOUBT)]
    found = {**found, "either": free, "backward": backward, "governing": governing}
    ends = {m.first: m.last for m in found.get("mention", ())}
    for first, last, head, rule in PatternMatcher(tokens, found, lexicon.lists).fitting(
        lexicon.rules["context"]
    ):
        row = rule.row
        trigger = head.entry if row.value is None else Trigger(cast(Effect, row.value))
        scope = row.scope
        if not row.forward and (behind := ends.get(first)):
            # What covers a finding acts on it alone, from behind it.
            first, scope = behind, behind - first
        # Phrases that act on both sides are placed by their row, and hide nothing.
        layer = head.layer if head.layer == "either" and row.value is None else "composed"
        yield Match(first, last, layer, trigger._replace(forward=row.forward, scope=scope))


def _continues(trigger: Match, match: Match) -> bool:
    """Return whether a trigger covers a match, or continues behind it."""
    return trigger.covers(match) or trigger.first < match.last < trigger.last


def scopes(tokens: Sequence[Token], triggers: Sequence[Match], lexicon: Lexicon) -> list[Scope]:
    """Return the token range each trigger governs."""
    breaks, verbs = lexicon.breaks_before_hedge, lexicon.lists["verbs_of_clauses"]
    result = []
    for position, trigger in enumerate(triggers):
        rule = trigger.entry
        if rule.effect in ("pseudo", "terminate", "asserted"):
            continue
        if rule.forward:
            end = _forward_end(tokens, triggers, position, breaks)
            if rule.scope:
                end = min(end, trigger.last + rule.scope)
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
            elif rule.effect in (*_DOUBT, "hypothetical"):
                start = max(start, _clause_start(tokens, trigger.first, verbs, breaks))
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


def lookalikes(
    found: dict[str, list[Match]], triggers: Sequence[Match], cues: Sequence[tuple[int, int]]
) -> list[Scope]:
    """Return mentions described as an artifact or a shadow: denied, or uncertain with a hedge.

    `cues` are the token ranges of the findings: the scope holds at least the last one before.
    """
    result = []
    for match in found.get("lookalike", ()):
        before = [t for t in triggers if t.last <= match.first]
        hedged = any(
            t.entry.effect in _DOUBT and match.first <= t.last and t.first < match.last
            for t in triggers
        )
        trigger = match._replace(entry=_HEDGED_LOOKALIKE if hedged else _LOOKALIKE)
        start = _backward_start([*before, match], len(before))
        nearest = max((first for first, last in cues if last <= match.first), default=start)
        result.append(Scope(min(start, nearest), match.first, trigger))
    return result


def alternatives(
    tokens: Sequence[Token],
    places: Sequence[tuple[int, int]],
    triggers: Sequence[Match],
    lexicon: Lexicon,
) -> list[Scope]:
    """Findings joined by "or" or "and/or": one of them is there, so each is in doubt.

    "No change in effusion or edema" doubts neither. `places` are the token ranges of the findings,
    in text order.
    """
    lists = lexicon.lists
    denied = [t.last for t in triggers if t.entry.effect == "pseudo" and t.entry.ends_scope]
    result = []
    for (first, last), (next_first, next_last) in pairwise(places):
        # "Effusion or thickening" is one phrase with two findings.
        is_phrase = (first, last) == (next_first, next_last)
        begin, end = (first, last) if is_phrase else (last, next_first)
        joint = [tokens[p].form for p in range(begin, end)]
        if any(end <= first for end in denied):
            continue
        if (
            lists["or"].isdisjoint(joint)
            or len(joint) > _LONGEST_ALTERNATIVE
            or not (lists["subject_stops"] | lists["verbs_of_clauses"]).isdisjoint(joint)
        ):
            continue
        at = begin + next(p for p, form in enumerate(joint) if form in lists["or"])
        begin = at - (at > begin and joint[at - begin - 1] in lists["and"])
        trigger = Match(begin, at + 1, "alternative", _ALTERNATIVE)
        result += [Scope(first, last, trigger), Scope(next_first, next_last, trigger)]
    return result


def _clause_start(
    tokens: Sequence[Token], last: int, verbs: frozenset[str], breaks: frozenset[str]
) -> int:
    """Return where the clause begins that ends in a hedge at `last`.

    In "the effusion has grown, and pneumonia is possible" it begins behind "and".
    """
    for position in range(last - 1, 0, -1):
        if tokens[position - 1].form == "," and tokens[position].form in breaks:
            is_clause = any(token.form in verbs for token in tokens[:position])
            return position + 1 if is_clause else 0
    return 0


def _backward_start(triggers: Sequence[Match], position: int) -> int:
    for earlier in reversed(triggers[:position]):
        rule = earlier.entry
        if earlier.last <= triggers[position].first and (
            rule.effect == "terminate" or rule.ends_scope
        ):
            return int(earlier.last)
    return 0


def _reaches(scope: Scope, first: int, last: int) -> bool:
    """Return whether a scope contains the tokens [first, last).

    A phrase that denies what follows also denies a finding or state that its own words name, as in
    "clear of". What a row makes does not: "unlikely that *the opacity is* pneumonia". Nor does a
    trigger act on words that contain it: "*not big*" is normal.
    """
    rule, begin = scope.trigger.entry, scope.first
    if rule.effect == "negated" and rule.forward and scope.trigger.layer == "trigger":
        begin = scope.trigger.first
    is_inside = first <= scope.trigger.first < scope.trigger.last < last
    is_inside = is_inside and scope.trigger.layer != "alternative"
    return begin <= first and last <= scope.last and not is_inside


def assess(scope_list: Sequence[Scope], first: int, last: int) -> Assertion:
    """Polarity and status of the mention at tokens [first, last)."""
    reaching = [s.trigger for s in scope_list if _reaches(s, first, last)]
    if not reaching:
        return Assertion(Polarity.POSITIVE, Status.CURRENT, ())
    effects = {trigger.entry.effect for trigger in reaching}
    polarity = Polarity.POSITIVE
    if "negated" in effects:
        polarity = Polarity.NEGATIVE
    elif not effects.isdisjoint(_DOUBT):
        polarity = Polarity.UNCERTAIN
    status = next((_STATUSES[e] for e in _STATUSES if e in effects), Status.CURRENT)
    return Assertion(
        polarity, status, tuple(sorted(dict.fromkeys(reaching), key=lambda t: t.first))
    )


# Between a part of the chest and "no": "the pleural spaces (show) no acute abnormality".
_LONGEST_PREDICATE = 5


def find_denials(
    tokens: Sequence[Token],
    found: dict[str, list[Match]],
    scopes: Sequence[Scope],
    well: Iterable[NormalSubject],
    lexicon: Lexicon,
) -> tuple[Denial, ...]:
    """Return the denials of one sentence, in text order, each region once a statement."""
    denials: dict[tuple[str, Span], Denial] = {}

    def add(scope: str, first: int, last: int, acute: bool) -> None:
        span = Span(tokens[first].start, tokens[last - 1].end)
        covered = lexicon.coverage.acute if acute else lexicon.coverage.any
        denials[scope, span] = Denial(scope, span, acute, covered[scope])

    for subject, name, word in well:
        scope_names = lexicon.coverage.of_subject.get(name, ())
        if scope_names and _stated(scopes, word.first, word.last):
            first, last = min(subject.first, word.first), max(subject.last, word.last)
            for scope in scope_names:
                add(scope, first, last, acute=False)
    for match in found.get("statement", ()):
        if _stated(scopes, match.first, match.last):
            add(match.entry, match.first, match.last, acute=False)
    sums_up = any(token.form in lexicon.coverage.nouns for token in tokens)
    for governed in scopes if sums_up else ():
        trigger = governed.trigger
        if trigger.entry.effect != "negated" or not trigger.entry.forward:
            continue
        for first, last in _summaries(tokens, governed, lexicon):
            words = {token.form for token in tokens[first:last]}
            acute = not words.isdisjoint(lexicon.coverage.words_of_time)
            named = {s for w in words for s in lexicon.coverage.of_word.get(w, ())}
            for scope in sorted(named) or _subject_scopes(tokens, found, trigger.first, lexicon):
                add(scope, trigger.first, last, acute)
    return tuple(sorted(denials.values(), key=lambda d: (d.span, d.scope)))


def _stated(scopes: Sequence[Scope], first: int, last: int) -> bool:
    assertion = assess(scopes, first, last)
    return assertion.polarity is Polarity.POSITIVE and assertion.status is Status.CURRENT


def _summaries(tokens: Sequence[Token], governed: Scope, lexicon: Lexicon) -> list[tuple[int, int]]:
    """Token ranges in a negation's scope that name no finding, only "acute ... abnormality"."""
    coverage = lexicon.coverage
    ranges = []
    end = governed.last
    for last in range(governed.last, governed.first, -1):
        if last > end or tokens[last - 1].form not in coverage.nouns:
            continue
        first = last - 1
        while first > governed.first and tokens[first - 1].form in coverage.run_words:
            first -= 1
        if first == governed.first or tokens[first].form in coverage.joints:
            ranges.append((first, last))
            end = first
    return ranges


def _subject_scopes(
    tokens: Sequence[Token], found: dict[str, list[Match]], before: int, lexicon: Lexicon
) -> Sequence[str]:
    """Return the regions of the part of the chest right before "no"; else the chest.

    "Elevated hemidiaphragm and no acute disease" denies it in the chest.
    """
    whole = lexicon.coverage.whole
    for subject in reversed(found.get("subject", ())):
        scopes = lexicon.coverage.of_subject.get(subject.entry, ())
        if scopes and 0 <= before - subject.last <= _LONGEST_PREDICATE:
            joints = (token.form for token in tokens[subject.last : before])
            return (whole,) if not lexicon.coverage.joints.isdisjoint(joints) else scopes
    return (whole,)
