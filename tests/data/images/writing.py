"""DICOM files for tests, written with pydicom element by element."""

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
