"""Number of processor cores that this process may use."""

import math
import os
import sys
from pathlib import Path

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
    return max(min(cores, _quota()), 1)


def _quota() -> int:
    """Return the limit of this container in cores, rounded up; a huge number without a limit."""
    try:
        used, period = map(int, _QUOTA.read_text(encoding="ascii").split())
        return math.ceil(used / period)
    except (OSError, ValueError, ZeroDivisionError):
        return sys.maxsize
