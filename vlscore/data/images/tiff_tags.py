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
_SAMPLES, _PLANAR, _EXTRA, _FORMAT = 277, 284, 338, 339
# Positions and lengths of strips and tiles.
_STRIPS = (273, 279, 324, 325)
_READ = (_WIDTH, _HEIGHT, _BITS, _PHOTOMETRIC, _ORIENTATION, _SAMPLES, _PLANAR, _EXTRA, _FORMAT)


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
        is_planar: True if each sample has a plane of its own.
        directory: position of the picture's tags in the file.
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
    is_planar: bool
    directory: int

    @property
    def is_common(self) -> bool:
        """Return True for pictures that Pillow reads with all their bits, and for CMYK and such."""
        if self.photometric not in (0, 1, 2):
            return True
        if self.samples == 1:
            is_odd = (self.kind == "f" and self.bits != 32) or (
                self.photometric == 0 and (self.kind == "i" or self.bits == 32)
            )
            return self.bits <= 32 and not is_odd
        return self.kind == "u" and self.bits <= 8


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
            tags, following = _directory(content, at, order, is_big)
            pictures.append(_picture(tags, order, at))
            at = following
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
        if tag not in _READ:
            continue
        (many,) = struct.unpack_from(f"{order}{'Q' if is_big else 'I'}", content, entry + 4)
        place = entry + (12 if is_big else 8)
        if many * _SIZES[kind] > (8 if is_big else 4):
            (place,) = struct.unpack_from(f"{order}{'Q' if is_big else 'I'}", content, place)
        numbers = struct.unpack_from(f"{order}{min(many, 16)}{_CODES[kind]}", content, place)
        found[tag] = list(numbers), place
    end = at + head + count * size
    return found, struct.unpack_from(f"{order}{'Q' if is_big else 'I'}", content, end)[0]


def _picture(tags: dict[int, tuple[list[int], int]], order: str, at: int) -> TiffPicture:
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
        is_planar=first(_PLANAR, 1) == 2 and samples > 1,
        directory=at,
    )


def plane_of(content: bytes, picture: TiffPicture, sample: int) -> bytes:
    """Return a TIFF file of one plane of a planar picture, upright as stored.

    Its tags are written anew behind the old file. BigTIFF files are not supported.

    Raises: struct.error, KeyError, ValueError for damaged files.
    """
    order = "<" if content[:2] == b"II" else ">"
    (count,) = struct.unpack_from(f"{order}H", content, picture.directory)
    changed = {_PHOTOMETRIC: 1, _ORIENTATION: 1, _SAMPLES: 1, _PLANAR: 1}
    entries, behind = b"", b""
    kept = [
        (entry, *struct.unpack_from(f"{order}HHI", content, entry))
        for entry in range(picture.directory + 2, picture.directory + 2 + 12 * count, 12)
        if struct.unpack_from(f"{order}H", content, entry)[0] != _EXTRA
    ]
    start = len(content) + len(content) % 2
    end = start + 2 + 12 * len(kept) + 4
    for entry, tag, kind, many in kept:
        size, place = _SIZES.get(kind, 1), entry + 8
        if many * size > 4:
            (place,) = struct.unpack_from(f"{order}I", content, place)
        value = content[place : place + many * size]
        if tag in _STRIPS:
            each = many // picture.samples
            many, value = each, value[sample * each * size : (sample + 1) * each * size]
        elif tag in (_BITS, _FORMAT):
            many, value = 1, value[:size]
        elif tag in changed:
            value = struct.pack(f"{order}{_CODES[kind]}", changed[tag])
        if len(value) > 4:
            at, behind = end + len(behind), behind + value
            value = struct.pack(f"{order}I", at)
        entries += struct.pack(f"{order}HHI", tag, kind, many) + value.ljust(4, b"\0")
    head = content[:4] + struct.pack(f"{order}I", start) + content[8:]
    padded = head + b"\0" * (start - len(content))
    return padded + struct.pack(f"{order}H", len(kept)) + entries + bytes(4) + behind
