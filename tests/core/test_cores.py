"""Cores that a process may use are not those of the machine; memory that it took and keeps."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vlscore.core import threads


@pytest.fixture
def quota(monkeypatch, tmp_path):
    """A machine of 64 cores, of which this process may use all."""
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    monkeypatch.setattr(threads, "_QUOTA", tmp_path / "cpu.max")
    return tmp_path / "cpu.max"


def test_those_of_the_process_count(quota, monkeypatch):
    assert threads.usable_cores() == 64
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 7})
    assert threads.usable_cores() == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    assert threads.usable_cores() == 64


@pytest.mark.parametrize(
    ("limit", "cores"),
    [("max 100000", 64), ("200000 100000", 2), ("150000 100000", 2), ("1000 100000", 1), ("", 64)],
)
def test_the_limit_of_a_container_counts(quota, limit, cores):
    quota.write_text(limit + "\n")
    assert threads.usable_cores() == cores


@pytest.mark.skipif(not Path("/proc/self/status").is_file(), reason="no /proc: not Linux")
def test_the_peak_of_the_memory_is_that_of_the_system():
    filled = bytearray(os.urandom(1 << 20)) * 200
    lines = Path("/proc/self/status").read_text().splitlines()
    (kib,) = [int(line.split()[1]) for line in lines if line.startswith("VmHWM")]
    assert threads.peak_memory() == pytest.approx(kib * 1024 / 1e9, rel=5e-3)
    assert threads.peak_memory() > len(filled) / 1e9


# 48 MiB are more than any release of the GNU C library takes from its own store by default.
_PAGES_THAT_THE_SYSTEM_FILLED = """
import ctypes, resource, sys
from vlscore.core import keep_freed_memory

real = ctypes.CDLL(None).mallopt
if "old" in sys.argv:
    class Old:
        # As of releases that refuse M_MMAP_THRESHOLD, -3, above 32 MiB.
        mallopt = staticmethod(lambda name, x: 0 if name == -3 and x > 32 << 20 else real(name, x))
    ctypes.CDLL = lambda name: Old
if "without" not in sys.argv:
    keep_freed_memory()
bytearray(48 << 20)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    bytearray(48 << 20)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts pages this way")
def test_freed_memory_is_used_again_with_old_and_new_c_libraries():
    pages = {}
    for case in ("without", "new", "old"):
        command = [sys.executable, "-c", _PAGES_THAT_THE_SYSTEM_FILLED, case]
        found = subprocess.run(command, capture_output=True, text=True, check=True)
        pages[case] = int(found.stdout)
    if pages["without"] < 1_000:
        pytest.skip("this C library gives back no memory")
    assert max(pages["new"], pages["old"]) < pages["without"] / 20
