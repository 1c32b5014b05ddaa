"""Real radiographs, and the files of many makers that come with pydicom."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pydicom import dcmread
from pydicom.data import get_testdata_file

from vlscore.data import ImagePolicy, read_image

ACCEPT = ImagePolicy(other_modalities="accept", frame=0)


@pytest.fixture
def radiographs(shared: Path) -> Path:
    return shared / "data" / "radiographs"


@pytest.fixture
def dicom(shared: Path) -> Path:
    return shared / "data" / "dicom"


def test_eight_bit_radiographs_keep_their_bytes(radiographs: Path) -> None:
    paths = sorted(radiographs.glob("nih_*.png"))
    assert paths
    for path in paths:
        np.testing.assert_array_equal(
            read_image(path).to_uint8(), np.asarray(Image.open(path).convert("L"))
        )


@pytest.mark.parametrize(
    ("variant", "levels"),
    [
        ("variant_palette.png", 0),
        ("variant_rgba.png", 0),
        ("variant_12in16bit.png", 1),
        ("variant_16bit.png", 1),
        ("variant_16bit.tiff", 1),
        ("variant_exif_rotated.jpg", 16),
    ],
)
def test_variants_of_one_radiograph_agree(radiographs: Path, variant: str, levels: int) -> None:
    original = read_image(radiographs / "nih_00000001_000.png").pixels
    seen = read_image(radiographs / variant).pixels
    assert np.abs(seen - original).max() <= levels / 255


def test_jpeg_baseline_dicom_and_its_inverted_twin(dicom: Path) -> None:
    upright = read_image(dicom / "rsna_cr_jpeg_mono2.dcm")
    stored = dcmread(dicom / "rsna_cr_jpeg_mono2.dcm").pixel_array
    np.testing.assert_array_equal(upright.to_uint8(), stored)
    inverted = read_image(dicom / "rsna_cr_jpeg_tagged_mono1.dcm")
    np.testing.assert_array_equal(inverted.to_uint8(), 255 - stored)


def test_fifteen_bit_jpeg2000_under_its_window(dicom: Path) -> None:
    path = dicom / "nema_rg1_chest_j2k_mono1_15bit.dcm"
    radiograph = read_image(path)
    stored = dcmread(path).pixel_array.astype(np.float64)
    expected = 1 - np.clip((stored - (15000 - 0.5)) / (30000 - 1) + 0.5, 0, 1)
    np.testing.assert_allclose(radiograph.pixels, expected, atol=1e-6)
    assert radiograph.provenance.bits == 15
    assert radiograph.provenance.photometric_interpretation == "MONOCHROME1"


MONOCHROME = [
    "693_J2KI.dcm",
    "CT_small.dcm",
    "J2K_pixelrep_mismatch.dcm",
    "JPEG2000.dcm",
    "JPEGLSNearLossless_08.dcm",
    "JPEGLSNearLossless_16.dcm",
    "MR_small.dcm",
    "MR_small_RLE.dcm",
    "MR_small_bigendian.dcm",
    "MR_small_implicit.dcm",
    "MR_small_jp2klossless.dcm",
    "MR_small_jpeg_ls_lossless.dcm",
    "examples_overlay.dcm",
    "image_dfl.dcm",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MONOCHROME)
def test_every_syntax_gives_pydicoms_values(name: str) -> None:
    path = Path(str(get_testdata_file(name, download=False)))
    stored = dcmread(path).pixel_array.astype(np.float64)
    seen = read_image(path, ImagePolicy(window="minmax", other_modalities="accept")).pixels
    padding = dcmread(path).get("PixelPaddingValue")
    valid = stored != padding if padding is not None else np.ones(stored.shape, bool)
    low, high = stored[valid].min(), stored[valid].max()
    expected = np.where(valid, (stored - low) / (high - low), 0)
    np.testing.assert_allclose(seen, expected, atol=1e-6)


def test_twelve_bit_jpeg_extended() -> None:
    """Values of two pixels, as pydicom's own tests state them for this file."""
    path = str(get_testdata_file("JPGExtended.dcm", download=False))
    seen = read_image(path, ImagePolicy(window="full", other_modalities="accept")).pixels
    assert seen.shape == (1024, 256)
    np.testing.assert_allclose(seen[[420, 230], [140, 120]] * 4095, [244, 95], atol=1e-3)
