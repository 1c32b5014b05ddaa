"""Retrieval: ranks, ties by chance, equal reports as one."""

from itertools import permutations

import numpy as np
import pytest

from vlscore.retrieval import evaluate_retrieval


def test_a_perfect_and_a_blind_encoder():
    vectors = np.eye(20)
    texts = [str(k) for k in range(20)]
    for direction in evaluate_retrieval(vectors, vectors, texts):
        # Every query is the same success, so no resample differs, and there is no interval.
        for found in (*direction.recall.values(), direction.median_rank):
            assert found.estimate == 1.0
            assert np.isnan([found.low, found.high]).all()
    for direction in evaluate_retrieval(np.ones((20, 3)), np.ones((20, 3)), texts):
        shares = {k: share.estimate for k, share in direction.recall.items()}
        assert shares == pytest.approx({1: 0.05, 5: 0.25, 10: 0.5})
        assert direction.median_rank.estimate == 10.5


def test_equal_reports_are_one():
    images = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]])
    reports = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    to_text, to_image = evaluate_retrieval(images, reports, ["normal", "normal", "effusion"])
    assert to_text.recall[1].estimate == 1
    assert (to_text.candidates, to_image.candidates, to_image.queries) == (2, 3, 2)
    assert to_image.recall[1].estimate == 1


def test_ties_agree_with_shuffling():
    rng = np.random.default_rng(0)
    images, reports = rng.integers(0, 2, size=(2, 12, 3)).astype(float)
    texts = [str(k) for k in range(12)]
    to_text, _ = evaluate_retrieval(images, reports, texts)
    unit = [
        x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9) for x in (images, reports)
    ]
    similarity = np.round(unit[0] @ unit[1].T, 12)
    hits = []
    for _ in range(3_000):
        order = np.argsort(-(similarity + 1e-9 * rng.random(similarity.shape)), axis=1)
        hits.append(np.mean([k in order[k, :5] for k in range(12)]))
    assert to_text.recall[5].estimate == pytest.approx(np.mean(hits), abs=0.01)


def test_the_interval_is_that_of_queries_drawn_again():
    rng = np.random.default_rng(1)
    images, reports = rng.standard_normal((2, 60, 3))
    to_text, _ = evaluate_retrieval(images, reports, [str(k) for k in range(60)])
    unit = [x / np.linalg.norm(x, axis=1, keepdims=True) for x in (images, reports)]
    ranks = np.argsort(-(unit[0] @ unit[1].T), axis=1)
    found = np.array([k in ranks[k, :10] for k in range(60)])
    drawn = rng.choice(found, (20_000, 60)).mean(1)
    share = to_text.recall[10]
    assert share.estimate == found.mean()
    assert (share.low, share.high) == pytest.approx(np.quantile(drawn, (0.025, 0.975)), abs=0.02)
    positions = 1 + np.array([ranks[k].tolist().index(k) for k in range(60)])
    assert to_text.median_rank.estimate == np.median(positions)
    assert to_text.median_rank.low < np.median(positions) < to_text.median_rank.high


def test_the_median_rank_counts_ties_as_the_mean_over_all_orders():
    """Three wrong reports level with the right one, and one before them, in every order."""
    images = np.array([[1.0, 0.0]] * 5)
    reports = np.array([[1.0, 0.0], [1.0, 0.5], [1.0, 0.5], [1.0, 0.5], [1.0, 0.5]])
    texts = [str(k) for k in range(5)]
    to_text, _ = evaluate_retrieval(images, reports, texts)
    of_first = 1.0
    of_level = np.mean([1 + 1 + order.index(0) for order in permutations(range(4))])
    assert of_level == 3.5
    assert to_text.median_rank.estimate == np.median([of_first] + [of_level] * 4)


def test_the_rank_of_several_right_images_is_that_of_the_first_in_every_order():
    """Two right images and two wrong ones are level: the first right one stands at 5/3."""
    images = np.ones((4, 2))
    reports = np.ones((4, 2))
    _, to_image = evaluate_retrieval(images, reports, ["a", "a", "b", "b"])
    orders = list(permutations("rrww"))
    expected = np.mean([1 + order.index("r") for order in orders])
    assert to_image.median_rank.estimate == pytest.approx(expected)
