"""Claim: `vlscore evaluate` of 100,000 studies takes at most 1.2 times the memory of 1,000.

Protocol: a table of n phantom studies (200 distinct radiographs of 256 pixels as 16-bit PNG,
repeated; every reference and candidate is another text) is evaluated with phantom-supervised by a
fresh process, images decoded in that process, with the cache on, in a new folder; once with vlscore
alone and once with five metrics. Printed is the process's peak resident memory, mapped pages
included, and its ratio from the smallest n to the largest. Loading the model is part of it. The
load of the machine does not affect it.

Run: python benchmarks/evaluate_memory.py [--sizes 1000 100000] [--out FILE]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from evaluate_throughput import write_images, write_table
from machine import describe_machine, publish

METRICS = ("vlscore", "vlscore,cosine,bleu-4,rouge-l,findings-f1")


def with_distinct_texts(table: Path) -> Path:
    """The same table, in which every text has a number of its own."""
    path = table.with_name(f"distinct-{table.name}")
    with table.open(encoding="utf-8") as rows, path.open("w", encoding="utf-8") as stream:
        for number, line in enumerate(rows):
            row = json.loads(line)
            row["reference"] += f" Compared with study {2 * number}."
            row["candidate"] += f" Compared with study {2 * number + 1}."
            stream.write(json.dumps(row) + "\n")
    return path


def measure(table: Path, metrics: str) -> None:
    """In a process of its own: evaluate, then print the peak of memory as json."""
    from vlscore.evaluation import evaluate
    from vlscore.metrics import Scorer

    torch.set_num_threads(1)
    scorer = Scorer("phantom", metrics=metrics, device="cpu")
    with tempfile.TemporaryDirectory(dir=table.parent) as out:
        result = evaluate(table, Path(out) / "results", scorer)
        work = json.loads(result.record.read_text())["work"]
    if result.summary.failed:
        raise SystemExit(f"{result.summary.failed} studies failed")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"peak": peak, "reports": work["reports_embedded"]}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 100_000])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure is not None:
        measure(Path(options.measure[0]), options.measure[1])
        return
    lines = [
        "# Memory of `vlscore evaluate`",
        "",
        describe_machine(),
        "",
        "| metrics | studies | reports embedded | peak memory, MiB |",
        "|---|---:|---:|---:|",
    ]
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        write_images(Path(folder))
        tables = {n: with_distinct_texts(write_table(Path(folder), n)) for n in options.sizes}
        for metrics in METRICS:
            peaks = {}
            for size, table in tables.items():
                with tempfile.TemporaryDirectory(dir=folder) as cache:
                    done = subprocess.run(
                        [sys.executable, __file__, "--measure", str(table), metrics],
                        env={**os.environ, "VLSCORE_CACHE": cache},
                        check=True,
                        capture_output=True,
                        text=True,
                    )
                found = json.loads(done.stdout.splitlines()[-1])
                peaks[size] = found["peak"]
                count = len(metrics.split(","))
                lines.append(f"| {count} | {size:,} | {found['reports']:,} | {peaks[size]:.0f} |")
                print(lines[-1], flush=True)
            smallest, largest = min(peaks), max(peaks)
            ratios.append(
                f"{len(metrics.split(','))} metrics: {peaks[largest] / peaks[smallest]:.3f} times"
            )
    lines += ["", f"From {smallest:,} to {largest:,} studies: {'; '.join(ratios)}."]
    publish("\n".join(lines) + "\n", options.out)


if __name__ == "__main__":
    main()
