"""Stored values to grey levels: polarity, windows, LUTs, signs, odd depths, padding, overlays."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydicom import dcmread
from pydicom.pixels import apply_windowing
from pydicom.uid import (
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ImplicitVRLittleEndian,
    JPEG2000Lossless,
    JPEGLosslessSV1,
    JPEGLSLossless,
    RLELossless,
)

from tests.data.images.writing import chest, lookup_table, save
from vlscore.data import ImagePolicy, as_radiograph, read_image
from vlscore.errors import UnreadableImage

GREY = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
TWELVE = np.arange(64, dtype=np.uint16).reshape(8, 8) * 65  # 0 to 4095
ACCEPT = ImagePolicy(other_modalities="accept")


def pixels(path: Path, **policy: object) -> np.ndarray:
    return read_image(path, ImagePolicy(**policy)).pixels


def test_eight_bits_are_exact(tmp_path: Path) -> None:
    radiograph = read_image(save(chest(GREY), tmp_path / "x.dcm"))
    np.testing.assert_array_equal(radiograph.to_uint8(), GREY)
    assert radiograph.provenance.modality == "CR"
    assert radiograph.provenance.view == "PA"
    assert radiograph.provenance.photometric_interpretation == "MONOCHROME2"
    assert radiograph.provenance.window == "full range"


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    bits=st.integers(2, 16),
    signed=st.booleans(),
    window=st.sampled_from(["auto", "minmax", "full", "percentile"]),
    seed=st.integers(0, 99),
)
def test_monochrome1_is_monochrome2_inverted(
    tmp_path: Path, bits: int, signed: bool, window: str, seed: int
) -> None:
    low = -(2 ** (bits - 1)) if signed else 0
    values = np.random.default_rng(seed).integers(low, low + 2**bits, (6, 7))
    stored = values.astype(np.int16 if signed else np.uint16)
    two = save(chest(stored, BitsStored=bits), tmp_path / "2.dcm")
    one = save(
        chest(stored, BitsStored=bits, PhotometricInterpretation="MONOCHROME1"),
        tmp_path / "1.dcm",
    )
    policy = {"window": window, "other_modalities": "accept"}
    np.testing.assert_allclose(pixels(one, **policy), 1 - pixels(two, **policy), atol=1e-6)
    order = np.argsort(values, axis=None)
    assert (np.diff(pixels(two, **policy).ravel()[order]) >= 0).all()


@pytest.mark.parametrize("bits", [8, 10, 12, 13, 15, 16])
@pytest.mark.parametrize("signed", [False, True])
def test_full_range_is_that_of_the_stored_bits(tmp_path: Path, bits: int, signed: bool) -> None:
    low = -(2 ** (bits - 1)) if signed else 0
    values = np.array([[low, low + 1], [low + 2 ** (bits - 1), low + 2**bits - 1]])
    stored = values.astype(np.int16 if signed else np.uint16)
    path = save(chest(stored, BitsStored=bits), tmp_path / "x.dcm")
    expected = (values - low) / (2**bits - 1)
    np.testing.assert_allclose(pixels(path, window="full"), expected, atol=1e-7)
    np.testing.assert_allclose(pixels(path), expected, atol=1e-7)


@pytest.mark.parametrize("function", ["LINEAR", "LINEAR_EXACT", "SIGMOID", None])
@pytest.mark.parametrize(("center", "width"), [(2048, 4096), (1000.5, 333.25), (3000, 1)])
def test_window_of_the_header(
    tmp_path: Path, function: str | None, center: float, width: float
) -> None:
    dataset = chest(TWELVE, BitsStored=12, WindowCenter=center, WindowWidth=width)
    if function:
        dataset.VOILUTFunction = function
    with np.errstate(over="ignore"):
        expected = apply_windowing(TWELVE, dataset) / 4095
    radiograph = read_image(save(dataset, tmp_path / "x.dcm"))
    np.testing.assert_allclose(radiograph, expected, atol=1e-6)
    assert radiograph.provenance.window == "window of the header"


@pytest.mark.parametrize(
    "elements",
    [
        {"WindowCenter": None, "WindowWidth": None},
        {"WindowCenter": "", "WindowWidth": ""},
        {"WindowCenter": 100, "WindowWidth": 0},
        {"WindowCenter": 100, "WindowWidth": -5},
        {"WindowCenter": 100},
        {"RescaleSlope": None, "RescaleIntercept": None},
    ],
)
def test_a_window_of_no_use_is_no_window(tmp_path: Path, elements: dict[str, object]) -> None:
    path = save(chest(TWELVE, BitsStored=12, **elements), tmp_path / "x.dcm")
    radiograph = read_image(path)
    np.testing.assert_allclose(radiograph, TWELVE / 4095, atol=1e-6)
    assert radiograph.provenance.window == "minimum to maximum"
    with pytest.raises(UnreadableImage, match="no VOI LUT or window"):
        read_image(path, ImagePolicy(window="header"))


def test_a_window_beside_the_picture_is_not_followed(tmp_path: Path) -> None:
    dataset = chest(TWELVE, BitsStored=12, WindowCenter=60000, WindowWidth=10)
    radiograph = read_image(save(dataset, tmp_path / "x.dcm"))
    np.testing.assert_allclose(radiograph, TWELVE / 4095, atol=1e-6)
    assert "shows nothing" in radiograph.provenance.window


@pytest.mark.parametrize("slope", [1, 2.5, -1])
def test_rescale_precedes_the_window_and_keeps_its_direction(tmp_path: Path, slope: float) -> None:
    dataset = chest(TWELVE, BitsStored=12, RescaleSlope=slope, RescaleIntercept=-100)
    rescaled = TWELVE * float(slope) - 100
    expected = (rescaled - rescaled.min()) / np.ptp(rescaled)
    path = save(dataset, tmp_path / "a.dcm")
    for window in ("auto", "full"):  # the values fill their twelve bits
        np.testing.assert_allclose(pixels(path, window=window), expected, atol=1e-6)
    dataset.WindowCenter, dataset.WindowWidth = rescaled.mean(), 1001
    dataset.VOILUTFunction = "LINEAR_EXACT"
    expected = np.clip((rescaled - rescaled.mean()) / 1001 + 0.5, 0, 1)
    np.testing.assert_allclose(pixels(save(dataset, tmp_path / "b.dcm")), expected, atol=1e-6)


def test_modality_lut(tmp_path: Path) -> None:
    signed = TWELVE.astype(np.int16) - 2048
    table = np.arange(4096)[::-1] * 16
    dataset = chest(signed, BitsStored=12)
    dataset.ModalityLUTSequence = lookup_table(table, first=-2048, bits=16)
    path = save(dataset, tmp_path / "x.dcm")
    np.testing.assert_allclose(pixels(path), 1 - TWELVE / 4095, atol=1e-6)
    np.testing.assert_allclose(pixels(path, window="full"), table[TWELVE] / 65535, atol=1e-6)


def test_voi_lut_goes_before_the_window(tmp_path: Path) -> None:
    table = (np.linspace(0, 1, 4096) ** 2 * 1023).astype(np.uint16)
    dataset = chest(TWELVE, BitsStored=12, WindowCenter=5, WindowWidth=5)
    dataset.VOILUTSequence = lookup_table(table, first=0, bits=10)
    radiograph = read_image(save(dataset, tmp_path / "x.dcm"))
    np.testing.assert_allclose(radiograph, table[TWELVE] / 1023, atol=1e-6)
    assert radiograph.provenance.window == "VOI LUT"


@pytest.mark.parametrize("photometric", ["MONOCHROME1", "MONOCHROME2"])
def test_padding_is_black_and_no_part_of_the_range(tmp_path: Path, photometric: str) -> None:
    stored = TWELVE.astype(np.int16) + 100
    stored[:, 0] = -2000
    stored[:, 1] = -1990
    dataset = chest(stored, PhotometricInterpretation=photometric)
    dataset.add_new("PixelPaddingValue", "SS", -2000)
    dataset.add_new("PixelPaddingRangeLimit", "SS", -1990)
    seen = pixels(save(dataset, tmp_path / "x.dcm"))
    picture = stored[:, 2:].astype(float)
    expected = (picture - picture.min()) / np.ptp(picture)
    expected = 1 - expected if photometric == "MONOCHROME1" else expected
    assert (seen[:, :2] == 0).all()
    np.testing.assert_allclose(seen[:, 2:], expected, atol=1e-6)


@pytest.mark.parametrize("signed", [False, True])
def test_overlay_bits_above_the_picture_are_cleared(tmp_path: Path, signed: bool) -> None:
    with_overlay = TWELVE | (np.uint16(1) << 13)
    stored = with_overlay.view(np.int16) if signed else with_overlay
    plain = TWELVE.view(np.int16) if signed else TWELVE
    np.testing.assert_array_equal(
        pixels(save(chest(stored, BitsStored=12), tmp_path / "a.dcm"), window="full"),
        pixels(save(chest(plain, BitsStored=12), tmp_path / "b.dcm"), window="full"),
    )


@pytest.mark.parametrize("signed", [False, True])
def test_a_picture_in_the_upper_bits_is_moved_down(tmp_path: Path, signed: bool) -> None:
    values = TWELVE.astype(np.int16) - 2048 if signed else TWELVE
    shifted = np.left_shift(values, 4) | 5
    dataset = chest(shifted, BitsStored=12, HighBit=15)
    seen = pixels(save(dataset, tmp_path / "x.dcm"), window="full")
    np.testing.assert_allclose(seen, TWELVE / 4095, atol=1e-6)


def test_thirty_two_bits(tmp_path: Path) -> None:
    dataset = chest(TWELVE.astype(np.uint32) * 1000 + 2**31)
    np.testing.assert_allclose(pixels(save(dataset, tmp_path / "x.dcm")), TWELVE / 4095, atol=1e-6)


def test_colour_and_palette(tmp_path: Path) -> None:
    grey_in_rgb = chest(np.stack([GREY] * 3, -1), PhotometricInterpretation="RGB")
    path = save(grey_in_rgb, tmp_path / "rgb.dcm")
    np.testing.assert_array_equal(read_image(path).to_uint8(), GREY)

    palette = chest(GREY, PhotometricInterpretation="PALETTE COLOR")
    ramp = np.arange(256)[::-1] * 257
    for colour in ("Red", "Green", "Blue"):
        palette.add_new(f"{colour}PaletteColorLookupTableDescriptor", "US", [256, 0, 16])
        palette.add_new(f"{colour}PaletteColorLookupTableData", "OW", ramp.astype("<u2").tobytes())
    path = save(palette, tmp_path / "palette.dcm")
    np.testing.assert_array_equal(read_image(path).to_uint8(), 255 - GREY)


@pytest.mark.parametrize("syntax", [RLELossless, JPEGLSLossless, JPEG2000Lossless])
@pytest.mark.parametrize("bits", [8, 12, 16])
def test_lossless_compression_changes_nothing(tmp_path: Path, syntax: str, bits: int) -> None:
    stored = {8: GREY, 12: TWELVE, 16: TWELVE * 16}[bits]
    raw = chest(np.kron(stored, np.ones((8, 8), stored.dtype)), BitsStored=bits)
    plain = pixels(save(raw, tmp_path / "plain.dcm"))
    raw.compress(syntax, generate_instance_uid=False)
    np.testing.assert_array_equal(pixels(save(raw, tmp_path / "compressed.dcm")), plain)


def as_jpeg_lossless(raw: Path, path: Path) -> Path:
    """The file with its pixels compressed by GDCM."""
    gdcm = pytest.importorskip("gdcm")
    reader, change, writer = (
        gdcm.ImageReader(),
        gdcm.ImageChangeTransferSyntax(),
        gdcm.ImageWriter(),
    )
    reader.SetFileName(str(raw))
    assert reader.Read()
    change.SetTransferSyntax(gdcm.TransferSyntax(gdcm.TransferSyntax.JPEGLosslessProcess14_1))
    change.SetInput(reader.GetImage())
    assert change.Change()
    writer.SetFileName(str(path))
    writer.SetFile(reader.GetFile())
    writer.SetImage(change.GetOutput())
    assert writer.Write()
    return path


@pytest.mark.parametrize("bits", [8, 12, 16])
def test_jpeg_lossless_changes_nothing(tmp_path: Path, bits: int) -> None:
    stored = {8: GREY, 12: TWELVE, 16: TWELVE * 16}[bits]
    raw = save(chest(stored, BitsStored=bits), tmp_path / "raw.dcm")
    path = as_jpeg_lossless(raw, tmp_path / "lossless.dcm")
    assert dcmread(path).file_meta.TransferSyntaxUID == JPEGLosslessSV1
    np.testing.assert_array_equal(pixels(path), pixels(raw))


DECODERS = ("gdcm", "jpeg_ls", "pylibjpeg", "openjpeg", "rle")
# Reads each file without the decoders of the extra "codecs"; prints grey levels, or the error.
WITHOUT = f"""
import sys
sys.modules.update(dict.fromkeys({DECODERS!r}))
from vlscore.data import read_image
from vlscore.errors import UnreadableImage
for path in sys.argv[1:]:
    try:
        print(read_image(path).to_uint8().ravel().tolist())
    except UnreadableImage as error:
        print(error)
"""


def test_without_decoders_a_compressed_file_names_the_extra(tmp_path: Path) -> None:
    raw = save(chest(TWELVE, BitsStored=12), tmp_path / "raw.dcm")
    lossless = as_jpeg_lossless(raw, tmp_path / "lossless.dcm")
    paths = [raw, lossless]
    for name, syntax in (("ls", JPEGLSLossless), ("rle", RLELossless)):
        compressed = chest(TWELVE, BitsStored=12)
        compressed.compress(syntax, generate_instance_uid=False)
        paths.append(save(compressed, tmp_path / f"{name}.dcm"))
    command = [sys.executable, "-c", WITHOUT, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    plain, *refused, run_lengths = done.stdout.splitlines()
    assert plain == run_lengths == str(read_image(raw).to_uint8().ravel().tolist())
    for path, message in zip(paths[1:3], refused, strict=True):
        assert message.startswith(f"{path}: ")
        assert message.endswith("pip install 'vlscore[codecs]'")


@pytest.mark.parametrize("syntax", [ImplicitVRLittleEndian, DeflatedExplicitVRLittleEndian])
def test_other_encodings_of_raw_pixels(tmp_path: Path, syntax: str) -> None:
    dataset = chest(TWELVE, BitsStored=12)
    plain = pixels(save(dataset, tmp_path / "plain.dcm"))
    dataset.file_meta.TransferSyntaxUID = syntax
    np.testing.assert_array_equal(pixels(save(dataset, tmp_path / "other.dcm")), plain)


def test_big_endian(tmp_path: Path) -> None:
    dataset = chest(TWELVE.astype(">u2"), BitsStored=12)
    dataset.file_meta.TransferSyntaxUID = ExplicitVRBigEndian
    path = save(dataset, tmp_path / "x.dcm", implicit_vr=False, little_endian=False)
    np.testing.assert_allclose(pixels(path), TWELVE / 4095, atol=1e-6)


@pytest.mark.parametrize("implicit", [True, False])
def test_without_preamble_and_transfer_syntax(tmp_path: Path, implicit: bool) -> None:
    dataset = chest(TWELVE, BitsStored=12)
    del dataset.file_meta
    path = tmp_path / "x"
    dataset.save_as(path, implicit_vr=implicit, little_endian=True, enforce_file_format=False)
    assert path.read_bytes()[128:132] != b"DICM"
    np.testing.assert_allclose(pixels(path), TWELVE / 4095, atol=1e-6)


def test_frames_must_be_chosen_from(tmp_path: Path) -> None:
    dataset = chest(np.concatenate([GREY, GREY.T]))
    dataset.Rows, dataset.NumberOfFrames = 8, 2
    path = save(dataset, tmp_path / "x.dcm")
    with pytest.raises(UnreadableImage, match=r"holds 2 frames.*frame="):
        read_image(path)
    radiograph = read_image(path, ImagePolicy(frame=1))
    np.testing.assert_array_equal(radiograph.to_uint8(), GREY.T)
    assert radiograph.provenance.frame == 1
    with pytest.raises(UnreadableImage, match="no frame 2"):
        read_image(path, ImagePolicy(frame=2))


def test_pixel_spacing_prefers_the_body(tmp_path: Path) -> None:
    dataset = chest(GREY, ImagerPixelSpacing=[0.2, 0.2])
    path = save(dataset, tmp_path / "x.dcm")
    assert read_image(path).provenance.pixel_spacing == (0.2, 0.2)
    dataset.PixelSpacing = [0.143, 0.144]
    assert read_image(save(dataset, path)).provenance.pixel_spacing == (0.143, 0.144)


@pytest.mark.parametrize("window", ["auto", "minmax", "percentile", "full"])
@pytest.mark.parametrize(
    "values", ["0 0", "nan 0", "-inf 0", "1e308 0", "1 nan", "1 inf", "1 1e308"]
)
def test_rescale_values_that_make_no_picture_are_refused(values: str, window: str) -> None:
    dataset = chest(TWELVE, RescaleSlope="1", RescaleIntercept="0")
    # pydicom refuses some of these when they are set as numbers; files hold what they hold.
    for keyword, value in zip(("RescaleSlope", "RescaleIntercept"), values.split(), strict=True):
        dataset[keyword]._value = float(value)
    with pytest.raises(UnreadableImage, match=r"rescale slope and intercept.*no usable image"):
        as_radiograph(dataset, ImagePolicy(window=window, other_modalities="accept"))


def test_a_modality_table_of_one_value_is_refused() -> None:
    dataset = chest(TWELVE)
    dataset.ModalityLUTSequence = lookup_table(np.full(4096, 7), first=0, bits=16)
    with pytest.raises(UnreadableImage, match=r"modality lookup table.*no usable image"):
        as_radiograph(dataset)
