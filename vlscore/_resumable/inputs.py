"""Files that a chunk was made from, to notice one that is replaced before the run goes on."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_BLOCK = 65_536

Stamps = dict[str, list[Any]]


def stamps(paths: Iterable[str | Path]) -> Stamps:
    """Size, time of the last change, and a digest of both ends, of every file that is there.

    It costs little where a file has just been read. The time is not relied upon: a copy on another
    disk has another one.
    """
    found: Stamps = {}
    for path in dict.fromkeys(os.fspath(path) for path in paths):
        try:
            status = os.stat(path)
            found[path] = [status.st_size, status.st_mtime_ns, _digest_of_ends(path)]
        except OSError:
            # The row has failed, or will; there is nothing to compare with later.
            continue
    return found


def first_replaced(recorded: Stamps) -> str | None:
    """The first file whose content is another one now; a file that is gone replaces nothing."""
    for path, (size, changed, digest) in recorded.items():
        try:
            status = os.stat(path)
            is_as_before = status.st_size == size and (
                status.st_mtime_ns == changed or _digest_of_ends(path) == digest
            )
        except OSError:
            continue
        if not is_as_before:
            return path
    return None


def _digest_of_ends(path: str) -> str:
    with open(path, "rb") as stream:
        content = hashlib.sha256(stream.read(_BLOCK))
        if (size := os.fstat(stream.fileno()).st_size) > _BLOCK:
            stream.seek(max(size - _BLOCK, _BLOCK))
            content.update(stream.read(_BLOCK))
    return content.hexdigest()
