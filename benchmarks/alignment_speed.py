"""Claim: the alignment of 20 metrics with a set of ReXVal's size takes seconds.

Protocol: 200 pairs (50 studies of four candidates), six raters who count errors of six categories,
significant or not, drawn at random (seed 0): nine ratings. 20 metrics with random values that
follow the errors more or less. `vlscore.evaluation.align` with 1,000 resamples, which is all that
`vlscore align` does beside computing values and writing: four correlations over studies and over
pairs, differences of any two metrics, single raters, ceilings, rankings. Seconds by the clock, and
of the processor, on one thread; the middle one of three runs; on a machine with other work (see the
load average) only the latter say anything. The composite of the 20 metrics (`fit_composite`, nested
cross-validation) is timed beside it.

Run: python benchmarks/alignment_speed.py [--out benchmarks/results/alignment_speed.md]
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import describe_machine, publish

from vlscore.evaluation import MeasuredMetric, RatedPairs, alignment_of, fit_composite

STUDIES, CANDIDATES, RATERS, CATEGORIES, METRICS, RESAMPLES = 50, 4, 6, 6, 20, 1000
RUNS = 3


def rated_pairs(rng: np.random.Generator) -> RatedPairs:
    n = STUDIES * CANDIDATES
    difficulty = rng.gamma(1.0, 1.0, n)[None, :, None, None]
    counts = rng.poisson(0.15 * difficulty, (RATERS, n, CATEGORIES, 2)).astype(float)
    return RatedPairs(
        studies=tuple(str(k // CANDIDATES) for k in range(n)),
        candidates=tuple(str(k % CANDIDATES) for k in range(n)),
        raters=tuple(map(str, range(RATERS))),
        ratings={
            "total errors": counts.sum(axis=(2, 3)),
            "significant errors": counts[..., 1].sum(axis=2),
            "insignificant errors": counts[..., 0].sum(axis=2),
            **{f"category {k}": counts[:, :, k].sum(axis=2) for k in range(CATEGORIES)},
        },
    )


def seconds(work: Callable[[], Any]) -> tuple[float, float]:
    """By the clock and of the processor, the middle of several runs."""
    clock, processor = [], []
    for _ in range(RUNS):
        began, used = time.perf_counter(), time.process_time()
        work()
        clock.append(time.perf_counter() - began)
        processor.append(time.process_time() - used)
    return statistics.median(clock), statistics.median(processor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    pairs = rated_pairs(rng)
    errors = pairs.means["total errors"]
    metrics = [
        MeasuredMetric(f"metric {k}", -errors + rng.normal(scale=0.3 * (k + 1), size=len(pairs)))
        for k in range(METRICS)
    ]
    whole = seconds(lambda: alignment_of(metrics, pairs, resamples=RESAMPLES))
    fit = seconds(lambda: fit_composite(metrics, pairs, "total errors", resamples=RESAMPLES))
    report = "\n".join(
        [
            "# The time of an alignment",
            "",
            f"{METRICS} metrics, {len(pairs)} pairs of {STUDIES} studies, {RATERS} raters, "
            f"{len(pairs.ratings)} ratings, {RESAMPLES} resamples. {describe_machine()}",
            "",
            "| what | seconds by the clock | seconds of the processor |",
            "|---|---:|---:|",
            f"| align | {whole[0]:.1f} | {whole[1]:.1f} |",
            f"| fit_composite | {fit[0]:.1f} | {fit[1]:.1f} |",
        ]
    )
    publish(report + "\n", options.out)


if __name__ == "__main__":
    main()
