import contextlib
import io
import logging
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from vlscore.data import ImagePolicy, as_radiograph, read_image
from vlscore.errors import UnreadableImage

GREY = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
DEEP = GREY.astype(np.uint16) * 250 + 7
ACCEPT = ImagePolicy(other_modalities="accept")


def stored(path: Path, image: Image.Image, **how: object) -> Path:
    image.save(path, **how)
    return path


@pytest.mark.parametrize("suffix", ["png", "tiff", "bmp", "pgm", "webp", "gif"])
@pytest.mark.parametrize("misnamed", [False, True])
def test_eight_bit_files_keep_their_bytes(tmp_path: Path, suffix: str, misnamed: bool) -> None:
    how = {"lossless": True} if suffix == "webp" else {}
    path = stored(tmp_path / f"x.{suffix}", Image.fromarray(GREY), **how)
    if misnamed:  # content tells the format, not the name
        path = path.rename(tmp_path / "x.dcm")
    np.testing.assert_array_equal(read_image(path).to_uint8(), GREY)


@pytest.mark.parametrize("suffix", ["png", "tiff"])
def test_sixteen_bits_take_their_own_range(tmp_path: Path, suffix: str) -> None:
    radiograph = read_image(stored(tmp_path / f"x.{suffix}", Image.fromarray(DEEP)))
    np.testing.assert_allclose(radiograph, GREY / 252, atol=1e-6)
    assert radiograph.provenance.bits == 16
    assert radiograph.provenance.window == "minimum to maximum"


@pytest.mark.parametrize("mode", ["P", "RGB", "RGBA", "LA", "CMYK"])
def test_grey_stored_as_something_else_is_the_same_grey(tmp_path: Path, mode: str) -> None:
    image = Image.fromarray(GREY)
    converted = image.convert("RGB").convert(mode) if mode == "CMYK" else image.convert(mode)
    suffix = "tiff" if mode == "CMYK" else "png"
    np.testing.assert_array_equal(
        read_image(stored(tmp_path / f"x.{suffix}", converted)).to_uint8(), GREY
    )


def test_one_bit(tmp_path: Path) -> None:
    bits = GREY > 100
    path = stored(tmp_path / "x.png", Image.fromarray(bits))
    np.testing.assert_array_equal(read_image(path).pixels, bits.astype(np.float32))


def test_transparency_lies_on_black(tmp_path: Path) -> None:
    alpha = np.full((8, 8), 255, np.uint8)
    alpha[0] = 0
    image = Image.merge("LA", (Image.fromarray(GREY + 3), Image.fromarray(alpha)))
    pixels = read_image(stored(tmp_path / "x.png", image)).to_uint8()
    np.testing.assert_array_equal(pixels, np.where(alpha, GREY + 3, 0))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation_is_applied_to_files_and_opened_images(
    tmp_path: Path, orientation: int
) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = stored(tmp_path / "x.png", Image.fromarray(GREY[:5]), exif=exif)
    turned = {
        1: lambda a: a,
        2: np.fliplr,
        3: lambda a: np.rot90(a, 2),
        4: np.flipud,
        5: np.transpose,
        6: lambda a: np.rot90(a, -1),
        7: lambda a: np.rot90(a, 2).T,
        8: np.rot90,
    }[orientation](GREY[:5])
    np.testing.assert_array_equal(read_image(path).to_uint8(), turned)
    with Image.open(path) as image:
        np.testing.assert_array_equal(as_radiograph(image).to_uint8(), turned)


@pytest.mark.parametrize("values", [DEEP, (GREY / 252).astype(np.float32)])
def test_tiff_that_stores_white_as_zero_is_inverted(tmp_path: Path, values: np.ndarray) -> None:
    plain = stored(tmp_path / "plain.tiff", Image.fromarray(values))
    inverted = stored(tmp_path / "inverted.tiff", Image.fromarray(values), tiffinfo={262: 0})
    with Image.open(inverted) as image:
        assert image.tag_v2[262] == 0
    np.testing.assert_allclose(
        read_image(inverted).pixels, 1 - np.asarray(read_image(plain)), atol=1e-6
    )


def test_float_tiff_keeps_unit_range_and_scales_any_other(tmp_path: Path) -> None:
    unit = (GREY / 400).astype(np.float32)
    np.testing.assert_array_equal(
        read_image(stored(tmp_path / "a.tiff", Image.fromarray(unit))), unit
    )
    wide = stored(tmp_path / "b.tiff", Image.fromarray(unit * 4000 - 1000))
    np.testing.assert_allclose(read_image(wide), GREY / 252, atol=1e-6)
    bad = stored(tmp_path / "c.tiff", Image.fromarray(np.where(unit > 0.5, np.nan, unit)))
    with pytest.raises(UnreadableImage, match="not finite"):
        read_image(bad)
    # One grey of the stated range may be accepted; one number beyond it has no range to be read in.
    flat = stored(tmp_path / "d.tiff", Image.fromarray(np.full_like(unit, 0.5)))
    with pytest.raises(UnreadableImage, match="every pixel has the same value"):
        read_image(flat)
    accepted = read_image(flat, ImagePolicy(other_modalities="accept"))
    np.testing.assert_array_equal(accepted, np.full_like(unit, 0.5))
    for beyond in (1.5, -0.5):
        path = stored(tmp_path / "e.tiff", Image.fromarray(np.full_like(unit, beyond)))
        with pytest.raises(UnreadableImage, match="every pixel has the value"):
            read_image(path)


def test_several_images_in_a_file_must_be_chosen_from(tmp_path: Path) -> None:
    path = stored(
        tmp_path / "x.tiff",
        Image.fromarray(GREY),
        save_all=True,
        append_images=[Image.fromarray(255 - GREY)],
    )
    with pytest.raises(UnreadableImage, match=r"holds 2 images.*frame"):
        read_image(path)
    np.testing.assert_array_equal(read_image(path, ImagePolicy(frame=1)).to_uint8(), 255 - GREY)
    with pytest.raises(UnreadableImage, match="no frame 2"):
        read_image(path, ImagePolicy(frame=2))


def test_a_bomb_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    header = b"IHDR" + struct.pack(">IIBBBBB", 30_000, 30_000, 8, 0, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    path = tmp_path / "bomb.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk + b"\0\0\1\0IDAT")
    with pytest.raises(UnreadableImage, match=r"30000 x 30000.*max_pixels"):
        read_image(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty"),
        (b"hello, this is a report", "is no image"),
        (b"%PDF-1.7 ...", "is no image"),
        (b"\x89PNG\r\n\x1a\n", "is no image|damaged"),
        (b"GIF89a", "is no image|damaged"),
        (b"\xff\xd8\xff", "is no image|damaged"),
    ],
)
def test_files_that_are_no_image(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(content)
    with pytest.raises(UnreadableImage, match=rf"x\.png.*({reason})"):
        read_image(path)


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    for path, reason in [
        (tmp_path, "folder"),
        (tmp_path / "absent.png", "no such file"),
        (tmp_path / ("x" * 400), "cannot be opened"),
        ("a\0b.png", "cannot be opened"),
        ("/dev/null", "no regular file"),
    ]:
        with pytest.raises(UnreadableImage, match=reason):
            read_image(path)


def a_file(suffix: str) -> bytes:
    stream = io.BytesIO()
    noise = np.random.default_rng(1).integers(0, 256, (40, 40), np.uint8)
    Image.fromarray(noise).save(stream, suffix)
    return stream.getvalue()


FILES = {suffix: a_file(suffix) for suffix in ("PNG", "JPEG", "TIFF")}


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from(sorted(FILES)), st.data())
def test_damage_raises_nothing_but_unreadable(
    tmp_path: Path, suffix: str, data: st.DataObject
) -> None:
    content = bytearray(FILES[suffix])
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path = tmp_path / "damaged"
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    with contextlib.suppress(UnreadableImage):
        radiograph = read_image(path)
        assert radiograph.pixels.dtype == np.float32
        assert 0 <= radiograph.pixels.min() <= radiograph.pixels.max() <= 1


def test_reading_leaves_logging_warnings_and_pillow_as_they_were(tmp_path: Path) -> None:
    path = stored(tmp_path / "x.png", Image.fromarray(GREY))
    loggers = [logging.getLogger(name) for name in ("pydicom", "PIL")]
    before = [logger.level for logger in loggers], list(warnings.filters), Image.MAX_IMAGE_PIXELS
    read_image(path)
    after = [logger.level for logger in loggers], list(warnings.filters), Image.MAX_IMAGE_PIXELS
    assert after == before
