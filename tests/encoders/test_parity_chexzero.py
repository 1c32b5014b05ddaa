"""CheXzero against what its authors' code returned."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from tests.encoders.goldens import (
    Golden,
    assert_same_embeddings,
    assert_same_pixels,
    assert_same_tokens,
    clinical_vocabulary,
    load_as_authors,
    sha256,
)
from vlscore.encoders import JointEncoder
from vlscore.encoders.blocks.pixels import read_with_opencv
from vlscore.encoders.chexzero import CanvasPipeline
from vlscore.errors import InvalidSetting


@pytest.fixture(scope="module")
def golden(shared: Path) -> Golden:
    return Golden.of(shared, "chexzero")


@pytest.fixture(scope="module")
def encoder(golden: Golden, checkpoints: Path) -> JointEncoder:
    path = checkpoints / "any_name.pt"
    torch.save(golden.tensors(), path)
    return load_as_authors("chexzero", path, None)


def test_parity(encoder: JointEncoder, golden: Golden) -> None:
    assert_same_pixels(encoder.image_pipeline, golden)
    assert_same_tokens(encoder, golden)
    assert_same_embeddings(encoder, golden)


def test_stored_canvas(golden: Golden) -> None:
    for path, expected in zip(golden.images, golden["h5_320_u8_sha256"], strict=True):
        canvas = CanvasPipeline.canvas(Image.fromarray(read_with_opencv(path, colour=True)))
        assert sha256(torch.from_numpy(canvas.copy())) == expected


def test_bert_vocabulary_is_refused(shared: Path) -> None:
    with pytest.raises(InvalidSetting, match="comes with open_clip"):
        load_as_authors("chexzero", shared, clinical_vocabulary(shared))
