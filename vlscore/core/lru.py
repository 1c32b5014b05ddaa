"""Bounded memory of the latest values (least recently used), shared by threads."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class LRUCache(Generic[Key, Value]):
    """The values of the keys that were used or added last, at most `size` of them.

    >>> cache = LRUCache[str, int](size=2)
    >>> cache.add({"a": 1, "b": 2})
    >>> cache.known(["a", "z"])
    {'a': 1}
    >>> cache.add({"c": 3})
    >>> cache.known("abc")
    {'a': 1, 'c': 3}
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def __getstate__(self) -> int:
        """Return the size alone: a copy begins empty, because its values can be computed again."""
        return self._size

    def __setstate__(self, size: int) -> None:
        self.__init__(size)  # type: ignore[misc]

    def known(self, keys: Iterable[Key]) -> dict[Key, Value]:
        """Return key -> value of the keys that are in memory."""
        found: dict[Key, Value] = {}
        with self._lock:
            for key in keys:
                if key in self._values:
                    self._values.move_to_end(key)
                    found[key] = self._values[key]
        return found

    def add(self, values: Mapping[Key, Value]) -> None:
        """Add values; remove the oldest ones beyond `size`."""
        with self._lock:
            for key, value in values.items():
                self._values[key] = value
                self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)

    def values_of(
        self, keys: Sequence[Key], make: Callable[[list[Key]], Iterable[Value]]
    ) -> list[Value]:
        """Return the values of all keys, in order; missing ones are computed, each once.

        Other threads may compute the same values meanwhile; the caller may lock the call.

        Args: make: function that computes the values of distinct keys, in their order.

        >>> LRUCache[str, str](size=2).values_of("aba", lambda keys: map(str.upper, keys))
        ['A', 'B', 'A']
        """
        found = self.known(keys)
        if new := [key for key in dict.fromkeys(keys) if key not in found]:
            made = dict(zip(new, make(new), strict=True))
            self.add(made)
            found |= made
        return [found[key] for key in keys]

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._values.clear()

    def __len__(self) -> int:
        return len(self._values)
