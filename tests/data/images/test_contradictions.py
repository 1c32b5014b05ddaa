"""DICOM headers that contradict their pixels, themselves or the standard, as real devices write.

The expected values are computed here from the elements, by the rules of dcmtk and of the viewers
that docs/images.md names; each case was compared with `dcm2pnm` of dcmtk 3.6.7.
"""

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pydicom import Dataset, Sequence, dcmread
from pydicom.encaps import encapsulate
from pydicom.uid import (
    DeflatedExplicitVRLittleEndian,
    ExplicitVRBigEndian,
    ExplicitVRLittleEndian,
    JPEG2000Lossless,
    JPEGBaseline8Bit,
    JPEGLSLossless,
    RLELossless,
)

from tests.data.images.writing import chest, save
from vlscore.data import ImagePolicy, as_radiograph, read_image
from vlscore.errors import UnreadableImage

RAMP = np.tile(np.arange(256, dtype=np.uint16) * 16, (64, 1))
ACCEPT = ImagePolicy(other_modalities="accept")


def item(descriptor: Any, data: Any, *, vr: str = "OW", signed: bool = False) -> Dataset:
    """One lookup table, as a device may write it."""
    made = Dataset()
    if descriptor is not None:
        made.add_new("LUTDescriptor", "SS" if signed else "US", descriptor)
    if data is not None:
        is_words = isinstance(data, np.ndarray) and vr == "OW"
        made.add_new("LUTData", vr, data.astype("<u2").tobytes() if is_words else data)
    return made


def film(pixels: np.ndarray = RAMP, bits: int = 12, **elements: Any) -> Dataset:
    return chest(pixels, BitsStored=bits, Modality="DX", **elements)


def read(dataset: Dataset, tmp_path: Path) -> Any:
    return read_image(save(dataset, tmp_path / "film.dcm"))


LINEAR = np.arange(4096)
WINDOW = {"WindowCenter": 2048, "WindowWidth": 4096}
EIGHT = (LINEAR // 16).astype(np.uint8)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        # Eight bits an entry on deeper pixels: one entry in a word, or two.
        (item([4096, 0, 8], EIGHT), EIGHT / 255),
        (item([4096, 0, 8], EIGHT.tobytes(), vr="OW"), EIGHT / 255),
        (item([4096, 0, 8], EIGHT.astype(int).tolist(), vr="US"), EIGHT / 255),
        (item([2048, 1024, 8], LINEAR[:2048] // 8), np.clip((LINEAR - 1024) // 8, 0, 255) / 255),
        (item([4095, 0, 8], EIGHT[:-1].tobytes() + b"\0", vr="OW"), EIGHT / 255),
        # Other numbers of bits.
        (item([4096, 0, 9], LINEAR // 8), LINEAR // 8 / 511),
        (item([4096, 0, 14], LINEAR * 4), LINEAR * 4 / 16383),
        (item([0, 0, 16], np.arange(65536)), LINEAR / 65535),
        # Bits that cannot be, or that the entries do not fit into: the largest entry is white.
        (item([4096, 0, 0], LINEAR), LINEAR / 4095),
        (item([4096, 0, 32], LINEAR), LINEAR / 4095),
        (item([4096, 0, 8], LINEAR), LINEAR / 4095),
        # Narrower than stated: the largest entry is white.
        (item([4096, 0, 16], LINEAR), LINEAR / 4095),
        (item([4096, 0, 16], LINEAR // 4), LINEAR // 4 / 1023),
        (item([4096, 0, 12], LINEAR // 16), LINEAR // 16 / 255),
        # Fewer or more entries than stated.
        (item([4096, 0, 12], LINEAR[:3000]), np.clip(LINEAR, 0, 2999) / 4095),
        (item([1000, 0, 12], LINEAR), LINEAR / 4095),
    ],
)
def test_voi_lookup_tables(table: Dataset, expected: np.ndarray, tmp_path: Path) -> None:
    seen = read(film(VOILUTSequence=Sequence([table]), **WINDOW), tmp_path)
    np.testing.assert_allclose(seen.pixels, expected[RAMP], atol=1e-6)
    assert seen.provenance.window == "VOI LUT"


def test_a_table_of_other_bits_than_stated_is_noted(tmp_path: Path) -> None:
    for bits, is_noted in ((12, False), (16, True), (8, True), (0, True)):
        table = item([4096, 0, bits], LINEAR)
        seen = read(film(VOILUTSequence=Sequence([table])), tmp_path)
        assert any("VOI LUT" in note for note in seen.provenance.notes) == is_noted


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("first", [0, 100, 32767, 32768, 40000, 65000])
def test_the_first_mapped_value_has_the_sign_of_the_pixels(
    first: int, signed: bool, tmp_path: Path
) -> None:
    """Files write it as a signed or an unsigned number, whatever their pixels are."""
    pixels = (np.arange(64, dtype=np.int64).reshape(8, 8) * 8 + first).astype(np.uint16)
    written = [512, first - 65536 if signed and first >= 32768 else first, 10]
    data = np.arange(512) * 2
    dataset = film(pixels, 16, VOILUTSequence=Sequence([item(written, data, signed=signed)]))
    expected = data[np.arange(64).reshape(8, 8) * 8] / 1023
    np.testing.assert_allclose(read(dataset, tmp_path).pixels, expected, atol=1e-6)


@pytest.mark.parametrize("written", [-500, 65036])
def test_a_table_for_signed_pixels_begins_below_zero(written: int, tmp_path: Path) -> None:
    pixels = (np.arange(64).reshape(8, 8) * 16 - 500).astype(np.int16)
    table = item([1024, written, 10], np.arange(1024), signed=written < 0)
    seen = read(film(pixels, 16, VOILUTSequence=Sequence([table])), tmp_path)
    np.testing.assert_allclose(seen.pixels, (pixels + 500) / 1023, atol=1e-6)


USELESS = [
    Dataset(),
    item([4096, 0, 16], None),
    item(None, LINEAR),
    item("", LINEAR),
    item([4096, 0], LINEAR),
    item([4096, 0, 16], b""),
]


@pytest.mark.parametrize("table", USELESS)
@pytest.mark.parametrize("sequence", ["VOILUTSequence", "ModalityLUTSequence"])
def test_a_table_without_descriptor_or_entries_is_none(
    table: Dataset, sequence: str, tmp_path: Path
) -> None:
    expected = np.clip((RAMP - 2047.5) / 4095 + 0.5, 0, 1)  # the window, PS3.3 C.11.2.1.2
    seen = read(film(**{sequence: Sequence([table])}, **WINDOW), tmp_path)
    np.testing.assert_allclose(seen.pixels, expected, atol=1e-6)
    after = Sequence([table, item([4096, 0, 12], 4095 - LINEAR)])
    seen = read(film(**{sequence: after}, **WINDOW), tmp_path)
    assert seen.pixels[0, 0] > seen.pixels[0, -1]  # the table that there is counts


@pytest.mark.parametrize("bits", [8, 10, 12, 14, 15, 16])
def test_modality_lookup_tables_of_any_depth(bits: int, tmp_path: Path) -> None:
    data = LINEAR * (2**bits - 1) // 4095
    dataset = film(ModalityLUTSequence=Sequence([item([4096, 0, bits], data)]))
    seen = read_image(save(dataset, tmp_path / "x.dcm"), ImagePolicy(window="full"))
    np.testing.assert_allclose(seen.pixels, data[RAMP] / (2**bits - 1), atol=1e-6)


def test_a_table_in_a_big_endian_file(tmp_path: Path) -> None:
    table = item([4096, 0, 12], (4095 - LINEAR).astype(">u2").tobytes())
    dataset = film(RAMP.astype(">u2"), VOILUTSequence=Sequence([table]))
    dataset.file_meta.TransferSyntaxUID = ExplicitVRBigEndian
    path = save(dataset, tmp_path / "x.dcm", implicit_vr=False, little_endian=False)
    np.testing.assert_allclose(read_image(path).pixels, 1 - RAMP / 4095, atol=1e-6)


@pytest.mark.parametrize(
    ("photometric", "shape", "is_inverted", "is_noted"),
    [
        ("MONOCHROME2", "IDENTITY", False, False),
        ("MONOCHROME2", "", False, False),
        ("MONOCHROME2", "INVERSE", True, True),
        ("MONOCHROME1", "INVERSE", True, False),
        ("MONOCHROME1", "", True, False),
        ("MONOCHROME1", "IDENTITY", True, True),
    ],
)
def test_presentation_lut_shape(
    photometric: str, shape: str, is_inverted: bool, is_noted: bool, tmp_path: Path
) -> None:
    elements = {"PhotometricInterpretation": photometric, "PresentationLUTShape": shape}
    seen = read(film(**elements), tmp_path)
    expected = RAMP / 4080
    np.testing.assert_allclose(seen.pixels, 1 - expected if is_inverted else expected, atol=1e-6)
    assert bool(seen.provenance.notes) == is_noted


@pytest.mark.parametrize("element", ["RescaleSlope", "RescaleIntercept"])
@pytest.mark.parametrize("value", ["1,5", "Jane", "1\\2"])
def test_a_rescale_that_is_no_number_is_named(element: str, value: str, tmp_path: Path) -> None:
    dataset = film(RescaleSlope="1", RescaleIntercept="0")
    path = save(dataset, tmp_path / "x.dcm")
    content = path.read_bytes()
    tag = struct.pack("<HH", 0x0028, 0x1053 if element == "RescaleSlope" else 0x1052) + b"DS"
    at = content.index(tag)
    (length,) = struct.unpack_from("<H", content, at + 6)
    padded = value.encode() + b" " * (len(value) % 2)
    changed = content[: at + 6] + struct.pack("<H", len(padded)) + padded
    path.write_bytes(changed + content[at + 8 + length :])
    name = {"RescaleSlope": "Rescale Slope", "RescaleIntercept": "Rescale Intercept"}[element]
    with pytest.raises(UnreadableImage, match=rf"{name} \(0028.*no number") as caught:
        read_image(path)
    assert "Jane" not in str(caught.value)


@pytest.mark.parametrize(
    ("keyword", "name"),
    [
        ("BitsAllocated", r"Bits Allocated \(0028,0100\)"),
        ("BitsStored", r"Bits Stored \(0028,0101\)"),
        ("PixelRepresentation", r"Pixel Representation \(0028,0103\)"),
        ("PhotometricInterpretation", r"Photometric Interpretation \(0028,0004\)"),
    ],
)
def test_a_missing_element_is_named(keyword: str, name: str, tmp_path: Path) -> None:
    dataset = film()
    delattr(dataset, keyword)
    with pytest.raises(UnreadableImage, match=rf"has no {name}"):
        read(dataset, tmp_path)


@pytest.mark.parametrize("keyword", ["SamplesPerPixel", "HighBit"])
def test_what_can_only_have_one_value_may_be_missing(keyword: str, tmp_path: Path) -> None:
    dataset = film()
    delattr(dataset, keyword)
    np.testing.assert_allclose(read(dataset, tmp_path).pixels, RAMP / 4080, atol=1e-6)


@pytest.mark.parametrize("keyword", ["FloatPixelData", "DoubleFloatPixelData"])
def test_float_pixel_data_is_named(keyword: str, tmp_path: Path) -> None:
    dataset = film()
    del dataset.PixelData
    setattr(dataset, keyword, RAMP.astype(np.float32 if keyword[0] == "F" else float).tobytes())
    with pytest.raises(UnreadableImage, match=r"Float Pixel Data.*not supported"):
        read(dataset, tmp_path)


def compressed(syntax: str, pixels: np.ndarray = RAMP, bits: int = 12) -> Dataset:
    dataset = film(pixels, bits)
    dataset.compress(syntax, generate_instance_uid=False)
    return dataset


COMPRESSED = [JPEG2000Lossless, JPEGLSLossless, RLELossless]


@pytest.mark.parametrize("syntax", COMPRESSED)
def test_a_whole_picture_without_its_delimiter_is_shown(syntax: str, tmp_path: Path) -> None:
    path = save(compressed(syntax), tmp_path / "x.dcm")
    whole = path.read_bytes()
    assert whole.endswith(b"\xfe\xff\xdd\xe0\0\0\0\0")
    expected = read_image(path).pixels
    path.write_bytes(whole[:-8])
    np.testing.assert_array_equal(read_image(path).pixels, expected)
    path.write_bytes(whole[:-5])
    np.testing.assert_array_equal(read_image(path).pixels, expected)


@pytest.mark.parametrize("syntax", [*COMPRESSED, DeflatedExplicitVRLittleEndian])
def test_a_file_that_is_cut_off_is_called_so(syntax: str, tmp_path: Path) -> None:
    dataset = film()
    if syntax in COMPRESSED:
        dataset = compressed(syntax)
    else:
        dataset.file_meta.TransferSyntaxUID = syntax
    path = save(dataset, tmp_path / "x.dcm")
    whole = path.read_bytes()
    for size in range(len(whole) - 12, 140, -max(1, len(whole) // 60)):
        path.write_bytes(whole[:size])
        with pytest.raises(UnreadableImage) as caught:
            read_image(path)
        message = str(caught.value)
        assert "holds no picture" not in message
        if size > len(whole) * 0.8:
            assert f"cut off after byte {size}" in message


@pytest.mark.parametrize("second", [ExplicitVRLittleEndian, RLELossless, JPEGBaseline8Bit])
@pytest.mark.parametrize("first", [ExplicitVRLittleEndian, RLELossless, JPEG2000Lossless])
def test_of_two_transfer_syntaxes_the_first_is_true(
    first: str, second: str, tmp_path: Path
) -> None:
    dataset = film() if first == ExplicitVRLittleEndian else compressed(first)
    path = save(dataset, tmp_path / "x.dcm")
    content = path.read_bytes()
    (meta,) = struct.unpack_from("<I", content, 140)
    end = 144 + meta
    value = second.encode() + b"\0" * (len(second) % 2)
    again = struct.pack("<HH2sH", 2, 0x10, b"UI", len(value)) + value
    path.write_bytes(content[:end] + again + content[end:])
    np.testing.assert_allclose(read_image(path).pixels, RAMP / 4080, atol=1e-6)


# Two codestreams of one picture of 8 bits, and one of 12.
KINDS = {
    "JPEG 2000": JPEG2000Lossless,
    "JPEG-LS": JPEGLSLossless,
    "RLE": RLELossless,
}
LABELS = [*COMPRESSED, JPEGBaseline8Bit, "1.2.840.10008.1.2.4.51", "1.2.840.10008.1.2.4.70"]
LABELS.append(ExplicitVRLittleEndian)


@pytest.mark.parametrize("bits", [8, 12])
@pytest.mark.parametrize(
    ("kind", "label"),
    [(kind, label) for kind in KINDS for label in LABELS if KINDS[kind] != label],
)
def test_a_codestream_of_another_kind_than_its_label_is_refused(
    kind: str, label: str, bits: int, tmp_path: Path
) -> None:
    pixels = RAMP if bits == 12 else (RAMP // 16).astype(np.uint8)
    path = save(compressed(KINDS[kind], pixels, bits), tmp_path / "x.dcm")
    content = path.read_bytes()
    old = KINDS[kind].encode()
    old += b"\0" * (len(old) % 2)
    new = label.encode() + b"\0" * (len(label) % 2)
    at = content.index(struct.pack("<HH2sH", 2, 0x10, b"UI", len(old)) + old)
    changed = struct.pack("<HH2sH", 2, 0x10, b"UI", len(new)) + new
    path.write_bytes(content[:at] + changed + content[at + 8 + len(old) :])
    reason = "no stated length" if label == ExplicitVRLittleEndian else f"its pixel data is {kind}"
    with pytest.raises(UnreadableImage, match=rf"transfer syntax is .*{reason}"):
        read_image(path)


@pytest.mark.parametrize("syntax", [JPEG2000Lossless, JPEGLSLossless])
def test_more_bits_than_the_header_allocates_are_refused(syntax: str, tmp_path: Path) -> None:
    dataset = film((RAMP // 16).astype(np.uint8), 8)
    dataset.PixelData = compressed(syntax).PixelData
    dataset["PixelData"].is_undefined_length = True
    dataset.file_meta.TransferSyntaxUID = syntax
    with pytest.raises(UnreadableImage, match=r"has 12 bits a number.*allocates 8"):
        read(dataset, tmp_path)


def test_rle_of_other_bytes_than_the_header_states_is_refused(tmp_path: Path) -> None:
    dataset = film((RAMP // 16).astype(np.uint8), 8)
    dataset.PixelData = compressed(RLELossless).PixelData
    dataset["PixelData"].is_undefined_length = True
    dataset.file_meta.TransferSyntaxUID = RLELossless
    with pytest.raises(UnreadableImage, match="has 2 bytes a pixel, and the DICOM header states 1"):
        read(dataset, tmp_path)


@pytest.mark.parametrize("bits", [8, 12, 16])
@pytest.mark.parametrize("allocated", [8, 16])
def test_a_jpeg_of_8_bits_is_read_as_such(allocated: int, bits: int, tmp_path: Path) -> None:
    """dcmtk, too, takes the bits of the picture, and not those of the header."""
    stream = io.BytesIO()
    Image.fromarray((RAMP // 16).astype(np.uint8)).save(stream, "JPEG", quality=95)
    dataset = film(RAMP.astype(f"u{allocated // 8}"), min(bits, allocated))
    dataset.PixelData = encapsulate([stream.getvalue()])
    dataset["PixelData"].is_undefined_length = True
    dataset.file_meta.TransferSyntaxUID = JPEGBaseline8Bit
    seen = read(dataset, tmp_path)
    np.testing.assert_allclose(seen.pixels, RAMP / 4080, atol=2 / 255)
    assert seen.provenance.bits == 8


def test_raw_pixels_under_a_compressed_syntax_are_called_so(tmp_path: Path) -> None:
    path = save(film(), tmp_path / "x.dcm")
    content = path.read_bytes()
    path.write_bytes(content.replace(b"1.2.840.10008.1.2.1\0", b"1.2.840.10008.1.2.5\0"))
    with pytest.raises(UnreadableImage, match="RLE Lossless, but its pixel data is not compressed"):
        read_image(path)


def test_deep_colour_takes_its_own_range(tmp_path: Path) -> None:
    dataset = film(np.stack([RAMP] * 3, -1), 16)
    seen = read(dataset, tmp_path)
    np.testing.assert_allclose(seen.pixels, RAMP / 4080, atol=1e-6)
    assert seen.provenance.window == "minimum to maximum"


MARKED = np.zeros((6, 9), np.uint8)
MARKED[0, 0], MARKED[0, -1], MARKED[-1, 0], MARKED[-1, -1] = 50, 100, 150, 250
# Of an upright frontal film: the direction of the array's axes, as letters of the patient.
AXES = {"L": (1, 1), "R": (1, -1), "F": (0, 1), "H": (0, -1)}


@pytest.mark.parametrize(
    "stored", [(a, b) for a in "LRHF" for b in "LRHF" if (a in "LR") != (b in "LR")]
)
def test_a_frontal_film_is_turned_until_left_is_right(stored: tuple[str, str]) -> None:
    """The stored array is made pixel by pixel from the directions of its rows and columns."""
    (along, forward), (down, downward) = AXES[stored[0]], AXES[stored[1]]
    shape = MARKED.shape[down], MARKED.shape[along]
    array = np.zeros(shape, np.uint8)
    for r in range(shape[0]):
        for c in range(shape[1]):
            place = [0, 0]
            place[along] = c if forward > 0 else shape[1] - 1 - c
            place[down] = r if downward > 0 else shape[0] - 1 - r
            array[r, c] = MARKED[tuple(place)]
    seen = as_radiograph(chest(array, PatientOrientation=list(stored), PixelSpacing=[1, 2]))
    np.testing.assert_array_equal(np.rint(seen.pixels * 255), MARKED)
    assert bool(seen.provenance.notes) == (stored != ("L", "F"))
    expected = (1.0, 2.0) if stored[0] in "LR" else (2.0, 1.0)
    assert seen.provenance.pixel_spacing == expected


@pytest.mark.parametrize(
    ("stored", "quarters"),
    [("AF", 0), ("PF", 0), ("AH", 2), ("PH", 2), ("FA", 3), ("FP", 3), ("HA", 1), ("HP", 1)],
)
def test_a_lateral_film_is_turned_and_never_mirrored(stored: str, quarters: int) -> None:
    dataset = chest(MARKED, PatientOrientation=list(stored), ViewPosition="LL")
    expected = np.rot90(MARKED, quarters)
    np.testing.assert_array_equal(as_radiograph(dataset).to_uint8(), expected)


@pytest.mark.parametrize("value", [None, "", "L", ["L", "R"], ["L", ""], ["x", "y"], ["A", "L"]])
@pytest.mark.filterwarnings("ignore")
def test_an_orientation_that_says_nothing_changes_nothing(value: Any) -> None:
    seen = as_radiograph(chest(MARKED, PatientOrientation=value))
    np.testing.assert_array_equal(seen.to_uint8(), MARKED)
    assert not seen.provenance.notes


def test_encapsulated_pixel_data_of_one_frame_in_fragments(tmp_path: Path) -> None:
    dataset = compressed(JPEG2000Lossless)
    whole = dcmread(save(dataset, tmp_path / "x.dcm"))
    from pydicom.encaps import get_frame

    frame = get_frame(whole.PixelData, 0, number_of_frames=1)
    whole.PixelData = encapsulate([frame], fragments_per_frame=2, has_bot=False)
    path = save(whole, tmp_path / "y.dcm")
    path.write_bytes(path.read_bytes()[:-8])
    np.testing.assert_allclose(read_image(path).pixels, RAMP / 4080, atol=1e-6)
