"""The oracle on arrays: what it reports, guards, approximate search."""

import numpy as np
import pytest

from tests.retrieval.test_exact import brute_force, clustered, cut_corpus
from vlscore import metrics
from vlscore.errors import InvalidIndex, InvalidSetting
from vlscore.retrieval import (
    TARGETS,
    ApproximateIndex,
    Corpus,
    Oracle,
    build_approximate,
    nearer,
    recall,
)
from vlscore.retrieval.approximate import check_factory


def test_a_report_far_along_the_line_is_perfect_and_told_apart():
    """The published score cannot tell g = i + 5 (r - i) from r; foot, rank and guards can."""
    vectors = clustered(400, 16, 1, unit=False)
    image, reference = clustered(2, 16, 2, unit=False)[:, None]
    vectors[7] = image[0] + 5 * (reference[0] - image[0])
    (best, *_) = Oracle(vectors, C=100.0).search(image, reference, ranks=True)[0]
    assert best.row == 7
    assert best.score == pytest.approx(1, abs=1e-4)
    assert best.foot == pytest.approx(5, abs=1e-4)
    assert best.height < 1e-5
    nearer = np.linalg.norm(vectors - reference[0], axis=1) < best.distance
    assert best.distance_rank == nearer.sum() + 1
    for guard in ("segment", "window"):
        guarded = Oracle(vectors, C=100.0, guard=guard).search(image, reference)[0]
        assert guarded[0].row != 7
        if guard == "window":
            assert all(0.5 <= found.foot <= 1.5 for found in guarded)


def test_the_numbers_of_a_hit_are_those_of_its_triangle():
    """Base 4 along the first axis; the row is 3 above it, a quarter of the way."""
    image, reference = np.float32([[0, 0]]), np.float32([[4, 0]])
    vectors = np.float32([[1, 3], [4, 0.5]])
    _, hit = Oracle(vectors, C=12.0).search(image, reference, ranks=True)[0]
    assert (hit.row, hit.score, hit.area, hit.foot, hit.height) == (0, 0.5, 6.0, 0.25, 0.75)
    assert (hit.distance, hit.distance_rank) == (pytest.approx(18**0.5), 2)


def test_the_window_holds_its_edges():
    """Feet of .5 and 1.5 qualify; the next float32 beyond does not."""
    image, reference = np.float32([[0, 0]]), np.float32([[2, 0]])
    below, above = np.nextafter(np.float32([1, 3]), np.float32([0, 4]))
    vectors = np.float32([[1, 1], [below, 1], [3, 1], [above, 1], [2, 1]])
    found = Oracle(vectors, C=9.0, guard="window").search(image, reference)[0]
    assert {hit.row: hit.foot for hit in found} == {0: 0.5, 2: 1.5, 4: 1.0}


SEARCHED = [metrics.find_metric(name) for name, one in TARGETS.items() if one.is_metric]
WEIGHED = [m(image=w) for m in SEARCHED if "image" in m.settings for w in (0.3, 2.5)]


@pytest.mark.parametrize("metric", [*SEARCHED, *WEIGHED], ids=str)
def test_the_oracle_of_every_metric_ranks_and_scores_as_the_metric_does(metric):
    vectors = clustered(600, 12, 8, unit=False)
    image, reference = clustered(2, 12, 9, unit=False)[:, None]
    same = np.ones((600, 1), np.float32)
    texts = [""] * 600
    triples = metrics.EmbeddingTriples(same * image, vectors, same * reference, "enc:x", 100.0)
    values = metrics.compute([metric], texts, texts, embeddings=triples)[str(metric)]
    oracle = Oracle(vectors, metric=metric, C=100.0)
    found = oracle.search(image, reference, k=40)[0]
    expected = np.argsort(-metric.sign * values, kind="stable")[:40]
    assert [hit.row for hit in found] == expected.tolist()
    np.testing.assert_allclose([hit.score for hit in found], values[expected], rtol=1e-9)


def test_a_metric_has_its_own_parameters_and_texts_are_searched_elsewhere():
    vectors = clustered(50, 4, 0, unit=False)
    image, reference = clustered(2, 4, 1, unit=False)[:, None]
    (best,) = Oracle(vectors, metric="vlscore(C=3)", C=9.0).search(image, reference, k=1)[0]
    assert best.score == pytest.approx(1 - best.area / 3)
    with pytest.raises(InvalidSetting, match="greater than 0"):
        Oracle(vectors, metric="image-gain-distance(image=-1)")
    with pytest.raises(InvalidSetting, match="bleu-1 is of texts"):
        Oracle(vectors, metric="bleu-1")


@pytest.mark.parametrize("factory", ["IVF16,Flat", "IVF16,PQ8x4", "HNSW16"])
def test_approximate_search_finds_nearly_all(tmp_path, factory):
    vectors = clustered(2_000, 16, 6, unit=False)
    images, references = clustered(60, 16, 7, unit=False).reshape(2, 30, 16)
    build_approximate(vectors, factory, tmp_path / "index.faiss")
    corpus = Corpus(vectors)
    approximate = ApproximateIndex(tmp_path / "index.faiss", corpus)
    oracle = Oracle(corpus, C=1.0, approximate=approximate)
    assert recall(oracle, images, references) >= 0.95
    exact = Oracle(corpus, C=1.0).hits(images, references, k=1)
    hits = oracle.hits(images, references, k=1, excluded={0: [int(exact.rows[0, 0])]})
    assert hits.rows[0, 0] != exact.rows[0, 0]
    same = hits.rows[1:] == exact.rows[1:]
    assert (hits.costs[1:][same] == exact.costs[1:][same]).all()


def test_half_of_the_lists_are_visited_unless_another_number_is_given(tmp_path):
    vectors = np.random.default_rng(6).normal(size=(2_000, 16)).astype(np.float32)
    queries = np.random.default_rng(7).normal(size=(2, 30, 16)).astype(np.float32)
    build_approximate(vectors, "IVF15,Flat", tmp_path / "index.faiss")
    corpus = Corpus(vectors)

    def rows(effort):
        approximate = ApproximateIndex(tmp_path / "index.faiss", corpus, depth=900, effort=effort)
        return Oracle(corpus, C=1.0, approximate=approximate).hits(*queries, k=900).rows

    # Half of 15, rounded up.
    by_effort = {effort: rows(effort).tolist() for effort in (7, 8, 9)}
    assert [effort for effort in by_effort if by_effort[effort] == rows(None).tolist()] == [8]


def test_recall_is_measured_where_it_is_low(tmp_path):
    """Four codes for 3,000 rows: the index finds few, and the oracle says so."""
    vectors = clustered(3_000, 16, 6, unit=False)
    images, references = clustered(60, 16, 7, unit=False).reshape(2, 30, 16)
    build_approximate(vectors, "PQ1x2", tmp_path / "index.faiss")
    corpus = Corpus(vectors)
    oracle = Oracle(
        corpus, C=1.0, approximate=ApproximateIndex(tmp_path / "index.faiss", corpus, depth=20)
    )
    found = oracle.hits(images, references, k=5).rows
    shares = []
    for query in range(30):
        costs = brute_force("none", vectors, images[query], references[query])
        best = np.argsort(costs, kind="stable")[:5]
        shares.append(np.isin(best, found[query]).mean())
    assert 0 < np.mean(shares) < 0.8
    assert recall(oracle, images, references, k=5) == pytest.approx(np.mean(shares))


def test_a_faiss_file_of_other_vectors_or_none_is_refused(tmp_path):
    vectors, path = clustered(2_000, 16, 6), tmp_path / "index.faiss"
    build_approximate(vectors, "HNSW4", path)
    for others in (vectors[:-1], vectors[:, :-1].copy()):
        with pytest.raises(InvalidIndex, match="holds 2000 rows of 16, the vectors are"):
            ApproximateIndex(path, Corpus(others))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(InvalidIndex, match="is no FAISS index"):
        ApproximateIndex(path, Corpus(vectors))


@pytest.mark.parametrize("factory", ["L2norm,IVF4,PQ16x4fs", "LSH", "Pad512,IVF4,PQ16x4"])
def test_an_index_shorter_than_its_transformations_numbers_is_usable(tmp_path, factory):
    """FAISS counts d_in * d_out numbers for each of them, which the file does not hold."""
    vectors, path = clustered(600, 256, 6), tmp_path / "index.faiss"
    build_approximate(vectors, factory, path)
    assert path.stat().st_size < 4 * 256 * 256
    images, references = clustered(60, 256, 7).reshape(2, 30, 256)
    oracle = Oracle(Corpus(vectors), C=1.0, approximate=ApproximateIndex(path, Corpus(vectors)))
    assert recall(oracle, images, references) >= 0.9


@pytest.mark.parametrize("fault", ["read_index", "search"])
def test_an_index_that_cannot_be_used_is_refused_when_it_is_built(tmp_path, monkeypatch, fault):
    import faiss

    def fails(*_):
        raise RuntimeError("Error: too large")

    if fault == "read_index":
        monkeypatch.setattr(faiss, "read_index", fails)
    else:
        monkeypatch.setattr(faiss.IndexHNSWFlat, "search", fails)
    with pytest.raises(InvalidSetting, match=r"builds an index 'HNSW4' and cannot use it.*large"):
        build_approximate(clustered(500, 16, 6), "HNSW4", tmp_path / "index.faiss")
    assert not list(tmp_path.iterdir())


def test_factory_strings_are_checked_before_work():
    check_factory("IVF4096,PQ8x8", 16)
    for factory in ("IVF4096,Nonsense", "", "Flat Flat"):
        with pytest.raises(InvalidSetting, match="FAISS has no index"):
            check_factory(factory, 16)


@pytest.mark.parametrize("length", [1.0, 1e-25])
def test_ranks_count_the_rows_that_are_nearer(length):
    vectors = clustered(700, 8, 11) * np.float32(length)
    vectors[300:400] = vectors[5]
    corpus = cut_corpus(vectors, 128)
    references = clustered(3, 8, 12) * np.float32(length)
    exact = np.linalg.norm(vectors.astype(float)[None] - references.astype(float)[:, None], axis=2)
    limits = [[0.0, float(exact[q].min()), float(norms[5]), 9.0] for q, norms in enumerate(exact)]
    expected = [[int((exact[q] < limit).sum()) for limit in limits[q]] for q in range(3)]
    assert nearer(corpus, references, limits) == expected
    assert nearer(corpus, references, [[], [9.0], []]) == [[], [700], []]
