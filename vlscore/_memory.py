"""How the C library hands out memory in the processes that are all ours: commands and workers."""

import contextlib
import ctypes
import sys

# Parameters of mallopt (malloc.h of the GNU C library).
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_BYTES = 1 << 30


def keep_freed_memory() -> None:
    """Let the process use its freed memory again instead of giving it back to the system.

    Every layer of an image tower writes its result to fresh memory, tens of megabytes at a time,
    and so does every decoder. The GNU C library takes such pieces from the system and gives them
    back one by one, and the system fills each with zeros first: a quarter of the time of a
    ResNet-50 on a processor, a fifth of that of a full-size JPEG. Up to a gigabyte is kept. Other C
    libraries, which have no such setting, are left as they are.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for parameter in (_MMAP_THRESHOLD, _TRIM_THRESHOLD):
            library.mallopt(parameter, _BYTES)
