"""The encoder `ensemble`: its cosine is the mean of its members' cosines."""

import re

import numpy as np
import pytest
import torch

from tests.encoders.contract import check_encoder
from vlscore.encoders import SmallEncoder, load_encoder
from vlscore.errors import InvalidSetting, VLScoreError, WeightsNotFound

VOCABULARIES = {"words": ["clear", "lungs", "effusion"], "findings": ["=effusion", "=positive"]}
TEXTS = ["clear lungs", "effusion", "lungs"]


@pytest.fixture
def folder(tmp_path):
    """Folder of two encoders of which one reads words and one reads findings."""
    for seed, (reading, words) in enumerate(VOCABULARIES.items()):
        member = SmallEncoder.new(words, seed=seed, style="convirt", side=32, reading=reading)
        member.eval().save(tmp_path / reading)
    return tmp_path


def test_an_ensemble_has_the_mean_cosine(folder):
    encoder = load_encoder("ensemble", weights=folder)
    check_encoder(encoder)
    images = list(np.random.default_rng(0).integers(0, 255, (3, 40, 40), np.uint8))
    found = encoder.encode_images(images) @ encoder.encode_reports(TEXTS).T
    members = [load_encoder("small", weights=folder / name) for name in sorted(VOCABULARIES)]
    cosines = [
        torch.nn.functional.cosine_similarity(
            each.encode_images(images)[:, None], each.encode_reports(TEXTS)[None], dim=-1
        )
        for each in members
    ]
    torch.testing.assert_close(found, (cosines[0] + cosines[1]) / 2)


@pytest.mark.parametrize(
    ("name", "changed"), [("views", {"lateral": True}), ("side", {"side": 64})]
)
def test_members_that_differ_are_refused(folder, name, changed):
    words = VOCABULARIES["words"]
    SmallEncoder.new(words, **{"style": "convirt", "side": 32} | changed).save(folder / "z")
    with pytest.raises(InvalidSetting, match=f"differ in --{name}"):
        load_encoder("ensemble", weights=folder)


def test_a_link_to_nothing_is_not_left_out_in_silence(folder):
    (folder / "gone").symlink_to("/nowhere")
    with pytest.raises(WeightsNotFound, match="gone is a link to nothing"):
        load_encoder("ensemble", weights=folder)


def test_a_truth_value_is_no_size(folder):
    card = folder / "words" / "card.json"
    card.write_text(re.sub(r'"dim": \d+', '"dim": true', card.read_text()))
    with pytest.raises(VLScoreError, match="whole numbers from 1"):
        load_encoder("ensemble", weights=folder)


def test_a_folder_without_encoders_is_refused(tmp_path):
    with pytest.raises(WeightsNotFound, match="one subfolder"):
        load_encoder("ensemble", weights=tmp_path)
    with pytest.raises(WeightsNotFound, match="name the folder"):
        load_encoder("ensemble")
