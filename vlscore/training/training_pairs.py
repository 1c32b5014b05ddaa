"""Training pairs on disk: small grey images in one file, and their reports.

Decoding a chest radiograph takes a second, and a network needs 2 ms for it. So every image is
decoded once, downscaled, and stored in 8 bits. Runs with other objectives or seeds share
the folder.

`prepare` makes the pairs from a table of studies. It can be resumed, and a row that fails is listed
and does not stop the others.
"""

import csv
import hashlib
import itertools
import json
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vlscore.core import (
    OnProgress,
    ResumableFolder,
    atomic_write,
    cells,
    end_decided_run,
    finished_run,
    json_line,
    no_progress,
)
from vlscore.data import BadRow, ImagePolicy, Provenance, Radiograph, Study, StudyTable, TextPolicy
from vlscore.embedding import ImageDecoder, PendingPixels, choose_views
from vlscore.encoders import ImagePipeline
from vlscore.errors import InvalidSetting, InvalidStudy, UnreadableImage, VLScoreError

PIXELS, PAIRS, FAILURES = "pixels.bin", "pairs.jsonl", "failures.csv"
NAMES = (PIXELS, PAIRS, FAILURES)

Grey = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs: n images with their reports.

    Attributes:
        folder: their folder.
        sha256: hexadecimal digest of pixels and reports.
        ids: ids of the studies; several pairs may belong to one study.
        texts: the section of each report that is used for training.
        groups: groups that a split must not divide, such as patients; by default the studies.
        failed: (row, id, reason) of the rows that gave no pair.
        pixels: all images, flat.
        places: (n, 2, 3) int64: offset, height and width of the frontal and of the lateral image;
            the height is 0 where there is no lateral one.
    """

    folder: Path
    sha256: str
    ids: Sequence[str]
    texts: Sequence[str]
    groups: Sequence[str]
    failed: Sequence[tuple[int, str, str]]
    pixels: Grey
    places: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    def frontal(self, pair: int) -> Grey:
        """Return the frontal image, (height, width) grey levels 0 to 255."""
        return self._image(pair, 0)

    def lateral(self, pair: int) -> Grey | None:
        """Return the lateral image, as `frontal`; None if the study has no lateral view."""
        return self._image(pair, 1) if self.has_lateral[pair] else None

    @property
    def has_lateral(self) -> NDArray[np.bool_]:
        """Return (n,) bool, whether the pair has a lateral image."""
        there: NDArray[np.bool_] = self.places[:, 1, 1] > 0
        return there

    def same(self, pairs: NDArray[np.int64], *, duplicates_apart: bool = True) -> NDArray[np.bool_]:
        """Return (m, m) bool: same study or equal reports; the diagonal is True."""
        if not duplicates_apart:
            return np.eye(len(pairs), dtype=bool)
        studies, texts = (numbers[pairs] for numbers in self._numbers)
        found: NDArray[np.bool_] = (studies[:, None] == studies) | (texts[:, None] == texts)
        return found

    @cached_property
    def _numbers(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return two (n,) arrays of numbers, equal for equal studies, and for equal reports."""
        return _numbered(self.ids), _numbered(self.texts)

    def _image(self, pair: int, view: int) -> Grey:
        start, height, width = self.places[pair, view].tolist()
        return self.pixels[start : start + height * width].reshape(height, width)


def read_pairs(folder: Path, sha256: str) -> Pairs:
    """Read the pairs that `prepare` wrote into a folder."""
    ids, texts, groups, places, failed = [], [], [], [], []
    offset = 0
    with (folder / PAIRS).open(encoding="utf-8") as stream:
        for line in stream:
            row: dict[str, Any] = json.loads(line)
            if "error" in row:
                failed.append((row["row"], row["id"] or "", row["error"]))
                continue
            ids.append(row["id"])
            texts.append(row["report"])
            groups.append(row["group"])
            place = []
            for height, width in row["shapes"]:
                place.append((offset, height, width))
                offset += height * width
            places.append([*place, (0, 0, 0)][:2])
    file = folder / PIXELS
    pixels = np.memmap(file, np.uint8, "r") if offset else np.empty(0, np.uint8)
    shape = np.array(places, np.int64).reshape(-1, 2, 3)
    return Pairs(folder, sha256, ids, texts, groups, failed, pixels, shape)


def _numbered(names: Sequence[str]) -> NDArray[np.int64]:
    known: dict[str, int] = {}
    return np.array([known.setdefault(name, len(known)) for name in names], np.int64)


def as_radiograph(grey: Grey, name: str) -> Radiograph:
    """Convert stored or augmented grey levels to a radiograph, the input of preprocessing."""
    levels = grey.astype(np.float32) / np.float32(255)
    return Radiograph(levels, Provenance(format="array", bits=8, window="as given"), name)


VIEWS = ("first-frontal", "frontal+lateral")
_ROWS_IN_CHUNK = 256
_ALL_ALIKE = 100
# Largest ratio of the sides: a more elongated image is not a radiograph, and some encoders'
# preprocessing would leave nothing of it.
_MOST_ELONGATED = 6
_SECONDS_BETWEEN_LOOKS = 0.5


class StoredPixels(ImagePipeline):
    """Pipeline to uint8 (1, height, width), scaled by area to a shorter side of `side` pixels."""

    stable_name = "vlscore.training.preparing:KeptPixels"

    def __init__(self, side: int) -> None:
        self.side = side

    def __call__(self, radiograph: Radiograph) -> Tensor:
        import cv2

        grey = radiograph.to_uint8()
        height, width = grey.shape
        shorter = min(height, width)
        if max(height, width) > _MOST_ELONGATED * shorter:
            raise UnreadableImage(
                f"{radiograph.name} has {width} x {height} pixels, which is no radiograph's shape"
            )
        if shorter > self.side:
            size = (round(width * self.side / shorter), round(height * self.side / shorter))
            grey = cv2.resize(grey, size, interpolation=cv2.INTER_AREA).astype(np.uint8)
        return torch.from_numpy(np.ascontiguousarray(grey))[None]


@dataclass(frozen=True)
class Preparation:
    """Settings for making pairs from a table.

    Attributes:
        table: table with images and references.
        side: shorter side of the stored images, in pixels.
        image_policy, text_policy: as in an evaluation.
        views: "first-frontal" or "frontal+lateral".
        group_column: column of groups that a split must not divide, such as patients.

    Raises: InvalidSetting for views or an image policy that training cannot use.
    """

    table: StudyTable
    side: int = 256
    image_policy: ImagePolicy = field(default_factory=ImagePolicy)
    text_policy: TextPolicy = field(default_factory=TextPolicy)
    views: str = "first-frontal"
    group_column: str | None = None

    def __post_init__(self) -> None:
        if self.views not in VIEWS:
            raise InvalidSetting(f"training takes views={' or '.join(VIEWS)}, not {self.views!r}")
        if self.image_policy.as_authors:
            raise InvalidSetting(
                'the image policy "authors" reads files for one encoder, and training stores '
                "images for all encoders; use the default policy"
            )

    def key(self) -> dict[str, Any]:
        """Return the settings that must match before stored pairs can be used."""
        return {
            "table_sha256": self.table.sha256,
            "columns": self.table.columns.to_dict(),
            "image_root": str(self.table.root.resolve()),
            "side": self.side,
            "image_policy": self.image_policy.signature(),
            "text_policy": self.text_policy.signature(),
            "views": self.views,
            "group_column": self.group_column,
        }


def prepare(
    preparation: Preparation,
    folder: Path,
    *,
    workers: int = 0,
    keep_going: bool = False,
    on_progress: OnProgress = no_progress,
) -> Pairs:
    """Decode every study of a table once; studies that were decoded before are not read again.

    A row without a readable frontal image, or without a report, is listed in failures.csv.

    Args:
        folder: folder of the pairs; pairs of another table are refused.
        keep_going: continue even if the first hundred rows all fail for the same reason.

    Raises: InvalidSetting if no pair is left, or the folder holds other pairs;
        FolderInUse; OutputFailed.
    """
    # Remove the second copy of all pixels that a run killed at its very end leaves.
    end_decided_run(folder)
    if (found := prepared(preparation, folder)) is not None:
        return found
    with ResumableFolder(folder, preparation.key(), results=NAMES) as run:
        if run.record is None:
            rows = _decode(run, preparation, workers, keep_going, on_progress)
            run.finish(lambda place: _join(run, place), rows=rows)
    found = prepared(preparation, folder)
    assert found is not None
    return found


def decoded_pairs(folder: Path) -> Pairs | None:
    """Return the pairs that a finished `prepare` wrote into a folder; None if there are none.

    Raises: ChecksumMismatch if they were changed since.
    """
    run = finished_run(folder)
    if run is None:
        return None
    run.check()
    both = f"{run.digests[PIXELS]} {run.digests[PAIRS]}"
    return read_pairs(folder, hashlib.sha256(both.encode()).hexdigest())


def prepared(preparation: Preparation, folder: Path) -> Pairs | None:
    """Return the pairs in a folder; None if they are absent, incomplete, or of other settings.

    Raises: ChecksumMismatch if they were changed since; InvalidSetting if there is no pair.
    """
    run = finished_run(folder)
    if run is None or run.key != preparation.key():
        return None
    pairs = decoded_pairs(folder)
    if pairs is not None and not len(pairs):
        row, _, reason = pairs.failed[0]
        raise InvalidSetting(
            f"{preparation.table.path}: no row gives an image and its report; row {row}: {reason}"
        )
    return pairs


def wait_for(preparation: Preparation, folder: Path) -> Pairs:
    """Wait for the pairs that another process prepares; if that fails, it ends this process."""
    while True:
        found = prepared(preparation, folder)
        if found is not None:
            return found
        time.sleep(_SECONDS_BETWEEN_LOOKS)


@dataclass(eq=False)
class _Row:
    """Table row in preparation: images that are being decoded, or the reason why there are none."""

    row: int
    id: str | None
    report: str = ""
    group: str = ""
    files: tuple[Path, ...] = ()
    images: tuple[PendingPixels, ...] = ()
    error: str = ""


def _decode(
    run: ResumableFolder,
    preparation: Preparation,
    workers: int,
    keep_going: bool,
    on_progress: OnProgress,
) -> int:
    done = run.rows
    failed = sum(chunk.note["failed"] for chunk in run.chunks())
    on_progress(done, failed)
    pipeline = StoredPixels(preparation.side)
    with ImageDecoder(pipeline, preparation.image_policy, workers) as decoder:
        rows = itertools.islice(iter(preparation.table), done, None)
        begun = (_begin(row, preparation, decoder) for row in rows)
        for chunk in _ahead(begun):
            decoded = [_finish(row) for row in chunk]
            errors = [row["error"] for row, _ in decoded if "error" in row]
            if not done and not keep_going:
                _refuse_if_all_fail(decoded, errors)
            files = [file for row in chunk for file in row.files]
            with run.append(len(chunk), {"failed": len(errors)}, inputs=files) as place:
                with (place / PIXELS).open("wb") as stream:
                    for _, images in decoded:
                        stream.writelines(image.tobytes() for image in images)
                with (place / PAIRS).open("w", encoding="utf-8") as text:
                    text.writelines(json_line(row) for row, _ in decoded)
            done, failed = done + len(chunk), failed + len(errors)
            on_progress(done, failed)
    return done


def _ahead(rows: Iterator[_Row]) -> Iterator[list[_Row]]:
    """Yield chunks of rows; the next chunk's images are decoded while one is collected."""
    waiting: deque[list[_Row]] = deque()
    while chunk := list(itertools.islice(rows, _ROWS_IN_CHUNK)):
        waiting.append(chunk)
        if len(waiting) > 1:
            yield waiting.popleft()
    yield from waiting


def _begin(row: Study | BadRow, preparation: Preparation, decoder: ImageDecoder) -> _Row:
    if isinstance(row, BadRow):
        return _Row(row.row, row.id, error=row.reason)
    found = _Row(row.row, row.id)
    try:
        if "reference" in row.suspicious:
            raise InvalidStudy(f"its report is {row.reference!r}, as software writes for none")
        report = row.selected(preparation.text_policy).reference or ""
        if not report.strip():
            raise InvalidStudy("its report is empty")
        chosen = choose_views(row.images, row.views, preparation.views)
    except VLScoreError as error:
        found.error = str(error)
        return found
    found.report = report
    group = row.extra.get(preparation.group_column or "")
    # A study without a known patient is a group of its own.
    found.group = f"study {row.id}" if group in (None, "") else f"group {group}"
    found.files = (*chosen.frontal, *chosen.lateral)
    found.images = tuple(decoder.submit(image) for image in found.files)
    return found


def _finish(row: _Row) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]]:
    if not row.error:
        try:
            images = [pending.result().numpy()[0] for pending in row.images]
            shapes = [list(image.shape) for image in images]
            facts = {"row": row.row, "id": row.id, "report": row.report, "group": row.group}
            return {**facts, "shapes": shapes}, images
        except VLScoreError as error:
            row.error = str(error)
    return {"row": row.row, "id": row.id, "error": row.error}, []


def _refuse_if_all_fail(decoded: list[tuple[dict[str, Any], Any]], errors: list[str]) -> None:
    kinds = {error.partition(": ")[2] or error for error in errors}
    if len(decoded) < _ALL_ALIKE or len(errors) < len(decoded) or len(kinds) > 1:
        return
    raise InvalidSetting(
        f"the first {len(decoded)} rows all fail for one reason, and nothing was written; row "
        f"{decoded[0][0]['row']}: {errors[0]}. Look at the settings, above all the image folder "
        "and the columns; with keep_going (--keep-going) the rows that follow are tried as well"
    )


def _join(run: ResumableFolder, place: Path) -> dict[str, Any]:
    for name in (PIXELS, PAIRS):
        run.join(name, place / name)
    with (place / PAIRS).open(encoding="utf-8") as pairs:
        rows = (row for row in map(json.loads, pairs) if "error" in row)
        failed = [(row["row"], row["id"], row["error"]) for row in rows]
    write_failures(place, failed)
    return {"rows": run.rows, "failed": len(failed)}


def write_failures(place: Path, failed: Iterable[tuple[int, str | None, str]]) -> None:
    """Write the rows that gave no pair, in the format of evaluations."""
    with atomic_write(place / FAILURES) as stream:
        table = csv.writer(stream)
        table.writerow(["row", "id", "error"])
        table.writerows(map(cells, failed))
