"""ConVIRT's loss against its formula."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.training.objectives.pairs import array, cosine, drawn_pairs, total
from vlscore.errors import InvalidSetting
from vlscore.training.objectives.contrastive import Convirt


def expected(pairs, temperature, weight):
    images, reports, same = (array(x) for x in (pairs.images, pairs.reports, pairs.same))
    count, total = len(images), 0.0
    for i in range(count):
        own = np.exp(cosine(images[i], reports[i]) / temperature)
        others = [k for k in range(count) if k == i or not same[i, k]]
        reports_seen = sum(np.exp(cosine(images[i], reports[k]) / temperature) for k in others)
        images_seen = sum(np.exp(cosine(images[k], reports[i]) / temperature) for k in others)
        total -= weight * np.log(own / reports_seen) + (1 - weight) * np.log(own / images_seen)
    return total / count


@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize(("temperature", "weight"), [(0.1, 0.75), (0.5, 0.2), (1.0, 1.0)])
def test_equals_the_formula(same, temperature, weight):
    pairs = drawn_pairs(same=same)
    parts = Convirt(temperature=temperature, image_weight=weight)(pairs)
    assert total(parts) == pytest.approx(expected(pairs, temperature, weight))


def test_defaults_are_the_papers():
    pairs = drawn_pairs(seed=3)
    assert total(Convirt()(pairs)) == pytest.approx(expected(pairs, 0.1, 0.75))


def test_equals_what_another_implementation_printed():
    # NTXentLoss of edreisMD/ConVIRT-pytorch at c99ca5f, in float64.
    parts = Convirt()(drawn_pairs(9, seed=11))
    assert total(parts) == pytest.approx(6.868137248782449, rel=1e-12)


def test_the_length_of_a_vector_does_not_count():
    pairs = drawn_pairs()
    longer = type(pairs)(pairs.images * 7, pairs.reports * 0.1, pairs.same)
    assert float(Convirt()(longer)["image_to_report"]) == pytest.approx(
        float(Convirt()(pairs)["image_to_report"])
    )


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_a_share_is_between_0_and_1(weight):
    with pytest.raises(InvalidSetting, match="image_weight must be 0 to 1"):
        Convirt(image_weight=weight)


def test_without_negatives_there_is_nothing_to_learn():
    pairs = drawn_pairs(3)
    assert total(Convirt()(replace(pairs, same=torch.ones(3, 3, dtype=torch.bool)))) == 0
