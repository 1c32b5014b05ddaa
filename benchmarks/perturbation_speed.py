"""Claim: one core makes all kinds of perturbation of at least 10,000 reports a minute.

Protocol: reports drawn by the bundled phantom generator, then those of --table in random order; one
thread; processor time, so that other work on the machine counts little; medians of rounds, in each
of which three things are timed: (1) `perturb`, the whole command from a jsonl file to the written
data set, with its first pass that makes the standard normal report; (2) `perturb_report` with all
kinds on reports in memory; (3) reading reports, and then kind by kind, one change a report, on what
was read, the order of kinds turned by one every round. Every timing takes reports of its own,
because what a sentence says is remembered; sentences that reports share are read once, as in any
run. One report is perturbed before the clock starts, to load the lexicons. The table of the
committed result is `data.INDIANA_REPORTS`, which the project may not carry: `data.py` says where it
comes from. Without --table, phantom reports are measured alone.

Run: OMP_NUM_THREADS=1 python benchmarks/perturbation_speed.py [--rounds 5] [--reports 500]
     [--table FILE --name "What its reports are"] [--out FILE]
"""

import argparse
import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from data import describe_file
from machine import describe_machine, publish

from vlscore.data import Report, read_reports, sample_studies
from vlscore.perturb import (
    KINDS,
    ReadReport,
    default_standard_normal,
    perturb,
    perturb_report,
    perturbations_of,
)

SEED = 21
WHOLE, MEMORY, READING = "whole command", "in memory", "reading the report"


def phantom_reports() -> Iterator[str]:
    for first in itertools.count():
        for study in sample_studies(SEED + first, 1_000):
            yield study.reference


def table_reports(path: Path) -> list[str]:
    texts = [row.text for row in read_reports(path) if isinstance(row, Report)]
    return [texts[k] for k in np.random.default_rng(SEED).permutation(len(texts))]


def whole_command(texts: list[str]) -> tuple[float, int]:
    """Seconds a report, and perturbations."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "reports.jsonl"
        with table.open("w", encoding="utf-8") as stream:
            for number, text in enumerate(texts):
                stream.write(json.dumps({"id": number, "report": text}) + "\n")
        start = time.process_time()
        made = perturb(table, Path(folder) / "out")
        return (time.process_time() - start) / len(texts), sum(made.counts.values())


def in_memory(texts: list[str]) -> float:
    """Seconds a report."""
    start = time.process_time()
    for text in texts:
        for _ in perturb_report(text):
            pass
    return (time.process_time() - start) / len(texts)


def part_by_part(texts: list[str], round: int) -> dict[str, float]:
    """Seconds a report for reading, and for each kind."""
    start = time.process_time()
    sources = [ReadReport.read(text, default_standard_normal()) for text in texts]
    seconds = {READING: (time.process_time() - start) / len(texts)}
    names = list(KINDS)
    for name in names[round % len(names) :] + names[: round % len(names)]:
        kind = KINDS[name]
        start = time.process_time()
        for number, source in enumerate(sources):
            for _ in perturbations_of(source, kind, 0, 1, str(number)):
                pass
        seconds[name] = (time.process_time() - start) / len(texts)
    return seconds


def measure(title: str, texts: list[str], rounds: int, count: int) -> list[str]:
    """Lines of the report on texts, of which `3 * rounds * count` are used."""
    fresh = iter([texts[k * count : (k + 1) * count] for k in range(3 * rounds)])
    parts = (WHOLE, MEMORY, READING, *KINDS)
    seconds: dict[str, list[float]] = {part: [] for part in parts}
    made = 0
    for round in range(rounds):
        whole, perturbations = whole_command(next(fresh))
        made += perturbations
        seconds[WHOLE].append(whole)
        seconds[MEMORY].append(in_memory(next(fresh)))
        for part, taken in part_by_part(next(fresh), round).items():
            seconds[part].append(taken)
    median = {part: statistics.median(taken) for part, taken in seconds.items()}
    words = statistics.mean(len(text.split()) for text in texts[: 3 * rounds * count])
    return [
        f"## {title}",
        "",
        f"{words:.0f} words a report on average, {count:,} reports a timing, medians of {rounds} "
        f"rounds, {made / rounds / count:.1f} perturbations a report.",
        "",
        "| all kinds together | reports a minute | ms a report |",
        "|---|---:|---:|",
        *(f"| {p} | {60 / median[p]:,.0f} | {median[p] * 1e3:.2f} |" for p in (WHOLE, MEMORY)),
        "",
        "| of which | ms a report |",
        "|---|---:|",
        *(f"| {part} | {median[part] * 1e3:.3f} |" for part in (READING, *KINDS)),
        "",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--reports", type=int, default=500, help="a timing; fewer if too few")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--name", default="Reports of a table")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rounds, count = options.rounds, options.reports
    lines = ["# Speed of perturbation", "", "One thread, processor time.", describe_machine(), ""]
    list(perturb_report("Small left effusion. No pneumothorax."))
    texts = list(itertools.islice(phantom_reports(), 3 * rounds * count))
    lines += measure("Phantom reports", texts, rounds, count)
    if options.table is not None:
        lines += [f"Table: {describe_file(options.table)}.", ""]
        texts = table_reports(options.table)
        lines += measure(options.name, texts, rounds, min(count, len(texts) // (3 * rounds)))
    report = "\n".join(lines)
    publish(report, options.out)


if __name__ == "__main__":
    main()
