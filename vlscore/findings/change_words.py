"""Words that state a change since an earlier examination, composed by the rows of `change.toml`.

"larger" alone may compare two sides; "larger than on the previous image" compares two examinations.
"""

from collections.abc import Iterator, Sequence

from vlscore.findings.compositions import PatternMatcher
from vlscore.findings.lexicon import Lexicon
from vlscore.findings.tokens import Match, Token
from vlscore.findings.types import TemporalChange

#: Changes of amount.
ENLARGING = frozenset((TemporalChange.WORSE, TemporalChange.IMPROVED))
_OF_CHANGE = ("change", "comparative", "event", "disease")
_HEADS = frozenset((*_OF_CHANGE[1:], "earlier", "unseen"))
#: Layers of which a sentence has a match where it states a change, unless it is by two sizes.
WORDS_OF_CHANGE = _HEADS | {"change", "time"}
_GRADED = WORDS_OF_CHANGE | {"severity", "size"}


def with_changes(
    tokens: Sequence[Token],
    found: dict[str, list[Match]],
    lexicon: Lexicon,
) -> dict[str, list[Match]]:
    """Return the matches of one sentence by layer, with those that compare and earlier times.

    The changes are in text order, without overlaps; they own their words of severity ("slightly
    larger") and states. Layer "size" has the sizes of today; degrees of another time are left out.
    """
    simple = found.get("change", [])
    if _GRADED.isdisjoint(found):
        return found
    found = {**found, "earlier": earlier_times(tokens, found, lexicon)}
    compared = list(_between_amounts(tokens, found, lexicon))
    composed = [change for change, _ in compared]
    if not _HEADS.isdisjoint(found):
        composed += _composed(tokens, found, lexicon)
    if not simple and not composed:
        return found
    known = {(s.first, s.entry) for s in simple}
    composed = [c for c in composed if (c.first, c.entry) not in known]
    composed.sort(key=lambda m: (m.first, -m.last))
    kept: list[Match] = []
    for match in composed:
        if not kept or match.first >= kept[-1].last:
            kept.append(match)
    kept += [s for s in simple if not any(s.first < c.last and c.first < s.last for c in kept)]
    kept.sort(key=lambda m: m.first)
    # Changes that are only wished for, or denied.
    patterns = PatternMatcher(tokens, {**found, "change": kept}, lexicon.lists)
    for first, last, head, rule in patterns.fitting(lexicon.rules["revise"]):
        kept[kept.index(head)] = _made(first, last, rule.row.value)
    kept = [m for m in kept if m.entry != "none"]
    found["change"] = kept
    if states := found.get("state"):
        # The only state stays: "the heart has increased in size" mentions a large heart.
        free = [m for m in states if not any(c.covers(m) for c in composed)]
        found["state"] = free or states
    if normal := found.get("normal"):
        # "Partly re-expanded" is better, and not yet normal.
        moving = [c for c in kept if c.entry in ENLARGING]
        found["normal"] = [m for m in normal if not any(c.covers(m) for c in moving)]
    if degrees := found.get("severity"):
        of_change = _degrees_of_change(tokens, found, kept, lexicon)
        of_change -= {degree for _, degree in compared}
        found["severity"] = [d for d in degrees if d not in of_change]
    return found


def _between_amounts(
    tokens: Sequence[Token], found: dict[str, list[Match]], lexicon: Lexicon
) -> Iterator[tuple[Match, Match]]:
    """Find the changes between an amount of another time and that of today, each with the latter.

    Leaves in `found` the sizes and degrees of today: "9 mm, *previously 4 mm*", "not *large*".
    """
    changes = [m._replace(layer="change") for layer in _OF_CHANGE for m in found.get(layer, ())]
    of_change = _degrees_of_change(tokens, found, changes, lexicon)
    degrees = [
        m for m in found.get("severity", ()) if m.entry and m.entry.graded and m not in of_change
    ]
    amounts = {
        "size": {size: size.entry for size in found.get("size", ())},
        "severity": {m: m.entry.rank for m in degrees},
    }
    for layer, amount_of in amounts.items():
        of_today = list(amount_of)
        patterns = PatternMatcher(tokens, {**found, "amount": of_today}, lexicon.lists)
        for first, last, head, rule in list(patterns.fitting(lexicon.rules["amount"])):
            of_today.remove(head)
            behind = [m for m in amount_of if m.first > head.first]
            before = [m for m in amount_of if m.first < head.first]
            now = {"behind": behind[:1], "before": before[-1:]}.get(rule.row.value or "", [])
            # The words of change are none that name a finding.
            within = [m.last for m in found.get("mention", ()) if first < m.last < last]
            for other in now:
                more = amount_of[other] - amount_of[head]
                worse = TemporalChange.WORSE if more > 0 else TemporalChange.IMPROVED
                change = worse if more else TemporalChange.UNCHANGED
                yield _made(max((first, *within)), last, change), other
        if len(of_today) < len(amount_of):
            rest = [m for m in found.get(layer, ()) if m not in amount_of]
            found[layer] = sorted([*of_today, *rest], key=lambda m: m.first)


def earlier_times(
    tokens: Sequence[Token], found: dict[str, list[Match]], lexicon: Lexicon
) -> list[Match]:
    """Return the words that name an earlier examination or time, in text order."""
    patterns = PatternMatcher(tokens, found, lexicon.lists)
    made = {m.head: m for m in patterns.fitting(lexicon.rules["compose_time"])}
    ranges = [(m.first, m.last) for m in made.values() if m.rule.row.value != "none"]
    ranges += [(m.first, m.last) for m in found.get("earlier", ()) if m not in made]
    merged: list[Match] = []
    for first, last in sorted(ranges):
        if merged and first < merged[-1].last:
            first, last = merged[-1].first, max(last, merged.pop().last)
        merged.append(Match(first, last, "earlier", "earlier"))
    return merged


def _composed(
    tokens: Sequence[Token], found: dict[str, list[Match]], lexicon: Lexicon
) -> Iterator[Match]:
    """Find the changes that rows make of words of change."""
    patterns, simple = PatternMatcher(tokens, found, lexicon.lists), found.get("change", ())
    for first, last, head, rule in patterns.fitting(lexicon.rules["compose"]):
        value = rule.row.value or head.entry
        if value != "none" and not _is_in_change(head, simple):
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


def _made(first: int, last: int, value: str | None) -> Match:
    return Match(first, last, "change", str(value))


def _degrees_of_change(
    tokens: Sequence[Token],
    found: dict[str, list[Match]],
    changes: Sequence[Match],
    lexicon: Lexicon,
) -> set[Match]:
    """Return the degrees that belong to a change: "slightly larger", "marked decrease in"."""
    if not (changes and "severity" in found):
        return set()
    patterns = PatternMatcher(tokens, {**found, "change": changes}, lexicon.lists)
    words = lexicon.lists["degrees"] | lexicon.lists["nouns_of_change"]
    return {made.head for made in patterns.fitting(lexicon.rules["degree"])} | {
        degree
        for degree in found.get("severity", ())
        if any(change.covers(degree) for change in changes)
        and not words.isdisjoint(t.form for t in tokens[degree.first : degree.last + 1])
    }
