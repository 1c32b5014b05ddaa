"""What a GPU searches: nothing stays behind on the CPU, and no bit of a cost changes."""

import numpy as np
import pytest
import torch

from tests.pretended_gpu import pretended_gpu
from tests.retrieval.test_exact import NAMES, clustered, objective
from vlscore.retrieval import Corpus, Oracle, search


def found_on(device, name, vectors, images, references, excluded):
    corpus = Corpus(vectors, device=device)
    corpus.chunk = 301
    return search(corpus, objective(name, images, references, corpus), 5, excluded)


@pytest.mark.parametrize("name", NAMES)
def test_rows_and_costs_are_those_of_the_cpu(name):
    """Several chunks, a query without a line, barred rows, and ties that need a second pass."""
    vectors, queries = clustered(1_000, 12, 1), clustered(8, 12, 2)
    vectors[100:300] = vectors[7]
    queries[6] = vectors[7] + np.float32(0.001)
    queries[3] = queries[7]
    given = name, vectors, queries[:4], queries[4:], {0: [3, 500]}
    here = found_on("cpu", *given)
    with pretended_gpu():
        there = found_on("cuda", *given)
    assert there.rows.tolist() == here.rows.tolist()
    assert there.costs.tobytes() == here.costs.tobytes()
    assert (name == "window") or here.second_passes


def test_an_oracle_on_a_gpu_also_ranks_by_distance():
    vectors, queries = clustered(900, 12, 3), clustered(6, 12, 4)
    answers = [Oracle(vectors, C=1.0).search(queries[:3], queries[3:], k=4, ranks=True)]
    with pretended_gpu(2):
        oracle = Oracle(vectors, C=1.0, device="cuda:1")
        assert oracle.corpus.block(slice(0, 1)).device == torch.device("cuda", 1)
        answers.append(oracle.search(queries[:3], queries[3:], k=4, ranks=True))
    assert answers[0] == answers[1]
    assert all(hit.distance_rank for hits in answers[0] for hit in hits)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_a_gpu_finds_the_same(name):
    vectors, queries = clustered(70_000, 64, 13), clustered(40, 64, 14)
    found = []
    for device in ("cpu", "cuda"):
        corpus = Corpus(vectors, device=device)
        found.append(search(corpus, objective(name, queries[:20], queries[20:], corpus), 10))
    assert found[0].rows.tolist() == found[1].rows.tolist()
    assert found[0].costs.tobytes() == found[1].costs.tobytes()


def test_every_product_is_taken_in_full_precision(monkeypatch):
    """Whatever the process asked for: in fewer bits the bounds of the search would not hold."""
    seen = []
    for module, name in ((torch, "mm"), (torch.Tensor, "__matmul__")):
        compute = getattr(module, name)

        def spy(*args, compute=compute, **options):
            seen.append(torch.get_float32_matmul_precision())
            return compute(*args, **options)

        monkeypatch.setattr(module, name, spy)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        vectors = clustered(60, 8, 5)
        Oracle(vectors, C=1.0).search(vectors[:2], vectors[2:4], k=3, ranks=True)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
    assert len(seen) >= 2
    assert set(seen) == {"highest"}
