"""Altered films of studies as files: made once, by several processes, and again after a stop.

A film is written as PNG, or as DICOM without a patient.
"""

import hashlib
import json
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import reduce
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vlscore.core import OnProgress, __version__, atomic_write
from vlscore.data import ImagePolicy, Radiograph, read_image
from vlscore.encoders import ImagePipeline
from vlscore.errors import Failure, InvalidStudy, VLScoreError
from vlscore.evaluation.audit.alterations import (
    Box,
    Grey,
    blank,
    harmless,
    hidden,
    mirrored,
    places_elsewhere,
    region_of,
)
from vlscore.evaluation.audit.audit_settings import (
    BLANK,
    BOXES,
    ELSEWHERE,
    HARMLESS,
    HIDDEN,
    MIRRORED,
    ORIGINAL,
)

if TYPE_CHECKING:
    from torch import Tensor

# Share of a film's width and height by which a box may reach beyond it.
_OUTSIDE = 0.01


class Film(NamedTuple):
    """One film to write.

    Attributes:
        study, row, path: of the film that is altered.
        alteration: one of ALTERATIONS.
        seed: of what is drawn.
        finding: observation whose region is hidden, or covered elsewhere.
        boxes: its region, in pixels; without them: by `sides` and `zones`.
        avoid: regions of the study's other findings.
        donor: study whose film is shown in its place.
        file: to write.
    """

    study: str
    row: int
    path: Path
    alteration: str
    seed: tuple[int, ...]
    finding: str | None = None
    boxes: tuple[Box, ...] = ()
    sides: tuple[str, ...] = ()
    zones: tuple[str, ...] = ()
    avoid: tuple[Box, ...] = ()
    donor: str | None = None
    file: Path = Path()


#: File of a film -> the regions that are covered.
Written = dict[Path, list[Box]]


def write_films(
    films: Sequence[Film],
    policy: ImagePolicy,
    workers: int,
    failures: list[Failure],
    on_progress: OnProgress,
) -> Written:
    """Write the films, of one study after the other; return those that were written."""
    written: Written = {}
    by_study = (list(some) for _, some in groupby(films, key=lambda film: film.study))
    own = [[film for film in some if film.donor is None] for some in by_study]
    for done, (found, failed) in enumerate(_of_studies(own, policy, workers), start=1):
        written |= found
        failures += failed
        on_progress(done, len(failures))
    # The film of another study is that study's original. If that has failed, there is none.
    originals = {
        film.study: film.file
        for film in films
        if film.alteration == ORIGINAL and film.file in written
    }
    for film in films:
        if film.donor in originals and film.study in originals:
            if not film.file.is_file():
                with atomic_write(film.file, "wb") as stream:
                    stream.write(originals[film.donor].read_bytes())
            written[film.file] = []
    return written


def _of_studies(
    films: Iterable[list[Film]], policy: ImagePolicy, workers: int
) -> Iterator[tuple[Written, list[Failure]]]:
    """Yield what `_write_study` returns of each study; files are read while others are written."""
    from vlscore.embedding import ImageDecoder, PendingPixels  # loads torch

    ahead = 2 * workers
    with (
        ImageDecoder(GreyLevels(), policy, workers) as decoder,
        ThreadPoolExecutor(max(workers, 1)) as threads,
    ):
        reading: deque[tuple[list[Film], PendingPixels]] = deque()
        writing: deque[Future[tuple[Written, list[Failure]]]] = deque()
        rest = iter(films)
        while True:
            for some in islice(rest, ahead + 1 - len(reading)):
                reading.append((some, decoder.submit(some[0].path)))
            if not reading:
                break
            some, pending = reading.popleft()
            try:
                grey = pending.stored().numpy()
            except VLScoreError as error:
                writing.append(Future())
                writing[-1].set_result(({}, [_failure(some[0], error)]))
            else:
                writing.append(threads.submit(_write_study, some, grey))
            while len(writing) > ahead:
                yield writing.popleft().result()
        yield from (each.result() for each in writing)


def _write_study(films: list[Film], grey: Grey) -> tuple[Written, list[Failure]]:
    """Write the films of a study; return the covered regions of each, or why there is none."""
    written: Written = {}
    for film in films:
        try:
            shown, regions = altered(film, grey)
        except InvalidStudy as error:
            # Altered films are compared with the original: without it they are of no use.
            for made in films:
                made.file.unlink(missing_ok=True)
            return {}, [_failure(film, error)]
        if shown is None:
            continue
        if not film.file.is_file():
            write_film(shown, film.file)
        written[film.file] = regions
    return written, []


def _failure(film: Film, error: VLScoreError) -> Failure:
    return Failure(film.row, film.study, str(error))


def altered(film: Film, grey: Grey) -> tuple[Grey | None, list[Box]]:
    """Return the altered grey levels and the covered regions; None where no region can be covered.

    Raises: InvalidStudy where a box of the table is not on the film.
    """
    rng = np.random.default_rng(film.seed)
    if film.alteration == BLANK:
        return blank(grey, rng), []
    if film.alteration == MIRRORED:
        return mirrored(grey), []
    if film.alteration in HARMLESS:
        return harmless(grey, film.alteration, rng), []
    if film.alteration in (HIDDEN, ELSEWHERE):
        height, width = grey.shape
        regions = _regions(film, (height, width))
        if film.alteration == ELSEWHERE:
            regions = places_elsewhere(regions, film.avoid, (height, width), rng)
        return reduce(hidden, regions, grey) if regions else None, regions
    return grey, []


def _regions(film: Film, shape: tuple[int, int]) -> list[Box]:
    """Return the regions of the finding of a film: boxes of the table, else by side and zone."""
    height, width = shape
    for box in film.boxes:
        # A border may be rounded, or drawn a little outside.
        most = 1 + _OUTSIDE * width, 1 + _OUTSIDE * height
        if not (
            -most[0] <= box.left < box.right <= width + most[0]
            and -most[1] <= box.top < box.bottom <= height + most[1]
        ):
            raise InvalidStudy(
                f"the box of {film.finding} from ({box.left}, {box.top}) to ({box.right}, "
                f'{box.bottom}) is not on the film of {width} x {height} pixels; column "{BOXES}" '
                "holds x, y, width, height in pixels of this file"
            )
    if film.boxes:
        return [box.within(shape) for box in film.boxes]
    assert film.finding is not None
    region = region_of(film.finding, film.sides, film.zones, shape)
    return [] if region is None else [region]


def take_over(place: Path, key: Mapping[str, Any], sources: Iterable[Path]) -> None:
    """Keep the films that a stopped call has made of the same files with the same settings.

    All others are removed.
    """
    states = [(os.fspath(path), _state(path)) for path in sources]
    written = json.dumps([__version__, key, states], sort_keys=True)
    digest = hashlib.sha256(written.encode()).hexdigest()
    place.mkdir(parents=True, exist_ok=True)
    mark = place / ".key"
    is_same = mark.is_file() and mark.read_text(encoding="utf-8") == digest
    # A file with this ending is what a killed call was writing.
    for path in place.glob(".*.tmp" if is_same else "*"):
        if path.is_file():
            path.unlink()
    if not is_same:
        with atomic_write(mark) as stream:
            stream.write(digest)


def _state(path: Path) -> tuple[int, int] | None:
    """Return the size and the time of the last change of a file; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


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
