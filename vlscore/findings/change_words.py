"""Words that state a change since an earlier examination, composed from the parts in `change.toml`.

"larger" alone may compare two sides; "larger than on the previous image" compares two examinations.
"""

from collections.abc import Collection, Iterator, Sequence

from vlscore.findings.earlier_times import (
    STOPS,
    EarlierTime,
    earlier_times,
    has_time_before,
    time_after,
)
from vlscore.findings.lexicon import Lexicon
from vlscore.findings.modifiers import find_size_changes, find_sizes
from vlscore.findings.phrases import Match
from vlscore.findings.tokens import Token
from vlscore.findings.types import TemporalChange

_HAVE = frozenset(("has", "have", "had", "having"))
_CLAUSE_ENDS = frozenset((*STOPS, ",", "but", "now"))
#: Changes of amount.
ENLARGING = frozenset((TemporalChange.WORSE, TemporalChange.IMPROVED))
#: Tokens between a word of change and the earlier examination after it.
_REACH, _REACH_OF_EVENT, _REACH_OF_UNSEEN = 8, 5, 5
_WISHED, _REACH_OF_DISEASE, _REACH_OF_SIDE = 4, 5, 4


def find_changes(
    tokens: Sequence[Token], found: dict[str, list[Match]], lexicon: Lexicon
) -> list[Match]:
    """Return the phrases of one sentence that compare, in text order, without overlaps.

    Args: found: matches of the lexicon by layer; severity words of a change ("slightly larger") are
        removed from it.
    """
    simple = found.get("change", [])
    composed: list[Match] = []
    sizes, is_composed = find_sizes(tokens), _LAYERS & found.keys()
    if sizes or is_composed:
        earlier = earlier_times(tokens, found.get("earlier", ()), lexicon)
        composed += [_made(*each) for each in find_size_changes(tokens, sizes, earlier, lexicon)]
        if is_composed:
            composed += _composed(tokens, found, earlier, lexicon)
    if not simple and not composed:
        return []
    known = {(s.first, s.entry) for s in simple}
    composed = [c for c in composed if (c.first, c.entry) not in known]
    composed.sort(key=lambda m: (m.first, -m.last))
    kept: list[Match] = []
    for match in composed:
        if not kept or match.first >= kept[-1].last:
            kept.append(match)
    kept += [s for s in simple if not any(s.first < c.last and c.first < s.last for c in kept)]
    kept = [_denied(tokens, m, lexicon) for m in kept if not _is_wished(tokens, m, lexicon)]
    kept.sort(key=lambda m: m.first)
    unseen = [c for c in composed if c.entry == TemporalChange.NEW]
    for layer, covering in (("trigger", unseen), ("state", composed)):
        _uncover(found, layer, covering)
    if "severity" in found:
        found["severity"] = [s for s in found["severity"] if not _moves(tokens, s, kept, lexicon)]
    return kept


def _uncover(found: dict[str, list[Match]], layer: str, changes: Sequence[Match]) -> None:
    """Remove the matches that are parts of a change: in "not seen before" nothing is denied.

    The only state of a sentence stays: "the heart has increased in size" mentions a large heart.
    """
    own = found.get(layer, [])
    free = [m for m in own if not any(c.first <= m.first and m.last <= c.last for c in changes)]
    if own and (free or layer == "trigger"):
        found[layer] = free


_LAYERS = frozenset(("comparative", "event", "disease", "earlier", "unseen"))


def _composed(
    tokens: Sequence[Token],
    found: dict[str, list[Match]],
    earlier: Sequence[EarlierTime],
    lexicon: Lexicon,
) -> Iterator[Match]:
    simple = found.get("change", ())
    for word in found.get("unseen", ()):
        time = time_after(tokens, word, earlier, simple, _REACH_OF_UNSEEN)
        if time is not None:
            yield _made(word.first, time.last, TemporalChange.NEW)
    yield from _of_comparatives(tokens, found, earlier, lexicon)
    yield from _of_events(tokens, found, earlier, lexicon)
    yield from _of_diseases(tokens, found, lexicon)
    yield from _now_normal(tokens, found, earlier)


def _of_comparatives(
    tokens: Sequence[Token],
    found: dict[str, list[Match]],
    earlier: Sequence[EarlierTime],
    lexicon: Lexicon,
) -> Iterator[Match]:
    """Find "larger than before", "has become smaller", "the effusion is larger"."""
    grammar, simple = lexicon.grammar, found.get("change", ())
    named = [m for layer in ("mention", "subject", "topic") for m in found.get(layer, ())]
    for word in found.get("comparative", ()):
        in_change = any(s.first <= word.first < s.last for s in simple)
        if in_change or _compares_sides(tokens, word, lexicon):
            continue
        form = tokens[word.last - 1].form
        adjective = form in grammar["verbs_of_state"]
        time = time_after(tokens, word, earlier, _comparing(found), _REACH)
        start = _before_degrees(tokens, word.first, lexicon)
        if time is not None and (not adjective or time.first - word.last < _REACH_OF_EVENT):
            yield _made(word.first, time.last, word.entry)
        elif form == "than" or adjective:
            continue
        elif start and tokens[start - 1].form in grammar["becoming"]:
            yield _made(start - 1, word.last, word.entry)
        elif (
            _begins_before(tokens, word, grammar["becoming"])
            or has_time_before(tokens, word, earlier, simple)
            or _is_predicate(tokens, word, named, lexicon)
        ):
            yield _made(word.first, word.last, word.entry)


def _of_events(
    tokens: Sequence[Token],
    found: dict[str, list[Match]],
    earlier: Sequence[EarlierTime],
    lexicon: Lexicon,
) -> Iterator[Match]:
    """Find "has increased", "has partly cleared", "appeared since yesterday"."""
    grammar, simple = lexicon.grammar, found.get("change", ())
    for word in found.get("event", ()):
        form = tokens[word.last - 1].form
        if form == "gone" and _follows(tokens, word, grammar["directions"]):
            continue
        if any(
            s.first <= word.first < s.last
            and (s.entry is None or (s.first < word.first and s.entry != word.entry))
            for s in simple
        ):
            continue  # "The tube has been advanced", "has cleared to some degree"
        time = time_after(tokens, word, earlier, _comparing(found), _REACH_OF_EVENT)
        last = word.last if time is None else time.last
        have = _perfect(tokens, word, lexicon)
        if have is not None:
            between = {token.form for token in tokens[have : word.first]}
            partly = _follows(tokens, word, grammar["partly"]) or between & grammar["partly"]
            value = TemporalChange.IMPROVED if partly else word.entry
            denied = between & {"not", "never"}
            yield _made(have, last, TemporalChange.UNCHANGED if denied else value)
            continue
        state = tokens[word.first].form in grammar["verbs_of_state"]
        if time is not None or (
            (not state or _is_amount(tokens, word, lexicon))
            and has_time_before(tokens, word, earlier, simple)
        ):
            yield _made(word.first, last, word.entry)


def _comparing(found: dict[str, list[Match]]) -> list[Match]:
    """Return the words that a time behind them may belong to: "enlarged, less than before"."""
    return [*found.get("change", ()), *found.get("comparative", ())]


def _of_diseases(
    tokens: Sequence[Token], found: dict[str, list[Match]], lexicon: Lexicon
) -> Iterator[Match]:
    """Find "increased atelectasis", "effusion, increased", "increase in the effusion"."""
    words, mentions = lexicon.changes, found.get("mention", ())
    diseases = [
        m
        for m in mentions
        if m.entry in words.diseases or tokens[m.last - 1].form in words.excesses
    ]
    before = [*diseases, *(m for m in mentions if m.entry in words.predicated)]
    parts = [*found.get("place", ()), *found.get("subject", ())]
    places = {position for part in parts for position in range(part.first, part.last)}
    for word in found.get("disease", ()):
        form = tokens[word.first].form
        reach = 1 if form == "less" else _REACH_OF_DISEASE
        if any(
            0 <= m.first - word.last < reach
            and not any(word.last <= o.first and o.last <= m.first for o in mentions)
            and lexicon.grammar["parting"].isdisjoint(t.form for t in tokens[word.last : m.first])
            for m in (mentions if form == "worse" else diseases)
        ) or (
            _ends_clause(tokens, word, lexicon)
            and _said_behind(tokens, word, before, places, lexicon)
        ):
            yield word._replace(layer="change")


def _said_behind(
    tokens: Sequence[Token],
    word: Match,
    mentions: Sequence[Match],
    places: Collection[int],
    lexicon: Lexicon,
) -> bool:
    """Return whether a word is said of a mention before it: "effusion is slightly increased".

    Args: places: tokens of places, which may stand between: "opacities in the lung bases are less".
    """
    start = _before_degrees(tokens, word.first, lexicon)
    if start > 0 and tokens[start - 1].form in ("is", "are"):
        start -= 1
        place = start
        while place > 0 and (
            place - 1 in places or tokens[place - 1].form in lexicon.grammar["before_places"]
        ):
            place -= 1
        if any(m.last == place for m in mentions):
            return True
    apart = start > 0 and tokens[start - 1].form == ","
    return any(
        m.last in (start, word.first)
        or (
            apart
            and 0 <= start - m.last <= _REACH
            and lexicon.grammar["openers_of_clause"].isdisjoint(
                t.form for t in tokens[m.last : start]
            )
        )
        for m in mentions
    )


def _before_degrees(tokens: Sequence[Token], position: int, lexicon: Lexicon) -> int:
    """Return where the words of degree before a position begin: "slightly larger"."""
    while position > 0 and (
        tokens[position - 1].form.endswith("ly")
        or tokens[position - 1].form in lexicon.grammar["degrees_of_change"]
    ):
        position -= 1
    return position


def _made(first: int, last: int, value: str) -> Match:
    return Match(first, last, "change", str(value))


def _is_predicate(
    tokens: Sequence[Token], word: Match, named: Sequence[Match], lexicon: Lexicon
) -> bool:
    """Return whether the word ends a clause: "the effusion is larger", "effusion much larger"."""
    start = _before_degrees(tokens, word.first, lexicon)
    apart = start > 1 and tokens[start - 1].form == ","
    return _ends_clause(tokens, word, lexicon) and (
        apart
        or any(m.last == start for m in named)
        or _begins_before(tokens, word, lexicon.grammar["verbs_of_appearance"])
    )


def _compares_sides(tokens: Sequence[Token], word: Match, lexicon: Lexicon) -> bool:
    """Return whether the other side follows: "left more than right", "larger than on the left"."""
    behind = [token.form for token in tokens[word.last : word.last + _REACH_OF_SIDE]]
    than = tokens[word.last - 1].form == "than" or behind[:1] == ["than"]
    return than and not lexicon.grammar["sides"].isdisjoint(behind)


def _is_amount(tokens: Sequence[Token], word: Match, lexicon: Lexicon) -> bool:
    """Return whether an amount is said at the end of a clause: "the effusion appears decreased"."""
    amount = tokens[word.first].form in lexicon.grammar["verbs_of_amount"]
    return (
        amount
        and _ends_clause(tokens, word, lexicon)
        and _begins_before(tokens, word, lexicon.grammar["verbs_of_appearance"])
    )


def _ends_clause(tokens: Sequence[Token], word: Match, lexicon: Lexicon) -> bool:
    after = [token.form for token in tokens[word.last : word.last + 2]]
    is_size = after[:1] == ["at"] and after[-1][0].isdecimal()
    is_next = after[:1] == ["and"] and after[-1] in lexicon.grammar["next_clause"]
    return not after or after[0] in _CLAUSE_ENDS or is_next or is_size


def _denied(tokens: Sequence[Token], match: Match, lexicon: Lexicon) -> Match:
    """Return "unchanged" for a change that is denied: "no significant worsening"."""
    words, position = lexicon.changes, match.first - 1
    while position >= 0 and tokens[position].form in words.after_denials:
        position -= 1
    if match.entry not in ENLARGING or position < 0 or tokens[position].form not in words.denials:
        return match
    return _made(position, match.last, TemporalChange.UNCHANGED)


def _follows(tokens: Sequence[Token], word: Match, forms: frozenset[str]) -> bool:
    return word.last < len(tokens) and tokens[word.last].form in forms


def _begins_before(tokens: Sequence[Token], word: Match, openers: frozenset[str]) -> bool:
    return any(t.form in openers for t in tokens[max(0, word.first - 4) : word.first])


def _perfect(tokens: Sequence[Token], word: Match, lexicon: Lexicon) -> int | None:
    """Return the position of the "has" of a verb, or None."""
    position = word.first - 1
    while position >= 0 and word.first - position <= 5:
        form = tokens[position].form
        if form in _HAVE:
            return position
        if form not in lexicon.grammar["between_have_and_verb"] and not form.endswith("ly"):
            return None
        position -= 1
    return None


def _now_normal(
    tokens: Sequence[Token],
    found: dict[str, list[Match]],
    earlier: Sequence[EarlierTime],
) -> Iterator[Match]:
    """Find "previously enlarged, is now normal"."""
    for first, last in earlier:
        if tokens[first].form not in ("previously", "formerly"):
            continue
        for normal in found.get("normal", ()):
            between = [tokens[p].form for p in range(last, max(last, normal.first))]
            if "now" in between and STOPS.isdisjoint(between):
                yield _made(first, normal.last, TemporalChange.RESOLVED)


def _is_wished(tokens: Sequence[Token], match: Match, lexicon: Lexicon) -> bool:
    """Return whether the change is only hoped for: "to document clearing"."""
    before = tokens[max(0, match.first - _WISHED) : match.first]
    return any(t.form in lexicon.changes.wishes for t in before)


def _moves(
    tokens: Sequence[Token], degree: Match, changes: Sequence[Match], lexicon: Lexicon
) -> bool:
    """Return whether a degree belongs to a change: "slightly larger", "marked decrease in"."""
    behind = [t.form for t in tokens[degree.last : degree.last + 2]]
    noun = degree.last + (behind[:1] == ["interval"])
    nouns = lexicon.grammar["nouns_of_change"]
    if any(c.first <= noun < c.last and tokens[noun].form in nouns for c in changes):
        return True
    ends = tokens[degree.first].form, tokens[degree.last - 1].form  # "a little"
    if lexicon.changes.moving.isdisjoint(ends):
        return False
    is_adverb = tokens[degree.last - 1].form.endswith("ly") or not lexicon.grammar[
        "adverbs_of_degree"
    ].isdisjoint(ends)
    return any(
        (c.first <= degree.first and degree.last <= c.last)
        or (
            is_adverb
            and c.entry in ENLARGING
            and (degree.last == c.first or degree.first == c.last)
        )
        for c in changes
    )
