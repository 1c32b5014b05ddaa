"""A command uses its freed memory again."""

import platform
import subprocess
import sys

import pytest

COUNT = """
import resource, sys
import numpy as np
from vlscore.core.threads import keep_freed_memory

if "keep" in sys.argv:
    keep_freed_memory()
np.ones(6_000_000)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    np.ones(6_000_000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="a setting of the GNU C library")
def test_freed_memory_is_not_taken_from_the_system_again() -> None:
    """48 megabytes are 11,719 pages of 4096 bytes; huge pages make them fewer without it, too."""

    def pages(*more: str) -> int:
        call = [sys.executable, "-c", COUNT, *more]
        return int(subprocess.run(call, capture_output=True, text=True, check=True).stdout)

    plain, kept = pages(), pages("keep")
    assert kept < 1000
    assert kept < plain / 5
