"""What every benchmark's report needs: a line on the machine and the day, and a way out."""

import datetime
import os
import platform
from pathlib import Path

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


def publish(report: str, out: Path | None) -> None:
    """Print a report, and write it where there is a place for it."""
    print(report)
    if out is not None:
        with atomic_write(out) as stream:
            stream.write(report)
