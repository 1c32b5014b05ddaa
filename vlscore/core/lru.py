"""A bounded memory of what was computed last, which several threads may share."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """The values of the keys that were asked for or added last, at most `room` of them.

    >>> recent = Recent[str, int](room=2)
    >>> recent.add({"a": 1, "b": 2})
    >>> recent.known(["a", "z"])
    {'a': 1}
    >>> recent.add({"c": 3})
    >>> recent.known("abc")
    {'a': 1, 'c': 3}
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def __getstate__(self) -> int:
        """Return the room: a copy begins empty, because its values can be made again."""
        return self._room

    def __setstate__(self, room: int) -> None:
        self.__init__(room)  # type: ignore[misc]

    def known(self, keys: Iterable[Key]) -> dict[Key, Value]:
        """Key -> value of those keys whose value is still here."""
        found: dict[Key, Value] = {}
        with self._lock:
            for key in keys:
                if key in self._values:
                    self._values.move_to_end(key)
                    found[key] = self._values[key]
        return found

    def add(self, values: Mapping[Key, Value]) -> None:
        """Keep these values, and forget the oldest beyond the room there is."""
        with self._lock:
            for key, value in values.items():
                self._values[key] = value
                self._values.move_to_end(key)
            while len(self._values) > self._room:
                self._values.popitem(last=False)

    def values_of(
        self, keys: Sequence[Key], make: Callable[[list[Key]], Iterable[Value]]
    ) -> list[Value]:
        """The values of all keys, in order; those that are not here are made, each once.

        Other threads may make the same ones meanwhile: a lock around the call is the caller's.

        Args: make: what gives the values of distinct keys, in their order.

        >>> Recent[str, str](room=2).values_of("aba", lambda keys: map(str.upper, keys))
        ['A', 'B', 'A']
        """
        found = self.known(keys)
        if new := [key for key in dict.fromkeys(keys) if key not in found]:
            made = dict(zip(new, make(new), strict=True))
            self.add(made)
            found |= made
        return [found[key] for key in keys]

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()

    def __len__(self) -> int:
        return len(self._values)
