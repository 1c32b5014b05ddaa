"""How many cores a process may use is not how many the machine has; how much memory it took."""

import os
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
