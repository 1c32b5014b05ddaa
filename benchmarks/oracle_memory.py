"""Claim: exact search holds the corpus and at most 10 % more.

Protocol: n = 50,000, d = 768 float32 vectors in a mapped file; a search of 64 queries after a
warm-up on 100 rows that loads the libraries. Printed: growth of the process's peak resident memory
(VmHWM, mapped pages included) from before the corpus is opened, over the corpus's bytes. Linux.

Run: OMP_NUM_THREADS=1 python benchmarks/oracle_memory.py [--out FILE]
"""

import re
import tempfile
from pathlib import Path

import numpy as np
import torch
from machine import describe_machine, out_of, publish

from vlscore.retrieval import Corpus, Line, search

N, D, Q = 50_000, 768, 64


def resident(field: str) -> int:
    """A field of /proc/self/status in bytes."""
    found = re.search(rf"{field}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def find(vectors: np.ndarray, images: np.ndarray, references: np.ndarray) -> None:
    corpus = Corpus(vectors)
    search(corpus, Line(images, references, corpus.norms), 10)


def main() -> None:
    out = out_of(__doc__)
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    images, references = rng.standard_normal((2, Q, D)).astype(np.float32)
    find(images, images[:2], references[:2])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.npy"
        vectors = np.lib.format.open_memmap(path, "w+", np.float32, (N, D))
        for start in range(0, N, 1_000):
            vectors[start : start + 1_000] = rng.standard_normal((1_000, D))
            vectors.flush()
        del vectors
        Path("/proc/self/clear_refs").write_text("5")
        before = resident("VmRSS")
        find(np.load(path, mmap_mode="c"), images, references)
        growth = resident("VmHWM") - before
    corpus = N * D * 4
    report = (
        "# Memory of exact oracle search\n\n"
        f"n = {N:,}, d = {D}, {Q} queries.\n{describe_machine()}\n\n"
        f"Corpus {corpus / 2**20:.0f} MiB; peak growth {growth / 2**20:.0f} MiB, "
        f"{growth / corpus:.3f} of the corpus.\n"
    )
    publish(report, out)


if __name__ == "__main__":
    main()
