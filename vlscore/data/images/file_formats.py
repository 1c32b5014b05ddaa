"""Image files: opening them, recognizing their format by their first bytes, and limits.

The limits bound the work that a small file can make its decoder do; they are checked before it
begins.
"""

import contextlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeGuard

import numpy as np

from vlscore.errors import UnreadableImage

if TYPE_CHECKING:
    from pydicom import Dataset


PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
_HEAD = 4096


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading. Raises: UnreadableImage if it cannot be opened or is no file."""
    try:
        if path.is_dir():
            raise UnreadableImage(_is_folder(path))
        # Opening a pipe or a device may wait for ever.
        if path.exists() and not path.is_file():
            raise UnreadableImage(f"{path}: is no regular file; give the image file itself")
        stream = path.open("rb")
    except FileNotFoundError:
        raise UnreadableImage(
            f"{path}: no such file; check the path and the image root it is relative to"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the path is malformed"
        raise UnreadableImage(f"{str(path)!r}: cannot be opened ({reason})") from None
    with stream:
        yield stream


def head(stream: BinaryIO, name: str) -> bytes:
    """Read the first bytes and rewind the stream. Raises: UnreadableImage if there are none."""
    try:
        stream.seek(0)
        found = stream.read(_HEAD)
        stream.seek(0)
    except OSError as error:
        raise UnreadableImage(f"{name}: cannot be read ({error.strerror})") from None
    if not found:
        raise UnreadableImage(f"{name}: the file is empty")
    return found


def format_name(path: str | os.PathLike[str]) -> str:
    """Return the format by a file's first bytes: "JPEG", "PNG", "DICOM", "TIFF" or "other"."""
    try:
        with opened(Path(path)) as stream:
            first = head(stream, str(path))
    except UnreadableImage:
        return "other"
    if is_dicom(first):
        return "DICOM"
    named = {PNG: "PNG", JPEG: "JPEG", b"II*\x00": "TIFF", b"MM\x00*": "TIFF"}
    return next((name for mark, name in named.items() if first.startswith(mark)), "other")


def images_in(folder: str | os.PathLike[str]) -> tuple[Path, ...]:
    """List the image files of a folder by name: DICOM, PNG, JPEG and TIFF, by content.

    Folders in it, hidden files and files of other kinds (a report, a table) are left out.

    Raises: UnreadableImage if it holds no image, or cannot be listed.
    """
    folder = Path(folder)
    try:
        entries = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
    except OSError as error:
        raise UnreadableImage(f"{folder}: cannot be listed ({error.strerror})") from None
    paths = (folder / name for name in entries if not name.startswith("."))
    found = tuple(path for path in paths if format_name(path) != "other")
    if not found:
        raise UnreadableImage(
            f"{folder}: is a folder with no DICOM, PNG, JPEG or TIFF image among its files "
            f"({len(entries)}); name the images"
        )
    return found


def is_dicom(head: bytes) -> bool:
    """Return True if a file begins like a DICOM file, with preamble or (older writers) without."""
    if head[128:132] == b"DICM":
        return True
    # Without preamble the first element is one of group 0002 or 0008, in either byte order.
    little = head[:2] in (b"\x02\x00", b"\x08\x00") and head[3:4] == b"\x00"
    big = head[:2] in (b"\x00\x02", b"\x00\x08") and head[2:3] == b"\x00"
    explicit = head[4:6].isalpha() and head[4:6].isupper()
    implicit = little and int.from_bytes(head[4:8], "little") <= 1024
    return (little or big) and (explicit or implicit)


def is_dataset(image: Any) -> "TypeGuard[Dataset]":
    """Return True for a pydicom Dataset, without importing pydicom, which takes long."""
    return any(base.__module__ == "pydicom.dataset" for base in type(image).__mro__)


def _is_folder(path: Path) -> str:
    files = sum(entry.is_file() for entry in path.iterdir())
    if files == 0:
        return f"{path}: is a folder without files; give an image file"
    if files == 1:
        return f"{path}: is a folder; give the image file in it"
    return (
        f"{path}: is a folder of {files} files; give one of them, or several as the views of one "
        "study"
    )


# Encoders write about ten; each one is a pass over all pixels.
_MOST_SCANS = 100
_MARKER, _START_OF_SCAN = 0xFF, 0xDA
# Pillow compares every directory with all earlier ones, and reads every entry of each.
_MOST_DIRECTORIES = 1000
_MOST_ENTRIES = 100_000
_STEP = 1 << 20


def require_few_scans(data: bytes, name: str) -> None:
    """Refuse a JPEG of many scans. Raises: UnreadableImage."""
    # Compressed data never holds the marker's bytes, so this never counts too few.
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
    """Count the marker; a seventh of the time of `data.count`, which stops at every 0xFF, and
    compressed data is full of them."""
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
        return  # damaged: Pillow reports it


def _unpacked(stream: BinaryIO, form: str) -> tuple[int, ...]:
    return struct.unpack(form, stream.read(struct.calcsize(form)))
