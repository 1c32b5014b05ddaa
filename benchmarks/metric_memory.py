"""Claim: the memory of five metrics of texts grows by a sixth from 1,000 to 100,000 studies.

Protocol: a table of n phantom studies without images, whose references and candidates are drawn at
random from 20,000 distinct phantom reports, is evaluated under bleu-1, bleu-4, rouge-l, findings-f1
and dale-chall by a fresh process on one thread, as `vlscore evaluate` does. 20,000 reports are more
than anything that remembers texts can hold. Printed are the process's peak resident memory, what
1,000 studies more take, and studies a second of the processor. A run keeps every number of every
row for the intervals of its summary, eight bytes each, and forty bytes an id: memory cannot be
quite flat.

Run: python benchmarks/metric_memory.py [--sizes 1000 10000 100000]
         [--out benchmarks/results/metric_memory.md]
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from itertools import count
from pathlib import Path

import numpy as np
import torch
from machine import describe_machine, publish

from vlscore.data import write_report
from vlscore.data.phantom.phantom_pairs import scene_at
from vlscore.evaluation import evaluate
from vlscore.metrics import Scorer

METRICS, SEED, REPORTS = "bleu-1,bleu-4,rouge-l,findings-f1,dale-chall", 60, 20_000


def distinct_reports() -> list[str]:
    rng = np.random.default_rng(SEED)
    scenes = [scene_at(SEED, k).findings for k in range(REPORTS // 10)]
    found: dict[str, None] = {}
    for k in count():
        if len(found) == REPORTS:
            return list(found)
        found.setdefault(write_report(rng, scenes[k % len(scenes)]))
    raise AssertionError


def write_table(folder: Path, reports: list[str], rows: int) -> Path:
    path = folder / f"{rows}.jsonl"
    rng = np.random.default_rng(SEED)
    with path.open("w", encoding="utf-8") as stream:
        for row, (g, r) in enumerate(rng.integers(len(reports), size=(rows, 2)).tolist()):
            record = {"id": row, "reference": reports[r], "candidate": reports[g]}
            stream.write(json.dumps(record) + "\n")
    return path


def measure(table: Path) -> None:
    """In a process of its own: evaluate, then print rate and peak memory as json."""
    torch.set_num_threads(1)
    began = time.process_time()
    result = evaluate(table, table.with_suffix(""), Scorer(metrics=METRICS))
    seconds = time.process_time() - began
    if result.summary.failed:
        raise SystemExit(f"{result.summary.failed} studies failed")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"rate": result.summary.scored / seconds, "peak_mib": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        return measure(options.measure)
    found = {}
    reports = distinct_reports()
    with tempfile.TemporaryDirectory() as place:
        for size in options.sizes:
            table = write_table(Path(place), reports, size)
            command = [sys.executable, __file__, "--measure", str(table)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[size] = json.loads(done.stdout.splitlines()[-1])
    sizes = sorted(found)
    first, last = (found[size]["peak_mib"] for size in (sizes[0], sizes[-1]))
    each = (last - first) / max(sizes[-1] - sizes[0], 1) * 1000
    lines = [
        "# Memory of five metrics of texts",
        "",
        f"{METRICS.replace(',', ', ')}. {describe_machine()}",
        "",
        "| studies | peak memory, MiB | studies/s and core |",
        "|---:|---:|---:|",
        *(f"| {n:,} | {found[n]['peak_mib']:,.0f} | {found[n]['rate']:,.0f} |" for n in sizes),
        "",
        f"From {sizes[0]:,} to {sizes[-1]:,} studies memory grows by {last - first:,.0f} MiB, "
        f"{last / first - 1:.0%}: {each:.2f} MiB for 1,000 studies.",
    ]
    publish("\n".join(lines) + "\n", options.out)
    return None


if __name__ == "__main__":
    main()
