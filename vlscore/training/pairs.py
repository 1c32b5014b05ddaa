"""The training pairs on disk: small grey images behind one another in one file, and their reports.

A chest radiograph takes a second to decode and a network 2 ms to look at, so every image is decoded
once, shrunk, and kept in 8 bits. Runs with other objectives or seeds share the folder.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vlscore.images import Provenance, Radiograph

PIXELS, PAIRS, FAILURES = "pixels.bin", "pairs.jsonl", "failures.csv"
NAMES = (PIXELS, PAIRS, FAILURES)

Grey = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Pairs:
    """n images with their reports.

    Attributes:
        folder: where they lie.
        sha256: hexadecimal digest of pixels and reports.
        ids: of the studies; several pairs may be of one.
        texts: what is trained on of each report.
        groups: what must not be parted by a split, such as patients; by default the studies.
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
        """(height, width) grey levels 0 to 255."""
        return self._image(pair, 0)

    def lateral(self, pair: int) -> Grey | None:
        """As `frontal`; None where the study has no lateral view."""
        return self._image(pair, 1) if self.has_lateral[pair] else None

    @property
    def has_lateral(self) -> NDArray[np.bool_]:
        """(n,) whether the pair has a lateral image."""
        there: NDArray[np.bool_] = self.places[:, 1, 1] > 0
        return there

    def same(self, pairs: NDArray[np.int64], *, duplicates_apart: bool = True) -> NDArray[np.bool_]:
        """(m, m) where two of m pairs are of one study or have equal reports; the diagonal is."""
        if not duplicates_apart:
            return np.eye(len(pairs), dtype=bool)
        studies, texts = (numbers[pairs] for numbers in self._numbers)
        found: NDArray[np.bool_] = (studies[:, None] == studies) | (texts[:, None] == texts)
        return found

    @cached_property
    def _numbers(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(n,) each: equal where the studies are equal, and where the reports are."""
        return _numbered(self.ids), _numbered(self.texts)

    def _image(self, pair: int, view: int) -> Grey:
        start, height, width = self.places[pair, view].tolist()
        return self.pixels[start : start + height * width].reshape(height, width)


def read_pairs(folder: Path, sha256: str) -> Pairs:
    """The pairs that `prepare` wrote into a folder."""
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
    """Stored or augmented grey levels as every encoder's preprocessing takes them."""
    levels = grey.astype(np.float32) / np.float32(255)
    return Radiograph(levels, Provenance(format="array", bits=8, window="as given"), name)
