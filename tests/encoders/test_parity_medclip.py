"""MedCLIP against what its authors' code returned."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.encoders.goldens import Golden, assert_same, load_as_authors
from vlscore.encoders import JointEncoder

NAMES = ["medclip-resnet", "medclip-vit"]


@pytest.fixture(scope="module")
def known() -> dict[str, Tensor]:
    """Tensors made already: both models have the same report tower."""
    return {}


@pytest.fixture(scope="module", params=NAMES)
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden.of(request.param)


@pytest.fixture(scope="module")
def encoder(golden: Golden, checkpoints: Path, known: dict[str, Tensor]) -> JointEncoder:
    tensors = golden.tensors(known=known)
    known.update(tensors)
    torch.save(tensors, checkpoints / "pytorch_model.bin")
    golden.vocabulary(checkpoints)
    return load_as_authors(golden.name.replace("_", "-"), checkpoints, None)


def test_parity(encoder: JointEncoder, golden: Golden) -> None:
    assert_same(encoder, golden)


def test_parity_on_all_inputs(encoder: JointEncoder, golden: Golden, shared: Path) -> None:
    assert_same(encoder, golden.whole(shared))
