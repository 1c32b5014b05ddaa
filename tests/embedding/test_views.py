"""Which images of a study enter, and how they are joined."""

import numpy as np
import pytest
import torch

from tests.doubles import HashEncoder
from vlscore.embedding.views import choose_views
from vlscore.errors import InvalidStudy
from vlscore.scorer import Item, Scorer


class TwoTowers(HashEncoder):
    has_lateral_tower = True

    def embed_lateral_images(self, pixels):
        return 3 * self.embed_images(pixels)


@pytest.mark.parametrize(
    ("views", "policy", "frontal", "lateral"),
    [
        (["PA", "LL"], "first-frontal", ["a"], []),
        (["LL", "PA"], "first-frontal", ["b"], []),
        ([None, None], "first-frontal", ["a"], []),
        (["LL", "PA"], "mean", ["a", "b"], []),
        (["LL", "PA"], "frontal+lateral", ["b"], ["a"]),
        (["PA", "AP"], "frontal+lateral", ["a"], []),
        (["lateral", "AP"], "frontal+lateral", ["b"], ["a"]),
    ],
)
def test_views_are_chosen_by_policy(views, policy, frontal, lateral):
    assert choose_views(["a", "b"], views, policy) == (frontal, lateral)


def test_a_study_of_lateral_views_only_is_refused():
    with pytest.raises(InvalidStudy, match="all 2 images are lateral"):
        choose_views(["a", "b"], ["LL", "LATERAL"], "first-frontal")


def test_a_study_without_an_image_is_refused():
    with pytest.raises(InvalidStudy, match="no image"):
        choose_views([], None, "mean")


def _vector(encoder, image):
    return encoder.encode_images([image])[0]


def test_mean_and_lateral_embeddings():
    frontal, other = np.random.default_rng(0).integers(0, 256, (2, 8, 8), dtype=np.uint8)
    encoder = TwoTowers()
    a, b = _vector(encoder, frontal), _vector(encoder, other)

    def embed(policy, images, views):
        scorer = Scorer(encoder, device="cpu", views=policy)
        return scorer.embed_items([Item(images, "x", "y", views)]).images[0]

    torch.testing.assert_close(embed("mean", [frontal, other], ["PA", "LL"]), (a + b) / 2)
    both = embed("frontal+lateral", [frontal, other], ["PA", "LL"])
    torch.testing.assert_close(both, (a + 3 * b) / 2)
    missing = embed("frontal+lateral", [frontal], ["PA"])
    torch.testing.assert_close(missing, a / 2)
