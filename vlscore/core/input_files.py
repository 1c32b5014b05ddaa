"""Image files that results were computed from, and whether one of them was replaced since."""

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from vlscore.core.files import file_digest
from vlscore.core.frames import read_frame
from vlscore.errors import InvalidSetting

if TYPE_CHECKING:
    import pandas

IMAGES = "images.parquet"


def images_frame(paths: Iterable[Path]) -> "pandas.DataFrame":
    """Return one row an image file that exists: path, size, time of the last change, sha256."""
    import pandas

    found = []
    for path in dict.fromkeys(map(os.fspath, paths)):
        # A file that is absent, or whose name no table can hold, has failed; there is nothing to
        # compare with later.
        with contextlib.suppress(OSError, UnicodeEncodeError):
            path.encode()
            status = os.stat(path)
            found.append((path, status.st_size, status.st_mtime_ns, file_digest(path)))
    return pandas.DataFrame(found, columns=["path", "size", "changed", "sha256"])


def require_same_images(folder: Path) -> None:
    """Raise InvalidSetting for an image that was replaced since a folder was computed from it.

    A file that is gone replaces nothing, and one of the same size and time is not read.
    """
    if not (folder / IMAGES).is_file():
        return
    for path, size, changed, sha256 in read_frame(folder / IMAGES).itertuples(index=False):
        try:
            status = os.stat(path)
            is_as_before = status.st_size == size and (
                status.st_mtime_ns == changed or file_digest(path) == sha256
            )
        except OSError:
            continue
        if not is_as_before:
            raise InvalidSetting(
                f"{path} has been replaced since {folder} was computed from it. Bring the file "
                "back, choose another output folder, or give --overwrite to compute all again"
            )
