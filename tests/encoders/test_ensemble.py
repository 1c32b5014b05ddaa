"""The encoder `ensemble`: its cosine is the mean of its members' cosines."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn.functional import normalize

from tests.encoders.contract import check_encoder
from vlscore.embedding import StudyEmbedder, StudyViews
from vlscore.encoders import SmallEncoder, load_encoder
from vlscore.errors import WeightsNotFound

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


def test_members_read_in_their_own_size_and_views(folder):
    """The vector has each member's own vector, of length 1 before they are joined."""
    words = VOCABULARIES["words"]
    larger = SmallEncoder.new(words, seed=7, style="convirt", side=64, lateral=True)
    larger.eval().save(folder / "z")
    encoder = load_encoder("ensemble", weights=folder)
    check_encoder(encoder)
    paths = []
    for k in range(2):
        levels = np.random.default_rng(k).integers(0, 255, (80, 70), np.uint8)
        Image.fromarray(levels).save(folder / f"{k}.png")
        paths.append(folder / f"{k}.png")
    study = StudyViews(paths, ["PA", "LATERAL"])
    both = StudyEmbedder(encoder, views="frontal+lateral").embed_studies([study]).vectors[0]
    expected = []
    for name in ("findings", "words", "z"):
        member = load_encoder("small", weights=folder / name)
        vector = normalize(member.encode_images(paths[:1]), dim=1)[0] / 2
        if name == "z":
            pixels = member.image_pipeline.load(paths[1], member.image_policy)
            with torch.inference_mode():
                lateral = member.embed_lateral_images(pixels[None])
            vector = vector + normalize(lateral, dim=1)[0] / 2
        expected.append(vector / 3**0.5)
    torch.testing.assert_close(both, torch.cat(expected), atol=1e-5, rtol=1e-5)


def test_a_card_cannot_name_other_code(folder):
    (folder / "z").mkdir()
    (folder / "z" / "card.json").write_text('{"encoder": "os:path"}')
    assert len(load_encoder("ensemble", weights=folder).members) == 2


def test_a_link_to_nothing_is_not_left_out_in_silence(folder):
    (folder / "gone").symlink_to("/nowhere")
    with pytest.raises(WeightsNotFound, match="gone is a link to nothing"):
        load_encoder("ensemble", weights=folder)


def test_a_folder_without_encoders_is_refused(tmp_path):
    with pytest.raises(WeightsNotFound, match="one subfolder"):
        load_encoder("ensemble", weights=tmp_path)
    with pytest.raises(WeightsNotFound, match="name the folder"):
        load_encoder("ensemble")
