"""Exact search finds what brute force in float64 finds."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vlscore import metrics as similarity
from vlscore.errors import InvalidSetting
from vlscore.retrieval import Corpus, Cosine, ImageCentredCosine, Line, search
from vlscore.retrieval.corpus import dot, projected


def clustered(n, d, seed, unit=True, offset=0.0):
    """Vectors in clusters, as report embeddings lie."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(n // 20, 1), d))
    vectors = centres[rng.integers(len(centres), size=n)] + 0.3 * rng.standard_normal((n, d))
    if unit:
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors + offset).astype(np.float32)


def cut_corpus(vectors, chunk):
    """A corpus whose products are computed so many rows at a time."""
    corpus = Corpus(vectors)
    corpus.chunk = chunk
    return corpus


def objective(name, images, references, corpus):
    if name == "cosine":
        return Cosine(references, corpus)
    if name == "image-centred":
        return ImageCentredCosine(images, references, corpus)
    if name == "point":
        points = (images.astype(np.float64) + references) / 2
        return Line(points, points, corpus, of_area=False)
    if name in ("height", "segment-distance"):
        guard = "none" if name == "height" else "segment"
        return Line(images, references, corpus, guard, of_area=False)
    return Line(images, references, corpus, name)


def brute_force(name, vectors, image, reference):
    """Costs (n,) by the public kernels in float64."""
    i, r = (torch.from_numpy(x).double() for x in (image, reference))
    g = torch.from_numpy(vectors).double()
    if name == "cosine":
        return -similarity.cosine(g, r[None]).numpy()
    if name == "image-centred":
        return -similarity.image_centred_cosine(i[None], g, r[None]).numpy()
    for same, function in (
        ("point", similarity.midpoint_distance),
        ("height", similarity.height),
        ("segment-distance", similarity.segment_distance),
    ):
        if name == same:
            return function(i[None], g, r[None]).numpy()
    area = similarity.triangle_area(i[None], g, r[None]).numpy()
    foot = similarity.foot(i[None], g, r[None]).numpy()
    base = float((r - i).norm())
    if name == "segment":
        beyond = base * (np.maximum(-foot, 0) + np.maximum(foot - 1, 0))
        return 0.5 * base * np.hypot(2 * area / base, beyond)
    if name == "window":
        return np.where((foot < 0.5) | (foot > 1.5), np.inf, area)
    return area


NAMES = ["none", "segment", "window", "cosine", "image-centred"]
NAMES += ["height", "segment-distance", "point"]
REGIMES = {"unit": {}, "lengths": {"unit": False}, "offset": {"offset": 5.0}}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("regime", REGIMES)
def test_same_rows_as_brute_force(name, regime):
    vectors = clustered(5_500, 24, 1, **REGIMES[regime])
    queries = clustered(8, 24, 2, **REGIMES[regime])
    images, references = queries[:4], queries[4:]
    corpus = cut_corpus(vectors, 1_003)
    hits = search(corpus, objective(name, images, references, corpus), 10)
    for query in range(4):
        costs = brute_force(name, vectors, images[query], references[query])
        expected = np.argsort(costs, kind="stable")[:10]
        expected = expected[np.isfinite(costs[expected])]
        found = hits.rows[query][hits.rows[query] >= 0]
        assert found.tolist() == expected.tolist()
        np.testing.assert_allclose(
            hits.costs[query][: len(found)], costs[found], rtol=1e-11, atol=1e-14
        )


@pytest.mark.parametrize("name", NAMES)
def test_ties_fall_in_corpus_order(name):
    """Hundreds of equal vectors, more than any shortlist: the first ones of the corpus win."""
    few = clustered(8, 16, 3)
    vectors = np.concatenate([few, few[np.random.default_rng(0).integers(8, size=5_600)]])
    images, references = clustered(1, 16, 4), few[5:6] + np.float32(0.01)
    corpus = cut_corpus(vectors, 1_003)
    hits = search(corpus, objective(name, images, references, corpus), 12)
    winner = vectors[hits.rows[0, 0]]
    equal = np.flatnonzero((vectors == winner).all(1))
    assert len(equal) > 500
    assert hits.rows[0].tolist() == equal[:12].tolist()
    assert hits.second_passes == 1


SCALES = [1e-42, 1e-30, 1e-25, 1e-22, 1e-19, 1e-8, 1.0, 1e15]


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 400),
    d=st.integers(1, 30),
    k=st.integers(1, 40),
    chunk=st.sampled_from([1, 31, 64, 500]),
    name=st.sampled_from(NAMES),
    scales=st.lists(st.sampled_from(SCALES), min_size=1, max_size=3),
    few=st.booleans(),
)
@example(  # a line through the origin, and rows shorter than the rounding of its origin
    seed=1, n=2, d=5, k=1, chunk=1, name="none", scales=[1e-42, 1.0, 1e-42], few=False
)
@example(  # rows whose squares are 0 in float32, so that their largest norm seemed to be 0
    seed=0, n=154, d=20, k=18, chunk=1, name="window", scales=[1e-25, 1e-42], few=True
)
def test_search_is_sorting_by_cost_and_row(seed, n, d, k, chunk, name, scales, few):
    """Rows of any length, repeated, excluded, at the vertices; several queries, one with i = r."""
    rng = np.random.default_rng(seed)
    chunk = max(chunk, n // 40)

    def draw(count):
        vectors = rng.integers(-1, 2, (count, d)) if few else rng.standard_normal((count, d))
        return (vectors * rng.choice(scales, (count, 1))).astype(np.float32)

    vectors, images, references = draw(n), draw(5), draw(5)
    vectors[rng.integers(n, size=n // 3)] = vectors[0]
    references[0] = images[0]
    images[1], references[2] = vectors[rng.integers(n, size=2)]
    corpus = cut_corpus(vectors, chunk)
    goal = objective(name, images, references, corpus)
    numbers = np.arange(n)
    barred = {query: rng.choice(numbers, rng.integers(n + 1), False) for query in (0, 3)}
    hits = search(corpus, goal, k, {query: rows.tolist() for query, rows in barred.items()})
    for query in range(5):
        costs = goal.costs(query, vectors.astype(np.float64))
        costs[barred.get(query, numbers[:0])] = np.inf
        order = np.argsort(costs, kind="stable")[:k]
        order = order[np.isfinite(costs[order])]
        assert hits.rows[query][: len(order)].tolist() == numbers[order].tolist()
        assert hits.costs[query][: len(order)].tobytes() == costs[order].tobytes()
        assert (hits.rows[query][len(order) :] == -1).all()
        assert np.isinf(hits.costs[query][len(order) :]).all()


def test_only_the_queries_in_doubt_are_searched_twice():
    """A hundred queries among ordinary rows, three of them also among hundreds of equal ones."""
    vectors = clustered(3_000, 16, 20)
    vectors[1_000:2_000:4] = vectors[7]
    queries = clustered(202, 16, 21)
    images, references = queries[:101], queries[101:]
    references[[0, 70, 100]] = vectors[7] + np.float32(1e-3)
    corpus = cut_corpus(vectors, 700)
    line = Line(images, references, corpus, "window")
    hits = search(corpus, line, 5)
    assert hits.rows[[0, 70, 100]].tolist() == [[7, 1_000, 1_004, 1_008, 1_012]] * 3
    assert 3 <= hits.second_passes < 20
    for query in range(101):
        costs = line.costs(query, vectors.astype(np.float64))
        assert hits.rows[query].tolist() == np.argsort(costs, kind="stable")[:5].tolist()


@pytest.mark.parametrize("name", ["height", "segment-distance"])
def test_distances_from_the_point_where_image_and_reference_coincide(name):
    vectors = clustered(50, 8, 9)
    corpus = Corpus(vectors)
    hits = search(corpus, objective(name, vectors[:1], vectors[:1], corpus), 50)
    distances = np.linalg.norm(vectors.astype(float) - vectors[0].astype(float), axis=1)
    assert hits.rows[0].tolist() == np.argsort(distances, kind="stable").tolist()
    np.testing.assert_allclose(hits.costs[0], np.sort(distances), rtol=1e-12)


@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e25])
def test_numbers_beyond_float32_are_refused(poison):
    vectors = clustered(5, 8, 1)
    with pytest.raises(InvalidSetting, match="not finite"):
        Line(np.full((1, 8), poison), vectors[:1], Corpus(vectors))
    vectors[3, 2] = poison
    with pytest.raises(InvalidSetting, match="not finite"):
        Corpus(vectors)


def test_bounds_hold_where_digits_are_lost():
    """Rows near the image, whose angle cancels, and rows whose squares vanish in float32."""
    rng = np.random.default_rng(16)
    near = (5 + 2e-4 * rng.standard_normal((400, 32))).astype(np.float32)
    image, reference = np.full((1, 32), 5, np.float32), clustered(1, 32, 17)
    short = (1e-19 * rng.standard_normal((400, 32))).astype(np.float32)
    short[::7] = 0
    for name, vectors in (("image-centred", near), ("cosine", short)):
        corpus = Corpus(vectors)
        goal = objective(name, image, reference, corpus)
        products = [torch.from_numpy(vectors) @ torch.from_numpy(w).T for w in goal.weights]
        keys = goal.keys(tuple(products), corpus.squared_norms[:, None], np.arange(1))
        bounds = goal.bound(keys.T.double().numpy(), np.arange(1))[0]
        costs = goal.costs(0, vectors.astype(np.float64))
        assert (bounds <= costs).all(), name
        order = np.argsort(costs, kind="stable")[:9]
        assert search(corpus, goal, 9).rows[0].tolist() == order.tolist()


@pytest.mark.parametrize("near", [1, 1e-9])
def test_feet_agree_with_the_public_kernels(near):
    """Rows around both vertices, and so near them that projecting from the other would show."""
    image, reference, *rest = clustered(40, 16, 12).astype(np.float64)
    rows = np.array([vertex + near * row for row in rest for vertex in (image, reference)])
    edge = reference - image
    foot, height = projected(image, rows, reference, edge, dot(edge, edge))
    i, r, g = (torch.from_numpy(x) for x in (image[None], reference[None], rows))
    np.testing.assert_allclose(foot, similarity.foot(i, g, r), rtol=1e-12, atol=1e-20)
    base = float(np.linalg.norm(reference - image))
    np.testing.assert_allclose(0.5 * base * height, similarity.triangle_area(i, g, r), rtol=1e-12)
