"""Which images of a study enter, and how they are joined."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from tests.data.images.writing import chest, save
from tests.doubles import HashEncoder
from vlscore.data import open_studies
from vlscore.embedding import StudyEmbedder, StudyViews, choose_views
from vlscore.errors import InvalidSetting, InvalidStudy
from vlscore.evaluation import evaluate
from vlscore.metrics import Scorer


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


class WithPrior(HashEncoder):
    """Adds three times the difference to the earlier image."""

    takes_prior = True
    cache_version = "1"

    def embed_images_with_prior(self, pixels, prior):
        return self.embed_images(pixels) + 3 * (pixels - prior).flatten(1)


def _table(folder, with_prior):
    now, before = folder / "now.png", folder / "before.png"
    for k, path in enumerate((now, before)):
        levels = np.random.default_rng(k).integers(0, 255, (16, 12), np.uint8)
        Image.fromarray(levels).save(path)
    row = {"id": "s", "image": now.name, "reference": "Clear lungs.", "candidate": "Effusion."}
    rows = [row | {"prior": before.name}, row | {"id": "t", "prior": None}]
    if not with_prior:
        rows = [row]
    table = folder / "t.jsonl"
    table.write_text("".join(json.dumps(each) + "\n" for each in rows))
    return table, now, before


def test_the_column_prior_gives_the_earlier_image(tmp_path):
    table, now, before = _table(tmp_path, with_prior=True)
    encoder = WithPrior()
    result = evaluate(table, tmp_path / "out", Scorer(encoder, metrics="clipscore"))
    assert "views:first-frontal+prior" in str(result.signatures["clipscore"])
    embedder = StudyEmbedder(encoder).for_table(open_studies(table))
    (one, other) = encoder.encode_images([now, before])

    def studies():
        return [StudyViews((now,), None, before), StudyViews((now,))]

    found = embedder.embed_studies(studies()).vectors
    torch.testing.assert_close(found, torch.stack([one + 3 * (one - other), one]))
    # Without the views that ask for it, the earlier image changes nothing.
    plain = StudyEmbedder(encoder).embed_studies(studies()).vectors
    torch.testing.assert_close(plain, torch.stack([one, one]))


def test_without_the_column_prior_nothing_changes(tmp_path):
    table, *_ = _table(tmp_path, with_prior=False)
    embedder = StudyEmbedder(WithPrior())
    assert embedder.for_table(open_studies(table)) is embedder
    with pytest.raises(InvalidSetting, match="does not take an earlier image"):
        StudyEmbedder(HashEncoder(), views="first-frontal+prior")


def test_an_earlier_image_that_is_absent_fails_its_study(tmp_path):
    _, now, _ = _table(tmp_path, with_prior=True)
    embedder = StudyEmbedder(WithPrior(), views="first-frontal+prior")
    found = embedder.embed_studies([StudyViews((now,), None, tmp_path / "no.png")])
    assert "no.png" in str(found.failures[0])
