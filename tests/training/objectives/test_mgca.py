"""MGCA's losses against their formulas and the authors' code."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.training.objectives.pairs import (
    DIM,
    array,
    both_directions,
    cosine,
    drawn_pairs,
    finding_own,
    places_of,
    softmax,
    with_known_numbers,
    words_of,
)
from vlscore.training.objectives.mgca_loss import Mgca, assign, attended_shares


def lengthened(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def clipped(weights):
    kept = np.clip(weights, np.quantile(weights, 0.1), np.quantile(weights, 0.9))
    return kept / kept.sum()


def expected_token(pairs, temperature):
    weighted, loss = pairs.word_weights is not None, 0.0
    for row, (words, places) in enumerate(zip(words_of(pairs), places_of(pairs), strict=True)):
        words, places = lengthened(words), lengthened(places)
        seen_by_words = lengthened(
            np.stack([softmax(places @ word / temperature) @ places for word in words])
        )
        seen_by_places = np.stack(
            [softmax(words @ place / temperature) @ words for place in places]
        )
        word_weights = np.full(len(words), 1 / len(words))
        place_weights = np.full(len(places), 1 / len(places))
        if weighted:
            word_weights = clipped(array(pairs.word_weights)[row, : len(words)])
            there = slice(None) if pairs.is_patch is None else array(pairs.is_patch)[row]
            place_weights = clipped(array(pairs.patch_weights)[row, there])
        else:
            seen_by_places = lengthened(seen_by_places)
        loss += finding_own(words, seen_by_words, word_weights, temperature)
        loss += finding_own(places, seen_by_places, place_weights, temperature)
    return loss / len(pairs.images)


def expected_prototype(pairs, prototypes, temperature, epsilon, iterations):
    images, reports = lengthened(array(pairs.images)), lengthened(array(pairs.reports))
    prototypes = lengthened(prototypes)
    count, loss = len(images), 0.0

    def codes(vectors):
        table = np.array([[np.exp(v @ c / epsilon) for v in vectors] for c in prototypes])
        table /= table.sum()
        for _ in range(iterations):
            for row in table:
                row *= 1 / len(prototypes) / row.sum()
            for column in table.T:
                column *= 1 / count / column.sum()
        return [column / column.sum() for column in table.T]

    for vectors, others in ((images, reports), (reports, images)):
        for code, other in zip(codes(vectors), others, strict=True):
            loss -= (code * np.log(softmax(prototypes @ other / temperature))).sum()
    return loss / count / 2


OPTIONS = [{}, {"same": True}, {"weights": True}, {"weights": True, "missing_places": True}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_equals_the_formulas(options):
    pairs = drawn_pairs(6, **options)
    objective = with_known_numbers(Mgca(dim=DIM, prototypes=11))
    prototypes = array(objective.prototypes.weight).copy()
    found = objective(pairs)
    scores = [[cosine(a, b) / 0.07 for b in array(pairs.reports)] for a in array(pairs.images)]
    assert found["instance"].item() == pytest.approx(
        sum(both_directions(np.array(scores), array(pairs.same)))
    )
    assert found["token"].item() == pytest.approx(expected_token(pairs, 0.1))
    assert found["prototype"].item() == pytest.approx(
        expected_prototype(pairs, prototypes, 0.2, 0.05, 3)
    )


@pytest.mark.parametrize("places_are_weighed", [False, True])
def test_equals_what_the_authors_code_printed(places_are_weighed):
    # The three losses of HKU-MedAI/MGCA at 680fe4a, on reports without padding; theirs rounds the
    # assignment to float32. Places are weighed for ViT, and not for ResNet.
    pairs = drawn_pairs(9, seed=11, places=16, longest=12, full=True, weights=True)
    if not places_are_weighed:
        pairs = replace(pairs, patch_weights=None)
    found = with_known_numbers(Mgca(dim=DIM, prototypes=20))(pairs)
    assert found["instance"].item() == pytest.approx(23.26397009348048, rel=1e-12)
    token = 1.5530742701818885 if places_are_weighed else 1.5206319881576413
    assert found["token"].item() == pytest.approx(token, rel=1e-12)
    assert found["prototype"].item() == pytest.approx(4.1462301779399215, rel=1e-7)


def test_weights_of_the_parts():
    pairs = drawn_pairs(5)
    torch.manual_seed(0)
    plain = Mgca(dim=DIM).double()
    torch.manual_seed(0)
    halved = Mgca(dim=DIM, token_weight=0.5, prototype_weight=0.25).double()
    before, after = plain(pairs), halved(pairs)
    for part, weight in (("instance", 1), ("token", 0.5), ("prototype", 0.25)):
        assert after[part].item() == pytest.approx(weight * before[part].item())


def test_prototypes_are_shared_out_and_kept_at_length_1():
    objective = Mgca(dim=DIM, prototypes=4).double()
    objective(drawn_pairs())
    lengths = objective.prototypes.weight.norm(dim=1)
    torch.testing.assert_close(lengths, torch.ones_like(lengths))
    scores = torch.linspace(-1, 1, 160, dtype=torch.float64).reshape(40, 4).sin()
    codes = assign(scores.requires_grad_(), epsilon=0.5, iterations=50)
    assert not codes.requires_grad
    torch.testing.assert_close(codes.sum(1), torch.ones(40, dtype=torch.float64))
    torch.testing.assert_close(codes.sum(0), torch.full((4,), 10.0, dtype=torch.float64))


def test_attention_is_clipped_to_its_middle():
    weights = torch.tensor([[0.0, 1.0, 2.0, 100.0, 0.5]], dtype=torch.float64)
    there = torch.tensor([[True, True, True, True, False]])
    found = attended_shares(weights, there, torch.zeros(1, 5, 2, dtype=torch.float64))
    middle = np.array([0.3, 1.0, 2.0, 70.6])
    np.testing.assert_allclose(found[0], [*middle / middle.sum(), 0])
