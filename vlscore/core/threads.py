"""Ctrl-C, memory and processor cores of a process.

* `print_stopped` says that Ctrl-C was received; a command then ends with status `INTERRUPTED`.
* `keep_freed_memory` sets how the C library hands out memory in commands, workers and training.
* `usable_cores` counts the processor cores that this process may use.
* `peak_memory` is the most memory that this process has used.
"""

import contextlib
import ctypes
import math
import os
import sys
from pathlib import Path

# Exit status of a command that Ctrl-C stopped, by the convention of shells.
INTERRUPTED = 130


def print_stopped() -> None:
    """Print that Ctrl-C was received."""
    with contextlib.suppress(OSError):
        os.write(2, b"\nstopped\n")


# Parameters of mallopt (malloc.h of the GNU C library).
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4
_BYTES = 1 << 30


def keep_freed_memory() -> None:
    """Make the process reuse its freed memory instead of returning it to the system.

    Every layer of an image tower writes its result to fresh memory, tens of megabytes at a time,
    and so does every decoder. The GNU C library takes such pieces from the system and gives them
    back one by one, and the system fills each with zeros first: a quarter of the time of a
    ResNet-50 on a processor, half of a step of training, a fifth of the time of a full-size JPEG.
    The process retains up to a gigabyte. Nothing changes for other C libraries, which have no such
    setting.
    """
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, AttributeError):
        set_option = ctypes.CDLL(None).mallopt
        set_option(_TRIM_THRESHOLD, _BYTES)
        if not set_option(_MMAP_THRESHOLD, _BYTES):
            # Older releases refuse a threshold above 32 MiB. They take no piece from the system
            # where they may map none.
            set_option(_MMAP_MAX, 0)


# Where Linux writes the share of the processors that a container may use: "200000 100000" is two.
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores() -> int:
    """Return the number of cores that this process may use, at least 1.

    The machine may have more: `taskset`, a batch system and the limits of a container restrict a
    process to some of them.
    """
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # not on this operating system
        cores = os.cpu_count() or 1
    # A container without a limit has no numbers there.
    with contextlib.suppress(OSError, ValueError, ZeroDivisionError):
        used, period = map(int, _QUOTA.read_text(encoding="ascii").split())
        cores = min(cores, math.ceil(used / period))
    return max(cores, 1)


def peak_memory() -> float | None:
    """Return the most memory that this process has used, in GB; None where it is unknown."""
    try:
        import resource
    except ImportError:  # not on this operating system
        return None
    # macOS counts bytes, Linux KiB.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
