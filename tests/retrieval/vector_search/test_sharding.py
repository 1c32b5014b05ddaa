"""Two processes as torchrun starts them find what one finds, bit for bit."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from tests.forked import Started
from tests.killed_process import as_torchrun_sets
from tests.retrieval.vector_search.test_exact import clustered
from vlscore.cli.command_line import app
from vlscore.data.phantom.phantom_pairs import write_dataset
from vlscore.embedding import StudyEmbedder
from vlscore.encoders import load_encoder
from vlscore.retrieval import Oracle, SourceSettings, index_build
from vlscore.testing import INDEPENDENCE, row_error

# Arrays first, then the command that its arguments spell.
PROGRAM = """
import runpy, sys
import numpy as np
from vlscore.retrieval import Corpus, Oracle, Shards

folder = sys.argv[1]
vectors, queries = np.load(folder + "/vectors.npy"), np.load(folder + "/queries.npy")
shards = Shards.from_torchrun()
part = shards.range(len(vectors))
corpus = Corpus(vectors[part], start=part.start)
found = Oracle(corpus, C=1.0, shards=shards).search(queries[0], queries[1], ranks=True)
if shards.rank == 0:
    with open(folder + "/found.txt", "w") as stream:
        stream.write(repr(found))
sys.argv[1:] = sys.argv[2:]
runpy.run_module("vlscore", run_name="__main__", alter_sys=True)
"""


@pytest.fixture(scope="module")
def arrays():
    """Vectors, a hundred of them equal, images and references."""
    vectors = clustered(1_001, 24, 1)
    vectors[600:700] = vectors[100]
    return vectors, clustered(12, 24, 2).reshape(2, 6, 24)


@pytest.fixture(scope="module")
def folder(arrays, tmp_path_factory):
    """What two processes and one write: found.txt, and the folders two and one.

    One thread each, as torchrun has it where nothing else is said: with another number of threads
    an encoder's sums are rounded otherwise.
    """
    folder = tmp_path_factory.mktemp("shards")
    for name, array in zip(("vectors", "queries"), arrays, strict=True):
        np.save(folder / f"{name}.npy", array)
    corpus = write_dataset(folder / "corpus", seed=1, count=40, size=32)
    studies = write_dataset(folder / "studies", seed=1, count=9, size=64)
    embedder = StudyEmbedder("phantom", device="cpu")
    index_build(corpus, folder / "index", embedder, SourceSettings(text_column="reference"))
    (folder / "shard.py").write_text(PROGRAM)
    command = ["oracle", str(studies), "--index", str(folder / "index"), "--exclude-exact"]
    command += ["--workers", "0", "--out"]
    program = [str(folder / "shard.py"), str(folder), *command, str(folder / "two")]
    said = [(folder / f"said{rank}").open("w+") for rank in range(2)]
    two = [
        Started(*program, env={**os.environ, **variables}, stdout=out, stderr=out)
        for out, variables in zip(said, as_torchrun_sets(), strict=True)
    ]
    ends = [process.wait(300) for process in two]
    for stream in said:
        stream.seek(0)
    printed = [stream.read() for stream in said]
    assert ends == [0, 0], printed
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        one = CliRunner().invoke(app, [*command, str(folder / "one")])
    finally:
        torch.set_num_threads(before)
    assert one.exit_code == 0, one.output
    for shown in (printed[0], one.output):
        assert "DEMONSTRATION-ENCODER" in shown
        assert "trained on synthetic phantoms" in shown
    return folder


def test_the_merged_result_is_the_unsharded_one(folder, arrays):
    vectors, queries = arrays
    alone = Oracle(vectors, C=1.0).search(queries[0], queries[1], ranks=True)
    assert (folder / "found.txt").read_text() == repr(alone)


def test_two_processes_write_what_one_writes(folder: Path):
    """Radiographs and reports through the command: the files are equal byte for byte."""
    for name in ("hits.jsonl", "hits.parquet", "summary.json"):
        assert (folder / "two" / name).read_bytes() == (folder / "one" / name).read_bytes()
    one = (folder / "one" / "hits.jsonl").read_bytes()
    answers = [json.loads(line) for line in one.splitlines()]
    assert [(answer["error"], len(answer["hits"])) for answer in answers] == [(None, 10)] * 9
    assert len({hit["row"] for answer in answers for hit in answer["hits"]}) > 15


def test_threads_move_embeddings_less_than_the_contract_allows(folder):
    encoder = load_encoder("phantom", device="cpu")
    studies = [json.loads(line) for line in (folder / "studies/studies.jsonl").open()]
    pictures = [str(folder / "studies" / study["image"]) for study in studies]
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            texts = encoder.encode_reports([study["reference"] for study in studies])
            found.append(torch.cat([encoder.encode_images(pictures), texts]))
    finally:
        torch.set_num_threads(before)
    assert row_error(found[0], found[1]) <= INDEPENDENCE
