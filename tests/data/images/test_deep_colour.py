"""Pictures of many bits and kinds of numbers, each written byte by byte or by OpenCV.

The expected values are the numbers that were written: minimum to maximum for those deeper than
8 bits, as docs/images.md says, in every format.
"""

import struct
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

from tests.data.images.writing import tiff
from vlscore.data import ImagePolicy, as_radiograph, read_image
from vlscore.errors import UnreadableImage

# Twelve bits of sixteen, as many detectors have.
RAMP = np.tile(np.arange(64, dtype=np.uint16) * 64, (48, 1))
EXPECTED = RAMP / RAMP.max()
CHANNELS = {"grey+alpha": 2, "rgb": 3, "rgba": 4}


def png(path: Path, values: np.ndarray, *chunks: tuple[bytes, bytes]) -> Path:
    """Write (height, width[, channels]) as a PNG file, with further chunks before the pixels."""
    height, width = values.shape[:2]
    channels = 1 if values.ndim == 2 else values.shape[2]
    kind, depth = {1: 0, 2: 4, 3: 2, 4: 6}[channels], values.dtype.itemsize * 8
    rows = values.astype(values.dtype.newbyteorder(">"))
    pixels = b"".join(b"\0" + row.tobytes() for row in rows)
    head = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0)
    content = b"\x89PNG\r\n\x1a\n"
    for name, data in ((b"IHDR", head), *chunks, (b"IDAT", zlib.compress(pixels)), (b"IEND", b"")):
        check = struct.pack(">I", zlib.crc32(name + data))
        content += struct.pack(">I", len(data)) + name + data + check
    path.write_bytes(content)
    return path


def stacked(values: np.ndarray, channels: int) -> np.ndarray:
    opaque = np.full(values.shape, np.iinfo(values.dtype).max, values.dtype)
    each = {2: [values, opaque], 3: [values] * 3, 4: [*[values] * 3, opaque]}[channels]
    return np.stack(each, -1)


@pytest.mark.parametrize("channels", CHANNELS.values(), ids=list(CHANNELS))
def test_a_deep_png_of_several_channels(channels: int, tmp_path: Path) -> None:
    path = png(tmp_path / "x.png", stacked(RAMP, channels))
    seen = read_image(path)
    np.testing.assert_allclose(seen.pixels, EXPECTED, atol=1e-6)
    assert (seen.provenance.bits, seen.provenance.window) == (16, "minimum to maximum")
    with Image.open(path) as image:  # an opened picture is read from its file, too
        np.testing.assert_array_equal(as_radiograph(image).pixels, seen.pixels)


@pytest.mark.parametrize("suffix", ["png", "tiff", "jp2"])
@pytest.mark.parametrize("channels", [1, 3])
def test_deep_files_of_opencv(suffix: str, channels: int, tmp_path: Path) -> None:
    path = tmp_path / f"x.{suffix}"
    assert cv2.imwrite(str(path), cv2.merge([RAMP] * channels))
    seen = read_image(path).pixels
    # JPEG 2000 is lossy.
    atol = 1e-6 if suffix in ("png", "tiff") else 0.02
    np.testing.assert_allclose(seen, EXPECTED, atol=atol)
    assert len(np.unique(seen)) >= 64


@pytest.mark.parametrize("most", [1023, 4095, 65535])
@pytest.mark.parametrize("kind", ["P2", "P3", "P5", "P6"])
def test_deep_files_of_netpbm(kind: str, most: int, tmp_path: Path) -> None:
    values = np.minimum(RAMP, most)
    pixels = values if kind in ("P2", "P5") else np.stack([values] * 3, -1)
    body = b" ".join(b"%d" % number for number in pixels.ravel())
    if kind in ("P5", "P6"):
        body = pixels.astype(">u2").tobytes()
    head = f"{kind}\n# a comment\n64 48\n{most}\n".encode()
    path = tmp_path / "x.ppm"
    path.write_bytes(head + body + b"\n")
    seen = read_image(path).pixels
    np.testing.assert_allclose(seen, values / values.max(), atol=1 / 32768)


NUMBERS = ("u1", "i1", "u2", "i2", "u4", "i4", "f4", "f8")


def numbers(kind: str) -> np.ndarray:
    """A ramp of 64 steps with both signs where there are signs."""
    steps = np.tile(np.arange(64.0), (48, 1))
    values = {"u": steps * 3 + 5, "i": steps * 3 - 90, "f": steps * 3.5 - 20}[kind[0]]
    if kind in ("u2", "i2", "u4", "i4"):
        values = values * (300 if kind[1] == "2" else 20_000_000)
    return np.asarray(values, kind)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kind", NUMBERS)
def test_tiff_files_of_every_kind_of_number(kind: str, channels: int, tmp_path: Path) -> None:
    values = numbers(kind)
    stored = values if channels == 1 else np.stack([values] * channels, -1)
    seen = read_image(tiff(stored, tmp_path / "x.tif"))
    wide = values.astype(np.float64)
    low, high = wide.min(), wide.max()
    if kind[1] == "1":
        low, high = float(np.iinfo(kind).min), float(np.iinfo(kind).max)
    np.testing.assert_allclose(seen.pixels, (wide - low) / (high - low), atol=1e-6)
    assert seen.provenance.window == ("full range" if kind[1] == "1" else "minimum to maximum")


@pytest.mark.parametrize("kind", ["i1", "u2", "i2", "u4", "i4", "f4", "f8"])
def test_tiff_files_that_store_white_as_zero(kind: str, tmp_path: Path) -> None:
    plain = read_image(tiff(numbers(kind), tmp_path / "a.tif")).pixels
    seen = read_image(tiff(numbers(kind), tmp_path / "b.tif", photometric=0)).pixels
    np.testing.assert_allclose(seen, 1 - plain, atol=1e-6)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["u1", "u2", "f8"])
@pytest.mark.parametrize("channels", [1, 3])
def test_tiff_files_are_upright(orientation: int, kind: str, channels: int, tmp_path: Path) -> None:
    """The tag states where the stored first row and column lie in the upright picture."""
    upright = np.arange(35).reshape(5, 7).astype(kind) * 7
    along = {
        1: lambda a: a,
        2: np.fliplr,
        3: lambda a: np.rot90(a, 2),
        4: np.flipud,
        5: np.transpose,
        6: np.rot90,
        7: lambda a: np.rot90(a, 2).T,
        8: lambda a: np.rot90(a, -1),
    }[orientation](upright)
    stored = along if channels == 1 else np.stack([along] * 3, -1)
    path = tiff(np.ascontiguousarray(stored), tmp_path / "x.tif", orientation=orientation)
    expected = upright.astype(float) / (255 if kind == "u1" else 34 * 7)
    np.testing.assert_allclose(read_image(path).pixels, expected, atol=1e-6)


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("kind", ["u2", "i2", "u4", "f4", "f8"])
def test_tiff_files_with_a_plane_for_each_channel(kind: str, channels: int, tmp_path: Path) -> None:
    values = numbers(kind)
    stored = np.stack([values] * channels, -1)
    extra = 0 if channels == 4 else None
    path = tiff(stored, tmp_path / "x.tif", planar=True, extra=extra, orientation=2)
    wide = np.fliplr(values).astype(np.float64)
    expected = (wide - wide.min()) / np.ptp(wide)
    np.testing.assert_allclose(read_image(path).pixels, expected, atol=1e-6)


@pytest.mark.parametrize(("extra", "expected"), [(1, 1.0), (2, 0.5), (0, 1.0)])
def test_the_alpha_of_a_deep_tiff(extra: int, expected: float, tmp_path: Path) -> None:
    """Premultiplied colours lie on black already, others are weighted, unknown samples ignored."""
    values = stacked(RAMP, 4)
    values[:, 32:, 3] = 32768
    seen = read_image(tiff(values, tmp_path / "x.tif", extra=extra), ImagePolicy(window="full"))
    weights = np.where(np.arange(64) < 32, 1.0, expected)
    np.testing.assert_allclose(seen.pixels, RAMP / 65535 * weights, atol=2e-5)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.stack([RAMP] * 2, -1), "2 whole numbers of 16 bits"),
        (RAMP.astype(np.float16), "1 floats of 16 bits"),
        (np.stack([RAMP.astype(np.float16)] * 3, -1), "3 floats of 16 bits"),
    ],
)
def test_tiff_files_that_nothing_reads_are_named(
    values: np.ndarray, reason: str, tmp_path: Path
) -> None:
    with pytest.raises(UnreadableImage, match=rf"TIFF of {reason} a pixel, which cannot be read"):
        read_image(tiff(values, tmp_path / "x.tif"))


def test_a_picture_with_half_of_its_bits_is_noted(tmp_path: Path) -> None:
    values = np.zeros((48, 64, 4), np.uint16)
    values[..., 3] = 65535 - RAMP * 16
    seen = read_image(tiff(values, tmp_path / "x.tif", photometric=5))
    assert seen.provenance.notes == ("the picture was read with the upper 8 bits of each number",)
    np.testing.assert_allclose(seen.pixels, RAMP * 16 / 65535, atol=3 / 255)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kind", ["u1", "u2"])
def test_a_transparent_colour_of_a_png_is_black(kind: str, channels: int, tmp_path: Path) -> None:
    values = (np.arange(64).reshape(8, 8) * (4 if kind == "u1" else 1000)).astype(kind)
    values[0] = values[1] = np.iinfo(kind).max  # the border
    stored = values if channels == 1 else np.stack([values] * channels, -1)
    key = struct.pack(f">{channels}H", *[np.iinfo(kind).max] * channels)
    path = png(tmp_path / "x.png", stored, (b"tRNS", key))
    expected = np.where(values == np.iinfo(kind).max, 0, values)
    scale = 255 if kind == "u1" else expected.max()
    np.testing.assert_allclose(read_image(path).pixels, expected / scale, atol=1e-6)


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_a_transparent_grey_of_few_bits(bits: int, tmp_path: Path) -> None:
    values = np.tile(np.arange(2**bits, dtype=np.uint8), (16, 8 // bits))
    packed = np.zeros((16, values.shape[1] * bits // 8), np.uint8)
    for column in range(values.shape[1]):
        shift = 8 - bits - column * bits % 8
        packed[:, column * bits // 8] |= values[:, column] << shift
    key = 2**bits - 1
    head = struct.pack(">IIBBBBB", values.shape[1], 16, bits, 0, 0, 0, 0)
    content = b"\x89PNG\r\n\x1a\n"
    pixels = zlib.compress(b"".join(b"\0" + row.tobytes() for row in packed))
    trns = struct.pack(">H", key)
    for name, data in ((b"IHDR", head), (b"tRNS", trns), (b"IDAT", pixels), (b"IEND", b"")):
        check = struct.pack(">I", zlib.crc32(name + data))
        content += struct.pack(">I", len(data)) + name + data + check
    (tmp_path / "x.png").write_bytes(content)
    expected = np.where(values == key, 0, values) / key
    accept = ImagePolicy(other_modalities="accept")
    np.testing.assert_allclose(read_image(tmp_path / "x.png", accept).pixels, expected, atol=1e-6)


def test_pil_and_array_of_the_same_numbers_agree() -> None:
    eight = np.arange(64, dtype=np.int32).reshape(8, 8) * 4
    for values in (eight, eight * 200, eight - 100):
        as_pil = as_radiograph(Image.fromarray(values))
        assert as_pil.provenance.window == as_radiograph(values).provenance.window
        np.testing.assert_array_equal(as_pil.pixels, as_radiograph(values).pixels)


def test_the_window_of_floats_is_stated(tmp_path: Path) -> None:
    ramp = np.tile(np.linspace(0, 1, 64, dtype=np.float32), (48, 1))
    ramp[0, 0] = 50
    seen = read_image(tiff(ramp, tmp_path / "x.tif"))
    assert seen.provenance.window == "minimum to maximum"
    seen = read_image(tiff(ramp, tmp_path / "x.tif"), ImagePolicy(window="percentile"))
    assert seen.provenance.window == "0.5th to 99.5th percentile"
    assert 0.9 < seen.pixels[5, -1] <= 1
    seen = read_image(tiff(np.clip(ramp, 0, 1), tmp_path / "x.tif"))
    assert seen.provenance.window == "as given"


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
@pytest.mark.parametrize("channels", [1, 3])
def test_masked_pixels_are_black_and_no_part_of_the_range(kind: type, channels: int) -> None:
    values = (np.arange(64).reshape(8, 8) / (64 if kind == np.float32 else 1)).astype(kind)
    values[0] = 1 if kind == np.float32 else 200
    shown = values if channels == 1 else np.stack([values] * channels, -1)
    mask = np.zeros(shown.shape, bool)
    mask[0] = True
    seen = as_radiograph(np.ma.MaskedArray(shown, mask)).pixels
    assert (seen[0] == 0).all()
    np.testing.assert_allclose(seen[1:], as_radiograph(shown[1:]).pixels, atol=1e-7)
    with pytest.raises(UnreadableImage, match="every pixel is masked"):
        as_radiograph(np.ma.MaskedArray(shown, np.ones(shown.shape, bool)))


@pytest.mark.filterwarnings("ignore:Sparse CSR")
@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_mkldnn"])
def test_tensors_of_any_layout(layout: str) -> None:
    dense = torch.zeros(8, 8)
    dense[2:4, 3:5] = torch.tensor([[0.25, 0.5], [0.75, 1.0]])
    np.testing.assert_array_equal(as_radiograph(getattr(dense, layout)()).pixels, dense.numpy())


def test_a_damaged_deep_file_is_unreadable(tmp_path: Path) -> None:
    for path in (
        png(tmp_path / "x.png", stacked(RAMP, 3)),
        tiff(stacked(RAMP, 3), tmp_path / "x.tif"),
    ):
        content = path.read_bytes()
        for size in range(20, len(content) - 1, len(content) // 7):
            path.write_bytes(content[:size])
            with pytest.raises(UnreadableImage):
                read_image(path)
