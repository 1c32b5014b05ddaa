"""Rules that are rows of a table: a pattern of words around a head, and what it makes of them.

A pattern names runs of tokens, in their order: lists of words by their names in the tables
(`becoming`), words themselves (`'than'`, or one of several: `'resolved gone'`), and matches of a
layer of the lexicon (`earlier`), all of them or those whose first or last word is, or is not, among
such words (`time:previous`, `event:!verbs_of_state`). `backward` are the triggers that act on what
precedes them, `governing` those that deny or doubt what follows; `content` are all words that are
no function words of grammar.toml. A part of patterns that several rows have in common has a name in
the `runs` of its table (`in_between = "adverb|'been not now'"`).

    (have in_between* <event> ..5 earlier?) $

    <...>   the head, from which a pattern is read outwards: a layer, a list or words
    start   where a statement begins
    (...)   what the row makes covers these words; without them, the head
    a|b     one of several names
    a?      may be absent           a*   any number of them, side by side
    ..5     at most so many words stand between, none of them of the row's `barrier`
    $       a clause ends here

The first row of a table whose pattern fits a head decides on it.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from vlscore.errors import InvalidLexicon
from vlscore.findings.tokens import Match, Token

#: Layers of matches that a pattern may name.
LAYERS = frozenset(
    (
        *("mention", "subject", "topic", "place", "severity", "normal", "change", "comparative"),
        *("event", "disease", "unseen", "earlier", "time", "trigger", "boundary", "either"),
        *("amount", "backward", "governing", "state"),
    )
)
#: Words with one of the list's endings, and words that the list lacks; no list could have all of
#: them.
_ADVERBS, _ENDINGS = "adverb", "adverb_endings"
_CONTENT, _FUNCTION_WORDS = "content", "function_words"
#: Begins of statements: runs without a token.
_START, _STOPS = "start", frozenset((".", ";", ":"))
_NAME = re.compile(r"'[^']*'|[a-z_]+")
_PART = re.compile(r"([()$])|\.\.(\d+)|<((?:'[^']*'|[^>'])+)>|((?:'[^']+'|[^\s()$*?'])+)([*?]?)")

Run = tuple[int, int]


class Composition(NamedTuple):
    """A row of a table.

    Attributes:
        pattern: the pattern.
        example: a sentence for which the row decides, and in which it makes a difference.
        value: what the words mean; "none" where they mean nothing that the head might mean; without
            a value, they mean what the head means. Of an amount: where today's stands, "before" or
            "behind" it. Of words that take up a finding: "behind" where its name follows them.
        forward, scope: of a trigger that the words are.
        holding: list, or words, of which one is among the words covered or right behind the head.
        barrier: names that do not stand between parts of the pattern.
    """

    pattern: str
    example: str
    value: str | None = None
    forward: bool = True
    scope: int = 0
    holding: str | None = None
    barrier: tuple[str, ...] = ()


class _PatternStep(NamedTuple):
    """One part of a pattern: a run that has one of `names`, at most `reach` tokens away.

    `how` is "?" where it may be absent, "*" for any number of runs, else "". `inside` says whether
    what the row makes covers it.
    """

    names: tuple[str, ...]
    reach: int
    how: str
    inside: bool


class PatternRule(NamedTuple):
    """A row whose pattern was read: its steps before (the nearest first) and behind the head.

    Wherever the pattern fits, a sentence has a match of each layer of `layers`, and a word of each
    list of `words`.
    """

    row: Composition
    before: tuple[_PatternStep, ...]
    head: str
    after: tuple[_PatternStep, ...]
    ends_clause: bool
    layers: frozenset[str]
    words: tuple[str, ...]


def written_out(pattern: str, runs: Mapping[str, str]) -> str:
    """Return a pattern with what the names of runs in it stand for."""
    return _NAME.sub(lambda name: runs.get(name[0], name[0]), pattern)


def pattern_rules(
    rows: Sequence[Composition],
    lists: Collection[str],
    values: Collection[str],
    runs: Mapping[str, str] | None = None,
) -> dict[str, list[PatternRule]]:
    """Return the rules of rows by the names of their heads, in the order of the table.

    Args:
        lists: names of the lists of words.
        values: what a row may state.
        runs: parts of patterns by their names.

    Raises: InvalidLexicon where a row names or states something unknown.
    """
    rules: dict[str, list[PatternRule]] = {}
    for row in rows:
        if row.value not in (None, *values):
            raise InvalidLexicon(f"pattern {row.pattern!r}: {row.value!r} is no value")
        rule = _rule(row, runs or {})
        steps = (*rule.before, *rule.after)
        names = [rule.head, *row.barrier, *(name for step in steps for name in step.names)]
        for name in (*names, row.holding or _START):
            layer, _, of = name.partition(":")
            known = {layer, of.removeprefix("!")} - {""}
            known = {each for each in known if not each.startswith("'")}
            if unknown := sorted(known - LAYERS - {_ADVERBS, _CONTENT, _START} - set(lists)):
                raise InvalidLexicon(f"pattern {row.pattern!r}: no list {', '.join(unknown)}")
        rules.setdefault(rule.head.partition(":")[0], []).append(rule)
    return rules


@cache
def _quoted(words: str) -> frozenset[str]:
    return frozenset(words.strip("'").split())


def _rule(row: Composition, runs: Mapping[str, str]) -> PatternRule:
    before: list[_PatternStep] = []
    after: list[_PatternStep] = []
    head, reach, inside, ends_clause = "", 0, False, False
    for sign, number, core, names, how in _PART.findall(written_out(row.pattern, runs)):
        if sign == "$":
            ends_clause = True
        elif sign:
            inside = sign == "("
        elif core:
            head = core
        elif number and before and not head:
            before[-1] = before[-1]._replace(reach=int(number))
        elif number:
            reach = int(number)
        else:
            step = _PatternStep(tuple(names.split("|")), reach, how, inside)
            (after if head else before).append(step)
            reach = 0
    if not head:
        raise InvalidLexicon(f"pattern {row.pattern!r} has no head <...>")
    single = [s.names[0] for s in (*before, *after) if len(s.names) == 1 and not s.how]
    names = dict.fromkeys(name.partition(":")[0] for name in (head, *single))
    layers = LAYERS & names.keys()
    words = tuple(name for name in names if name not in {*LAYERS, _ADVERBS, _CONTENT, _START})
    return PatternRule(row, tuple(reversed(before)), head, tuple(after), ends_clause, layers, words)


class Composed(NamedTuple):
    """Tokens [first, last) that a rule covers, around a head."""

    first: int
    last: int
    head: Match
    rule: PatternRule


class PatternMatcher:
    """The runs of one sentence that patterns name, and the rules that fit there."""

    def __init__(
        self,
        tokens: Sequence[Token],
        layers: Mapping[str, Sequence[Match]],
        lists: Mapping[str, frozenset[str]],
    ) -> None:
        self._forms = [token.form for token in tokens]
        self._layers, self._lists = layers, lists
        self._words_said = frozenset(self._forms)
        self._known: dict[str, list[Run]] = {}
        self._known_of_several: dict[tuple[str, ...], list[Run]] = {}

    def fitting(self, table: Mapping[str, Sequence[PatternRule]]) -> Iterator[Composed]:
        """Find the first rule of a table that fits each head."""
        for name, rules in table.items():
            if not self._layers.get(name) if name in LAYERS else self._is_without(name):
                continue
            possible = [
                rule
                for rule in rules
                if not any(map(self._is_without, rule.words)) and self._layers.keys() >= rule.layers
            ]
            for head in self._heads(name) if possible else ():
                for rule in possible:
                    made = self._made(rule, head)
                    if made is not None:
                        yield Composed(*made, head, rule)
                        break

    def _heads(self, name: str) -> list[Match]:
        """Return the matches of a layer, or of the words of a list."""
        if name in LAYERS:
            return list(self._layers[name])
        return [Match(first, last, name, None) for first, last in self._named(name)]

    def _made(self, rule: PatternRule, head: Match) -> Run | None:
        """Return the words that a rule covers around a head; None if its pattern does not fit."""
        if ":" in rule.head and not self._is_of(head, rule.head.partition(":")[2]):
            return None
        barrier = rule.row.barrier
        before = self._reached(self._before, rule.before, head.first, head.first, barrier)
        if before is None:
            return None
        after = self._reached(self._behind, rule.after, head.last, head.last, barrier)
        if after is None:
            return None
        (_, first), (end, last) = before, after
        if rule.ends_clause and not self._ends_clause(end):
            return None
        holding = rule.row.holding
        if holding and self._words(holding).isdisjoint(self._forms[first : head.last + 1]):
            return None
        return first, last

    def _reached(
        self,
        places: Callable[[_PatternStep, int, Sequence[str]], Iterator[int]],
        steps: Sequence[_PatternStep],
        at: int,
        covered: int,
        barrier: Sequence[str],
    ) -> Run | None:
        """Return how far steps reach from a place, and how far they cover; None if one fails."""
        if not steps:
            return at, covered
        for place in places(steps[0], at, barrier):
            inside = place if steps[0].inside else covered
            reached = self._reached(places, steps[1:], place, inside, barrier)
            if reached is not None:
                return reached
        return None

    def _before(self, step: _PatternStep, start: int, barrier: Sequence[str]) -> Iterator[int]:
        """Find where the run of a step before `start` may begin, the longest one first."""
        runs = self._runs(step.names)
        if step.how == "*":
            begins = {start}
            for first, last in sorted(runs, key=lambda run: -run[1]):
                if last in begins:
                    begins.add(first)
            yield from sorted(begins)
            return
        for first, last in reversed(runs):
            apart = start - last
            if 0 <= apart <= step.reach and not (apart and self._separated(barrier, last, start)):
                yield first
                break
        if step.how:
            yield start

    def _behind(self, step: _PatternStep, end: int, barrier: Sequence[str]) -> Iterator[int]:
        """Find where the run of a step behind `end` may end, the longest one first."""
        runs = self._runs(step.names)
        if step.how == "*":
            ends = {end}
            for first, last in runs:
                if first in ends:
                    ends.add(last)
            yield from sorted(ends, reverse=True)
            return
        for first, last in runs:
            if last > end > first and step.names == ("earlier",):
                yield last  # "less than" and "than before" share a word.
                return
            if 0 <= first - end <= step.reach:
                if not self._separated(barrier, end, first):
                    yield last
                break
        if step.how:
            yield end

    def _separated(self, barrier: Sequence[str], first: int, last: int) -> bool:
        return any(first <= at < last for name in barrier for at, _ in self._named(name))

    def _runs(self, names: tuple[str, ...]) -> list[Run]:
        if len(names) == 1:
            return self._named(names[0])
        runs = self._known_of_several.get(names)
        if runs is None:
            runs = sorted([run for name in names for run in self._named(name)])
            self._known_of_several[names] = runs
        return runs

    def _named(self, name: str) -> list[Run]:
        runs = self._known.get(name)
        if runs is None:
            layer, _, of = name.partition(":")
            if layer in LAYERS:
                found = self._layers.get(layer, ())
                runs = [(m.first, m.last) for m in found if not of or self._is_of(m, of)]
            else:
                forms = enumerate(self._forms)
                if name == _START:
                    begins = {p + 1 for p, form in forms if form in _STOPS}
                    runs = [(p, p) for p in sorted(begins | {0})]
                elif name == _ADVERBS:
                    endings = tuple(self._lists[_ENDINGS])
                    runs = [(p, p + 1) for p, form in forms if form.endswith(endings)]
                elif name == _CONTENT:
                    others = self._lists[_FUNCTION_WORDS]
                    runs = [(p, p + 1) for p, f in forms if f not in others and f.isalnum()]
                else:
                    words = self._words(name)
                    runs = [(p, p + 1) for p, form in forms if form in words]
            self._known[name] = runs
        return runs

    def _is_without(self, name: str) -> bool:
        """Return whether a sentence has no word of a list, or of words."""
        return self._words(name).isdisjoint(self._words_said)

    def _words(self, name: str) -> frozenset[str]:
        return _quoted(name) if name[0] == "'" else self._lists[name]

    def _is_of(self, match: Match, of: str) -> bool:
        """Return whether a match has its first or last word, or its finding, in a list; or not."""
        words = self._words(of.removeprefix("!"))
        has = (
            self._forms[match.first] in words
            or self._forms[match.last - 1] in words
            or (match.layer in ("mention", "change", "event") and match.entry in words)
        )
        return has is not of.startswith("!")

    def _ends_clause(self, end: int) -> bool:
        ends = self._layers.get("clause_end", ())
        return end == len(self._forms) or any(match.first == end for match in ends)
