"""Claim: approximate search through IVF, PQ or HNSW finds the exact winner in at least 99 % of
queries, whatever the geometry; neighbours of the reference alone do not.

Protocol: n = 30,000 clustered vectors, d = 256, 200 queries, in seven regimes. A: unit norm, images
apart from texts by a gap. B: unit norm, one cone. C: log-normal norms (sd 0.25). "rare": the
cluster of the reference is taken out of the corpus. "unrelated": the image has nothing to do with
the text. A corpus has 300 clusters; a reference is a new member of one; an image is half the
reference's centre, half another's. Recall@1 against exact search, of: the 10 nearest rows (L2) of
the reference alone; the 10 nearest of each of the oracle's five points of the line, both without an
approximation by FAISS; and of the oracle with FAISS indexes of three kinds, set as `vlscore index
build --approximate` and `vlscore oracle --mode approximate` set them.

Run: OMP_NUM_THREADS=1 python benchmarks/oracle_recall.py [--out FILE]
"""

import tempfile
from pathlib import Path

import faiss
import numpy as np
import torch
from machine import describe_machine, out_of, publish

from vlscore.retrieval import ApproximateIndex, Corpus, Oracle, build_approximate, recall

N, D, Q, CLUSTERS, DEPTH = 30_000, 256, 200, 300, 10
FACTORIES = ("IVF128,Flat", "IVF128,PQ128x4fs", "HNSW32")
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


def at_points(
    corpus: Corpus, images: np.ndarray, references: np.ndarray, factory: str, **settings: int
) -> float:
    """Recall@1 of the oracle with a FAISS index of that kind."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "index.faiss"
        build_approximate(corpus.vectors, factory, path)
        approximate = ApproximateIndex(path, corpus, **settings)
        return recall(Oracle(corpus, C=1.0, approximate=approximate), images, references)


def main() -> None:
    out = out_of(__doc__)
    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    lines = [
        "# Recall@1 of approximate oracle search",
        "",
        f"n = {N:,}, d = {D}, {Q} queries.",
        describe_machine(),
        "",
        f"| regime | reference alone, {DEPTH} rows | five points, {DEPTH} rows each | "
        + " | ".join(f"`{factory}`" for factory in FACTORIES)
        + " |",
        "|---" + "|---:" * (2 + len(FACTORIES)) + "|",
    ]
    for name, (kind, unit, rare) in REGIMES.items():
        vectors, images, references = regime(kind, unit, rare, seed=0)
        corpus = Corpus(vectors)
        winners = Oracle(corpus, C=1.0).hits(images, references, k=1).rows[:, 0]
        shares = [
            reference_alone(corpus, references, winners),
            at_points(corpus, images, references, "Flat", depth=DEPTH),
            *(at_points(corpus, images, references, factory) for factory in FACTORIES),
        ]
        lines.append(f"| {name} | " + " | ".join(f"{share:.3f}" for share in shares) + " |")
    report = "\n".join(lines) + "\n"
    publish(report, out)


if __name__ == "__main__":
    main()
