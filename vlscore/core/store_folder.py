"""Where the cache lies, how large it may become, and whether there is one.

`VLSCORE_CACHE` is a folder, or "off". `VLSCORE_CACHE_GIB` is the most that both files hold.

A cache that travels: what a task may look up, and what it computed besides.

Whoever sends a task to another machine looks into the cache before, and puts into it what comes
back. So one cache serves all machines, and one process writes it.
"""

import os
import platform
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from vlscore.core.store import Entry, Facts, Store
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
# Vectors are small, and dearer to compute than pixels are to decode.
_SHARE_OF_EMBEDDINGS = 0.2


class Cache:
    """The two stores of one folder.

    Attributes:
        folder: where they lie.
        embeddings: vectors of images and reports.
        pixels: grey levels of images, at the size that encoders take.
    """

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self.folder = folder
        self._most_bytes = most_bytes
        most = min(most_bytes, _room(folder))
        of_embeddings = int(_SHARE_OF_EMBEDDINGS * most)
        # The number in a name is that of the layout: another layout is another file.
        whose = _machine(folder)
        self.embeddings = Store(folder / f"embeddings-1{whose}.sqlite", of_embeddings)
        self.pixels = Store(folder / f"pixels-1{whose}.sqlite", most - of_embeddings)

    def __reduce__(self) -> "tuple[Callable[[Path, int], Cache], tuple[Path, int]]":
        """Return how a copy is made: the cache of that folder in the process that holds the copy.

        Files are named anew there, because another machine may not write into those of this one.
        """
        return _opened, (self.folder, self._most_bytes)

    @property
    def stores(self) -> tuple[Store, Store]:
        """Both stores, the embeddings first."""
        return self.embeddings, self.pixels


def open_cache(setting: "Cache | bool | str | os.PathLike[str] | None" = True) -> Cache | None:
    """The cache that a setting asks for; None where there is to be none.

    Args:
        setting: True or None: the user's cache, unless VLSCORE_CACHE is "off"; False: none; a
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
    """VLSCORE_CACHE, else the folder that the system keeps for caches (XDG_CACHE_HOME)."""
    if named := os.environ.get(PLACE, "").strip():
        return Path(named).expanduser()
    base = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".cache") / "vlscore"


@lru_cache(maxsize=8)
def _opened(folder: Path, most_bytes: int) -> Cache:
    """One cache a folder, so that all embedders of a process share its connections."""
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
    """What stands in the names of files on a disk that several machines share: the machine's name.

    Writers of one file must be on one machine: SQLite's log needs memory that they share.
    """
    kind = _file_system(folder)
    if kind is None or kind in _FILE_SYSTEMS_OF_ONE_MACHINE:
        return ""
    return "-" + re.sub(r"[^A-Za-z0-9.-]", "_", platform.node() or "unnamed")


def _file_system(folder: Path) -> str | None:
    """The kind of file system that a folder lies on, or is going to; None where nobody tells."""
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
    """Half of what the disk has left, and what the cache holds already."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    try:
        free = shutil.disk_usage(there).free
        held = sum(file.stat().st_size for file in folder.glob("*.sqlite*"))
    except OSError:
        return 0
    return held + free // 2


# Facts of a space, as json -> content -> entry.
Entries = dict[str, dict[bytes, Entry]]


class CarriedStore(Store):
    """Entries in memory.

    Attributes:
        new: what was put here since the last `load`, and was not there.
    """

    def __init__(self) -> None:
        # No file is ever read or made: there is none of this name.
        super().__init__(Path(os.devnull), 0)
        self._given: Mapping[str, Mapping[bytes, Entry]] = {}
        self.new: Entries = {}

    def load(self, given: Mapping[str, Mapping[bytes, Entry]]) -> None:
        """Hold these entries instead of those of before."""
        self._given, self.new = given, {}

    def get(self, facts: Facts, contents: Iterable[bytes]) -> dict[bytes, Entry]:
        """The entries that are there."""
        there = {**self.new.get(facts.text, {}), **self._given.get(facts.text, {})}
        return {content: there[content] for content in contents if content in there}

    def put(self, facts: Facts, entries: Mapping[bytes, Entry]) -> dict[bytes, Entry]:
        """Hold entries; the first value of a content stays. Returns: what stands now for each."""
        there = self.get(facts, entries)
        fresh = {content: entry for content, entry in entries.items() if content not in there}
        self.new.setdefault(facts.text, {}).update(fresh)
        return {**entries, **there}


class CarriedCache(Cache):
    """A cache of a task's embeddings alone; pixels are kept where images are decoded."""

    def __init__(self) -> None:
        self.folder = Path(os.devnull)
        self.carried = CarriedStore()
        self.embeddings, self.pixels = self.carried, Store(Path(os.devnull), 0)
