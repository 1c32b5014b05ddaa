"""Claim: the memory of `vlscore evaluate` does not grow with the number of studies.

Measured at 1,000 and 10,000 studies; nothing is known of larger tables until --sizes asks for one.
The claim holds where ten times the studies take at most a tenth more memory.

Protocol: a table of n phantom studies (200 distinct radiographs of 256 pixels as 16-bit PNG,
repeated; every reference and candidate drawn anew) is evaluated with phantom-supervised by a fresh
process on one core, images decoded in that process. Printed are studies per second and the
process's peak resident memory, for each n, in one run, and the growth of memory from the smallest n
to the largest. Model loading is part of the memory, not of the rate. The rate of a run beside other
work (see the load average) is no measurement of speed; the memory is not affected.

Reading, checking and writing alone are measured up to a million rows: a table of short texts, of
which there are 2,000 pairs, through bleu-1, the cheapest metric.

Run: python benchmarks/evaluate_throughput.py [--sizes 1000 10000] [--texts 1000 1000000]
[--out FILE]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from machine import describe_machine, publish

from vlscore.data import corrupt, render, write_report
from vlscore.data.phantom.phantom_pairs import scene_at, write_png
from vlscore.evaluation import evaluate
from vlscore.metrics import Scorer

IMAGES, SEED = 200, 50


def write_images(folder: Path) -> None:
    for k in range(IMAGES):
        write_png(folder / f"{k}.png", render(scene_at(SEED, k)))


def write_table(folder: Path, rows: int) -> Path:
    path = folder / f"{rows}.jsonl"
    rng = np.random.default_rng(SEED)
    scenes = [scene_at(SEED, k).findings for k in range(IMAGES)]
    with path.open("w", encoding="utf-8") as stream:
        for row in range(rows):
            findings = scenes[row % IMAGES]
            candidate = corrupt(rng, findings, int(rng.integers(0, 3)))
            record = {
                "id": row,
                "image": f"{row % IMAGES}.png",
                "reference": write_report(rng, findings),
                "candidate": write_report(rng, candidate),
            }
            stream.write(json.dumps(record) + "\n")
    return path


def write_texts(folder: Path, rows: int) -> Path:
    path = folder / f"texts-{rows}.jsonl"
    with path.open("w", encoding="utf-8") as stream:
        for row in range(rows):
            texts = {"reference": f"no effusion {row % 50}", "candidate": f"effusion {row % 40}"}
            stream.write(json.dumps({"id": row, **texts}) + "\n")
    return path


def measure(table: Path, *, of_texts: bool) -> None:
    """In a process of its own: evaluate, then print rate and peak memory as json."""
    torch.set_num_threads(1)
    if of_texts:
        scorer = Scorer(metrics="bleu-1")
    else:
        scorer = Scorer("phantom-supervised", device="cpu", batch_size=32, cache=False)
    began = time.perf_counter()
    result = evaluate(table, table.with_suffix(""), scorer)
    seconds = time.perf_counter() - began
    if result.summary.failed:
        raise SystemExit(f"{result.summary.failed} studies failed")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"rate": result.summary.scored / seconds, "peak_mib": peak}))


def table_of(tables: dict[int, Path], *options: str) -> list[str]:
    """A line for each table, evaluated in a process of its own, and what memory does."""
    lines = ["| studies | studies per second | peak memory, MiB |", "|---:|---:|---:|"]
    peaks: dict[int, float] = {}
    for size, table in tables.items():
        command = [sys.executable, __file__, "--measure", str(table), *options]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        lines.append(f"| {size:,} | {found['rate']:,.1f} | {found['peak_mib']:.0f} |")
        print(lines[-1], flush=True)
        peaks[size] = found["peak_mib"]
    smallest, largest = min(peaks), max(peaks)
    growth = peaks[largest] / peaks[smallest] - 1
    return [
        *lines,
        "",
        f"From {smallest:,} to {largest:,} studies memory changes by {growth:+.1%}.",
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 10_000])
    parser.add_argument("--texts", type=int, nargs="*", default=[1000, 1_000_000])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--of-texts", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        measure(options.measure, of_texts=options.of_texts)
        return
    lines = ["# `vlscore evaluate` on one core: rate and peak memory", "", describe_machine(), ""]
    with tempfile.TemporaryDirectory() as folder:
        if options.sizes:
            write_images(Path(folder))
            lines += table_of({size: write_table(Path(folder), size) for size in options.sizes})
        if options.texts:
            tables = {size: write_texts(Path(folder), size) for size in options.texts}
            lines += ["## Texts alone (bleu-1)", "", *table_of(tables, "--of-texts")]
    publish("\n".join(lines), options.out)


if __name__ == "__main__":
    main()
