"""Files of named arrays of numbers and a header of texts, read so that a damaged file does no harm.

The format is NumPy's .npz, and any `np.load` reads it. A file of somebody else may be damaged, or
may say that it holds more than the memory. So nothing is allocated before the sizes that it states
agree with its own size, no pickle is opened, and its digest is compared.
"""

import hashlib
import io
import json
import math
import os
import stat
import struct
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from vlscore.core import atomic_write

Array = NDArray[np.float64]
Header = dict[str, Any]

HEADER = "header"
# 60,000 patients with 400 findings need 400 MB.
MOST_BYTES, MOST_HEADER = 1 << 30, 1 << 20
# The end of a zip archive (PKWARE's APPNOTE 4.3.16), and of one that has 64-bit sizes (4.3.15).
_END, _LONG_END, _END_SIZE, _LONG_END_SIZE = b"PK\5\6", b"PK\6\7", 22, 20
_MOST_DIRECTORY = 1 << 16
_IS_ENCRYPTED = 1


class DamagedFile(ValueError):
    """The file is not what `write_arrays` wrote; the message says why."""


def write_arrays(path: Path, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
    """Write arrays of float64 and a header, which json can hold, with a digest of both."""
    about = {**header, "sha256": _digest_of(header, arrays)}
    stored = io.BytesIO()
    members: dict[str, Any] = {HEADER: np.frombuffer(json.dumps(about).encode(), np.uint8)}
    np.savez(stored, **members, **dict[str, Any](arrays))
    with atomic_write(path, "wb") as stream:
        stream.write(stored.getvalue())


def read_arrays(path: Path, names: Collection[str]) -> tuple[Header, dict[str, Array]]:
    """Read the header and the arrays of these names, of one or two axes each.

    Raises: DamagedFile for any other content; OSError where the file cannot be opened.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise DamagedFile("it is no ordinary file")
    with path.open("rb") as stream:
        try:
            return _read(stream, names)
        except DamagedFile:
            raise
        except Exception as error:
            # Readers of zip, npy and json raise almost any error for bytes of another format.
            raise DamagedFile(f"it cannot be read ({type(error).__name__})") from None


def _read(stream: BinaryIO, names: Collection[str]) -> tuple[Header, dict[str, Array]]:
    size = os.fstat(stream.fileno()).st_size
    _check_end(stream, size)
    with zipfile.ZipFile(stream) as archive:
        members = archive.infolist()
        wanted = sorted(f"{name}.npy" for name in (HEADER, *names))
        if sorted(member.filename for member in members) != wanted:
            raise DamagedFile("its arrays have other names than expected")
        for member in members:
            if member.flag_bits & _IS_ENCRYPTED or member.compress_type != zipfile.ZIP_STORED:
                raise DamagedFile("its arrays are encrypted or compressed")
        if sum(member.file_size for member in members) > size:
            raise DamagedFile("it states larger arrays than it holds")
        found = {member.filename[: -len(".npy")]: _array(archive, member) for member in members}
    texts = found.pop(HEADER)
    if texts.dtype != np.uint8 or texts.size > MOST_HEADER:
        raise DamagedFile("its header is not a text, or too long")
    about = json.loads(texts.tobytes())
    if not isinstance(about, dict):
        raise DamagedFile("its header is not a JSON object")
    for name, values in found.items():
        if values.dtype != np.float64:
            raise DamagedFile(f"{name} holds no float64 numbers")
    if about.pop("sha256", None) != _digest_of(about, found):
        raise DamagedFile("it was changed after it was written (its digest differs)")
    return about, found


def _check_end(stream: BinaryIO, size: int) -> None:
    """Raise DamagedFile unless a short directory ends the file: it is read as a whole."""
    if size > MOST_BYTES:
        raise DamagedFile(f"it is larger than {MOST_BYTES >> 20} MiB")
    if size < _END_SIZE + _LONG_END_SIZE:
        raise DamagedFile("it is too short")
    stream.seek(size - _END_SIZE - _LONG_END_SIZE)
    before, end = stream.read(_LONG_END_SIZE), stream.read(_END_SIZE)
    (directory,) = struct.unpack("<L", end[12:16])
    if not end.startswith(_END) or before.startswith(_LONG_END) or directory > _MOST_DIRECTORY:
        raise DamagedFile("it is cut off, or no .npz file")
    stream.seek(0)


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NDArray[Any]:
    """Read one array, once its shape agrees with the bytes that there are."""
    with archive.open(member) as stream:
        if np.lib.format.read_magic(stream) != (1, 0):
            raise DamagedFile(f"{member.filename} has another version of NumPy's format")
        shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=1024)
        left = member.file_size - stream.tell()
        if dtype not in (np.uint8, np.float64) or len(shape) not in (1, 2):
            raise DamagedFile(f"{member.filename} holds no table of numbers")
        # Of Python's integers: NumPy's product may overflow.
        if min(shape) < 0 or math.prod(shape) * dtype.itemsize != left:
            raise DamagedFile(f"{member.filename} has another size than it states")
        values = np.frombuffer(stream.read(), dtype)
    return values.reshape(shape, order="F" if is_fortran else "C")


def _digest_of(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> str:
    found = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name], "<f8")
        found.update(f"{name}{values.shape}".encode())
        found.update(values.tobytes())
    return found.hexdigest()
