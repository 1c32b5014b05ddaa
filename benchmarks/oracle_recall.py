"""Claim: candidates near five points of the line hold the exact winner in at least 99 % of queries.

Protocol: n = 30,000 clustered vectors, d = 256, 200 queries, in six regimes. A: unit norm, images
apart from texts by a gap. B: unit norm, one cone. C: log-normal norms (sd 0.25). "rare": the
cluster of the reference is taken out of the corpus. "unrelated": the image has nothing to do with
the text. A corpus has 300 clusters; a reference is a new member of one; an image is half the
reference's centre, half another's. Exact L2 neighbours (FAISS Flat), 10 at each point: at the
reference alone, and at the five quantile points of the oracle. Recall@1 against exact search.

Run: OMP_NUM_THREADS=1 python benchmarks/oracle_recall.py [--out FILE]
"""

import argparse
import tempfile
from pathlib import Path

import faiss
import numpy as np
import torch
from machine import describe_machine

from vlscore._files import atomic_write
from vlscore.oracle import ApproximateIndex, Corpus, Oracle, build_approximate, recall

N, D, Q, CLUSTERS, DEPTH = 30_000, 256, 200, 300, 10
REGIMES = {
    "A": ("gap", True, False),
    "A rare": ("gap", True, True),
    "B": ("cone", True, False),
    "B unrelated": ("unrelated", True, False),
    "B rare": ("cone", True, True),
    "C": ("cone", False, False),
    "C rare": ("cone", False, True),
}


def regime(kind: str, unit: bool, rare: bool, seed: int) -> tuple[np.ndarray, ...]:
    """Corpus (n, d), images (q, d), references (q, d), float32."""
    rng = np.random.default_rng(seed)
    cone = 1.5 * rng.standard_normal(D)
    centres = cone + rng.standard_normal((CLUSTERS, D))
    # Queries come of the last clusters, which a rare corpus lacks.
    home = rng.integers(CLUSTERS - 20, CLUSTERS, size=Q)
    member = rng.integers(CLUSTERS - 20 if rare else CLUSTERS, size=N)
    corpus = centres[member] + 0.5 * rng.standard_normal((N, D))
    references = centres[home] + 0.5 * rng.standard_normal((Q, D))
    others = centres[rng.integers(CLUSTERS - 20, size=Q)]
    share = 0.0 if kind == "unrelated" else 0.5
    images = share * centres[home] + (1 - share) * others + 0.5 * rng.standard_normal((Q, D))
    if kind == "gap":
        images += 2 * rng.standard_normal(D)
    points = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (corpus, images, references)]
    if not unit:
        points = [x * rng.lognormal(0, 0.25, size=(len(x), 1)) for x in points]
    return tuple(x.astype(np.float32) for x in points)


def reference_alone(corpus: Corpus, references: np.ndarray, winners: np.ndarray) -> float:
    flat = faiss.IndexFlatL2(D)
    flat.add(corpus.vectors)
    _, found = flat.search(references, DEPTH)
    return float((found == winners[:, None]).any(1).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    lines = [
        "# Recall@1 of approximate oracle search",
        "",
        f"n = {N:,}, d = {D}, {Q} queries, {DEPTH} candidates a point.",
        describe_machine(),
        "",
        "| regime | reference alone | five points of the line |",
        "|---|---:|---:|",
    ]
    for name, (kind, unit, rare) in REGIMES.items():
        vectors, images, references = regime(kind, unit, rare, seed=0)
        corpus = Corpus(vectors)
        winners = Oracle(corpus, C=1.0).hits(images, references, k=1).rows[:, 0]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "flat.faiss"
            build_approximate(vectors, "Flat", path)
            approximate = ApproximateIndex(path, corpus, depth=DEPTH)
            oracle = Oracle(corpus, C=1.0, approximate=approximate)
            at_points = recall(oracle, images, references)
        alone = reference_alone(corpus, references, winners)
        lines.append(f"| {name} | {alone:.3f} | {at_points:.3f} |")
    report = "\n".join(lines) + "\n"
    print(report)
    if out is not None:
        with atomic_write(out) as stream:
            stream.write(report)


if __name__ == "__main__":
    main()
