"""A trie of phrases over tokens: every lexicon is matched in one walk of a sentence."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from vlscore.findings.tokens import Token, tokenize

_PART = re.compile(r"(?:^|(?<=\s))\(([^()]*)\)(?=\s|$)|([^()]+)")


class Match(NamedTuple):
    """Tokens [first, last) spell a phrase of `layer`, whose lexicon entry is `entry`."""

    first: int
    last: int
    layer: str
    entry: Any


class _Node:
    __slots__ = ("children", "entries")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.entries: dict[str, list[Any]] | None = None

    def below(self, forms: Sequence[str]) -> "_Node":
        """The node that the forms lead to, made where it is not there yet."""
        node = self
        for form in forms:
            node = node.children.setdefault(form, _Node())
        return node


def parse(pattern: str) -> list[list[list[str]]]:
    """The parts of a pattern: for each, its alternatives as lists of matching forms.

    >>> parse("(left|) lung bases")
    [[['left'], []], [['lung', 'base']]]

    Raises ValueError where a group does not stand between spaces.
    """
    parts = []
    end = 0
    for match in _PART.finditer(pattern):
        if match.start() != end:
            break
        end = match.end()
        choices = [match.group(2)] if match.group(1) is None else match.group(1).split("|")
        parts.append([[t.form for t in tokenize(choice)] for choice in choices])
    if end != len(pattern):
        raise ValueError(f"pattern {pattern!r} has a group that is no word of its own")
    return parts


class PhraseTrie:
    """Finds, per layer, the longest phrases from left to right without overlap."""

    def __init__(self) -> None:
        self._root = _Node()

    def add(self, layer: str, pattern: str, entry: Any) -> None:
        """Add every phrase of `pattern` to `layer`; several entries may share a phrase.

        Raises ValueError where the pattern is malformed or one of its phrases is empty.
        """
        nodes = {self._root}
        for alternatives in parse(pattern):
            nodes = {node.below(forms) for node in nodes for forms in alternatives}
        if self._root in nodes:
            raise ValueError(f"pattern {pattern!r} has an empty phrase")
        for node in nodes:
            if node.entries is None:
                node.entries = {}
            entries = node.entries.setdefault(layer, [])
            if entry not in entries:
                entries.append(entry)

    def find(self, tokens: Sequence[Token]) -> dict[str, list[Match]]:
        """Matches by layer, in text order. Time is linear: a phrase has a bounded length."""
        found: dict[str, list[Match]] = {}
        taken: dict[str, int] = {}
        root = self._root.children
        for first in range(len(tokens)):
            node = root.get(tokens[first].form)
            if node is None:
                continue
            longest: dict[str, tuple[int, list[Any]]] = {}
            position = first + 1
            while True:
                if node.entries is not None:
                    for layer, entries in node.entries.items():
                        longest[layer] = (position, entries)
                if position == len(tokens):
                    break
                following = node.children.get(tokens[position].form)
                if following is None:
                    break
                node = following
                position += 1
            for layer, (last, entries) in longest.items():
                if first >= taken.get(layer, 0):
                    taken[layer] = last
                    matches = found.setdefault(layer, [])
                    matches.extend(Match(first, last, layer, entry) for entry in entries)
        return found
