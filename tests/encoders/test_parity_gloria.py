"""GLoRIA and LIMITR, which has its towers, against what their authors' code returned."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.encoders.goldens import (
    TOLERANCE,
    Golden,
    assert_same,
    forget_foreign_classes,
    load_as_authors,
    omegaconf_dict,
    row_error,
    save_lightning,
)
from vlscore.encoders import JointEncoder


@pytest.fixture(scope="module", params=["gloria", "limitr"])
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden.of(request.param)


@pytest.fixture(scope="module")
def whole(golden: Golden, shared: Path) -> Golden:
    return golden.whole(shared)


@pytest.fixture(scope="module")
def encoder(golden: Golden, checkpoints: Path) -> JointEncoder:
    path = save_lightning(checkpoints / "model.ckpt", golden.tensors(), omegaconf_dict())
    forget_foreign_classes()
    return load_as_authors(golden.name, path, golden.vocabulary(checkpoints))


def test_parity(encoder: JointEncoder, golden: Golden) -> None:
    assert_same(encoder, golden)


def test_parity_on_all_inputs(encoder: JointEncoder, whole: Golden) -> None:
    assert_same(encoder, whole)


def test_truncation_is_flagged(encoder: JointEncoder, whole: Golden) -> None:
    assert encoder.tokenize(whole.texts).truncated.tolist() == [False, True] + 4 * [False]


def test_words(encoder: JointEncoder, whole: Golden) -> None:
    with torch.inference_mode():
        words = encoder.embed_words(encoder.tokenize(whole.texts))
    assert [len(row) for row in words.texts] == whole["n_words"].tolist()
    assert [" ".join(row) for row in words.texts] == [
        row.split(" [PAD]")[0] for row in whole["words"]
    ]
    by_dimension = words.embeddings.transpose(1, 2)
    assert by_dimension.shape == tuple(whole["txt_local_shape"])
    assert row_error(by_dimension[:, :16, :12], whole["txt_local_slice"]) <= TOLERANCE
    np.testing.assert_allclose(by_dimension.mean(1), whole["txt_local_mean"], atol=1e-6)


def test_patches(encoder: JointEncoder, whole: Golden) -> None:
    pixels = torch.stack([encoder.image_pipeline.as_authors(path) for path in whole.images])
    with torch.inference_mode():
        patches = encoder.embed_patches(pixels)
    assert patches.shape == tuple(whole["img_local_shape"])
    assert row_error(patches.mean((2, 3)), whole["img_local_mean"]) <= TOLERANCE
    assert row_error(patches[:, :8, ::6, ::6], whole["img_local_slice"]) <= TOLERANCE


def test_report_without_words(encoder: JointEncoder) -> None:
    tokens = encoder.tokenize(["", " 1. ", "."])
    assert tokens.lengths.tolist() == [2, 2, 2]
    assert encoder.encode_tokens(tokens).isfinite().all()


@pytest.mark.parametrize("golden", ["limitr"], indirect=True)
def test_frontal_and_lateral_mean(encoder: JointEncoder, whole: Golden) -> None:
    pixels = torch.stack([encoder.image_pipeline.as_authors(path) for path in whole.images])
    with torch.inference_mode():
        lateral = encoder.embed_lateral_images(pixels.roll(-1, dims=0))
        lateral[torch.from_numpy(whole["lateral_missing"])] = 0
        both = (encoder.embed_images(pixels) + lateral) / 2
    assert row_error(both, whole["img_global_lateral"]) <= TOLERANCE
