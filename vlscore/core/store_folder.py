"""Cache folder: where the cache is, how large it may become, and whether there is one.

`VLSCORE_CACHE` is a folder, or "off". `VLSCORE_CACHE_GIB` is the most that both files hold.
"""

import os
import platform
import re
import shutil
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from vlscore.core.store import Store
from vlscore.errors import InvalidSetting

PLACE, SIZE = "VLSCORE_CACHE", "VLSCORE_CACHE_GIB"
OFF = "off"
DEFAULT_GIB = 10.0
_GIB = 1 << 30
_MOUNTS = Path("/proc/mounts")
_FILE_SYSTEMS_OF_ONE_MACHINE = {
    *("bcachefs", "btrfs", "ext2", "ext3", "ext4", "exfat", "f2fs", "jfs", "ntfs", "ntfs3"),
    *("overlay", "ramfs", "reiserfs", "rootfs", "tmpfs", "vfat", "xfs", "zfs"),
}
# Vectors are small, and computing one costs more than decoding an image.
_SHARE_OF_EMBEDDINGS = 0.2


class Cache:
    """The two stores of one folder.

    Attributes:
        folder: folder of both files.
        embeddings: vectors of images and reports.
        pixels: grey levels of images, at the size that encoders take.
    """

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self.folder = folder
        self._most_bytes = most_bytes
        most = min(most_bytes, _room(folder))
        of_embeddings = int(_SHARE_OF_EMBEDDINGS * most)
        # The number in a name is the version of the layout: another layout needs another file.
        whose = _machine(folder)
        self.embeddings = Store(folder / f"embeddings-1{whose}.sqlite", of_embeddings)
        self.pixels = Store(folder / f"pixels-1{whose}.sqlite", most - of_embeddings)

    def __reduce__(self) -> "tuple[Callable[[Path, int], Cache], tuple[Path, int]]":
        """Return how to make a copy: it opens the cache of the same folder in its own process.

        The names of the files are computed again, because they may contain the machine's name.
        """
        return _opened, (self.folder, self._most_bytes)

    @property
    def stores(self) -> tuple[Store, Store]:
        """Return both stores, the embeddings first."""
        return self.embeddings, self.pixels


def open_cache(setting: "Cache | bool | str | os.PathLike[str] | None" = True) -> Cache | None:
    """Return the cache that a setting asks for; None for no cache.

    Args:
        setting: True or None: the user's cache, unless VLSCORE_CACHE is "off"; False: no cache; a
            folder; or a cache itself.
    """
    if isinstance(setting, Cache):
        return setting
    if setting is False or setting == OFF:
        return None
    if setting is None or setting is True:
        if os.environ.get(PLACE, "").strip().lower() == OFF:
            return None
        try:
            folder = cache_folder()
        except RuntimeError:  # a user without a home folder, as in some containers
            return None
    else:
        folder = Path(setting).expanduser()
    return _opened(folder.absolute(), _most_bytes())


def cache_folder() -> Path:
    """Return VLSCORE_CACHE, else the system's folder for caches (XDG_CACHE_HOME)."""
    if named := os.environ.get(PLACE, "").strip():
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / "vlscore"


@lru_cache(maxsize=8)
def _opened(folder: Path, most_bytes: int) -> Cache:
    """Open one cache a folder, so that all embedders of a process share its connections."""
    return Cache(folder, most_bytes)


def _most_bytes() -> int:
    text = os.environ.get(SIZE, "").strip()
    try:
        gib = float(text) if text else DEFAULT_GIB
    except ValueError:
        gib = -1.0
    if not 0 < gib < float("inf"):
        raise InvalidSetting(f"{SIZE} is a number of GiB above 0, not {text!r}")
    return int(gib * _GIB)


def _machine(folder: Path) -> str:
    """Return the part of file names that holds the machine's name; empty on a disk of one machine.

    Writers of one file must be on one machine: SQLite's log needs memory that they share.
    """
    kind = _file_system(folder)
    if kind is None or kind in _FILE_SYSTEMS_OF_ONE_MACHINE:
        return ""
    return "-" + re.sub(r"[^A-Za-z0-9.-]", "_", platform.node() or "unnamed")


def _file_system(folder: Path) -> str | None:
    """Return the kind of file system of a folder, which may not exist yet; None if unknown."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
        place = folder.resolve()
    except OSError:
        return None
    deepest, kind = -1, None
    for line in lines:
        fields = line.split(" ")
        mount = Path(fields[1].replace("\\040", " "))
        if len(mount.parts) >= deepest and (mount == place or mount in place.parents):
            deepest, kind = len(mount.parts), fields[2]
    return kind


def _room(folder: Path) -> int:
    """Return half of the free bytes of the disk, plus the bytes that the cache holds already."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        free = shutil.disk_usage(there).free
        held = sum(file.stat().st_size for file in folder.glob("*.sqlite*"))
    except OSError:
        return 0
    return held + free // 2
