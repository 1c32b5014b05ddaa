"""Alterations of a film: what a generator that looks at the film must notice, or must not.

All functions take grey levels (height, width), uint8 or uint16, and return new ones of the same
type; only a rotation and a compression change the levels of the rest of the film.
"""

import io
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vlscore.findings import load_lexicon

Grey = NDArray[Any]

_REGIONS = Path(__file__).with_name("regions.toml")
#: Numbers that name a rectangle; two name heights of the lungs.
_RECTANGLE = 4
_ROTATION = 2.0
_NOISE, _DARK = 0.01, 0.1
_GAMMA = 0.9
_QUALITY = 75
# Tries to find a place for a covered region that shows no finding; widths that it is tried with.
_TRIES = 200
_STRETCHES = (1, 5 / 4, 4 / 5, 3 / 2, 2 / 3, 2, 1 / 2, 3, 1 / 3)


class Box(NamedTuple):
    """A rectangle of a film, in pixels; right and bottom are the first outside."""

    left: int
    top: int
    right: int
    bottom: int

    @classmethod
    def of_shares(cls, shares: tuple[float, ...], shape: tuple[int, int]) -> "Box":
        """Return the rectangle of shares (left, top, right, bottom) of width and height."""
        sizes = (*shape[::-1], *shape[::-1])
        return cls(*(round(a * b) for a, b in zip(shares, sizes, strict=True))).within(shape)

    def within(self, shape: tuple[int, int]) -> "Box":
        """Return the part of the rectangle that lies in a film of this shape."""
        return Box(*np.clip(self, 0, (*shape[::-1], *shape[::-1])).tolist())

    @property
    def area(self) -> int:
        """Number of its pixels."""
        return max(self.right - self.left, 0) * max(self.bottom - self.top, 0)

    def overlaps(self, other: "Box") -> bool:
        """Return whether both have a pixel in common."""
        return max(self.left, other.left) < min(self.right, other.right) and max(
            self.top, other.top
        ) < min(self.bottom, other.bottom)


def blank(film: Grey, rng: np.random.Generator) -> Grey:
    """Return a dark film of the same size that shows nothing but faint noise.

    Many readers refuse a film of one grey level, or divide by its range.
    """
    most = np.iinfo(film.dtype).max
    noise = rng.normal(_DARK * most, _NOISE * most, film.shape)
    return np.rint(np.clip(noise, 0, most)).astype(film.dtype)


def mirrored(film: Grey) -> Grey:
    """Return the film with left and right exchanged."""
    return np.ascontiguousarray(film[:, ::-1])


def hidden(film: Grey, box: Box) -> Grey:
    """Return the film with a rectangle covered by a smooth surface between its borders.

    Nothing within the rectangle remains, and no edge shows where it was.
    """
    left, top, right, bottom = box
    covered = film.copy()
    height, width = bottom - top, right - left
    if not box.area:
        return covered
    rows, columns = film.shape
    # Levels beside the rectangle, on the sides where it does not touch the film's edge.
    beside = [film[top:bottom, k] for k in (left - 1, right) if 0 <= k < columns]
    above = [film[k, left:right] for k in (top - 1, bottom) if 0 <= k < rows]
    found = [_between(beside, width)] if beside else []
    found += [_between(above, height).T] if above else []
    surface = np.mean(found, axis=0) if found else np.zeros((height, width))
    covered[top:bottom, left:right] = np.rint(surface).astype(film.dtype)
    return covered


def _between(levels: Sequence[Grey], steps: int) -> NDArray[np.float64]:
    """Return (n, steps) levels that lead from one border of n smoothed levels to the other.

    Args: levels: of both borders; where there is one, it is the other, too.
    """
    borders = [_smoothed(each) for each in levels]
    share = (np.arange(steps) + 0.5) / steps
    return borders[0][:, None] * (1 - share) + borders[-1][:, None] * share


def _smoothed(levels: Grey) -> NDArray[np.float64]:
    reach = max(len(levels) // 16, 1)
    padded = np.pad(levels.astype(np.float64), reach, mode="edge")
    kernel = np.full(2 * reach + 1, 1 / (2 * reach + 1))
    return np.convolve(padded, kernel, mode="valid")


def harmless(film: Grey, kind: str, rng: np.random.Generator) -> Grey:
    """Return the film with a change of HARMLESS that leaves every finding.

    contrast: a gamma of 0.9. noise: 1 % of the range. rotation: by 2 degrees, to either side.
    compression: JPEG of quality 75, in 8 bits.
    """
    most = np.iinfo(film.dtype).max
    if kind == "contrast":
        return np.rint(most * (film / most) ** _GAMMA).astype(film.dtype)
    if kind == "noise":
        noisy = film + rng.normal(0, _NOISE * most, film.shape)
        return np.rint(np.clip(noisy, 0, most)).astype(film.dtype)
    if kind == "rotation":
        import cv2

        height, width = film.shape
        angle = _ROTATION if rng.random() < 0.5 else -_ROTATION
        turn = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), angle, 1.0)
        turned = cv2.warpAffine(
            film, turn, (width, height), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
        )
        return np.asarray(turned, film.dtype)
    if kind == "compression":
        from PIL import Image

        eight = film if film.dtype == np.uint8 else np.rint(film / 257).astype(np.uint8)
        stream = io.BytesIO()
        Image.fromarray(eight).save(stream, "JPEG", quality=_QUALITY)
        packed = np.asarray(Image.open(stream))
        return (
            packed if film.dtype == np.uint8 else packed.astype(film.dtype) * film.dtype.type(257)
        )
    raise ValueError(f"no harmless change is called {kind!r}")


def region_of(
    observation: str, sides: Collection[str], zones: Collection[str], shape: tuple[int, int]
) -> Box | None:
    """Return where a frontal film shows a finding, by its side and zone; None if nowhere alone.

    The patient's right is on the left of the picture. The rectangles are rough: a table's own boxes
    are better.
    """
    regions = _regions()
    known = load_lexicon().observations.get(observation)
    shown = () if known is None else known.shown
    if len(shown) == _RECTANGLE:
        return Box.of_shares(shown, shape)
    if shown:
        heights = shown[0], shown[1]
    else:
        named = [regions["zones"][zone] for zone in zones if zone in regions["zones"]]
        if not named and not sides:
            return None
        spans = named or [regions["whole"]]
        heights = min(low for low, _ in spans), max(high for _, high in spans)
    widths = [regions["sides"][side] for side in (sides or ("left", "right"))]
    left, right = min(low for low, _ in widths), max(high for _, high in widths)
    return Box.of_shares((left, heights[0], right, heights[1]), shape)


@cache
def _regions() -> Mapping[str, Any]:
    return tomllib.loads(_REGIONS.read_text(encoding="utf-8"))


def places_elsewhere(
    boxes: Sequence[Box], avoid: Collection[Box], shape: tuple[int, int], rng: np.random.Generator
) -> list[Box]:
    """Return as many rectangles of the same areas that overlap none of these, nor one another.

    They have the same shape where there is room for it, else other proportions.

    Returns: none at all where one of them has no room.
    """
    found: list[Box] = []
    for box in boxes:
        place = _place_elsewhere(box, (*boxes, *avoid, *found), shape, rng)
        if place is None:
            return []
        found.append(place)
    return found


def _place_elsewhere(
    box: Box, avoid: Collection[Box], shape: tuple[int, int], rng: np.random.Generator
) -> Box | None:
    rows, columns = shape
    for stretch in _STRETCHES if box.area else ():
        width = round((box.right - box.left) * stretch)
        height = round(box.area / max(width, 1))
        if not 0 < width <= columns or not 0 < height <= rows:
            continue
        for _ in range(_TRIES):
            top = int(rng.integers(rows - height + 1))
            left = int(rng.integers(columns - width + 1))
            found = Box(left, top, left + width, top + height)
            if not any(found.overlaps(each) for each in avoid):
                return found
    return None


def joined(boxes: Iterable[Box]) -> tuple[Box, ...]:
    """Return the rectangles around those that overlap, so that none overlaps another.

    >>> joined([Box(0, 0, 4, 4), Box(2, 2, 6, 6), Box(8, 0, 9, 9)])
    (Box(left=0, top=0, right=6, bottom=6), Box(left=8, top=0, right=9, bottom=9))
    """
    found: list[Box] = []
    for box in boxes:
        while touching := [each for each in found if each.overlaps(box)]:
            found = [each for each in found if each not in touching]
            lefts, tops, rights, bottoms = zip(box, *touching, strict=True)
            box = Box(min(lefts), min(tops), max(rights), max(bottoms))
        found.append(box)
    return tuple(found)
