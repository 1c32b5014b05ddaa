"""Which ids stood above, in 40 bytes an id however long they are."""

from array import array
from hashlib import blake2b

_FIRST_SLOTS = 1024


class SeenIds:
    """Ids and the row each stood in first.

    An id is known by 128 bits of its digest: two of a billion ids are mistaken for each other with
    a chance of 1 in 10^21. The digests lie in an open hash table of plain numbers, for a set of
    Python texts would take several times the memory, and tables have millions of rows.
    """

    def __init__(self) -> None:
        self._count = 0
        self._make_room(_FIRST_SLOTS)

    def first_row(self, id: str, row: int) -> int:
        """The row in which the id stood first: an earlier one, or `row` itself."""
        digest = blake2b(id.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        high, low = int.from_bytes(digest[:8]), int.from_bytes(digest[8:])
        slot = self._slot(high, low)
        if self._rows[slot]:
            return self._rows[slot]
        self._put(slot, high, low, row)
        self._count += 1
        if 2 * self._count > len(self._rows):
            self._grow()
        return row

    def _slot(self, high: int, low: int) -> int:
        """Where the digest lies, or the free place where it belongs."""
        mask = len(self._rows) - 1
        slot = low & mask
        while self._rows[slot] and (self._high[slot], self._low[slot]) != (high, low):
            slot = (slot + 1) & mask
        return slot

    def _put(self, slot: int, high: int, low: int, row: int) -> None:
        self._high[slot], self._low[slot], self._rows[slot] = high, low, row

    def _grow(self) -> None:
        kept = zip(self._high, self._low, self._rows, strict=True)
        self._make_room(2 * len(self._rows))
        for high, low, row in kept:
            if row:
                self._put(self._slot(high, low), high, low, row)

    def _make_room(self, slots: int) -> None:
        """Empty places; row 0, which no table has, marks a free one."""
        self._high, self._low = array("Q", bytes(8 * slots)), array("Q", bytes(8 * slots))
        self._rows = array("Q", bytes(8 * slots))
