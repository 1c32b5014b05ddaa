"""Tags of a TIFF file: how its pixels are stored, and how many pictures it has.

Pillow opens a part of all TIFF files only, and OpenCV does not say what it did with a picture.
"""

import struct
from typing import NamedTuple

TIFF_HEADS = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 6: 1, 7: 1, 8: 2, 9: 4, 13: 4, 16: 8, 17: 8, 18: 8}
_CODES = {1: "B", 3: "H", 4: "I", 6: "b", 8: "h", 9: "i", 13: "I", 16: "Q", 17: "q", 18: "Q"}
_MOST_PICTURES = 4096
_WIDTH, _HEIGHT, _BITS, _PHOTOMETRIC, _ORIENTATION = 256, 257, 258, 262, 274
_SAMPLES, _EXTRA, _FORMAT = 277, 338, 339


class TiffPicture(NamedTuple):
    """One picture of a TIFF file, as its tags describe it.

    Attributes:
        height, width: size in pixels.
        samples: numbers of one pixel.
        bits: bits of one of them, the largest of all.
        kind: "u" for unsigned numbers, "i" for signed ones, "f" for floats.
        photometric: 0 white is zero, 1 black is zero, 2 RGB, 3 palette, 5 CMYK, 6 YCbCr, ...
        alpha: 1 for colours that are multiplied by the transparency, 2 for others, 0 without one.
        orientation: as in EXIF; 1 is upright.
        orientation_at: position of that number in the file; None without the tag.
    """

    height: int
    width: int
    samples: int
    bits: int
    kind: str
    photometric: int
    alpha: int
    orientation: int
    orientation_at: tuple[int, str] | None

    @property
    def is_common(self) -> bool:
        """Return True for pictures that Pillow opens, whole or with fewer bits."""
        if self.photometric not in (0, 1, 2):
            return True
        if self.samples == 1:
            is_odd = (self.kind == "f" and self.bits != 32) or (
                self.photometric == 0 and (self.kind == "i" or self.bits == 32)
            )
            return self.bits <= 32 and not is_odd
        is_deep_alpha = self.samples == 2 and self.bits > 8
        return self.kind == "u" and self.bits <= 16 and not is_deep_alpha


def tiff_pictures(content: bytes) -> list[TiffPicture]:
    """Read the tags of every picture; [] for other files and for damaged ones."""
    order = {b"II": "<", b"MM": ">"}.get(content[:2])
    if order is None:
        return []
    try:
        is_big = struct.unpack_from(f"{order}H", content, 2)[0] == 43
        (at,) = struct.unpack_from(f"{order}{'Q' if is_big else 'I'}", content, 8 if is_big else 4)
        pictures: list[TiffPicture] = []
        while at and len(pictures) < _MOST_PICTURES:
            tags, at = _directory(content, at, order, is_big)
            pictures.append(_picture(tags, order))
    except (struct.error, KeyError, IndexError):
        return []
    return pictures


def _directory(
    content: bytes, at: int, order: str, is_big: bool
) -> tuple[dict[int, tuple[list[int], int]], int]:
    """Return tag -> (numbers, their position) of one directory, and where the next one begins."""
    number, head, size = ("Q", 8, 20) if is_big else ("H", 2, 12)
    (count,) = struct.unpack_from(f"{order}{number}", content, at)
    found: dict[int, tuple[list[int], int]] = {}
    for entry in range(at + head, at + head + count * size, size):
        tag, kind = struct.unpack_from(f"{order}HH", content, entry)
        if tag not in (
            _WIDTH,
            _HEIGHT,
            _BITS,
            _PHOTOMETRIC,
            _ORIENTATION,
            _SAMPLES,
            _EXTRA,
            _FORMAT,
        ):
            continue
        (many,) = struct.unpack_from(f"{order}{'Q' if is_big else 'I'}", content, entry + 4)
        place = entry + (12 if is_big else 8)
        if many * _SIZES[kind] > (8 if is_big else 4):
            (place,) = struct.unpack_from(f"{order}{'Q' if is_big else 'I'}", content, place)
        numbers = struct.unpack_from(f"{order}{min(many, 16)}{_CODES[kind]}", content, place)
        found[tag] = list(numbers), place
    end = at + head + count * size
    return found, struct.unpack_from(f"{order}{'Q' if is_big else 'I'}", content, end)[0]


def _picture(tags: dict[int, tuple[list[int], int]], order: str) -> TiffPicture:
    def first(tag: int, default: int) -> int:
        return tags[tag][0][0] if tag in tags else default

    samples, photometric = first(_SAMPLES, 1), first(_PHOTOMETRIC, 1)
    extra = tags[_EXTRA][0][0] if _EXTRA in tags else 0
    colours = {2: 3, 5: 4, 6: 3, 8: 3}.get(photometric, 1)
    return TiffPicture(
        height=tags[_HEIGHT][0][0],
        width=tags[_WIDTH][0][0],
        samples=samples,
        bits=max(tags[_BITS][0]) if _BITS in tags else 1,
        kind={2: "i", 3: "f"}.get(first(_FORMAT, 1), "u"),
        photometric=photometric,
        alpha=(extra if extra in (1, 2) else 0) if samples > colours else 0,
        orientation=first(_ORIENTATION, 1),
        orientation_at=(tags[_ORIENTATION][1], order) if _ORIENTATION in tags else None,
    )
