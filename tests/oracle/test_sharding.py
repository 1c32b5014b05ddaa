"""Two processes under torchrun find what one finds, bit for bit."""

import subprocess
import sys
from pathlib import Path

import numpy as np

from tests.oracle.test_exact import clustered
from vlscore.oracle import Oracle

PROGRAM = """
import sys
import numpy as np
from vlscore.oracle import Corpus, Oracle, Shards

folder = sys.argv[1]
vectors, queries = np.load(folder + "/vectors.npy"), np.load(folder + "/queries.npy")
shards = Shards.from_torchrun()
part = shards.range(len(vectors))
corpus = Corpus(vectors[part], start=part.start)
found = Oracle(corpus, C=1.0, shards=shards).search(queries[0], queries[1], ranks=True)
if shards.rank == 0:
    with open(folder + "/found.txt", "w") as stream:
        stream.write(repr(found))
shards.close()
"""


def test_the_merged_result_is_the_unsharded_one(tmp_path: Path):
    vectors = clustered(1_001, 24, 1)
    vectors[600:700] = vectors[100]
    queries = clustered(12, 24, 2).reshape(2, 6, 24)
    np.save(tmp_path / "vectors.npy", vectors)
    np.save(tmp_path / "queries.npy", queries)
    (tmp_path / "shard.py").write_text(PROGRAM)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*launch, str(tmp_path / "shard.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    alone = Oracle(vectors, C=1.0).search(queries[0], queries[1], ranks=True)
    assert (tmp_path / "found.txt").read_text() == repr(alone)
