"""What a file holds, whatever it is called: its SHA-256, read once while the file is the same."""

import hashlib
import os
import stat
from dataclasses import dataclass
from typing import Any

from vlscore._recent import Recent

# What tells that a file is still the one that was read: device, inode, bytes, time of change.
State = tuple[int, int, int, int]
_REMEMBERED_FILES = 100_000
# A pipe or a device has no end, and larger files than this are no radiographs.
_MOST_BYTES = 1 << 31


@dataclass(frozen=True)
class FileContent:
    """The content of a file at one moment.

    Attributes:
        path: the file.
        digest: SHA-256 of its bytes.
        state: what the file was like then.
    """

    path: str
    digest: bytes
    state: State

    def is_unchanged(self) -> bool:
        """Whether the file is as it was when it was read."""
        return _state(self.path) == self.state


class Contents:
    """Hashes of files, remembered as long as this object lives: never between runs."""

    def __init__(self) -> None:
        self._known: Recent[State, bytes] = Recent(_REMEMBERED_FILES)

    def of(self, image: Any) -> FileContent | None:
        """The content of a file; None of what is no file that can be read, or changes meanwhile."""
        if not isinstance(image, str | os.PathLike):
            return None
        path = os.fsdecode(image)
        state = _state(path)
        if state is None:
            return None
        digest = self._known.known([state]).get(state)
        if digest is None:
            try:
                with open(path, "rb") as stream:
                    digest = hashlib.file_digest(stream, "sha256").digest()
            except OSError:
                return None
            if _state(path) != state:
                return None
            self._known.add({state: digest})
        return FileContent(path, digest, state)


def text_digest(text: str) -> bytes:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _state(path: str) -> State | None:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_BYTES:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
