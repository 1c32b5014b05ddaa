"""Synthetic studies: scenes of a seed with reports, and files.

Scene k of a seed is the same whatever else is drawn.

`write_dataset` writes radiographs in DICOM or PNG, and a table of reports and errors:

    python -m vlscore.data.phantom FOLDER --count 100 --seed 7 --format dicom
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vlscore.core import atomic_write
from vlscore.data.phantom.render import render
from vlscore.data.phantom.report_errors import ErrorCounts, corrupt, count_errors
from vlscore.data.phantom.scene import (
    PhantomFinding,
    Scene,
    Split,
    sample_scene,
    write_report,
)


def scene_at(seed: int, position: int) -> Scene:
    """Return scene number `position` of the endless corpus of that seed."""
    return sample_scene(np.random.default_rng([seed, position]))


ImageFormat = Literal["dicom", "png"]


@dataclass(frozen=True)
class PhantomStudy:
    """A scene with a reference report, and a candidate report whose errors are known.

    Attributes:
        claimed: findings of the candidate.
        errors: errors of the candidate, against the scene.
    """

    scene: Scene
    reference: str
    candidate: str
    claimed: tuple[PhantomFinding, ...]
    errors: ErrorCounts


def sample_studies(
    seed: int, count: int, *, split: Split = "train", most_errors: int = 6
) -> Iterator[PhantomStudy]:
    """Draw `count` studies whose candidates have 0 to `most_errors` errors, drawn uniformly.

    Study k of a seed is the same whatever `count` is.
    """
    for position in range(count):
        scene = scene_at(seed, position)
        rng = np.random.default_rng([seed, position, 1])
        claimed = corrupt(rng, scene.findings, int(rng.integers(0, most_errors + 1)))
        yield PhantomStudy(
            scene,
            write_report(rng, scene.findings, split=split),
            write_report(rng, claimed, split=split),
            claimed,
            count_errors(claimed, scene.findings),
        )


def write_dataset(
    folder: str | Path,
    *,
    seed: int,
    count: int,
    format: ImageFormat = "png",
    split: Split = "train",
    size: int = 256,
) -> Path:
    """Write `count` studies with reports in phrasings of `split`; return studies.jsonl.

    Columns: id, image, reference, candidate, errors (one number a ReXVal category).
    The same arguments give the same bytes.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    suffix = {"dicom": ".dcm", "png": ".png"}[format]
    write = {"dicom": write_dicom, "png": write_png}[format]
    lines = []
    for position, study in enumerate(sample_studies(seed, count, split=split)):
        name = f"phantom-{seed}-{position:05d}"
        write(folder / f"{name}{suffix}", render(study.scene, size))
        lines.append(json.dumps(study_record(name, f"{name}{suffix}", study)) + "\n")
    table = folder / "studies.jsonl"
    with atomic_write(table) as stream:
        stream.writelines(lines)
    return table


def study_record(id: str, image: str, study: PhantomStudy) -> dict[str, Any]:
    """Return the row of a study in a table; `errors` has one number a ReXVal category."""
    return {
        "id": id,
        "image": image,
        "reference": study.reference,
        "candidate": study.candidate,
        "errors": study.errors.to_dict(),
    }


def write_png(path: Path, picture: NDArray[np.uint16] | NDArray[np.uint8]) -> None:
    """Write a picture of 8 bits as it is, one of 12 bits with its values in the high ones of 16."""
    from PIL import Image  # reports alone need no pictures

    grey = picture if picture.dtype == np.uint8 else picture << 4
    with atomic_write(path, "wb") as stream:
        Image.fromarray(grey).save(stream, format="PNG", optimize=picture.dtype == np.uint8)


def write_dicom(path: Path, picture: NDArray[np.uint16]) -> None:
    """Write a 12-bit picture as a CR image; its identifiers follow from its pixels."""
    from pydicom.dataset import Dataset, FileMetaDataset
    from pydicom.uid import UID, ComputedRadiographyImageStorage, ExplicitVRLittleEndian

    unique = UID(f"2.25.{int(hashlib.sha256(picture.tobytes()).hexdigest()[:30], 16)}")
    meta = FileMetaDataset()
    meta.MediaStorageSOPClassUID = ComputedRadiographyImageStorage
    meta.MediaStorageSOPInstanceUID = unique
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    dataset = Dataset()
    dataset.file_meta = meta
    dataset.SOPClassUID = ComputedRadiographyImageStorage
    dataset.SOPInstanceUID = unique
    dataset.StudyInstanceUID = f"{unique}1"
    dataset.SeriesInstanceUID = f"{unique}2"
    dataset.PatientName = "PHANTOM"
    dataset.PatientID = "PHANTOM"
    dataset.Modality = "CR"
    dataset.BodyPartExamined = "CHEST"
    dataset.ViewPosition = "PA"
    dataset.Rows, dataset.Columns = picture.shape
    dataset.SamplesPerPixel = 1
    dataset.PhotometricInterpretation = "MONOCHROME2"
    dataset.BitsAllocated, dataset.BitsStored, dataset.HighBit = 16, 12, 11
    dataset.PixelRepresentation = 0
    dataset.WindowCenter, dataset.WindowWidth = 2048, 4096
    dataset.PixelData = picture.astype("<u2").tobytes()
    with atomic_write(path, "wb") as stream:
        dataset.save_as(stream, enforce_file_format=True)
