"""Image files: opening them, and recognizing their format by their first bytes."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeGuard
from urllib.parse import unquote, urlsplit

from vlscore.errors import UnreadableImage

if TYPE_CHECKING:
    from pydicom import Dataset


PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
_HEAD = 4096


def local_path(name: str | os.PathLike[str]) -> Path:
    """Return the path that a text names: itself, or the file of a "file:" address.

    Raises: UnreadableImage for an address of another kind: nothing is downloaded.
    """
    address = urlsplit(name) if isinstance(name, str) and "://" in name else None
    if address is None or not address.scheme.isalnum() or os.path.exists(name):
        return Path(name)
    if address.scheme.lower() == "file" and address.netloc in ("", "localhost"):
        return Path(unquote(address.path))
    raise UnreadableImage(
        f"{name}: is an address ({address.scheme}://), and images are not downloaded; download it, "
        "and give the path of the file"
    )


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading. Raises: UnreadableImage if it cannot be opened or is no file."""
    try:
        if path.is_dir():
            raise UnreadableImage(
                f"{path}: is a folder; give an image file in it, or several as the views of a study"
            )
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


@contextlib.contextmanager
def refusing_damage(name: str, what: str) -> Iterator[None]:
    """Raise UnreadableImage for any error inside the block: decoders read untrusted bytes."""
    try:
        yield
    except UnreadableImage:
        raise
    except Exception as error:
        raise UnreadableImage(
            f"{name}: the {what} is damaged or truncated ({type(error).__name__}); "
            "fetch or export the file again"
        ) from None


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
    found = []
    for path in (folder / name for name in entries if not name.startswith(".")):
        with contextlib.suppress(UnreadableImage), opened(path) as stream:
            first = head(stream, str(path))
            if is_dicom(first) or first.startswith((PNG, JPEG, b"II*\x00", b"MM\x00*")):
                found.append(path)
    if not found:
        raise UnreadableImage(
            f"{folder}: is a folder with no DICOM, PNG, JPEG or TIFF image among its files "
            f"({len(entries)}); name the images"
        )
    return tuple(found)


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
