"""Limits on the work that a small file can make its decoder do, checked before it begins."""

import struct
from typing import BinaryIO

import numpy as np

from vlscore.errors import UnreadableImage
from vlscore.images.files import JPEG

# Encoders write about ten; each one is a pass over all pixels.
_MOST_SCANS = 100
_MARKER, _START_OF_SCAN = 0xFF, 0xDA
# Pillow compares every directory with all before it, and reads every entry of each.
_MOST_DIRECTORIES = 1000
_MOST_ENTRIES = 100_000
_STEP = 1 << 20


def require_few_scans(data: bytes, name: str) -> None:
    """Refuse a JPEG of many scans; raises UnreadableImage."""
    # Compressed data never holds the marker's bytes, so that this counts no fewer than there are.
    _require_few(_scans(data), name)


def require_bounded_effort(stream: BinaryIO, head: bytes, name: str) -> None:
    """Refuse a JPEG of many scans, and a TIFF of many directories; the stream is rewound.

    Raises: UnreadableImage.
    """
    if head.startswith(JPEG):
        scans, tail = 0, b""
        while chunk := stream.read(_STEP):
            scans += _scans(tail + chunk)
            tail = chunk[-1:]
        _require_few(scans, name)
    if head[:2] in (b"II", b"MM"):
        _require_few_directories(stream, head, name)
    stream.seek(0)


def _scans(data: bytes) -> int:
    """How often the marker stands in it; a seventh of the time of `data.count`, which looks closer
    at every 0xFF, and compressed data is full of them."""
    values = np.frombuffer(data, np.uint8)
    return int(np.count_nonzero((values[:-1] == _MARKER) & (values[1:] == _START_OF_SCAN)))


def _require_few(scans: int, name: str) -> None:
    if scans > _MOST_SCANS:
        raise UnreadableImage(
            f"{name}: a JPEG of {scans} scans, and no encoder writes more than {_MOST_SCANS}; it "
            "is damaged or malicious. Convert it again from its source"
        )


def _require_few_directories(stream: BinaryIO, head: bytes, name: str) -> None:
    order = "<" if head[:2] == b"II" else ">"
    is_big = head[2:4] in (b"\x2b\x00", b"\x00\x2b")
    at, number, count, entry = (8, "Q", "Q", 20) if is_big else (4, "L", "H", 12)
    seen: set[int] = set()
    entries = 0
    try:
        (offset,) = struct.unpack_from(order + number, head, at)
        while offset and offset not in seen:
            seen.add(offset)
            stream.seek(offset)
            (here,) = _unpacked(stream, order + count)
            entries += here
            if len(seen) > _MOST_DIRECTORIES or entries > _MOST_ENTRIES:
                raise UnreadableImage(
                    f"{name}: a TIFF of more than {_MOST_DIRECTORIES} images, or of more than "
                    f"{_MOST_ENTRIES} tags; give the image by itself"
                )
            stream.seek(offset + struct.calcsize(order + count) + here * entry)
            (offset,) = _unpacked(stream, order + number)
    except (struct.error, OSError, ValueError, OverflowError):
        return  # damaged: Pillow finds out, and stops there


def _unpacked(stream: BinaryIO, form: str) -> tuple[int, ...]:
    return struct.unpack(form, stream.read(struct.calcsize(form)))
