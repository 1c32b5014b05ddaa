"""A cache that travels: what a task may look up, and what it computed besides.

Whoever sends a task to another machine looks into the cache before, and puts into it what comes
back. So one cache serves all machines, and one process writes it.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from vlscore.cache.place import Cache
from vlscore.cache.store import Entry, Facts, Store

# Facts of a space, as json -> content -> entry.
Entries = dict[str, dict[bytes, Entry]]


class CarriedStore(Store):
    """Entries in memory.

    Attributes:
        new: what was put here since the last `load`, and was not there.
    """

    def __init__(self) -> None:
        # No file is ever read or made: there is none of this name.
        super().__init__(Path(os.devnull), 0)
        self._given: Mapping[str, Mapping[bytes, Entry]] = {}
        self.new: Entries = {}

    def load(self, given: Mapping[str, Mapping[bytes, Entry]]) -> None:
        """Hold these entries instead of those of before."""
        self._given, self.new = given, {}

    def get(self, facts: Facts, contents: Iterable[bytes]) -> dict[bytes, Entry]:
        """The entries that are there."""
        there = {**self.new.get(facts.text, {}), **self._given.get(facts.text, {})}
        return {content: there[content] for content in contents if content in there}

    def put(self, facts: Facts, entries: Mapping[bytes, Entry]) -> dict[bytes, Entry]:
        """Hold entries; the first value of a content stays. Returns: what stands now for each."""
        there = self.get(facts, entries)
        fresh = {content: entry for content, entry in entries.items() if content not in there}
        self.new.setdefault(facts.text, {}).update(fresh)
        return {**entries, **there}


class CarriedCache(Cache):
    """A cache of a task's embeddings alone; pixels are kept where images are decoded."""

    def __init__(self) -> None:
        self.folder = Path(os.devnull)
        self.carried = CarriedStore()
        self.embeddings, self.pixels = self.carried, Store(Path(os.devnull), 0)
