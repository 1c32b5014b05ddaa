"""One line on the machine and the day, for benchmark reports."""

import datetime
import os
import platform

import torch


def describe_machine() -> str:
    """Processor kind, cores, torch version, load average and date."""
    capability = torch.backends.cpu.get_cpu_capability()
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()}-core {platform.machine()} ({capability}), torch {torch.__version__}, "
        f"Python {platform.python_version()}, load average {load:.1f}, {datetime.date.today()}."
    )
