"""Phrases of the lexicons, and their matching in tokens.

`PhraseTrie` is a trie of phrases over tokens, which matches all lexicons in one pass over a
sentence.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from vlscore.errors import InvalidLexicon
from vlscore.findings.tokens import Match, Spellings, Token, form_of, spellings, tokenize

_PART = re.compile(r"(?:^|(?<=\s))\(([^()]*)\)(?=\s|$)|([^()]+)")


@lru_cache(20_000)
def _forms(words: str, spelt: Spellings) -> tuple[str, ...]:
    return tuple([t.form for t in tokenize(words, spelt)])


def parse(pattern: str, spelt: Spellings | None = None) -> list[list[tuple[str, ...]]]:
    """Return the parts of a pattern: for each, its alternatives as matching forms.

    >>> parse("(left|) lung bases")
    [[('left',), ()], [('lung', 'base')]]

    Raises ValueError where a group does not stand between spaces.
    """
    spelt = spelt or spellings()
    parts = []
    end = 0
    for match in _PART.finditer(pattern):
        if match.start() != end:
            break
        end = match.end()
        choices = [match.group(2)] if match.group(1) is None else match.group(1).split("|")
        parts.append([_forms(choice, spelt) for choice in choices])
    if end != len(pattern):
        raise ValueError(f"pattern {pattern!r} has a group that is only a part of a word")
    return parts


# A node of the trie: form -> the node below it, or what waits to become one; and at _ENTRIES its
# entries by layer.
_Node = dict[str, Any]
_ENTRIES = ""
# The rest of a pattern below a node: its layer, the forms that follow, its parts with the number of
# the next one, its entry.
_Unexpanded = tuple[str, tuple[str, ...], tuple[tuple[tuple[str, ...], ...], ...], int, Any]

# A word that sticks to another is at least so long, and the two together.
_SHORTEST_PART, _SHORTEST_GLUED = 4, 7
_LONGEST_JOINED = 60
_MOST_CUTS = 10_000
_NAMING_LAYERS = frozenset(("mention", "subject", "place", "state"))


class PhraseTrie:
    """Finds, per layer, the longest phrases from left to right without overlap.

    A node is made when a text first leads to it: most texts need few of them. Phrases and texts
    are spelt in one way (default: ours).
    """

    def __init__(self, spelt: Spellings | None = None) -> None:
        self._spelt = spelt or spellings()
        self._root: _Node = {}
        self._words: set[str] = set()
        self._names: set[str] = set()
        self._cuts: dict[str, tuple[int, ...]] = {}

    def copied(self) -> "PhraseTrie":
        """Return a trie of the same phrases, to which others can be added."""
        trie = PhraseTrie(self._spelt)
        trie._root = _copied(self._root)
        trie._words, trie._names = set(self._words), set(self._names)
        return trie

    def add(self, layer: str, pattern: str, entry: Any, is_known: bool = True) -> None:
        """Add every phrase of `pattern` to `layer`; several entries may share a phrase.

        Args: is_known: whether its words are known apart, where words are stuck together.

        Raises ValueError where the pattern is malformed or one of its phrases is empty.
        """
        # Tuples: Python's collector of garbage does not look at them again and again.
        parts = tuple([tuple(alternatives) for alternatives in parse(pattern, self._spelt)])
        if not any(all(alternatives) for alternatives in parts):
            raise ValueError(f"pattern {pattern!r} has an empty phrase")
        _add_lazily(self._root, (layer, (), parts, 0, entry))
        if not is_known:
            return
        forms = {form for alternatives in parts for forms in alternatives for form in forms}
        self._words |= forms
        if layer in _NAMING_LAYERS:
            self._names |= {form for form in forms if len(form) >= _SHORTEST_PART}

    def add_all(
        self, layer: str, patterns: Iterable[str], entry: Any, is_known: bool = True
    ) -> None:
        """Add every phrase of several patterns. Raises: InvalidLexicon."""
        for pattern in patterns:
            try:
                self.add(layer, pattern, entry, is_known)
            except ValueError as error:
                raise InvalidLexicon(f"{layer} lexicon: {error}") from error

    def phrases(self, layer: str) -> dict[str, list[Any]]:
        """Return every phrase of a layer with its entries."""
        found: dict[str, list[Any]] = {}
        nodes = [("", self._root)]
        while nodes:
            phrase, node = nodes.pop()
            if entries := node.get(_ENTRIES, {}).get(layer):
                found[phrase] = entries
            for form in [form for form in node if form]:
                below = node[form]
                if type(below) is list:
                    below = node[form] = _expand(below)
                nodes.append((f"{phrase} {form}".lstrip(), below))
        return found

    def find(self, tokens: Sequence[Token]) -> dict[str, list[Match]]:
        """Matches by layer, in text order. Time is linear: a phrase has a bounded length."""
        found: dict[str, list[Match]] = {}
        taken: dict[str, int] = {}
        forms = [token[0] for token in tokens]
        root, new = self._root, tuple.__new__
        count = len(forms)
        for first, form in enumerate(forms):
            node = root.get(form)
            if node is None:
                continue
            longest: dict[str, tuple[int, list[Any]]] = {}
            above, position = root, first
            while node is not None:
                if type(node) is list:
                    node = above[form] = _expand(node)
                position += 1
                entries_of = node.get(_ENTRIES)
                if entries_of is not None:
                    for layer, entries in entries_of.items():
                        longest[layer] = (position, entries)
                if position == count:
                    break
                above, form = node, forms[position]
                node = above.get(form)
            for layer, (last, entries) in longest.items():
                if first >= taken.get(layer, 0):
                    taken[layer] = last
                    # A phrase without an entry names no finding, and hides the names in it.
                    if layer == "mention" and entries[0] is None:
                        continue
                    matches = found.setdefault(layer, [])
                    for entry in entries:
                        matches.append(new(Match, (first, last, layer, entry)))
        return found

    def split_joined_words(self, text: str, tokens: list[Token]) -> list[Token]:
        """Return the tokens of a text; words stuck together that are known apart are cut.

        At least one of them must name a finding or a part of the chest ("lungsclear").
        """
        known = self._words
        if not any(len(token[0]) >= _SHORTEST_GLUED and token[0] not in known for token in tokens):
            return tokens
        apart = []
        for token in tokens:
            form, start, end = token
            if len(form) < _SHORTEST_GLUED or form in known or not form.isalpha():
                apart.append(token)
                continue
            word = text[start:end].lower()
            if (cuts := self._cuts.get(word)) is None:
                cuts = self._cuts_of(word, 2)
                if len(self._cuts) < _MOST_CUTS:
                    self._cuts[word] = cuts
            for first, last in pairwise((0, *cuts, end - start)):
                part = form if not cuts else form_of(word[first:last], self._spelt)
                apart.append(Token(part, start + first, start + last))
        return apart

    def _cuts_of(self, word: str, most: int) -> tuple[int, ...]:
        """Return where a word of several is cut, at most so often; () where it is one word."""
        if len(word) > _LONGEST_JOINED or word in self._spelt.never_cut:
            return ()
        halves = [
            (min(cut, len(word) - cut), cut)
            for cut in range(2, len(word) - 1)
            if self._stands_alone(word[:cut])
            and self._stands_alone(word[cut:])
            and (self._names_part(word[:cut]) or self._names_part(word[cut:]))
        ]
        if halves:
            return (max(halves)[1],)
        for cut in range(len(word) - 2, 1, -1) if most > 1 else ():
            if self._names_part(word[:cut]) and (rest := self._cuts_of(word[cut:], most - 1)):
                return (cut, *(cut + each for each in rest))
        return ()

    def _stands_alone(self, word: str) -> bool:
        if word in self._spelt.linking:
            return True
        return len(word) >= _SHORTEST_PART and form_of(word, self._spelt) in self._words

    def _names_part(self, word: str) -> bool:
        return len(word) >= _SHORTEST_PART and form_of(word, self._spelt) in self._names


def _expand(waiting: list[_Unexpanded]) -> _Node:
    """Return the node of what waits for it."""
    node: _Node = {}
    for rest in waiting:
        _add_lazily(node, rest)
    return node


def _add_lazily(node: _Node, rest: _Unexpanded) -> None:
    """Add the rest of a pattern to a node: below its next words, or as an entry at its end."""
    layer, forms, parts, at, entry = rest
    following = [(forms, at)] if forms else []
    ends = not forms
    while ends and at < len(parts):
        following += [(alternative, at + 1) for alternative in parts[at] if alternative]
        ends = not all(parts[at])
        at += 1
    for (form, *more), after in following:
        below = node.setdefault(form, [])
        waiting = (layer, tuple(more), parts, after, entry)
        if type(below) is list:
            below.append(waiting)
        else:
            _add_lazily(below, waiting)
    if ends:
        entries = node.setdefault(_ENTRIES, {}).setdefault(layer, [])
        if entry not in entries:
            entries.append(entry)


def _copied(node: _Node) -> _Node:
    return {
        form: list(below)
        if type(below) is list
        else {layer: list(entries) for layer, entries in below.items()}
        if form == _ENTRIES
        else _copied(below)
        for form, below in node.items()
    }
