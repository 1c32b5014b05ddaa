"""Synthetic studies: scenes of a seed, imperfect references with candidates, and files.

Scene k of a seed is the same whatever else is drawn.

`imperfect_studies` makes references that are wrong about the picture. A reference differs from the
scene, which is the truth, by one error. One candidate corrects that error, so it differs from the
reference where the picture does. The other adds an error of the same category that the picture does
not show. Against the reference both have one error; against the picture none and two.

`write_dataset` writes radiographs in DICOM or PNG, and a table of reports and errors:

python -m vlscore.data.phantom FOLDER --studies 100 --seed 7 --format dicom
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vlscore.core import atomic_write
from vlscore.data.phantom.render import render
from vlscore.data.phantom.report_errors import ErrorCounts, add_finding, corrupt, count_errors
from vlscore.data.phantom.scene import (
    KINDS,
    SIDES,
    PhantomFinding,
    Scene,
    Split,
    sample_scene,
    write_report,
)


def scene_at(seed: int, position: int) -> Scene:
    """Return scene number `position` of the endless corpus of that seed."""
    return sample_scene(np.random.default_rng([seed, position]))


def thumbnail(scene: Scene, side: int) -> NDArray[np.uint8]:
    """Render (side, side) grey levels: the picture at twice that size, averaged two by two."""
    picture = render(scene, 2 * side).astype(np.float32)
    means = picture.reshape(side, 2, side, 2).mean(axis=(1, 3))
    levels: NDArray[np.float32] = np.rint(means * np.float32(255 / 4095))
    return levels.astype(np.uint8)


Findings = tuple[PhantomFinding, ...]
# Number of the random stream of a study from which these reports are drawn.
_STREAM = 11


@dataclass(frozen=True)
class ImperfectStudy:
    """A scene, a reference that is wrong about it, and candidates.

    Attributes:
        form: kind of the reference's error, a key of FORMS.
        position: number of the scene in its corpus.
        stated: findings of the reference.
        reference: the imperfect report.
        true: a candidate with the findings of the picture: the reference's error is corrected.
        false: a candidate with the reference's error, and one more of the same category.
        copied: a candidate with the findings of the reference, in other words.
        erring: findings of `false`.
    """

    form: str
    position: int
    scene: Scene
    stated: Findings
    reference: str
    true: str
    false: str
    copied: str
    erring: Findings


def imperfect_studies(
    seed: int, count: int, form: str, *, split: Split = "train"
) -> Iterator[ImperfectStudy]:
    """Yield the studies among the first `count` scenes of a seed that can have such a reference.

    Study k of a seed and a form is the same whatever `count` is.
    """
    for position in range(count):
        scene = scene_at(seed, position)
        rng = np.random.default_rng([seed, position, _STREAM, list(FORMS).index(form)])
        found = FORMS[form](rng, scene.findings)
        if found is None:
            continue
        stated, false = found
        reference, true, erring, copied = (
            write_report(rng, findings, split=split)
            for findings in (stated, scene.findings, false, stated)
        )
        yield ImperfectStudy(
            form, position, scene, stated, reference, true, erring, copied, erring=false
        )


def omit(rng: np.random.Generator, shown: Findings) -> tuple[Findings, Findings] | None:
    """Return findings of a reference that omits one, and the same with a false addition.

    None if the picture shows nothing, or no other finding can be added.
    """
    if not shown:
        return None
    position = int(rng.integers(len(shown)))
    stated = shown[:position] + shown[position + 1 :]
    # Added to the shown findings, so that the addition is of a kind that the picture lacks.
    added = tuple(finding for finding in add_finding(rng, shown) if finding not in shown)
    return (stated, _sorted(stated + added)) if added else None


def state(rng: np.random.Generator, shown: Findings) -> tuple[Findings, Findings] | None:
    """Return findings of a reference with a false one, and the same without a shown one."""
    if not shown:
        return None
    stated = add_finding(rng, shown)
    left_out = shown[int(rng.integers(len(shown)))]
    false = tuple(finding for finding in stated if finding != left_out)
    return (stated, false) if len(stated) > len(shown) else None


def move(rng: np.random.Generator, shown: Findings) -> tuple[Findings, Findings] | None:
    """Return findings of a reference with one on the wrong side, and the same with another moved.

    None if the picture shows fewer than two findings that have a side.
    """
    sided = [finding for finding in shown if finding.side is not None]
    flippable = [finding for finding in sided if finding.side in SIDES]
    if not flippable or len(sided) < 2:
        return None
    flipped = flippable[int(rng.integers(len(flippable)))]
    others = [finding for finding in sided if finding is not flipped]
    moved = others[int(rng.integers(len(others)))]
    sides = [side for side in KINDS[moved.kind].sides if side != moved.side]
    stated = _replaced(shown, flipped, SIDES[1 - SIDES.index(str(flipped.side))])
    return stated, _replaced(stated, moved, sides[int(rng.integers(len(sides)))])


# Kind of a reference's error -> function for its findings and those of the erring candidate.
FORMS: dict[str, Callable[[np.random.Generator, Findings], tuple[Findings, Findings] | None]] = {
    "omits": omit,
    "states": state,
    "wrong-side": move,
}


def _replaced(findings: Findings, finding: PhantomFinding, side: str) -> Findings:
    return _sorted(
        tuple(replace(each, side=side) if each == finding else each for each in findings)
    )


def _sorted(findings: Findings) -> Findings:
    return tuple(sorted(findings, key=lambda finding: finding.kind))


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
    on_progress: Callable[[int], None] = lambda done: None,
) -> Path:
    """Write `count` studies; return the path of studies.jsonl.

    Columns: id, image, reference, candidate, errors (one number a ReXVal category).
    The same arguments give the same bytes.

    Args: on_progress: function called with the number of written studies.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    suffix = {"dicom": ".dcm", "png": ".png"}[format]
    write = {"dicom": write_dicom, "png": write_png}[format]
    lines = []
    for position, study in enumerate(sample_studies(seed, count, split=split)):
        name = f"phantom-{seed}-{position:05d}"
        write(folder / f"{name}{suffix}", render(study.scene, size))
        record = {
            "id": name,
            "image": f"{name}{suffix}",
            "reference": study.reference,
            "candidate": study.candidate,
            "errors": study.errors.to_dict(),
        }
        lines.append(json.dumps(record) + "\n")
        on_progress(position + 1)
    table = folder / "studies.jsonl"
    with atomic_write(table) as stream:
        stream.writelines(lines)
    return table


def write_png(path: Path, picture: NDArray[np.uint16]) -> None:
    """Write a 12-bit picture as a 16-bit PNG, its values in the high bits."""
    from PIL import Image  # reports alone need no pictures

    with atomic_write(path, "wb") as stream:
        Image.fromarray(picture << 4).save(stream, format="PNG")


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
