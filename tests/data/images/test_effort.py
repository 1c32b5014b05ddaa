"""Small files that would cost much are refused before they do; each is read under limits."""

import io
import resource
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pydicom.encaps import encapsulate
from pydicom.uid import DeflatedExplicitVRLittleEndian, JPEG2000Lossless, JPEGBaseline8Bit

from tests.data.images.writing import chest, save
from vlscore.data import ImagePolicy, is_plain_file, read_image
from vlscore.data.images.dicom_pixels import CodestreamHeader, codestream_header
from vlscore.errors import UnreadableImage

GREY = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
ACCEPT = ImagePolicy(other_modalities="accept")

READ_UNDER_LIMITS = """
import resource, sys, time
from vlscore.errors import UnreadableImage
from vlscore.data import ImagePolicy, read_image
from vlscore.data import stored_view
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
for policy in (ImagePolicy(), ImagePolicy(other_modalities="accept", frame=1)):
    try:
        read_image(sys.argv[1], policy)
    except UnreadableImage as error:
        print(error)
print(stored_view(sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("40000x1.png", "1 x 40000 pixels are too elongated"),
        ("deflate_lying_group_length.dcm", "decompression bomb"),
        ("ifd20000.tif", "a TIFF of more than 1000 images"),
        ("j20.dcm", "states 1 samples a pixel, the compressed picture 20"),
        ("progressive_scans.jpg", "a JPEG of 3006 scans"),
    ],
)
def test_crafted_files_cost_neither_memory_nor_time(shared: Path, name: str, reason: str) -> None:
    path = shared / "research/defects/files" / name
    if not path.exists():
        pytest.skip(f"{path} is not present")
    done = subprocess.run(
        [sys.executable, "-c", READ_UNDER_LIMITS, str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    refused, accepted, view = done.stdout.splitlines()
    assert name in refused
    assert reason in refused
    assert reason in accepted
    assert view == "None"


def _progressive(scans: int) -> bytes:
    """A grey progressive JPEG whose last scan is repeated."""
    stream = io.BytesIO()
    Image.fromarray(GREY).save(stream, "jpeg", progressive=True)
    content = stream.getvalue()
    start = content.rindex(b"\xff\xda")
    last = content[start:-2]
    return content[:-2] + last * (scans - content.count(b"\xff\xda")) + content[-2:]


def test_many_scans_are_refused_in_files_and_in_dicom(tmp_path: Path) -> None:
    few, many = tmp_path / "few.jpg", tmp_path / "many.jpg"
    few.write_bytes(_progressive(40))
    many.write_bytes(_progressive(101))
    assert read_image(few).shape == (8, 8)
    with pytest.raises(UnreadableImage, match=r"many\.jpg: a JPEG of 101 scans"):
        read_image(many)
    assert is_plain_file(few)
    assert not is_plain_file(many)

    dataset = chest(GREY)
    dataset.file_meta.TransferSyntaxUID = JPEGBaseline8Bit
    dataset.PixelData = encapsulate([_progressive(101)])
    dataset["PixelData"].is_undefined_length = True
    with pytest.raises(UnreadableImage, match="a JPEG of 101 scans"):
        read_image(save(dataset, tmp_path / "x.dcm"))


def _tiff(directories: int, *, big: bool = False, order: str = "<", entries: int = 0) -> bytes:
    """A chain of directories, each without tags or with the same invalid one."""
    mark = b"II" if order == "<" else b"MM"
    head = struct.pack(order + "HHHQ", 43, 8, 0, 16) if big else struct.pack(order + "HL", 42, 8)
    content = bytearray(mark + head)
    for number in range(directories):
        body = struct.pack(order + ("Q" if big else "H"), entries)
        body += bytes((20 if big else 12) * entries)
        size = 8 if big else 4
        end = len(content) + len(body) + size
        following = end if number + 1 < directories else 0
        content += body + struct.pack(order + ("Q" if big else "L"), following)
    return bytes(content)


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("order", "<>")
def test_many_directories_are_refused(tmp_path: Path, big: bool, order: str) -> None:
    path = tmp_path / "x.tif"
    path.write_bytes(_tiff(1001, big=big, order=order))
    with pytest.raises(UnreadableImage, match="more than 1000 images"):
        read_image(path)
    path.write_bytes(_tiff(3, big=big, order=order, entries=40_000))
    with pytest.raises(UnreadableImage, match="more than 100000 tags"):
        read_image(path)


def test_directories_in_a_circle_are_left_to_pillow(tmp_path: Path) -> None:
    stream = io.BytesIO()
    Image.fromarray(GREY).save(stream, "tiff")
    content = bytearray(stream.getvalue())
    (first,) = struct.unpack_from("<L", content, 4)
    (entries,) = struct.unpack_from("<H", content, first)
    struct.pack_into("<L", content, first + 2 + 12 * entries, first)
    path = tmp_path / "circle.tif"
    path.write_bytes(content)
    np.testing.assert_array_equal(read_image(path).to_uint8(), GREY)


def test_a_tiff_of_several_images_is_still_read(tmp_path: Path) -> None:
    pages = [Image.fromarray(np.roll(GREY, k)) for k in range(20)]
    pages[0].save(tmp_path / "x.tif", save_all=True, append_images=pages[1:])
    radiograph = read_image(tmp_path / "x.tif", ImagePolicy(frame=7))
    np.testing.assert_array_equal(radiograph.to_uint8(), np.roll(GREY, 7))


@pytest.mark.parametrize("components", [1, 2, 3, 20])
def test_components_of_a_codestream(components: int) -> None:
    size = struct.pack(">HHIIII", 41, 0, 90, 70, 0, 0) + struct.pack(">IIII", 90, 70, 0, 0)
    j2k = b"\xff\x4f\xff\x51" + size + struct.pack(">H", components)
    assert codestream_header(j2k) == CodestreamHeader(70, 90, components)
    boxes = b"\x00\x00\x00\x0cjP  \r\n\x87\n" + struct.pack(">I4s", 5008, b"uuid") + bytes(5000)
    # A codestream in a box before the picture's own is none.
    decoy = struct.pack(">I4s", 8 + len(j2k), b"uuid") + j2k.replace(b"\0\0\0\x5a", b"\0\0\0\x08")
    jp2 = boxes + decoy + struct.pack(">I4s", 0, b"jp2c") + j2k
    assert codestream_header(jp2) == CodestreamHeader(70, 90, components)
    jpeg = b"\xff\xd8\xff\xff\xe0\0\4ab\xff\xc2\0\x0b\x08" + struct.pack(">HHB", 70, 90, components)
    assert codestream_header(jpeg) == CodestreamHeader(70, 90, components)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xd8", b"\xff\xd8\xff\xe0\0", b"\0\0\0\x0cjP  ", b"?"]
)
def test_a_codestream_without_a_header(content: bytes) -> None:
    assert codestream_header(content) is None


@pytest.mark.parametrize("samples", [1, 3])
def test_more_components_than_the_header_states_are_refused(tmp_path: Path, samples: int) -> None:
    pixels = np.kron(GREY, np.ones((8, 8), np.uint8))
    shown = pixels if samples == 3 else np.stack([pixels] * 3, axis=-1)
    dataset = chest(shown)
    dataset.compress(JPEG2000Lossless, generate_instance_uid=False)
    dataset.SamplesPerPixel = samples
    dataset.PhotometricInterpretation = "RGB" if samples == 3 else "MONOCHROME2"
    found = 1 if samples == 3 else 3
    with pytest.raises(UnreadableImage, match=f"states {samples} samples a pixel.*{found}; "):
        read_image(save(dataset, tmp_path / "x.dcm"), ACCEPT)


@pytest.mark.parametrize("lie", [0, 1, 60_000, 4_000_000_000])
def test_a_deflated_bomb_is_measured_wherever_its_header_says_it_begins(
    tmp_path: Path, lie: int
) -> None:
    dataset = chest(GREY)
    dataset.file_meta.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
    content = save(dataset, tmp_path / "x.dcm").read_bytes()
    deflater = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    bomb = b"".join(deflater.compress(bytes(1 << 20)) for _ in range(70)) + deflater.flush()
    meta = 132 + 12 + struct.unpack_from("<I", content, 140)[0]
    (tmp_path / "x.dcm").write_bytes(
        content[:140] + struct.pack("<I", lie) + content[144:meta] + bomb
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UnreadableImage, match="decompression bomb"):
        read_image(tmp_path / "x.dcm", ImagePolicy(max_pixels=100_000))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


def test_plain_files_are_those_without_a_complicated_decoder(tmp_path: Path) -> None:
    raw = chest(np.kron(GREY, np.ones((8, 8), np.uint8)))
    assert is_plain_file(save(raw, tmp_path / "raw.dcm"))
    raw.compress(JPEG2000Lossless, generate_instance_uid=False)
    assert not is_plain_file(save(raw, tmp_path / "j2k.dcm"))
    for kind, plain in (("png", True), ("jpg", True), ("tif", False), ("jp2", False)):
        Image.fromarray(GREY).save(tmp_path / f"x.{kind}")
        assert is_plain_file(tmp_path / f"x.{kind}") == plain
    (tmp_path / "what").write_bytes(b"boom")
    assert not is_plain_file(tmp_path / "what")
    assert is_plain_file(tmp_path / "missing")  # there is nothing to decode
