"""Training pairs on disk: small grey images in one file, and their reports.

Decoding a chest radiograph takes a second, and a network needs 2 ms for it. So every image is
decoded once, downscaled, and stored in 8 bits: `pixels.bin` has all images, `pairs.jsonl` the
settings, then one row of the table a line. Runs with other objectives or seeds share the folder.

Both files grow while `prepare` runs. After a kill it continues behind the last whole line.
"""

import hashlib
import itertools
import json
import os
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
    RECORD,
    OnProgress,
    as_json,
    file_digest,
    finished_run,
    json_line,
    key_difference,
    no_progress,
    sole_writer,
    write_json,
    writing,
)
from vlscore.data import ImagePolicy, Provenance, Radiograph, Study, StudyTable, TextPolicy
from vlscore.embedding import ImageDecoder, PendingPixels, choose_views
from vlscore.encoders import ImagePipeline
from vlscore.errors import Failure, InvalidSetting, InvalidStudy, UnreadableImage, VLScoreError

PIXELS, PAIRS = "pixels.bin", "pairs.jsonl"

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
        failed: the rows that gave no pair.
        pixels: all images, flat.
        places: (n, 2, 3) int64: offset, height and width of the frontal and of the lateral image;
            the height is 0 where there is no lateral one.
    """

    folder: Path
    sha256: str
    ids: Sequence[str]
    texts: Sequence[str]
    groups: Sequence[str]
    failed: Sequence[Failure]
    pixels: Grey
    places: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)

    def image(self, pair: int, view: int = 0) -> Grey:
        """Return (height, width) grey levels 0 to 255 of the frontal image (0) or lateral one (1).

        A lateral image exists only where `has_lateral` is True.
        """
        start, height, width = self.places[pair, view].tolist()
        return self.pixels[start : start + height * width].reshape(height, width)

    @property
    def has_lateral(self) -> NDArray[np.bool_]:
        """Return (n,) bool, whether the pair has a lateral image."""
        there: NDArray[np.bool_] = self.places[:, 1, 1] > 0
        return there

    def same(self, pairs: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return (m, m) bool: same study or equal reports; the diagonal is True."""
        studies, texts = (numbers[pairs] for numbers in self._numbers)
        found: NDArray[np.bool_] = (studies[:, None] == studies) | (texts[:, None] == texts)
        return found

    @cached_property
    def _numbers(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return two (n,) arrays of numbers, equal for equal studies, and for equal reports."""
        return _numbered(self.ids), _numbered(self.texts)


def read_pairs(folder: Path, sha256: str) -> Pairs:
    """Read the pairs that `prepare` wrote into a folder."""
    ids, texts, groups, places, failed = [], [], [], [], []
    offset = 0
    with (folder / PAIRS).open(encoding="utf-8") as stream:
        for line in itertools.islice(stream, 1, None):
            row: dict[str, Any] = json.loads(line)
            if "error" in row:
                failed.append(Failure(row["row"], row["id"] or "", row["error"]))
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
_ROWS_AHEAD = 256
# Largest ratio of the sides: a more elongated image is not a radiograph, and some encoders'
# preprocessing would leave nothing of it.
_MOST_ELONGATED = 6
_SECONDS_BETWEEN_LOOKS = 0.5


class StoredPixels(ImagePipeline):
    """Pipeline to uint8 (1, height, width), scaled by area to a shorter side of `side` pixels."""

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
            **self.table.key,
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
    on_progress: OnProgress = no_progress,
) -> Pairs:
    """Decode every study of a table once; studies that were decoded before are not read again.

    A row without a readable frontal image, or without a report, is in `Pairs.failed`.

    Args:
        folder: folder of the pairs; pairs of another table are refused.

    Raises: InvalidSetting if no pair is left, or the folder holds other pairs; ChecksumMismatch if
        they were changed; FolderInUse; OutputFailed.
    """
    with sole_writer(folder), writing(folder):
        if (run := finished_run(folder)) is None:
            _decode(preparation, folder, workers, on_progress)
        else:
            _require_same(folder, run.key, preparation)
    found = decoded_pairs(folder)
    assert found is not None
    if not len(found):
        raise InvalidSetting(
            f"{preparation.table.path}: no row gives an image and its report; row "
            f"{found.failed[0].row}: {found.failed[0].reason}"
        )
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


def wait_for(folder: Path) -> Pairs:
    """Wait for the pairs that another process prepares; if that fails, it ends this process."""
    while (found := decoded_pairs(folder)) is None:
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return found


def _require_same(folder: Path, key: dict[str, Any], preparation: Preparation) -> None:
    own = as_json(preparation.key())
    if key != own:
        raise InvalidSetting(
            f"{folder} holds decoded images that differ: {key_difference(key, own)}. Choose "
            "another folder of pairs, or remove this one"
        )


# Entries of a line of pairs.jsonl, and the images that are being decoded for it.
_Begun = tuple[dict[str, Any], tuple[PendingPixels, ...]]


def _decode(
    preparation: Preparation,
    folder: Path,
    workers: int,
    on_progress: OnProgress,
) -> None:
    """Append the rows that are not there yet to both files, then write run.json."""
    done, failed = _stored_rows(preparation, folder)
    on_progress(done, failed)
    pipeline = StoredPixels(preparation.side)
    with (
        ImageDecoder(pipeline, preparation.image_policy, workers) as decoder,
        (folder / PIXELS).open("ab") as pixels,
        (folder / PAIRS).open("a", encoding="utf-8") as lines,
    ):
        rows = itertools.islice(iter(preparation.table), done, None)
        begun = (_begun(row, preparation, decoder) for row in rows)
        for row in _ahead(begun):
            content, images = _finished(*row)
            pixels.writelines(image.tobytes() for image in images)
            # A line is written after its pixels, so that a kill between both loses the row alone.
            pixels.flush()
            lines.write(json_line(content))
            lines.flush()
            done += 1
            failed += "error" in content
            on_progress(done, failed)
    results = {name: file_digest(folder / name) for name in (PIXELS, PAIRS)}
    key = as_json(preparation.key())
    write_json(folder / RECORD, {"key": key, "results": results, "rows": done, "failed": failed})


def _stored_rows(preparation: Preparation, folder: Path) -> tuple[int, int]:
    """Cut off what a kill left half written; return the numbers of rows and of failed ones."""
    pixels, pairs = folder / PIXELS, folder / PAIRS
    lines = pairs.read_bytes().splitlines(keepends=True) if pairs.is_file() else []
    whole = [line for line in lines if line.endswith(b"\n")]
    if whole and pixels.is_file():
        key, *rows = (json.loads(line) for line in whole)
        _require_same(folder, key, preparation)
        end = sum(height * width for row in rows for height, width in row.get("shapes", ()))
        if pixels.stat().st_size >= end:
            os.truncate(pixels, end)
            os.truncate(pairs, sum(map(len, whole)))
            return len(rows), sum("error" in row for row in rows)
    pixels.write_bytes(b"")
    pairs.write_text(json_line(preparation.key()), encoding="utf-8")
    return 0, 0


def _ahead(rows: Iterable[_Begun]) -> Iterator[_Begun]:
    """Yield the rows in order, while the images of the following ones are decoded."""
    waiting: deque[_Begun] = deque()
    for row in rows:
        waiting.append(row)
        if len(waiting) > _ROWS_AHEAD:
            yield waiting.popleft()
    yield from waiting


def _begun(row: Study | Failure, preparation: Preparation, decoder: ImageDecoder) -> _Begun:
    facts: dict[str, Any] = {"row": row.row, "id": row.id}
    if isinstance(row, Failure):
        return {**facts, "error": row.reason}, ()
    try:
        if "reference" in row.suspicious:
            raise InvalidStudy(f"its report is {row.reference!r}, as software writes for none")
        report = row.selected(preparation.text_policy).reference or ""
        if not report.strip():
            raise InvalidStudy("its report is empty")
        chosen = choose_views(row.images, row.views, preparation.views)
    except VLScoreError as error:
        return {**facts, "error": str(error)}, ()
    group = row.extra.get(preparation.group_column or "")
    # A study without a known patient is a group of its own.
    facts |= {
        "report": report,
        "group": f"study {row.id}" if group in (None, "") else f"group {group}",
    }
    return facts, tuple(decoder.submit(image) for image in (*chosen.frontal, *chosen.lateral))


def _finished(
    facts: dict[str, Any], pending: Sequence[PendingPixels]
) -> tuple[dict[str, Any], list[Grey]]:
    if "error" in facts:
        return facts, []
    try:
        images = [each.result().numpy()[0] for each in pending]
    except VLScoreError as error:
        return {"row": facts["row"], "id": facts["id"], "error": str(error)}, []
    return {**facts, "shapes": [list(image.shape) for image in images]}, images
