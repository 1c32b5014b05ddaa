"""ConVIRT in edreisMD's layout against what that code returned."""

from pathlib import Path

import pytest
import torch

from tests.encoders.goldens import (
    Golden,
    assert_same,
    load_as_authors,
)
from vlscore.encoders import JointEncoder


@pytest.fixture(scope="module")
def golden() -> Golden:
    return Golden.of("convirt")


@pytest.fixture(scope="module")
def encoder(golden: Golden, checkpoints: Path) -> JointEncoder:
    torch.save(golden.tensors(), checkpoints / "model.pth")
    golden.vocabulary(checkpoints)
    return load_as_authors("convirt", checkpoints, None)


def test_parity(encoder: JointEncoder, golden: Golden) -> None:
    assert_same(encoder, golden)


def test_parity_on_all_inputs(encoder: JointEncoder, golden: Golden, shared: Path) -> None:
    assert_same(encoder, golden.whole(shared))


def test_line_feeds_are_deleted(encoder: JointEncoder) -> None:
    joined, divided = encoder.tokenize(["lungs\nare clear", "lungsare clear"]).ids
    assert joined.tolist() == divided.tolist()


def test_very_long_report_is_truncated_and_flagged(encoder: JointEncoder) -> None:
    tokens = encoder.tokenize(["lungs are clear. " * 200])
    assert tokens.lengths.tolist() == [512]
    assert tokens.truncated.tolist() == [True]
