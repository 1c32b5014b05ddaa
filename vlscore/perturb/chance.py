"""Random choices that are the same on any machine, with any library version, for ever."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import TypeVar

Option = TypeVar("Option")


class Chance:
    """A stream of choices that its key decides.

    numpy and the standard library promise a stable stream for few of their methods; a hash in
    counter mode needs no promise.
    """

    def __init__(self, *key: object) -> None:
        digest = hashlib.blake2b(digest_size=32)
        for part in key:
            encoded = str(part).encode("utf-8", "surrogatepass")
            digest.update(f"{len(encoded)}:".encode() + encoded)
        self._key = digest.digest()
        self._drawn = 0

    def below(self, count: int) -> int:
        """An integer in [0, count); its bias is below count / 2⁶⁴."""
        block = hashlib.blake2b(self._drawn.to_bytes(8, "big"), key=self._key, digest_size=8)
        self._drawn += 1
        return int.from_bytes(block.digest(), "big") * count >> 64

    def pick(self, options: Sequence[Option]) -> Option:
        """One of the options, each as likely."""
        return options[self.below(len(options))]

    def shuffled(self, options: Iterable[Option]) -> list[Option]:
        """The options in random order, each order as likely (Fisher and Yates)."""
        order = list(options)
        for last in range(len(order) - 1, 0, -1):
            other = self.below(last + 1)
            order[last], order[other] = order[other], order[last]
        return order
