"""A trie of phrases over tokens: every lexicon is matched in one walk of a sentence."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from vlscore.findings.tokens import Token, tokenize

_GROUP = re.compile(r"\(([^()]*)\)")


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


def expand(pattern: str) -> Iterator[str]:
    """All phrases of a pattern with `(a|b|)` alternatives.

    >>> list(expand("(left |)lung base"))
    ['left lung base', 'lung base']
    """
    group = _GROUP.search(pattern)
    if group is None:
        yield " ".join(pattern.split())
        return
    head, tail = pattern[: group.start()], pattern[group.end() :]
    for choice in group.group(1).split("|"):
        yield from expand(head + choice + tail)


class PhraseTrie:
    """Finds, per layer, the longest phrases from left to right without overlap."""

    def __init__(self) -> None:
        self._root = _Node()

    def add(self, layer: str, pattern: str, entry: Any) -> None:
        """Add every phrase of `pattern` to `layer`; several entries may share a phrase."""
        for phrase in expand(pattern):
            node = self._root
            for token in tokenize(phrase):
                node = node.children.setdefault(token.form, _Node())
            if node is self._root:
                raise ValueError(f"pattern {pattern!r} has an empty phrase")
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
