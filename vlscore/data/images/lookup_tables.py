"""Lookup tables of DICOM headers: Modality LUT and VOI LUT (PS3.3 C.11.1 and C.11.2).

Many devices write tables that contradict their own descriptor. The rules are those of dcmtk, and
for tables with fewer bits than stated those of Horos and Cornerstone; docs/images.md lists them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset

_MOST_ENTRIES = 65536


@dataclass(frozen=True)
class LookupTable:
    """One lookup table.

    Attributes:
        entries: (n,) int64, from 0 on.
        first: the value that the first entry belongs to, as an unsigned number of 16 bits.
        white: the entry that is shown white.
        misstated: True if the entries have fewer or more bits than the descriptor states; `white`
            is then the largest entry.
    """

    entries: NDArray[np.int64]
    first: int
    white: float
    misstated: bool

    def __call__(
        self, values: NDArray[Any], *, shown: NDArray[np.bool_], lowest: float
    ) -> NDArray[np.int64]:
        """Look values (n,) up; those outside the table get its first or last entry.

        Args:
            values: fractions are cut off.
            shown: (n,), True for the values of pixels.
            lowest: the smallest value that a pixel could have. It decides whether the first mapped
                value is signed, because files write it with either type.
        """
        offset = values.astype(np.float64) - self._first_mapped(values[shown], lowest)
        index = np.clip(offset, 0, len(self.entries) - 1).astype(np.int64)
        found: NDArray[np.int64] = self.entries[index]
        return found

    def _first_mapped(self, values: NDArray[Any], lowest: float) -> int:
        """Return the value of the first entry, signed or unsigned: its table covers pixels."""
        unsigned, signed = self.first, self.first - (_MOST_ENTRIES if self.first >= 32768 else 0)
        low, high, last = float(values.min()), float(values.max()), len(self.entries) - 1

        def meets(first: int) -> bool:
            return first <= high and low <= first + last

        first, other = (signed, unsigned) if lowest < 0 else (unsigned, signed)
        return other if meets(other) and not meets(first) else first


def lookup_table(dataset: Dataset, keyword: str) -> LookupTable | None:
    """Return the first table of a sequence that has a descriptor and entries; None without one.

    Args: keyword: "ModalityLUTSequence" or "VOILUTSequence".
    """
    for item in dataset.get(keyword) or ():
        if isinstance(item, Dataset) and (table := _table_of(item, _is_big_endian(dataset))):
            return table
    return None


def _table_of(item: Dataset, is_big_endian: bool) -> LookupTable | None:
    order = ">" if is_big_endian else "<"
    stated = _words(item, "LUTDescriptor", order)
    words = _words(item, "LUTData", order)
    if len(stated) < 3 or not len(words):
        return None
    count, first, bits = (int(number) for number in stated[:3])
    count = count or _MOST_ENTRIES
    entries = words[:_MOST_ENTRIES].astype(np.int64)
    if len(words) == (count + 1) // 2 and count > 1:
        # One byte an entry, two in a word.
        entries = np.frombuffer(words.astype("<u2").tobytes(), np.uint8)[:count].astype(np.int64)
    largest = int(entries.max())
    # Half of the range is empty, or the entries do not fit into it.
    misstated = not (8 <= bits <= 16 and 2 ** (bits - 1) <= largest < 2**bits) and largest > 0
    white = largest if misstated else 2 ** min(max(bits, 8), 16) - 1
    return LookupTable(entries, first % _MOST_ENTRIES, float(white), misstated)


def _words(item: Dataset, keyword: str, order: str) -> NDArray[np.uint16]:
    """Return the numbers of an element as unsigned ones of 16 bits, whatever type it states."""
    if keyword not in item:
        return np.zeros(0, np.uint16)
    value: Any = item[keyword].value
    if isinstance(value, bytes):
        if item[keyword].VR == "OB":
            order = "<"
        even = value + bytes(len(value) % 2)
        return np.frombuffer(even, np.dtype(f"{order}u2")).astype(np.uint16)
    if isinstance(value, int):
        value = [value]
    try:
        numbers = np.array([int(number) for number in value or ()], np.int64)
    except (TypeError, ValueError):
        return np.zeros(0, np.uint16)
    return (numbers % _MOST_ENTRIES).astype(np.uint16)


def _is_big_endian(dataset: Dataset) -> bool:
    syntax = getattr(getattr(dataset, "file_meta", None), "TransferSyntaxUID", None)
    stated = syntax is not None and not syntax.is_private and not syntax.is_little_endian
    return stated or dataset.original_encoding[1] is False
