"""Writing files so that a reader never sees half of one, and knowing a file by its content."""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any


@contextlib.contextmanager
def atomic_write(path: str | Path, mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file beside `path`; it takes the name `path` only if the block succeeds.

    On any exception, Ctrl-C included, the temporary file is removed and `path` is untouched.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    encoding = None if "b" in mode else "utf-8"
    newline = None if "b" in mode else ""
    try:
        with os.fdopen(handle, mode, encoding=encoding, newline=newline) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        _give_ordinary_permissions(temporary)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def write_json(path: str | Path, content: Any) -> None:
    """Write plain data as json that people can read, whole or not at all."""
    with atomic_write(path) as stream:
        json.dump(content, stream, indent=2, ensure_ascii=False)
        stream.write("\n")


def file_digest(path: str | Path) -> str:
    """Hexadecimal sha256 of a file's content."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _give_ordinary_permissions(path: str) -> None:
    """mkstemp makes files private; results should follow the user's umask like any other file."""
    umask = os.umask(0)
    os.umask(umask)
    os.chmod(path, 0o666 & ~umask)
