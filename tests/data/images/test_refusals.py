"""DICOM files that are no chest radiograph, damaged or hostile; and what messages never say."""

import contextlib
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
from pydicom.encaps import encapsulate
from pydicom.filereader import read_file_meta_info
from pydicom.uid import (
    DeflatedExplicitVRLittleEndian,
    JPEG2000Lossless,
    JPEGBaseline8Bit,
    RLELossless,
)

from tests.data.images.writing import chest, save
from vlscore.data import ImagePolicy, is_plain_file, read_image, stored_view
from vlscore.data.images.codestreams import codestream
from vlscore.errors import UnreadableImage

GREY = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4
ACCEPT = ImagePolicy(other_modalities="accept")


@pytest.mark.parametrize("modality", ["CT", "MR", "US", "MG", "NM", "PX", "IO", "SEG"])
def test_other_modalities_are_refused_unless_accepted(tmp_path: Path, modality: str) -> None:
    path = save(chest(GREY, Modality=modality), tmp_path / "x.dcm")
    with pytest.raises(UnreadableImage, match=rf"x\.dcm.*modality {modality}.*accept"):
        read_image(path)
    assert read_image(path, ACCEPT).provenance.modality == modality


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"PhotometricInterpretation": "HSV"}, "interpretation is not understood"),
        ({"Rows": 0}, "no rows or columns"),
        ({"Rows": 60000, "Columns": 60000}, "60000 x 60000.*max_pixels"),
        ({"Rows": 9}, "truncated: it has 64 bytes.*picture of 72"),
        ({"BitsStored": 40}, "damaged or truncated"),
        ({"NumberOfFrames": 10**6}, "1000000 frames"),
    ],
)
def test_headers_that_do_not_fit(tmp_path: Path, change: dict[str, object], reason: str) -> None:
    path = save(chest(GREY, **change), tmp_path / "x.dcm")
    with pytest.raises(UnreadableImage, match=rf"x\.dcm.*{reason}"):
        read_image(path)


def test_missing_pixels(tmp_path: Path) -> None:
    stripped = chest(GREY)
    del stripped.PixelData
    with pytest.raises(UnreadableImage, match="8 x 8 pixels, but they are missing"):
        read_image(save(stripped, tmp_path / "x.dcm"))
    del stripped.Rows
    with pytest.raises(UnreadableImage, match="that of an image, but ends before its pixels"):
        read_image(save(stripped, tmp_path / "x.dcm"))
    report = "1.2.840.10008.5.1.4.1.1.88.11"
    stripped.SOPClassUID = stripped.file_meta.MediaStorageSOPClassUID = report
    with pytest.raises(UnreadableImage, match="holds no picture"):
        read_image(save(stripped, tmp_path / "x.dcm"))


def test_an_unknown_transfer_syntax_is_named(tmp_path: Path) -> None:
    path = save(chest(GREY), tmp_path / "x.dcm")
    video = path.read_bytes().replace(b"1.2.840.10008.1.2.1\0", b"1.2.840.10008.1.2.9\0")
    path.write_bytes(video)
    with pytest.raises(UnreadableImage, match=r"transfer syntax .* cannot be decoded"):
        read_image(path)


def test_a_deflated_bomb_is_measured_before_it_is_inflated(tmp_path: Path) -> None:
    dataset = chest(GREY)
    dataset.file_meta.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
    path = save(dataset, tmp_path / "x.dcm")
    content = path.read_bytes()
    meta = 132 + 12 + read_file_meta_info(path).FileMetaInformationGroupLength
    deflater = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    bomb = b"".join(deflater.compress(bytes(1 << 20)) for _ in range(70)) + deflater.flush()
    path.write_bytes(content[:meta] + bomb)
    with pytest.raises(UnreadableImage, match="decompression bomb"):
        read_image(path, ImagePolicy(max_pixels=100_000))


@pytest.mark.parametrize("syntax", [JPEG2000Lossless, JPEGBaseline8Bit])
def test_a_small_header_over_a_huge_picture_is_refused(tmp_path: Path, syntax: str) -> None:
    dataset = chest(GREY)
    if syntax == JPEGBaseline8Bit:
        huge = b"\xff\xd8\xff\xc0" + struct.pack(">HBHHB", 11, 8, 60000, 50000, 1) + b"\1\x11\0"
    else:
        size = struct.pack(">HHIIII", 41, 0, 50000, 60000, 0, 0)
        huge = b"\xff\x4f\xff\x51" + size + bytes(40)
    found = codestream(huge)
    assert found is not None
    assert found[1:4] == (60000, 50000, 1 if syntax == JPEGBaseline8Bit else 0)
    dataset.file_meta.TransferSyntaxUID = syntax
    dataset.PixelData = encapsulate([huge])
    dataset["PixelData"].is_undefined_length = True
    with pytest.raises(UnreadableImage, match=r"states \(8, 8, 1\) .* itself \(60000, 50000"):
        read_image(save(dataset, tmp_path / "x.dcm"))


@pytest.mark.parametrize("components", [1, 2, 3, 20])
def test_size_of_a_codestream(components: int) -> None:
    size = struct.pack(">HHIIII", 41, 0, 90, 70, 0, 0) + struct.pack(">IIII", 90, 70, 0, 0)
    j2k = b"\xff\x4f\xff\x51" + size + struct.pack(">HB", components, 11)
    jp2 = b"\x00\x00\x00\x0cjP  \r\n\x87\n" + struct.pack(">I4s", 0, b"jp2c") + j2k
    jpeg = b"\xff\xd8\xff\xff\xe0\0\4ab\xff\xc2\0\x0b\x08" + struct.pack(">HHB", 70, 90, components)
    for picture in (j2k, jp2, jpeg):
        found = codestream(picture)
        assert found is not None
        assert found[1:] == (70, 90, components, 8 if picture is jpeg else 12)
        assert codestream(picture[:-3]) is None


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


def test_a_panic_of_a_decoder_written_in_rust_is_damage(tmp_path: Path) -> None:
    dataset = chest(np.arange(1024, dtype=np.uint16).reshape(32, 32))
    dataset.compress(RLELossless, generate_instance_uid=False)
    # Two segments whose second begins where the frame ends.
    frame = struct.pack("<16I", 2, 64, 10_000, *[0] * 13) + bytes(64)
    dataset.PixelData = encapsulate([frame])
    with pytest.raises(UnreadableImage, match="damaged or truncated"):
        read_image(save(dataset, tmp_path / "x.dcm"))


SECRETS = {
    "PatientName": "Doe^Jane^Q",
    "PatientID": "MRN-4711",
    "PatientBirthDate": "19521103",
    "InstitutionName": "St Elsewhere",
    "AccessionNumber": "ACC-0815",
}
WORDS = ("Doe", "Jane", "DOE", "JANE", "4711", "1952", "Elsewhere", "0815")


@pytest.mark.parametrize(
    "damage",
    [
        {},
        {"Modality": "CT"},
        {"Rows": 9},
        {"NumberOfFrames": 5},
        {"PhotometricInterpretation": "Doe^Jane"},
        {"Modality": "Doe^Jane^Q"},
        {"BodyPartExamined": "HAND Jane Doe"},
        {"Modality": "JANE DOE"},
        {"Modality": "Jane"},
        {"PhotometricInterpretation": "Jane"},
        {"ViewPosition": "Jane Doe"},
        {"ViewPosition": "Jane^Doe"},
        {"PatientBirthDate": "Doe-1952"},  # an invalid date: pydicom warns and quotes it
        {"WindowCenter": 1, "WindowWidth": 0},
    ],
)
def test_nothing_of_a_patient_is_said(
    tmp_path: Path,
    damage: dict[str, object],
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = save(chest(GREY, **(SECRETS | damage)), tmp_path / "x.dcm")
    said = []
    caplog.set_level(logging.DEBUG)
    caplog.clear()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            said.append(str(stored_view(path)))
            said.append(repr(read_image(path).provenance))
        except UnreadableImage as error:
            said.append(str(error))
    said += [str(warning.message) for warning in heard]
    said += [record.getMessage() for record in caplog.records] + list(capfd.readouterr())
    assert not [word for word in WORDS if any(word in text for text in said)]


def dicom_files() -> dict[str, bytes]:
    from pydicom.filebase import DicomBytesIO

    files = {}
    for name in ("raw", "rle", "j2k", "deflated"):
        dataset = chest(np.arange(1024, dtype=np.uint16).reshape(32, 32), BitsStored=12)
        if name in ("rle", "j2k"):
            dataset.compress(RLELossless if name == "rle" else JPEG2000Lossless)
        elif name == "deflated":
            dataset.file_meta.TransferSyntaxUID = DeflatedExplicitVRLittleEndian
        stream = DicomBytesIO()
        dataset.save_as(stream, enforce_file_format=True)
        files[name] = stream.getvalue()
    return files


FILES = dicom_files()


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.sampled_from(sorted(FILES)), st.data())
def test_damage_raises_nothing_but_unreadable(
    tmp_path: Path, kind: str, data: st.DataObject
) -> None:
    content = bytearray(FILES[kind])
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(132, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path = tmp_path / "damaged.dcm"
    path.write_bytes(content)
    with contextlib.suppress(UnreadableImage):
        pixels = read_image(path, ACCEPT).pixels
        assert pixels.dtype == np.float32
        assert 0 <= pixels.min() <= pixels.max() <= 1
