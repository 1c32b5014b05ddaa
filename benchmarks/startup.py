"""Claim: an encoder of a published layout whose digest is known is there within two seconds of two
cores: import, checkpoint and digest.

Protocol. LIMITR's layout with random weights (160 M numbers, 640 MB), in the page cache. Each row
is a new process; wall clock and processor time (all threads), medians of interleaved rounds. Rows:
torch alone, the floor; `load_encoder("limitr")` and its checksum from safetensors with the digest
known, with the digest taken, and from the authors' container; and, for comparison, what towers
built on transformers and torchvision import before they load anything, as vlscore's were until
then. The digest that is known is verified in a thread beside the work: one row waits for that.

Run: python benchmarks/startup.py [--rounds 5] [--out benchmarks/results/startup.md]
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from evaluate_cold_warm import write_limitr
from machine import describe_machine, publish

HEAD = "import os, time; began, spent = time.perf_counter(), time.process_time()\n"
TAIL = "\nprint(time.perf_counter() - began, time.process_time() - spent)"
LOAD = """
from vlscore.encoders import load_encoder
encoder = load_encoder("limitr", weights={weights!r})
encoder.checksum
"""
WAIT = "from vlscore.core.threads import confirm\nconfirm(encoder)\n"
LIBRARIES = """
import torch
from torchvision.models import resnet50
from transformers import BertConfig, BertModel
"""


def run(program: str, cache: str) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-c", HEAD + program + TAIL],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "VLSCORE_CACHE": cache},
    )
    wall, processor = map(float, done.stdout.split())
    return wall, processor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as place:
        plain, mapped = (str(path) for path in write_limitr(Path(place) / "weights"))
        known = str(Path(place) / "cache")
        arms = {
            "torch alone": ("import torch\n", "off"),
            "safetensors, digest known": (LOAD.format(weights=mapped), known),
            "the same, verified": (LOAD.format(weights=mapped) + WAIT, known),
            "safetensors, digest taken": (LOAD.format(weights=mapped), "off"),
            "the authors' container, digest taken": (LOAD.format(weights=plain), "off"),
            "torch, torchvision, transformers alone": (LIBRARIES, "off"),
        }
        run(*arms["safetensors, digest known"])
        for _ in range(options.rounds):
            for name, arm in arms.items():
                found.setdefault(name, []).append(run(*arm))
    lines = [
        "# Start of an encoder",
        "",
        describe_machine(),
        "",
        f"Medians of {options.rounds} interleaved rounds, each in a process of its own.",
        "",
        "| start | s | processor s | least processor s |",
        "|---|---:|---:|---:|",
    ]
    for name, times in found.items():
        wall, processor = (statistics.median(each[k] for each in times) for k in (0, 1))
        least = min(spent for _, spent in times)
        lines.append(f"| {name} | {wall:.2f} | {processor:.2f} | {least:.2f} |")
    publish("\n".join(lines) + "\n", options.out)


if __name__ == "__main__":
    main()
