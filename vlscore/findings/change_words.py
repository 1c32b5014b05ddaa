"""Words that state a change since an earlier examination, composed by the rows of `change.toml`.

"larger" alone may compare two sides; "larger than on the previous image" compares two examinations.
"""

from collections.abc import Iterator, Sequence

from vlscore.findings.compositions import PatternMatcher
from vlscore.findings.earlier_times import EarlierTime, earlier_times
from vlscore.findings.lexicon import Lexicon
from vlscore.findings.modifiers import find_size_changes, find_sizes
from vlscore.findings.tokens import Match, Token
from vlscore.findings.types import TemporalChange

#: Changes of amount.
ENLARGING = frozenset((TemporalChange.WORSE, TemporalChange.IMPROVED))
#: What has not happened where it is denied: "no resolution".
_DENIABLE = ENLARGING | {TemporalChange.RESOLVED}
_WISHED = 4
#: Tokens between a change and a time that belongs to it: "unchanged since the prior".
_NEAR = 3


def find_changes(
    tokens: Sequence[Token], found: dict[str, list[Match]], lexicon: Lexicon
) -> list[Match]:
    """Return the phrases of one sentence that compare, in text order, without overlaps.

    Args: found: matches of the lexicon by layer; severity words of a change ("slightly larger") are
        removed from it.
    """
    simple = found.get("change", [])
    composed: list[Match] = []
    sizes, is_composed = find_sizes(tokens), _HEADS & found.keys()
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


_HEADS = frozenset(("comparative", "event", "disease", "earlier", "unseen"))
#: Layers of which a sentence has a match where it states a change, unless it is by two sizes.
WORDS_OF_CHANGE = _HEADS | {"change"}


def _composed(
    tokens: Sequence[Token],
    found: dict[str, list[Match]],
    earlier: Sequence[EarlierTime],
    lexicon: Lexicon,
) -> Iterator[Match]:
    """Find the changes that rows make of words of change."""
    simple = found.get("change", ())
    times = [Match(first, last, "earlier", "earlier") for first, last in earlier]
    # "unchanged since the prior study, the right side is larger": that time belongs to another.
    own = [t for t in times if not any(s.first < t.first <= s.last + _NEAR for s in simple)]
    layers = {**found, "earlier": times, "own_time": own}
    patterns = PatternMatcher(tokens, layers, lexicon.lists)
    for layer, rules in lexicon.rules["change"].items():
        heads = [m for m in found.get(layer, ()) if not _is_in_change(m, simple)]
        for first, last, head, rule in patterns.fitting(rules, heads):
            value = rule.row.value or head.entry
            if value != "none":
                yield _made(first, last, value)


def _is_in_change(word: Match, simple: Sequence[Match]) -> bool:
    """Return whether a change says it already: "The tube has been advanced"."""
    return word.layer in ("comparative", "event") and any(
        s.first <= word.first < s.last
        and (
            word.layer == "comparative"
            or s.entry is None
            or (s.first < word.first and s.entry != word.entry)
        )
        for s in simple
    )


def _made(first: int, last: int, value: str) -> Match:
    return Match(first, last, "change", str(value))


def _denied(tokens: Sequence[Token], match: Match, lexicon: Lexicon) -> Match:
    """Return "unchanged" for a change that is denied: "no significant worsening"."""
    words, position = lexicon.grammar, match.first - 1
    while position >= 0 and tokens[position].form in words["after_denials"]:
        position -= 1
    is_denied = position >= 0 and tokens[position].form in words["denials"]
    if match.entry not in _DENIABLE or not is_denied:
        return match
    return _made(position, match.last, TemporalChange.UNCHANGED)


def _is_wished(tokens: Sequence[Token], match: Match, lexicon: Lexicon) -> bool:
    """Return whether the change is only hoped for: "to document clearing"."""
    before = tokens[max(0, match.first - _WISHED) : match.first]
    return any(t.form in lexicon.grammar["wishes"] for t in before)


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
    if lexicon.grammar["degrees"].isdisjoint(ends):
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
