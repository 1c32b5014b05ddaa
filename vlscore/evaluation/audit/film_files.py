"""Grey levels of film files, and films written as PNG or as DICOM without a patient."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vlscore.core import atomic_write
from vlscore.data import ImagePolicy, Radiograph, read_image
from vlscore.encoders import ImagePipeline
from vlscore.evaluation.audit.alterations import Grey

if TYPE_CHECKING:
    from torch import Tensor


class GreyLevels(ImagePipeline):
    """Pipeline to grey levels (height, width): uint8 where the file has 8 bits, else uint16."""

    def __call__(self, radiograph: Radiograph) -> "Tensor":
        """Return the grey levels of one radiograph."""
        import torch

        return torch.from_numpy(_levels(radiograph))

    def load_stored(self, image: Any, policy: ImagePolicy) -> Grey:
        """Read the grey levels of a file without torch. Raises: UnreadableImage."""
        return _levels(read_image(image, policy))


def _levels(film: Radiograph) -> Grey:
    if film.provenance.bits <= 8:
        return film.to_uint8()
    grey: Grey = np.rint(film.pixels * np.float32(65535)).astype(np.uint16)
    return grey


def write_film(grey: Grey, path: Path) -> None:
    """Write grey levels as PNG, or as DICOM that holds nothing of a patient, by the suffix."""
    with atomic_write(path, "wb") as stream:
        if path.suffix == ".dcm":
            _write_dicom(grey, stream)
        else:
            import cv2

            # Films have noise, in which no sequence repeats: a code for single differences of
            # neighbours takes half the time of a search for sequences, and gives smaller files.
            fast = [cv2.IMWRITE_PNG_STRATEGY, cv2.IMWRITE_PNG_STRATEGY_HUFFMAN_ONLY]
            stream.write(cv2.imencode(".png", grey, [cv2.IMWRITE_PNG_COMPRESSION, 1, *fast])[1])


def _write_dicom(grey: Grey, stream: Any) -> None:
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import UID, DigitalXRayImageStorageForPresentation, ExplicitVRLittleEndian

    # The UID depends on the pixels alone: the same film has the same bytes, and no UID is of a
    # patient.
    digest = int(hashlib.sha256(grey.tobytes() + str(grey.shape).encode()).hexdigest(), 16)
    uid = UID(f"2.25.{digest % 2**128}")
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = DigitalXRayImageStorageForPresentation
    meta.MediaStorageSOPInstanceUID = uid
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    bits = 8 * grey.dtype.itemsize
    dataset = Dataset()
    dataset.file_meta = meta
    dataset.SOPClassUID = DigitalXRayImageStorageForPresentation
    dataset.SOPInstanceUID = uid
    dataset.StudyInstanceUID = dataset.SeriesInstanceUID = uid
    dataset.Modality, dataset.PatientID, dataset.PatientName = "DX", "", ""
    dataset.Rows, dataset.Columns = grey.shape
    dataset.SamplesPerPixel, dataset.PhotometricInterpretation = 1, "MONOCHROME2"
    dataset.BitsAllocated = dataset.BitsStored = bits
    dataset.HighBit, dataset.PixelRepresentation = bits - 1, 0
    dataset.WindowCenter, dataset.WindowWidth = 2 ** (bits - 1), 2**bits
    dataset.PixelData = grey.tobytes() + b"\0" * (grey.nbytes % 2)
    dataset.save_as(stream, enforce_file_format=True)
