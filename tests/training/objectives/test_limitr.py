"""LIMITR's losses against their formulas and the authors' code."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.training.objectives.pairs import (
    LOCAL_DIM,
    array,
    attended,
    both_directions,
    cosine,
    drawn_pairs,
    finding_own,
    places_of,
    softmax,
    total,
    with_known_numbers,
    words_of,
)
from vlscore.training.objectives.limitr_loss import Limitr


class Reference:
    """The losses by the formulas, one pair, word and place at a time."""

    def __init__(self, objective, pairs):
        self.known = {key: array(value) for key, value in objective.state_dict().items()}
        self.pairs, self.temp1 = pairs, objective.temp1
        self.images, self.reports = places_of(pairs), words_of(pairs)

    def linear(self, name, vector):
        return self.known[f"{name}.weight"] @ vector + self.known[f"{name}.bias"]

    def significance(self, similarities):
        mean = np.tanh(self.linear("significance.embedding_global.0", similarities.mean(0)))
        scores = [
            self.linear(
                "significance.embedding_common",
                mean * np.tanh(self.linear("significance.embedding_local.0", one)),
            )[0]
            for one in similarities
        ]
        return softmax(np.array(scores))

    def judged(self, name, queries, context):
        products = [q * attended(q, queries, context, self.temp1) for q in queries]
        directions = np.stack([product / np.linalg.norm(product) for product in products])
        summary = self.significance(directions) @ directions
        logit = self.linear(name, summary / np.linalg.norm(summary))[0]
        return 1 / (1 + np.exp(-logit))

    def external(self, temp3):
        losses = []
        for name in ("judge_words", "judge_places"):
            scores = np.empty((len(self.images), len(self.reports)))
            for i, places in enumerate(self.images):
                for j, words in enumerate(self.reports):
                    queries, context = (words, places) if "words" in name else (places, words)
                    scores[i, j] = self.judged(name, queries, context)
            losses.append(sum(both_directions(temp3 * scores, array(self.pairs.same))))
        return sum(losses) / 2

    def internal(self, temperature):
        loss = 0.0
        for places, words in zip(self.images, self.reports, strict=True):
            by_words = np.stack([attended(w, words, places, self.temp1) for w in words])
            by_places = np.stack([attended(p, places, words, self.temp1) for p in places])
            products = places * by_places
            weights = self.significance(products / np.linalg.norm(products, axis=0))
            even = np.full(len(words), 1 / len(words))
            loss += finding_own(words, by_words, even, temperature) / 2
            loss += finding_own(places, by_places, weights, temperature) / 2
        return loss / len(self.images) / 10


@pytest.mark.parametrize("options", [{}, {"same": True}, {"missing_places": True}], ids=str)
def test_equals_the_formulas(options):
    pairs = drawn_pairs(5, **options)
    objective = with_known_numbers(Limitr(local_dim=LOCAL_DIM))
    found, reference = objective(pairs), Reference(objective, pairs)
    scores = [[10 * cosine(a, b) for b in array(pairs.reports)] for a in array(pairs.images)]
    expected = sum(both_directions(np.array(scores), array(pairs.same)))
    assert found["global"].item() == pytest.approx(expected)
    assert found["local_external"].item() == pytest.approx(reference.external(10))
    assert found["local_internal"].item() == pytest.approx(reference.internal(0.1))


def test_equals_what_the_authors_code_printed():
    # calc_loss of gefend/LIMITR at bd53a77, on reports without padding; the weights of words
    # within a pair are float32 there.
    pairs = drawn_pairs(9, seed=11, places=16, longest=12, full=True)
    found = with_known_numbers(Limitr(local_dim=LOCAL_DIM))(pairs)
    assert found["global"].item() == pytest.approx(16.620706924586862, rel=1e-12)
    assert found["local_external"].item() == pytest.approx(5.247626160921921, rel=1e-12)
    assert found["local_internal"].item() == pytest.approx(0.5021614731792459, rel=1e-7)


def test_between_pairs_equals_the_authors_code_for_reports_of_any_length():
    pairs = drawn_pairs(9, seed=11, places=16, longest=12)
    found = with_known_numbers(Limitr(local_dim=LOCAL_DIM))(pairs)
    assert found["local_external"].item() == pytest.approx(4.966398831200522, rel=1e-12)


def test_dropout_is_for_training_alone():
    objective, pairs = Limitr(local_dim=LOCAL_DIM).double(), drawn_pairs()
    torch.manual_seed(1)
    first, second = total(objective(pairs)), total(objective(pairs))
    assert first != second
    torch.manual_seed(1)
    assert total(objective(pairs)) == first
    objective.eval()
    assert total(objective(pairs)) == total(objective(pairs))


def test_without_words_only_the_global_loss_is_left():
    pairs = drawn_pairs(4)
    found = Limitr(local_dim=LOCAL_DIM).double()(
        replace(pairs, is_word=torch.zeros_like(pairs.is_word))
    )
    assert found["global"] > 0
    assert found["local_external"].item() == found["local_internal"].item() == 0
