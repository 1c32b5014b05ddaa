"""ConVIRT in edreisMD's layout against what that code returned."""

from pathlib import Path

import pytest
import torch

from tests.encoders.goldens import (
    Golden,
    assert_same_embeddings,
    assert_same_pixels,
    assert_same_tokens,
    clinical_vocabulary,
    load_as_authors,
)
from vlscore.encoders import JointEncoder


@pytest.fixture(scope="module")
def golden(shared: Path) -> Golden:
    return Golden.of(shared, "convirt")


@pytest.fixture(scope="module")
def encoder(golden: Golden, shared: Path, checkpoints: Path) -> JointEncoder:
    torch.save(golden.tensors(), checkpoints / "model.pth")
    return load_as_authors("convirt", checkpoints, clinical_vocabulary(shared))


def test_parity(encoder: JointEncoder, golden: Golden) -> None:
    assert_same_pixels(encoder.image_pipeline, golden)
    assert_same_tokens(encoder, golden)
    assert_same_embeddings(encoder, golden)


def test_line_feeds_are_deleted(encoder: JointEncoder) -> None:
    joined, divided = encoder.tokenize(["lungs\nare clear", "lungsare clear"]).ids
    assert joined.tolist() == divided.tolist()


def test_very_long_report_is_truncated_and_flagged(encoder: JointEncoder) -> None:
    tokens = encoder.tokenize(["lungs are clear. " * 200])
    assert tokens.lengths.tolist() == [512]
    assert tokens.truncated.tolist() == [True]
