"""GLoRIA against what its authors' code returned."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.encoders.goldens import (
    TOLERANCE,
    Golden,
    assert_same_embeddings,
    assert_same_pixels,
    assert_same_tokens,
    clinical_vocabulary,
    forget_foreign_classes,
    load_as_authors,
    omegaconf_dict,
    row_error,
    save_lightning,
)
from vlscore.encoders import JointEncoder


@pytest.fixture(scope="module")
def golden(shared: Path) -> Golden:
    return Golden.of(shared, "gloria")


@pytest.fixture(scope="module")
def encoder(golden: Golden, shared: Path, checkpoints: Path) -> JointEncoder:
    path = save_lightning(checkpoints / "gloria.ckpt", golden.tensors(), omegaconf_dict())
    forget_foreign_classes()
    return load_as_authors("gloria", path, clinical_vocabulary(shared))


def test_pixels(encoder: JointEncoder, golden: Golden) -> None:
    assert_same_pixels(encoder.image_pipeline, golden)


def test_tokens(encoder: JointEncoder, golden: Golden) -> None:
    assert_same_tokens(encoder, golden)


def test_truncation_is_flagged(encoder: JointEncoder, golden: Golden) -> None:
    assert encoder.tokenize(golden.texts).truncated.tolist() == [False, True] + 4 * [False]


def test_embeddings(encoder: JointEncoder, golden: Golden) -> None:
    assert_same_embeddings(encoder, golden)


def test_words(encoder: JointEncoder, golden: Golden) -> None:
    with torch.inference_mode():
        words = encoder.embed_words(encoder.tokenize(golden.texts))
    assert [len(row) for row in words.texts] == golden["n_words"].tolist()
    assert [" ".join(row) for row in words.texts] == [
        row.split(" [PAD]")[0] for row in golden["words"]
    ]
    by_dimension = words.embeddings.transpose(1, 2)
    assert by_dimension.shape == tuple(golden["txt_local_shape"])
    assert row_error(by_dimension[:, :16, :12], golden["txt_local_slice"]) <= TOLERANCE
    np.testing.assert_allclose(by_dimension.mean(1), golden["txt_local_mean"], atol=1e-6)


def test_patches(encoder: JointEncoder, golden: Golden) -> None:
    pixels = torch.stack([encoder.image_pipeline.as_authors(path) for path in golden.images])
    with torch.inference_mode():
        patches = encoder.embed_patches(pixels)
    assert patches.shape == tuple(golden["img_local_shape"])
    assert row_error(patches.mean((2, 3)), golden["img_local_mean"]) <= TOLERANCE
    assert row_error(patches[:, :8, ::6, ::6], golden["img_local_slice"]) <= TOLERANCE


def test_report_without_words(encoder: JointEncoder) -> None:
    tokens = encoder.tokenize(["", " 1. ", "."])
    assert tokens.lengths.tolist() == [2, 2, 2]
    assert encoder.encode_tokens(tokens).isfinite().all()
