"""How many cores a process may use is not how many the machine has."""

import os

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
