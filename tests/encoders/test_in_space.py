"""An encoder in a shared space: the contract, the numbers, a folder that commands can name."""

import json

import numpy as np
import pytest
import torch

from tests.conftest import REPOSITORY
from vlscore.data import render, sample_studies
from vlscore.encoders import SharedSpace, load_encoder
from vlscore.encoders.models.in_space import InSharedSpace
from vlscore.errors import IncompatibleCheckpoint, WeightsNotFound
from vlscore.testing import check_encoder

NAME = "vlscore.encoders.models.in_space:InSharedSpace"


@pytest.fixture(scope="module")
def studies():
    return list(sample_studies(5, 24))


@pytest.fixture(scope="module")
def pictures(studies):
    return [render(study.scene, 128).astype(np.float32) / np.float32(4095) for study in studies]


@pytest.fixture(scope="module")
def encoder(studies, pictures):
    below = load_encoder("phantom")
    return InSharedSpace.fit(below, pictures, [study.reference for study in studies])


def test_the_contract_of_every_encoder_is_kept(encoder):
    check_encoder(encoder)


def test_embeddings_are_those_of_the_space(encoder, studies, pictures):
    texts = [study.reference for study in studies]
    below = encoder.encoder
    images, reports = below.encode_images(pictures), below.encode_reports(texts)
    space = SharedSpace.fit(images, reports)
    found = encoder.encode_images(pictures).double()
    torch.testing.assert_close(found, space.images(images), rtol=1e-5, atol=1e-5)
    found = encoder.encode_reports(texts).double()
    torch.testing.assert_close(found, space.reports(reports), rtol=1e-5, atol=1e-5)
    assert encoder.checksum != below.checksum
    assert (encoder.card.C, encoder.card.normalised) == (None, False)


def test_another_space_has_another_checksum(encoder, studies, pictures):
    texts = [study.reference for study in studies]
    other = InSharedSpace.fit(encoder.encoder, pictures, texts, ridge=3.0)
    assert other.checksum != encoder.checksum


def test_saved_it_is_found_by_name_and_takes_a_measured_C(encoder, studies, pictures, tmp_path):
    encoder.save(tmp_path)
    loaded = load_encoder(NAME, weights=tmp_path)
    assert loaded.checksum == encoder.checksum
    assert torch.equal(loaded.encode_images(pictures), encoder.encode_images(pictures))
    card = tmp_path / "card.json"
    card.write_text(json.dumps(json.loads(card.read_text()) | {"C": 7.5, "C_source": "a table"}))
    loaded = load_encoder(NAME, weights=tmp_path)
    assert (loaded.card.C, loaded.card.C_source) == (7.5, "a table")


def test_weights_below_are_named_by_their_path(studies, pictures, tmp_path):
    folder = REPOSITORY / "weights" / "phantom"
    below = load_encoder("phantom", weights=folder)
    texts = [study.reference for study in studies]
    InSharedSpace.fit(below, pictures, texts).save(tmp_path, weights=folder)
    assert json.loads((tmp_path / "card.json").read_text())["below_weights"] == str(folder)
    assert load_encoder(NAME, weights=tmp_path).encoder.checksum == below.checksum


def test_a_folder_that_does_not_fit_is_refused(encoder, tmp_path):
    with pytest.raises(WeightsNotFound, match=r"space\.safetensors"):
        load_encoder(NAME, weights=tmp_path)
    encoder.save(tmp_path)
    card = tmp_path / "card.json"
    facts = json.loads(card.read_text())
    card.write_text(json.dumps(facts | {"below_checksum": "0" * 64}))
    with pytest.raises(IncompatibleCheckpoint, match="fit it anew"):
        load_encoder(NAME, weights=tmp_path)
    card.write_text(json.dumps({"below": 3}))
    with pytest.raises(IncompatibleCheckpoint, match="does not name"):
        load_encoder(NAME, weights=tmp_path)
    card.write_text(json.dumps(facts))
    from safetensors.torch import save_file

    save_file({"image_mean": torch.zeros(3)}, tmp_path / "space.safetensors")
    with pytest.raises(IncompatibleCheckpoint, match=f"{encoder.card.dim} dimensions"):
        load_encoder(NAME, weights=tmp_path)
