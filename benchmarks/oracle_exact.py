"""Claim: exact oracle search is at least 100 times as fast as a numpy loop over queries, at least
80 % of the bare matrix product's rate, and at least 8 times FAISS's IndexFlatIP as shipped.

Protocol: n = 50,000 unit vectors, d = 768, in 500 clusters; 64 queries, k = 10, one thread. A
reference is a new member of a cluster; an image lies between its centre and another's. Exact: the
whole search, float64 re-rank included. Product: the same n by 128 inner products and nothing else,
in both orientations, rows of the corpus as rows of the result (which the search uses) or as its
columns, a chunk at a time into memory that is there already. Loop: numpy, per query, the area by
broadcasting over the corpus; 3 queries are timed and scaled to 64. FAISS: two inner-product
searches a query, the cost of the two products, without any line distance. Interleaved rounds, in
each of which products and search take turns nine times; medians of times. The rate is the median
over turns of the faster product's time by the search's right after it, since clocks drift. The
winners of the loop and of the search are compared.

Run: OMP_NUM_THREADS=1 python benchmarks/oracle_exact.py [--rounds 5] [--out FILE]
"""

import argparse
import statistics
import time
from pathlib import Path

import faiss
import numpy as np
import torch
from machine import describe_machine, publish, timed

from vlscore.retrieval import Corpus, Line, search

N, D, Q, K, LOOPED = 50_000, 768, 64, 10, 3
TURNS = 9


def draw(seed: int) -> list[np.ndarray]:
    """Corpus (n, d), images and references (q, d), unit float32."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((500, D), dtype=np.float32)

    def around(points: np.ndarray) -> np.ndarray:
        noisy = points + 0.5 * rng.standard_normal(points.shape, dtype=np.float32)
        return noisy / np.linalg.norm(noisy, axis=1, keepdims=True)

    home = centres[rng.integers(500, size=Q)]
    between = 0.5 * home + 0.5 * centres[rng.integers(500, size=Q)]
    return [around(centres[rng.integers(500, size=N)]), around(between), around(home)]


def numpy_loop(vectors: np.ndarray, images: np.ndarray, references: np.ndarray) -> list[int]:
    winners = []
    for i, r in zip(images, references, strict=True):
        edge = r - i
        from_i = vectors - i
        along = (from_i * edge).sum(1, keepdims=True) / (edge * edge).sum()
        residual = from_i - along * edge
        winners.append(int((residual * residual).sum(1).argmin()))
    return winners


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    vectors, images, references = draw(0)
    corpus = Corpus(vectors)
    flat = faiss.IndexFlatIP(D)
    flat.add(vectors)
    queries = np.concatenate([images, references])
    rows, columns = torch.from_numpy(vectors), torch.from_numpy(queries).T.contiguous()
    product = torch.empty(corpus.chunk * 2 * Q)

    def bare_product() -> None:
        for part in corpus.chunks():
            out = product[: (part.stop - part.start) * 2 * Q].view(-1, 2 * Q)
            torch.mm(rows[part], columns, out=out)

    def other_product() -> None:
        for part in corpus.chunks():
            out = product[: (part.stop - part.start) * 2 * Q].view(2 * Q, -1)
            torch.mm(torch.from_numpy(queries), rows[part].T, out=out)

    def exact() -> np.ndarray:
        return search(corpus, Line(images, references, corpus), K).rows

    times: dict[str, list[float]] = {
        name: [] for name in ("product", "other", "exact", "faiss", "loop")
    }
    for _ in range(options.rounds):
        for _ in range(TURNS):
            # The first after the loop finds cold caches: not the product that counts.
            times["other"].append(timed(other_product, time.perf_counter)[0])
            times["product"].append(timed(bare_product, time.perf_counter)[0])
            times["exact"].append(timed(exact, time.perf_counter)[0])
        times["faiss"].append(timed(lambda: flat.search(queries, K), time.perf_counter)[0])
        looped, _ = timed(
            lambda: numpy_loop(vectors, images[:LOOPED], references[:LOOPED]), time.perf_counter
        )
        times["loop"].append(looped * Q / LOOPED)
    winners = numpy_loop(vectors, images[:LOOPED], references[:LOOPED])
    agreed = int((exact()[:LOOPED, 0] == winners).sum())
    median = {name: statistics.median(values) for name, values in times.items()}
    names = {
        "product": "matrix product alone, rows of the corpus as rows",
        "other": "the same, rows of the corpus as columns",
        "exact": "exact oracle search",
        "faiss": "FAISS IndexFlatIP as shipped, two searches a query",
        "loop": "numpy loop over queries",
    }
    lines = [
        "# Exact oracle search",
        "",
        f"n = {N:,}, d = {D}, {Q} queries, k = {K}, one thread, medians of {options.rounds} "
        "interleaved rounds.",
        describe_machine(),
        "",
        f"| | ms per {Q} queries | times as long as exact |",
        "|---|---:|---:|",
    ]
    for name, title in names.items():
        ratio = median[name] / median["exact"]
        lines.append(f"| {title} | {median[name] * 1e3:.0f} | {ratio:.2f} |")
    faster = min("product", "other", key=lambda name: median[name])
    rate = statistics.median(p / e for p, e in zip(times[faster], times["exact"], strict=True))
    lines += [
        "",
        f"Exact search has {rate:.2f} of the faster product's rate. Same winner "
        f"as the loop: {agreed} of {LOOPED}.",
    ]
    report = "\n".join(lines) + "\n"
    publish(report, options.out)


if __name__ == "__main__":
    main()
