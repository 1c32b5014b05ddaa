"""Which images of a study enter, and how they are joined."""

import numpy as np
import pytest
import torch

from tests.data.images.writing import chest, save
from tests.doubles import HashEncoder
from vlscore.embedding import StudyEmbedder, StudyViews, choose_views
from vlscore.errors import InvalidStudy


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
        # A stated frontal view goes before one that nothing is known of.
        ([None, "PA"], "first-frontal", ["b"], []),
    ],
)
def test_views_are_chosen_by_policy(views, policy, frontal, lateral):
    chosen = choose_views(["a", "b"], views, policy)
    assert (chosen.frontal, chosen.lateral) == (frontal, lateral)


@pytest.mark.parametrize(
    ("views", "policy", "guessed"),
    [
        ([None, None], "first-frontal", True),
        ([None, "LL"], "first-frontal", False),
        ([None, "PA"], "first-frontal", False),
        ([None, None], "mean", False),
    ],
)
def test_a_frontal_view_that_is_guessed_is_marked(views, policy, guessed):
    assert choose_views(["a", "b"], views, policy).guessed == guessed
    assert not choose_views(["a"], None, policy).guessed


def test_a_study_of_lateral_views_only_is_refused():
    with pytest.raises(InvalidStudy, match="all 2 are lateral views"):
        choose_views(["a", "b"], ["LL", "LATERAL"], "first-frontal")
    with pytest.raises(InvalidStudy, match="its image is a lateral view"):
        choose_views(["a"], ["LL"], "first-frontal")


def test_a_lone_lateral_dicom_is_not_taken_for_a_frontal_one(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 4000, (64, 64), dtype=np.uint16)
    lateral = save(chest(pixels, ViewPosition="LL"), tmp_path / "lateral.dcm")
    frontal = save(chest(pixels, ViewPosition="PA"), tmp_path / "frontal.dcm")
    studies = [StudyViews([lateral]), StudyViews([frontal]), StudyViews([lateral, frontal])]
    embedded = StudyEmbedder(HashEncoder()).embed_studies(studies)
    assert list(embedded.failures) == [0]
    assert "its image is a lateral view" in str(embedded.failures[0])
    torch.testing.assert_close(embedded.vectors[1], embedded.vectors[2])
    mean = StudyEmbedder(HashEncoder(), views="mean").embed_studies([StudyViews([lateral])])
    assert not mean.failures


def test_as_many_views_as_images_are_asked_for():
    with pytest.raises(InvalidStudy, match="2 images and 1 views"):
        choose_views(["a", "b"], ["PA"], "first-frontal")


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
        embedder = StudyEmbedder(encoder, views=policy)
        return embedder.embed_studies([StudyViews(images, views)]).vectors[0]

    torch.testing.assert_close(embed("mean", [frontal, other], ["PA", "LL"]), (a + b) / 2)
    both = embed("frontal+lateral", [frontal, other], ["PA", "LL"])
    torch.testing.assert_close(both, (a + 3 * b) / 2)
    missing = embed("frontal+lateral", [frontal], ["PA"])
    torch.testing.assert_close(missing, a / 2)
