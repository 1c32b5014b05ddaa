"""One writer to a folder at a time."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from vlscore._files import writing
from vlscore.errors import FolderInUse, InvalidSetting

_FILE = ".lock"


@contextlib.contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, which the system gives back when the process ends, however it ends.

    Raises: FolderInUse where another run holds it; InvalidSetting where `folder` is a file;
    OutputFailed where nothing can be written there.
    """
    import filelock

    lock = filelock.FileLock(folder / _FILE, timeout=0)
    with writing(folder):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise InvalidSetting(
                f"{folder} is a file, or lies below one; the output is a folder"
            ) from None
        try:
            lock.acquire()
        except filelock.Timeout:
            raise FolderInUse(
                f"{folder}: another run is writing this folder; wait until it ends, or choose "
                "another one"
            ) from None
    try:
        yield
    finally:
        lock.release()
