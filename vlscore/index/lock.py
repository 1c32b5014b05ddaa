"""One writer to an index at a time."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from vlscore.errors import IndexInUse, InvalidSetting

_FILE = ".lock"


@contextlib.contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Hold the index's lock, which the system gives back when the process ends, however it ends.

    Raises: IndexInUse where another process holds it; InvalidSetting where `folder` is a file.
    """
    import filelock

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise InvalidSetting(f"{folder} is a file; an index is a folder") from None
    lock = filelock.FileLock(folder / _FILE, timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise IndexInUse(
            f"{folder}: another process is building or extending this index; wait until it ends"
        ) from None
    try:
        yield
    finally:
        lock.release()
