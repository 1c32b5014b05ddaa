"""Slots for pixels in memory that a worker process shares with this one.

The memory is a file without a name (memfd_create, Linux), passed by its descriptor: nothing appears
in /dev/shm, and the memory is freed when both processes have ended. Its size is sealed before the
worker starts, because a process that could shrink it would end this one with SIGBUS. On other
systems than Linux there are no slots.
"""

import contextlib
import mmap
import os
import sys
import weakref
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Shared bytes of one worker. Pages that were never written take no memory.
_BYTES = 32 << 20
_PAGE = 4096

if sys.platform == "linux":
    import fcntl

    def _sealed_file(size: int) -> int:
        descriptor = os.memfd_create("vlscore-pixels", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(descriptor, size)
            seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
            fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

else:

    def _sealed_file(size: int) -> int:
        raise OSError("this system has no files without a name that can be sealed")


class Slots:
    """A bounded number of slots for pixels; each is free again when its array is deleted.

    Attributes:
        descriptor: descriptor of the shared file, for the worker; None without shared memory.
        size: size of the shared file, in bytes.
    """

    def __init__(self, size: int = _BYTES) -> None:
        self.size = size
        self.descriptor: int | None = None
        self._memory: mmap.mmap | None = None
        # One slot until the size of an image is known.
        self._room = size
        self._free: deque[int] = deque()
        with contextlib.suppress(OSError, AttributeError):
            self.descriptor = _sealed_file(size)
            self._memory = mmap.mmap(self.descriptor, size)
            self._free.append(0)

    def close_descriptor(self) -> None:
        """Close the descriptor after the worker has received it; the memory stays."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def take(self) -> tuple[int, int] | None:
        """Return (offset, bytes) of a free slot; None if the pixels of all are still in use."""
        try:
            # The slot that was freed last is in the processor's cache, and its memory is allocated.
            return self._free.pop(), self._room
        except IndexError:
            return None

    def give_back(self, slot: tuple[int, int]) -> None:
        """Free a slot that was not written."""
        self._free.append(slot[0])

    def pixels(
        self, slot: tuple[int, int], dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> NDArray[Any]:
        """Return the array in a slot without a copy; the slot is free when the array is deleted."""
        assert self._memory is not None
        offset, _ = slot
        count = int(np.prod(shape, dtype=np.int64))
        flat = np.frombuffer(self._memory, dtype, count, offset)
        if self._room == self.size:
            self._cut(flat.nbytes)
        # Views of the array keep it alive, and so do tensors made from it.
        weakref.finalize(flat, self._free.append, offset).atexit = False
        return flat.reshape(shape)

    def _cut(self, image_bytes: int) -> None:
        """Divide the memory for images of this size, or up to twice that: they may differ a bit."""
        room = max(_PAGE, 1 << max(image_bytes - 1, 0).bit_length())
        if room < self.size:
            self._room = room
            self._free.extend(reversed(range(room, self.size - room + 1, room)))
