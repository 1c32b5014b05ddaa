"""DICOM files for tests, written with pydicom element by element."""

import struct
from pathlib import Path
from typing import Any

import numpy as np
from pydicom import Dataset
from pydicom.dataset import FileMetaDataset
from pydicom.sequence import Sequence
from pydicom.uid import ExplicitVRLittleEndian, generate_uid

CR_STORAGE = "1.2.840.10008.5.1.4.1.1.1"


def chest(pixels: np.ndarray, **elements: Any) -> Dataset:
    """A CR of the chest that holds `pixels`, (rows, columns) or (rows, columns, 3)."""
    dataset = Dataset()
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset.file_meta.MediaStorageSOPClassUID = CR_STORAGE
    dataset.file_meta.MediaStorageSOPInstanceUID = generate_uid(entropy_srcs=["test"])
    dataset.SOPClassUID = CR_STORAGE
    dataset.SOPInstanceUID = dataset.file_meta.MediaStorageSOPInstanceUID
    dataset.Modality, dataset.BodyPartExamined, dataset.ViewPosition = "CR", "CHEST", "PA"
    dataset.PhotometricInterpretation = "MONOCHROME2" if pixels.ndim == 2 else "RGB"
    dataset.SamplesPerPixel = 1 if pixels.ndim == 2 else 3
    if pixels.ndim == 3:
        dataset.PlanarConfiguration = 0
    dataset.Rows, dataset.Columns = pixels.shape[:2]
    size = pixels.dtype.itemsize * 8
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit = size, size, size - 1
    dataset.PixelRepresentation = int(pixels.dtype.kind == "i")
    dataset.PixelData = pixels.tobytes()
    dataset["PixelData"].VR = "OB" if size == 8 else "OW"
    if "BitsStored" in elements:
        dataset.HighBit = elements["BitsStored"] - 1
    for keyword, value in elements.items():
        setattr(dataset, keyword, value)
    return dataset


def save(dataset: Dataset, path: Path, **how: Any) -> Path:
    """Write the data set as a DICOM file."""
    dataset.save_as(path, enforce_file_format=True, **how)
    return path


def lookup_table(values: np.ndarray, *, first: int, bits: int) -> Sequence:
    """A modality or VOI LUT sequence of one table."""
    item = Dataset()
    item.add_new("LUTDescriptor", "US", [len(values), first, bits]) if first >= 0 else item.add_new(
        "LUTDescriptor", "SS", [len(values), first, bits]
    )
    item.ModalityLUTType = "US"
    item.add_new("LUTData", "OW", values.astype("<u2").tobytes())
    return Sequence([item])


_SAMPLE_FORMATS = {"u": 1, "i": 2, "f": 3}


def tiff(
    values: np.ndarray,
    path: Path,
    *,
    photometric: int | None = None,
    extra: int | None = None,
    orientation: int = 1,
    planar: bool = False,
) -> Path:
    """Write (height, width) or (height, width, samples) as an uncompressed TIFF, tag by tag.

    Args:
        photometric: tag 262; default: 2 (RGB) for three and four samples, else 1 (black is zero).
        extra: tag 338, the meaning of the last sample: 1 premultiplied alpha, 2 alpha.
        planar: give each sample a plane of its own, of two strips.
    """
    height, width = values.shape[:2]
    samples = 1 if values.ndim == 2 else values.shape[2]
    photometric = photometric if photometric is not None else 2 if samples > 2 else 1
    bits, kind = values.dtype.itemsize * 8, _SAMPLE_FORMATS[values.dtype.kind]
    tags = {
        256: [width],
        257: [height],
        258: [bits] * samples,
        259: [1],
        262: [photometric],
        273: [0],
        274: [orientation],
        277: [samples],
        278: [height],
        279: [values.nbytes],
        284: [1],
        339: [kind] * samples,
    }
    if extra is not None:
        tags[338] = [extra]
    strips = 2 * samples if planar else 1
    if planar:
        assert height % 2 == 0
        values = np.moveaxis(values, 2, 0)
        tags[284], tags[278] = [2], [height // 2]
        tags[273], tags[279] = [0] * strips, [values.nbytes // strips] * strips
    start = 8 + 2 + 12 * len(tags) + 4
    long, entries, behind = {256, 257, 273, 278, 279}, b"", b""
    lengths = {tag: (4 if tag in long else 2) * len(found) for tag, found in tags.items()}
    pixels = start + sum(length for length in lengths.values() if length > 4)
    tags[273] = [pixels + strip * values.nbytes // strips for strip in range(strips)]
    for tag, found in sorted(tags.items()):
        kind_of = ("I", 4) if tag in long else ("H", 3)
        packed = struct.pack(f"<{len(found)}{kind_of[0]}", *found)
        at = packed.ljust(4, b"\0") if len(packed) <= 4 else struct.pack("<I", start + len(behind))
        behind += packed if len(packed) > 4 else b""
        entries += struct.pack("<HHI", tag, kind_of[1], len(found)) + at
    head = struct.pack("<2sHIH", b"II", 42, 8, len(tags)) + entries + bytes(4) + behind
    little = values.astype(values.dtype.newbyteorder("<"))
    path.write_bytes(head + little.tobytes())
    return path
