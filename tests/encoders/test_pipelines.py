"""Image pipelines on images that no radiograph should look like."""

import logging
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image

from vlscore.data import ImagePolicy, Provenance, Radiograph
from vlscore.encoders import ImagePipeline
from vlscore.encoders.blocks.pixels import (
    PadCropPipeline,
    PillowPadCropPipeline,
    fitted_shape,
    pad_to_square,
)
from vlscore.encoders.models.biovil import ResizeCropPipeline
from vlscore.encoders.models.chexzero import CanvasPipeline
from vlscore.encoders.models.convirt import StretchPipeline
from vlscore.encoders.models.medclip import SquareCanvasPipeline
from vlscore.encoders.models.openclip_parts import OpenClipPipeline
from vlscore.encoders.models.small import EqualisedPipeline, SquarePipeline
from vlscore.errors import UnreadableImage

PIPELINES: list[ImagePipeline] = [
    PadCropPipeline(),
    PillowPadCropPipeline(),
    ResizeCropPipeline(448),
    SquareCanvasPipeline(),
    StretchPipeline(),
    CanvasPipeline(),
    OpenClipPipeline(224, {}),
]


def radiograph(height: int, width: int, seed: int = 0) -> Radiograph:
    pixels = np.random.default_rng(seed).random((height, width), dtype=np.float32)
    return Radiograph(pixels, Provenance("array", 8), name="image")


@pytest.mark.parametrize("size", [224, (256, 224)])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"resize_mode": "squash", "mean": [0.5, 0.4, 0.3], "std": [0.5, 0.6, 0.7]},
        {"resize_mode": "longest", "fill_color": 9, "interpolation": "bilinear"},
    ],
)
def test_levels_give_the_pixels_of_open_clips_own_transform(
    tmp_path: Path, settings: dict[str, object], size: int | tuple[int, int]
) -> None:
    transform = image_transform_v2(PreprocessCfg(**settings, size=size), False)
    pipeline = OpenClipPipeline(size, settings)
    pictures = [radiograph(300, 500, seed=1), radiograph(90, 80, seed=2)]
    expected = [transform(Image.fromarray(picture.to_uint8())) for picture in pictures]
    levels = np.stack([pipeline.uint8_pixels(picture.to_uint8(), "x") for picture in pictures])
    assert levels.shape[1] == 1
    found = pipeline.from_stored(torch.from_numpy(levels))
    assert torch.equal(found, torch.stack(expected))
    for number, channels in enumerate((3, 4)):
        colours = np.random.default_rng(number).integers(0, 256, (300, 400, channels), np.uint8)
        Image.fromarray(colours).save(tmp_path / f"{number}.png")
        with Image.open(tmp_path / f"{number}.png") as image:
            assert torch.equal(pipeline.as_authors(tmp_path / f"{number}.png"), transform(image))


@pytest.mark.parametrize(
    "pipeline", [PadCropPipeline(), PillowPadCropPipeline()], ids=lambda p: type(p).__name__
)
def test_a_square_may_be_one_column_narrower_as_in_the_authors_code(
    pipeline: PadCropPipeline,
) -> None:
    """The authors truncate 498 * (256 / 498), which is 255.99..., to 255, and pad at the right."""
    for side, narrower in ((498, True), (500, False), (1043, 1043 * (256 / 1043) < 256)):
        white = Radiograph(np.ones((side, side), np.float32), Provenance("array", 8), name="image")
        height, width = fitted_shape(*white.shape)
        assert (height, width) == (256, 256 - narrower)
        square = pad_to_square(pipeline.resize(white.to_uint8(), height, width))
        assert (square[:, -1] == (0 if narrower else 255)).all()
        assert (square[:, :255] == 255).all()


MAKES_SQUARES = [SquarePipeline(128), SquareCanvasPipeline()]


@pytest.mark.parametrize("pipeline", MAKES_SQUARES, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("size", [(40_000, 1), (1, 65_000), (2_000, 20_000)])
def test_a_strip_is_refused_before_a_square_of_gigabytes(
    pipeline: ImagePipeline, size: tuple[int, int]
) -> None:
    height, width = size
    strip = Radiograph(np.zeros(size, np.float32), Provenance("array", 8), name="image")
    with pytest.raises(UnreadableImage, match=f"image: {width}×{height} pixels are too elongated"):
        pipeline(strip)


@pytest.mark.parametrize("size", [(300, 500), (64, 64)])
def test_equalised_pixels_do_not_depend_on_exposure(size: tuple[int, int]) -> None:
    """A square is shrunk alike whatever its shape, and a rising curve changes no order of greys."""
    height, width = size
    rows, columns = np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j].astype(np.float32)
    pipeline = EqualisedPipeline(64)
    shown = rows**2 * 0.6 + columns * 0.4
    found, darker = (
        pipeline(Radiograph(pixels, Provenance("array", 8), name="image"))
        for pixels in (shown, shown**2)
    )
    assert found.shape == (1, 64, 64)
    assert abs(found - darker).max() < 0.1
    ranks = found.flatten().argsort().argsort() / 64**2
    assert np.corrcoef(ranks, found.flatten())[0, 1] > 0.999


def test_the_authors_way_logs_nothing_of_a_header(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged DICOM whose values pydicom quotes in its log."""
    import pydicom
    from pydicom.dataset import FileMetaDataset

    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = pydicom.uid.DigitalXRayImageStorageForPresentation
    meta.MediaStorageSOPInstanceUID = "1.2.3"
    meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    picture = pydicom.Dataset()
    picture.file_meta = meta
    picture.PatientName = "ZZNAME^PLANTED"
    picture.SpecificCharacterSet = "ZZPLANTED"
    picture.Rows = picture.Columns = 4
    picture.BitsAllocated, picture.BitsStored, picture.HighBit = 8, 8, 7
    picture.PixelRepresentation, picture.SamplesPerPixel = 0, 1
    picture.PhotometricInterpretation = "ZZPLANTED"
    picture.PixelData = bytes(range(16))
    path = tmp_path / "planted.dcm"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        picture.save_as(path, enforce_file_format=True)
    caplog.clear()
    caplog.set_level(logging.DEBUG)
    said = ""
    try:
        ResizeCropPipeline(480).load(path, ImagePolicy(as_authors=True))
    except UnreadableImage as refused:
        said = str(refused)
    assert "ZZ" not in said + caplog.text


@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda p: type(p).__name__)
def test_authors_readers_name_a_file_they_cannot_read(
    pipeline: ImagePipeline, tmp_path: Path
) -> None:
    path = tmp_path / "broken.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    with pytest.raises(UnreadableImage, match=r"broken\.png"):
        pipeline.as_authors(path)
