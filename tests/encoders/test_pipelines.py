"""Image pipelines on images that no radiograph should look like."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from vlscore.encoders import ImagePipeline
from vlscore.encoders.biovil import ResizeCropPipeline
from vlscore.encoders.blocks.openclip_model import OpenClipPipeline
from vlscore.encoders.blocks.pad_crop import PadCropPipeline
from vlscore.encoders.chexzero import CanvasPipeline
from vlscore.encoders.convirt import StretchPipeline
from vlscore.encoders.medclip import SquareCanvasPipeline
from vlscore.errors import UnreadableImage
from vlscore.images import Provenance, Radiograph

PIPELINES: dict[str, tuple[ImagePipeline, tuple[int, ...]]] = {
    "pad and crop": (PadCropPipeline(), (3, 224, 224)),
    "resize and crop": (ResizeCropPipeline(448), (3, 448, 448)),
    "square canvas": (SquareCanvasPipeline(), (1, 224, 224)),
    "stretch": (StretchPipeline(), (3, 224, 224)),
    "canvas": (CanvasPipeline(), (3, 224, 224)),
    "open_clip": (OpenClipPipeline(224, {}), (3, 224, 224)),
}
every_pipeline = pytest.mark.parametrize(("pipeline", "shape"), PIPELINES.values(), ids=PIPELINES)
REFUSES_STRIPS = [PIPELINES[name][0] for name in ("pad and crop", "resize and crop", "canvas")]


def film(height: int, width: int, seed: int = 0) -> Radiograph:
    pixels = np.random.default_rng(seed).random((height, width), dtype=np.float32)
    return Radiograph(pixels, Provenance("array", 8), name="film")


@every_pipeline
@pytest.mark.parametrize("size", [(1, 1), (2, 31), (223, 225), (3000, 2500)])
def test_any_size_becomes_the_encoders(
    pipeline: ImagePipeline, shape: tuple[int, ...], size: tuple[int, int]
) -> None:
    pixels = pipeline(film(*size))
    assert pixels.shape == shape
    assert pixels.dtype == torch.float32
    assert pixels.isfinite().all()


@every_pipeline
def test_it_travels_to_worker_processes(pipeline: ImagePipeline, shape: tuple[int, ...]) -> None:
    there = pickle.loads(pickle.dumps(pipeline))
    assert torch.equal(there(film(60, 50)), pipeline(film(60, 50)))


@every_pipeline
def test_a_constant_image_has_pixels(pipeline: ImagePipeline, shape: tuple[int, ...]) -> None:
    blank = Radiograph(np.full((40, 30), 0.5, np.float32), Provenance("array", 8))
    assert pipeline(blank).isfinite().all()


@pytest.mark.parametrize("pipeline", REFUSES_STRIPS, ids=lambda p: type(p).__name__)
def test_a_strip_is_refused_by_name(pipeline: ImagePipeline) -> None:
    with pytest.raises(UnreadableImage, match=r"film: 1200×1 pixels are too elongated"):
        pipeline(film(1, 1200))


def test_minimum_to_maximum_makes_exposure_vanish() -> None:
    pipeline = ResizeCropPipeline(480)
    bright = film(90, 80)
    dark = Radiograph(bright.to_uint8() // 2 / np.float32(255), bright.provenance)
    stretched = [pipeline(x) for x in (bright, dark)]
    assert (stretched[0] - stretched[1]).abs().max() < 0.02


def test_padding_is_black_and_even() -> None:
    tall = Radiograph(np.ones((512, 100), np.float32), Provenance("array", 8))
    lit = PadCropPipeline()(tall)[0].gt(0)
    assert lit.any(dim=1).all()
    # 50 of 256 columns hold the image; after the crop 16 are gone on either side.
    assert lit.any(dim=0).nonzero().flatten().tolist() == list(range(103 - 16, 153 - 16))


@pytest.mark.parametrize(
    "pipeline", [pipeline for pipeline, _ in PIPELINES.values()], ids=lambda p: type(p).__name__
)
def test_authors_readers_name_a_file_they_cannot_read(
    pipeline: ImagePipeline, tmp_path: Path
) -> None:
    path = tmp_path / "broken.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    with pytest.raises(UnreadableImage, match=r"broken\.png"):
        pipeline.as_authors(path)
