"""How many cores a process may use is not how many the machine has."""

import os
import subprocess
import sys

import pytest

from vlscore.cli.options import worker_count
from vlscore.core import threads as _cores


@pytest.fixture
def large(monkeypatch, tmp_path):
    """A machine of 64 cores, of which this process may use all."""
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    monkeypatch.setattr(_cores, "_QUOTA", tmp_path / "cpu.max")
    return tmp_path / "cpu.max"


def test_those_of_the_process_count(large, monkeypatch):
    assert _cores.usable_cores() == 64
    assert worker_count(None) == 16
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 7})
    assert _cores.usable_cores() == 2
    assert (worker_count(None), worker_count(None, sharing=2), worker_count(5)) == (2, 1, 5)


@pytest.mark.parametrize(
    ("limit", "cores"),
    [("max 100000", 64), ("200000 100000", 2), ("150000 100000", 2), ("1000 100000", 1), ("", 64)],
)
def test_the_limit_of_a_container_counts(large, limit, cores):
    large.write_text(limit + "\n")
    assert _cores.usable_cores() == cores


def test_elsewhere_than_on_linux_the_machine_counts(large, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity")
    assert _cores.usable_cores() == 64


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system binds no process")
def test_a_process_that_is_bound_to_one_core_has_one():
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
        "from vlscore.core.threads import usable_cores; print(usable_cores())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"
