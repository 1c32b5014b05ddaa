"""CheXzero against what its authors' code returned."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from tests.encoders.goldens import (
    Golden,
    assert_same,
    load_as_authors,
    sha256,
)
from vlscore.encoders import JointEncoder
from vlscore.encoders.blocks.pixels import read_with_opencv
from vlscore.encoders.models.chexzero import CanvasPipeline
from vlscore.errors import InvalidSetting


@pytest.fixture(scope="module")
def golden() -> Golden:
    return Golden.of("chexzero")


@pytest.fixture(scope="module")
def checkpoint(golden: Golden, checkpoints: Path) -> Path:
    torch.save(golden.tensors(), checkpoints / "any_name.pt")
    return checkpoints / "any_name.pt"


@pytest.fixture(scope="module")
def encoder(checkpoint: Path) -> JointEncoder:
    return load_as_authors("chexzero", checkpoint, None)


def test_parity(encoder: JointEncoder, golden: Golden) -> None:
    assert_same(encoder, golden)


def test_parity_on_all_inputs(encoder: JointEncoder, golden: Golden, shared: Path) -> None:
    assert_same(encoder, golden.whole(shared))


def test_stored_canvas(golden: Golden, shared: Path) -> None:
    golden = golden.whole(shared)
    for path, expected in zip(golden.images, golden["h5_320_u8_sha256"], strict=True):
        canvas = CanvasPipeline.canvas(Image.fromarray(read_with_opencv(path, colour=True)))
        assert sha256(torch.from_numpy(canvas.copy())) == expected


def test_bert_vocabulary_is_refused(checkpoint: Path, tmp_path: Path) -> None:
    vocabulary = Golden.of("gloria").vocabulary(tmp_path)
    with pytest.raises(InvalidSetting, match="comes with open_clip"):
        load_as_authors("chexzero", checkpoint, vocabulary)
