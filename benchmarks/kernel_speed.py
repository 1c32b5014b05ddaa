"""Claim: the vectorised triangle area is at least 200 times as fast as a loop over triplets.

Protocol: n = 100,000 triples of float32 embeddings, d = 768, standard normal. Vectorised:
`vlscore.metrics.triangle_area` (float64) over all of them. Loop: the same formula, projection
residual from the nearer vertex, in plain Python floats, over the first 300 triples, scaled to n.
A second loop calls the vectorised function once per triplet. One thread. Seven interleaved rounds,
medians. The largest relative difference between the results is printed beside the times.

Run: python benchmarks/kernel_speed.py [--out benchmarks/results/kernel_speed.md]
"""

import math
import statistics
import time

import torch
from machine import describe_machine, out_of, publish, timed

from vlscore.metrics import triangle_area

N, D, LOOPED, ROUNDS = 100_000, 768, 300, 7


def area_of_one(i: list[float], g: list[float], r: list[float]) -> float:
    edge = [y - x for x, y in zip(i, r, strict=True)]
    from_i = [y - x for x, y in zip(i, g, strict=True)]
    from_r = [y - x for x, y in zip(r, g, strict=True)]
    squared = sum(e * e for e in edge)
    if squared == 0:
        return 0.0
    nearer_r = sum(x * e for x, e in zip(from_i, edge, strict=True)) > squared / 2
    way = from_r if nearer_r else from_i
    along = sum(x * e for x, e in zip(way, edge, strict=True)) / squared
    residual = sum((x - along * e) ** 2 for x, e in zip(way, edge, strict=True))
    return 0.5 * math.sqrt(squared * residual)


def loop_in_python(i: torch.Tensor, g: torch.Tensor, r: torch.Tensor) -> list[float]:
    triples = zip(i.tolist(), g.tolist(), r.tolist(), strict=True)
    return [area_of_one(*triple) for triple in triples]


def loop_over_the_kernel(i: torch.Tensor, g: torch.Tensor, r: torch.Tensor) -> list[float]:
    return [triangle_area(*triple).item() for triple in zip(i, g, r, strict=True)]


def main() -> None:
    out = out_of(__doc__)
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    i, g, r = torch.randn(3, N, D, generator=generator)
    few = i[:LOOPED], g[:LOOPED], r[:LOOPED]

    vectorised, python, kernel = [], [], []
    for _ in range(ROUNDS):
        vectorised.append(timed(lambda: triangle_area(i, g, r), time.perf_counter)[0] / N)
        python.append(timed(lambda: loop_in_python(*few), time.perf_counter)[0] / LOOPED)
        kernel.append(timed(lambda: loop_over_the_kernel(*few), time.perf_counter)[0] / LOOPED)

    reference = torch.tensor(loop_in_python(*few), dtype=torch.float64)
    difference = ((triangle_area(*few) - reference).abs() / reference).max().item()
    best = statistics.median(vectorised)
    lines = [
        "# Triangle area: vectorised against a loop over triplets",
        "",
        f"n = {N:,}, d = {D}, float64, one thread, medians of {ROUNDS} interleaved rounds.",
        describe_machine(),
        "",
        "| | µs per triplet | times as long |",
        "|---|---:|---:|",
    ]
    for name, times in (
        ("vectorised", vectorised),
        ("Python loop, same formula", python),
        ("loop over single calls of the kernel", kernel),
    ):
        median = statistics.median(times)
        lines.append(f"| {name} | {median * 1e6:.2f} | {median / best:.0f} |")
    lines += ["", f"Largest relative difference from the Python loop: {difference:.1e}."]
    report = "\n".join(lines) + "\n"
    publish(report, out)


if __name__ == "__main__":
    main()
