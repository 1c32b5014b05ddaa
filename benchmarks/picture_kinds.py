"""Claim: of each kind of odd picture file that was found in public reports, every tried input is
read with the right values, or refused with the true reason.

Protocol: each kind is a family of small files of a ramp, made element by element: DICOM headers,
codestreams under other labels, numbers of TIFF, PNG and PPM files, words for views. The right
picture is computed from the numbers that were written, not by this package. For a file that cannot
be right, the right answer is a refusal whose message has the stated words. "Wrong picture" counts
pictures with a pixel that differs by more than .005, and files that are shown and should not be;
"wrong refusal" counts files that are refused and should not be, or with another reason. With
--before, another checkout of this package reads the same files, in a process of its own. With
--dicom FOLDER ..., dcmtk's dcm2pnm also reads every DICOM file of the folders and of pydicom, with
the same window. Files that differ by more than .005 are named (colours: by more than .02, because
dcmtk weighs them otherwise). Pictures with a note (turned by Patient Orientation, a lookup table
that the viewers scale otherwise) are counted as noted.

Run: python benchmarks/picture_kinds.py [--before CHECKOUT] [--dicom FOLDER ...]
         [--out benchmarks/results/picture_kinds.md]
"""

import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine, publish
from pydicom import Dataset, Sequence
from pydicom.data import get_testdata_files
from pydicom.dataset import FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, JPEG2000Lossless, JPEGLSLossless, RLELossless

REPOSITORY = Path(__file__).resolve().parent.parent
RAMP = np.tile(np.arange(256, dtype=np.uint16) * 16, (64, 1))
LINEAR = np.arange(4096)
# Beginnings of the names of files whose two readings differ, and why.
EXPLAINED = {
    "liver": "one bit a pixel; dcm2pnm without a window gives it half of the range",
    "rtdose_expb": "big endian, 32 bits: dcmtk swaps its halves; equal to rtdose in little endian",
}
WINDOW = {"WindowCenter": 2048, "WindowWidth": 4096}
# A file, and its right pixels or the words of its refusal.
Case = tuple[bytes, np.ndarray | str]
_READ = """
import json, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from vlscore.data import read_image
for path in sys.stdin.read().split("\\n"):
    try:
        pixels = read_image(path).pixels
        np.save(path + ".npy", pixels)
        print(json.dumps(""))
    except Exception as error:
        print(json.dumps(f"{type(error).__name__} {error}"))
"""


def film(values: np.ndarray = RAMP, bits: int = 12, **elements: Any) -> Dataset:
    """Return a DX of grey or RGB values."""
    made = Dataset()
    made.file_meta = FileMetaDataset()
    made.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    made.SOPClassUID = made.file_meta.MediaStorageSOPClassUID = "1.2.840.10008.5.1.4.1.1.1.1"
    made.SOPInstanceUID = made.file_meta.MediaStorageSOPInstanceUID = "1.2.3"
    made.Modality, size = "DX", values.dtype.itemsize * 8
    made.SamplesPerPixel = 1 if values.ndim == 2 else 3
    made.PhotometricInterpretation = "MONOCHROME2" if values.ndim == 2 else "RGB"
    if values.ndim == 3:
        made.PlanarConfiguration = 0
    made.Rows, made.Columns = values.shape[:2]
    made.BitsAllocated, made.BitsStored, made.HighBit = size, bits, bits - 1
    made.PixelRepresentation = int(values.dtype.kind == "i")
    made.add_new("PixelData", "OW" if size > 8 else "OB", values.tobytes())
    for keyword, value in elements.items():
        setattr(made, keyword, value)
    return made


def file_of(dataset: Dataset) -> bytes:
    """Return the content of a DICOM file."""
    with tempfile.TemporaryFile() as stream:
        dataset.save_as(stream, enforce_file_format=True)
        stream.seek(0)
        return stream.read()


def table(descriptor: Any, data: np.ndarray | bytes | None, vr: str = "US") -> Sequence:
    """Return a sequence of one lookup table."""
    item = Dataset()
    if descriptor is not None:
        item.add_new("LUTDescriptor", vr, descriptor)
    if data is not None:
        item.add_new("LUTData", "OW", data if isinstance(data, bytes) else _words(data))
    return Sequence([item])


def _words(data: np.ndarray) -> bytes:
    return bytes(data.astype("<u2").tobytes())


def with_lut(sequence: Sequence, expected: np.ndarray) -> Case:
    """Return a film with a VOI LUT and a window, and its right pixels."""
    return file_of(film(VOILUTSequence=sequence, **WINDOW)), expected[RAMP]


def eight_bit_tables() -> Iterator[Case]:
    for divisor in (16, 17, 32):
        for first in (0, 1, 700):
            data = np.clip(LINEAR // divisor, 0, 255)
            right = np.clip(LINEAR - first, 0, 4095) // divisor / 255
            if data.max() < 128:
                right = right * 255 / data.max()
            yield with_lut(table([4096, first, 8], data), right)
            yield with_lut(table([4096, first, 8], data.astype(np.uint8).tobytes()), right)


def narrow_tables() -> Iterator[Case]:
    for bits, divisor in ((16, 1), (16, 2), (16, 4), (15, 1), (14, 1), (14, 4), (13, 4), (12, 4)):
        data = LINEAR // divisor
        yield with_lut(table([4096, 0, bits], data), data / data.max())


def odd_tables() -> Iterator[Case]:
    window = np.clip((LINEAR - 2047.5) / 4095 + 0.5, 0, 1)
    for descriptor, data in (
        (None, None),
        (None, LINEAR),
        ("", LINEAR),
        ([4096, 0], LINEAR),
        ([4096, 0, 16], None),
        ([4096, 0, 16], b""),
    ):
        yield with_lut(table(descriptor, data), window)
        made = film(ModalityLUTSequence=table(descriptor, data), **WINDOW)
        yield file_of(made), window[RAMP]
    for bits in (0, 8, 11, 32, 255):
        yield with_lut(table([4096, 0, bits], LINEAR), LINEAR / 4095)
    for bits in (9, 10, 11, 12, 13, 14, 15):
        data = LINEAR * (2**bits - 1) // 4095
        yield with_lut(table([4096, 0, bits], data), data / (2**bits - 1))
        made = film(ModalityLUTSequence=table([4096, 0, bits], data))
        yield file_of(made), data[RAMP] / data.max()
    for count in (4000, 5000):
        yield with_lut(table([count, 0, 12], LINEAR), LINEAR / 4095)
    for first in (33000, 40000, 61000):
        values = (RAMP // 16 + first).astype(np.uint16)
        sequence = table([256, first - 65536, 8], np.arange(256), "SS")
        yield file_of(film(values, 16, VOILUTSequence=sequence)), RAMP / 4080


def shapes() -> Iterator[Case]:
    for photometric in ("MONOCHROME1", "MONOCHROME2"):
        for shape in ("IDENTITY", "INVERSE", ""):
            made = film(PhotometricInterpretation=photometric, PresentationLUTShape=shape)
            dark = photometric == "MONOCHROME1" or shape == "INVERSE"
            yield file_of(made), 1 - RAMP / 4080 if dark else RAMP / 4080


def labels() -> Iterator[Case]:
    kinds = {JPEG2000Lossless: "JPEG 2000", JPEGLSLossless: "JPEG-LS", RLELossless: "RLE"}
    others = ("1.2.840.10008.1.2.4.50", "1.2.840.10008.1.2.4.51", "1.2.840.10008.1.2.4.57")
    others += ("1.2.840.10008.1.2.4.70", "1.2.840.10008.1.2.4.81", "1.2.840.10008.1.2.4.91")
    # Lossy and lossless processes have one kind of codestream.
    same_kind = {(JPEGLSLossless, others[4]), (JPEG2000Lossless, others[5])}
    for syntax, kind in kinds.items():
        for values, bits in ((RAMP, 12), ((RAMP // 16).astype(np.uint8), 8)):
            made = film(values, bits)
            made.compress(syntax, generate_instance_uid=False)
            content = file_of(made)
            for label in {*kinds, *others, "1.2.840.10008.1.2.1"} - {syntax}:
                if (syntax, label) in same_kind:
                    yield relabelled(content, syntax, label), RAMP / 4080
                    continue
                words = "no stated length" if label == "1.2.840.10008.1.2.1" else kind
                yield relabelled(content, syntax, label), words


def relabelled(content: bytes, old: str, new: str) -> bytes:
    """Return a DICOM file with another transfer syntax in its meta header."""
    before, after = (each.encode() + b"\0" * (len(each) % 2) for each in (old, new))
    head = struct.pack("<HH2sH", 2, 0x10, b"UI", len(before)) + before
    other = struct.pack("<HH2sH", 2, 0x10, b"UI", len(after)) + after
    return content.replace(head, other, 1)


def cut_off() -> Iterator[Case]:
    for syntax in (JPEG2000Lossless, JPEGLSLossless, RLELossless):
        made = film()
        made.compress(syntax, generate_instance_uid=False)
        content = file_of(made)
        for missing in (8, 7, 5, 4, 1):
            yield content[:-missing], RAMP / 4080
        for missing in (14, 40, 200):
            yield content[:-missing], f"cut off after byte {len(content) - missing}"


def two_syntaxes() -> Iterator[Case]:
    for first in (ExplicitVRLittleEndian, RLELossless, JPEG2000Lossless):
        made = film()
        if first != ExplicitVRLittleEndian:
            made.compress(first, generate_instance_uid=False)
        content = file_of(made)
        end = 144 + struct.unpack_from("<I", content, 140)[0]
        for second in (ExplicitVRLittleEndian, RLELossless, "1.2.840.10008.1.2.4.50"):
            value = second.encode() + b"\0" * (len(second) % 2)
            again = struct.pack("<HH2sH", 2, 0x10, b"UI", len(value)) + value
            yield content[:end] + again + content[end:], RAMP / 4080


def missing_elements() -> Iterator[Case]:
    for keyword, words in (
        ("BitsAllocated", "Bits Allocated"),
        ("BitsStored", "Bits Stored"),
        ("PixelRepresentation", "Pixel Representation"),
        ("PhotometricInterpretation", "Photometric Interpretation"),
    ):
        made = film()
        delattr(made, keyword)
        yield file_of(made), words
    for keyword in ("SamplesPerPixel", "HighBit"):
        made = film()
        delattr(made, keyword)
        yield file_of(made), RAMP / 4080
    comma = file_of(film(RescaleSlope="1.5", RescaleIntercept="0")).replace(b"1.5 ", b"1,5 ")
    yield comma, "Rescale Slope"
    for keyword in ("FloatPixelData", "DoubleFloatPixelData"):
        made = film()
        del made.PixelData
        setattr(made, keyword, bytes(64 * 256 * (4 if keyword[0] == "F" else 8)))
        yield file_of(made), "not supported"


def turned_films() -> Iterator[Case]:
    values = RAMP.copy()
    values[:20] //= 2
    for rows, columns, turn in (
        ("L", "F", lambda a: a),
        ("R", "F", np.fliplr),
        ("L", "H", np.flipud),
        ("R", "H", lambda a: np.rot90(a, 2)),
        ("F", "L", np.transpose),
        ("H", "L", lambda a: np.fliplr(a.T)),
        ("F", "R", lambda a: np.flipud(a.T)),
        ("H", "R", lambda a: np.rot90(a, 2).T),
    ):
        stored = np.ascontiguousarray(_stored(turn, values, rows, columns))
        yield file_of(film(stored, PatientOrientation=[rows, columns])), values / 4080


def _stored(
    turn: Callable[[np.ndarray], np.ndarray], values: np.ndarray, rows: str, columns: str
) -> np.ndarray:
    """Return the array whose rows and columns run as stated, from an upright one."""
    axes = {"L": (1, 1), "R": (1, -1), "F": (0, 1), "H": (0, -1)}
    (_, forward), (down, downward) = axes[rows], axes[columns]
    picture = values if down == 0 else values.T
    return picture[::downward, ::forward]


def tiff_file(values: np.ndarray, photometric: int, extra: int | None = None) -> bytes:
    """Return an uncompressed TIFF, written tag by tag."""
    height, width = values.shape[:2]
    samples = 1 if values.ndim == 2 else values.shape[2]
    bits, kind = values.dtype.itemsize * 8, {"u": 1, "i": 2, "f": 3}[values.dtype.kind]
    tags = [(256, [width]), (257, [height]), (258, [bits] * samples), (259, [1])]
    tags += [(262, [photometric]), (273, [0]), (277, [samples]), (278, [height])]
    tags += [(279, [values.nbytes]), (284, [1])] + ([(338, [extra])] if extra is not None else [])
    tags += [(339, [kind] * samples)]
    start, behind, entries = 8 + 2 + 12 * len(tags) + 4, b"", b""
    pixels = start + sum(2 * len(found) for _, found in tags if len(found) > 2)
    for tag, found in tags:
        code, number = ("I", 4) if tag in (256, 257, 273, 278, 279) else ("H", 3)
        packed = struct.pack(f"<{len(found)}{code}", *([pixels] if tag == 273 else found))
        place = packed.ljust(4, b"\0")
        if len(packed) > 4:
            place, behind = struct.pack("<I", start + len(behind)), behind + packed
        entries += struct.pack("<HHI", tag, number, len(found)) + place
    head = struct.pack("<2sHIH", b"II", 42, 8, len(tags)) + entries + bytes(4) + behind
    return head + bytes(values.astype(values.dtype.newbyteorder("<")).tobytes())


def tiff_numbers() -> Iterator[Case]:
    steps = np.tile(np.arange(64.0), (48, 1))
    for kind in ("i1", "u2", "i2", "u4", "i4", "f4", "f8"):
        values = {"u": steps * 3 + 5, "i": steps * 3 - 90, "f": steps * 3.5 - 20}[kind[0]]
        stored = (values * (1 if kind[1] == "1" or kind[0] == "f" else 300)).astype(kind)
        wide = stored.astype(float)
        low, high = (-128.0, 127.0) if kind == "i1" else (wide.min(), wide.max())
        right = (wide - low) / (high - low)
        yield tiff_file(stored, 1), right
        yield tiff_file(stored, 0), 1 - right
        yield tiff_file(np.stack([stored] * 3, -1), 2), right


def png_file(values: np.ndarray, key: int | None = None) -> bytes:
    """Return a PNG, written chunk by chunk; `key` is a transparent value."""
    height, width = values.shape[:2]
    channels = 1 if values.ndim == 2 else values.shape[2]
    kind = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    depth = values.dtype.itemsize * 8
    rows = values.astype(values.dtype.newbyteorder(">"))
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, 0))]
    if key is not None:
        chunks.append((b"tRNS", struct.pack(f">{channels}H", *[key] * channels)))
    chunks.append((b"IDAT", zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows))))
    content = b"\x89PNG\r\n\x1a\n"
    for name, data in (*chunks, (b"IEND", b"")):
        check = struct.pack(">I", zlib.crc32(name + data))
        content += struct.pack(">I", len(data)) + name + data + check
    return content


def deep_colour() -> Iterator[Case]:
    import cv2

    for most in (1023, 4095, 65535):
        values = (np.tile(np.arange(64), (48, 1)) * (most // 64)).astype(np.uint16)
        right = values / values.max()
        opaque = np.full(values.shape, 65535, np.uint16)
        for channels in (2, 3, 4):
            each = {2: [values, opaque], 3: [values] * 3, 4: [*[values] * 3, opaque]}[channels]
            yield png_file(np.stack(each, -1)), right
            if channels > 2:
                yield tiff_file(np.stack(each, -1), 2, None if channels == 3 else 2), right
        rgb = np.stack([values] * 3, -1)
        yield b"P6\n64 48\n%d\n" % most + rgb.astype(">u2").tobytes(), right
        plain = b" ".join(b"%d" % number for number in rgb.ravel())
        yield b"P3\n64 48\n%d\n" % most + plain, right
        yield bytes(cv2.imencode(".jp2", rgb)[1].tobytes()), right
        yield file_of(film(rgb, 16)), right


def colour_keys() -> Iterator[Case]:
    for kind, step in (("u1", 4), ("u2", 1000)):
        values = (np.arange(64).reshape(8, 8) * step).astype(kind)
        for key in (step * 63, step * 7):
            right = np.where(values == key, 0, values)
            right = right / (255 if kind == "u1" else right.max())
            yield png_file(values, key), right
            yield png_file(np.stack([values] * 3, -1), key), right


VIEWS = {
    "frontal": "PA;AP;P.A.;A.P.;P-A;P/A;postero-anterior;posteroanterior;antero-posterior;"
    "anteroposterior;POSTERO_ANTERIOR;posterior-anterior;Anterior Posterior;PA erect;AP_horizontal;"
    "frontal;AP supine;Thorax p.a.;left lateral decubitus;LLD",
    "lateral": "LL;RL;L;LAT;Lat.;lateral;Left Lateral;LEFT_LATERAL;XTABLE LATERAL;latero-lateral",
    "unknown": "plateau;oblique;PA and lateral;unknown",
}

KINDS: dict[str, Callable[[], Iterator[Case]]] = {
    "VOI LUT of 8 bits on deeper pixels": eight_bit_tables,
    "VOI LUT narrower than it states": narrow_tables,
    "lookup tables with odd or empty descriptors": odd_tables,
    "more than 8 bits, several channels": deep_colour,
    "codestream of another kind than its label": labels,
    "Presentation LUT Shape": shapes,
    "no closing delimiter, or cut off": cut_off,
    "two transfer syntaxes": two_syntaxes,
    "missing elements, decimal comma, float pixels": missing_elements,
    "turned and mirrored films": turned_films,
    "TIFF: signed, float and wide numbers": tiff_numbers,
    "PNG: transparent colours": colour_keys,
}


def wrong_of(kind: str, tree: Path, folder: Path) -> tuple[int, int, int]:
    """Return the inputs of a kind; wrong pictures and wrong refusals of a checkout."""
    cases = list(KINDS[kind]())
    paths = []
    for number, (content, _) in enumerate(cases):
        path = folder / f"{number}.bin"
        path.write_bytes(content)
        Path(f"{path}.npy").unlink(missing_ok=True)
        paths.append(str(path))
    pictures = refusals = 0
    answers = answers_of(_READ, "\n".join(paths), tree)
    for (_, right), path, answer in zip(cases, paths, answers, strict=True):
        if answer:
            words = right if isinstance(right, str) else None
            refusals += words is None or words not in answer
        else:
            is_right = not isinstance(right, str) and _agree(np.load(f"{path}.npy"), right)
            pictures += not is_right
    return len(cases), pictures, refusals


def _agree(seen: np.ndarray, right: np.ndarray) -> bool:
    return seen.shape == right.shape and float(np.abs(seen - right).max()) <= 0.005


def answers_of(script: str, given: str, tree: Path) -> list[str]:
    """Run a script with another checkout; return its answers, one a line."""
    run = subprocess.run(
        [sys.executable, "-c", script],
        input=given,
        capture_output=True,
        text=True,
        check=True,
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
    )
    return [json.loads(line) for line in run.stdout.splitlines()]


def wrong_views(tree: Path) -> tuple[int, int, int]:
    """Return the words for views that were tried, and how many a checkout misreads."""
    pairs = [(word, says) for says, words in VIEWS.items() for word in words.split(";")]
    script = (
        "import json, sys\nfrom vlscore.data import projection\n"
        "for word in sys.stdin.read().split(chr(10)): print(json.dumps(projection(word)))"
    )
    answers = answers_of(script, "\n".join(word for word, _ in pairs), tree)
    return len(pairs), sum(a != says for a, (_, says) in zip(answers, pairs, strict=True)), 0


def compared_with_dcmtk(folders: list[Path]) -> list[str]:
    """Return what two readings of every DICOM file say, one line a file that differs."""
    from vlscore.data import ImagePolicy, read_image
    from vlscore.errors import UnreadableImage

    warnings.simplefilter("ignore")
    paths = {Path(name) for name in get_testdata_files("*.dcm")}
    for folder in folders:
        paths |= {path for path in folder.rglob("*") if path.suffix == ".dcm"}
    counts = dict.fromkeys(("agree", "noted", "shown by neither"), 0)
    lines: list[str] = []
    only_ours: list[str] = []
    policy = ImagePolicy(other_modalities="accept", frame=0)
    for path in sorted(paths):
        try:
            seen = read_image(path, policy)
        except UnreadableImage as error:
            if by_dcmtk(path, "full range") is None:
                counts["shown by neither"] += 1
            else:
                lines.append(
                    f"- `{path.name}`: only dcmtk shows it; {str(error)[len(str(path)) :]}"
                )
            continue
        other = by_dcmtk(path, seen.provenance.window)
        if other is None:
            only_ours.append(path.name)
        elif seen.provenance.notes:
            counts["noted"] += 1
        elif other.shape != seen.shape:
            lines.append(f"- `{path.name}`: dcmtk gives {other.shape}, this package {seen.shape}")
        else:
            is_grey = (seen.provenance.photometric_interpretation or "").startswith("MONO")
            distance = float(np.abs(other - seen.pixels).max())
            if distance <= (0.005 if is_grey else 0.02):
                counts["agree"] += 1
            else:
                why = [text for start, text in EXPLAINED.items() if path.name.startswith(start)]
                reason = f" ({why[0]})" if why else ""
                lines.append(f"- `{path.name}`: largest difference {distance:.3f}{reason}")
    head = ", ".join(f"{count} {word}" for word, count in counts.items())
    names = ", ".join(f"`{name}`" for name in only_ours)
    return [
        f"Of {len(paths)} files: {head}, {len(only_ours)} shown by this package alone, "
        f"{len(lines)} others.",
        "",
        *lines,
        "",
        f"Shown by this package alone (dcmtk has no JPEG 2000): {names or 'none'}.",
    ]


def by_dcmtk(path: Path, window: str) -> np.ndarray | None:
    """Return what dcm2pnm shows of the first frame, in [0, 1]; None if it shows nothing."""
    from vlscore.data import ImagePolicy, read_image

    options = {"VOI LUT": ["+Wl", "1"], "window of the header": ["+Wi", "1"], "full range": ["-W"]}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.pnm"
        # One program for each family of compressions.
        for program in ("dcm2pnm", "dcmj2pnm", "dcml2pnm"):
            words = [program, *options.get(window, ["+Wm"]), "-O", "+on2", str(path), str(out)]
            if not subprocess.run(words, capture_output=True).returncode and out.is_file():
                break
        else:
            return None
        full = ImagePolicy(window="full", other_modalities="accept")
        return read_image(out, full).pixels


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--before", type=Path)
    parser.add_argument("--dicom", type=Path, nargs="*")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    trees = [*([given.before.resolve()] if given.before else []), REPOSITORY]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            rows.append((kind, [wrong_of(kind, tree, Path(folder)) for tree in trees]))
    rows.append(("words for views", [wrong_views(tree) for tree in trees]))
    names = ["before", "now"][-len(trees) :]
    head = [f"wrong {what} {name}" for name in names for what in ("pictures", "refusals")]
    lines = ["# Kinds of odd picture files", "", describe_machine(), ""]
    lines += [f"| kind | inputs tried | {' | '.join(head)} |", "|---" * (2 + len(head)) + "|"]
    for kind, counts in rows:
        wrong = [str(number) for each in counts for number in each[1:]]
        lines.append(f"| {kind} | {counts[0][0]} | {' | '.join(wrong)} |")
    if given.dicom is not None:
        if shutil.which("dcm2pnm") is None:
            raise SystemExit("--dicom needs dcmtk's dcm2pnm: apt-get install dcmtk")
        lines += ["", "## Real files beside dcmtk", "", *compared_with_dcmtk(given.dicom)]
    publish("\n".join(lines) + "\n", given.out)


if __name__ == "__main__":
    main()
