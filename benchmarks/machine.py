"""What benchmarks share: a line on the machine and the day, clocks, and a way out."""

import argparse
import datetime
import gc
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from vlscore.core import atomic_write


def describe_machine() -> str:
    """Processor kind, cores, torch version, load average and date."""
    capability = torch.backends.cpu.get_cpu_capability()
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()}-core {platform.machine()} ({capability}), torch {torch.__version__}, "
        f"Python {platform.python_version()}, load average {load:.1f}, {datetime.date.today()}."
    )


def out_of(description: str) -> Path | None:
    """Return the file that `--out` names, of a script without other options."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--out", type=Path)
    found: Path | None = parser.parse_args().out
    return found


def publish(report: str, out: Path | None) -> None:
    """Print a report, and write it where there is a place for it."""
    print(report)
    if out is not None:
        with atomic_write(out) as stream:
            stream.write(report)


def forget() -> None:
    """Empty the caches of all functions, so that nothing read before makes a reading quicker."""
    for each in gc.get_objects():
        if callable(clear := getattr(type(each), "cache_clear", None)):
            clear(each)


def timed(
    work: Callable[[], Any], clock: Callable[[], float] = time.process_time
) -> tuple[float, Any]:
    """Return the seconds that a call takes, of the processor or by another clock; its result."""
    began = clock()
    result = work()
    return clock() - began, result


def timed_command(
    words: Sequence[object], cache: Path, folder: Path | None = None
) -> tuple[float, float]:
    """Run Python with these words; return its seconds by the clock, and of processors.

    Args:
        cache: folder of the cache.
        folder: where the process runs; default: here.

    Raises: SystemExit with the messages of a process that failed.
    """
    command = [sys.executable, *map(str, words)]
    environment = {**os.environ, "VLSCORE_CACHE": str(cache)}
    before, began = os.times(), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    seconds, after = time.perf_counter() - began, os.times()
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    spent = after.children_user + after.children_system
    return seconds, spent - before.children_user - before.children_system
