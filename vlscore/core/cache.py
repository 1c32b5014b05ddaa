"""Cache of what is slow to compute: one SQLite table of keys and values, in the user's own folder.

Embeddings, annotations by networks and answers of language models are written the moment they are
computed, so that a run that was killed repeats in a fraction of its time. `VLSCORE_CACHE` is a
folder, or "off"; `VLSCORE_CACHE_GIB` is the largest size.

A key is the SHA-256 of a namespace (all facts that the value depends on, besides the content) and
of the content: a text, or the digest of a file. A value is masked by a stream of SHAKE-256 that is
made from both, too: only someone who has the text or the image can read what was stored for it.
Each value has a checksum; a damaged one is deleted, and computed again.
"""

import contextlib
import hashlib
import json
import os
import shutil
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from vlscore.errors import InvalidSetting

PLACE, SIZE = "VLSCORE_CACHE", "VLSCORE_CACHE_GIB"
OFF = "off"
DEFAULT_GIB = 10.0
_GIB = 1 << 30
_NAME = "vlscore.sqlite"
_ENDINGS = ("", "-wal", "-shm", "-journal")
_SCHEMA = "CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value BLOB NOT NULL)"
_SECONDS_TO_WAIT = 30.0
_ROWS_AT_ONCE = 500
_CHECKSUM_BYTES = 16
# A full table is pruned to this share of its limit.
_SHARE_LEFT = 0.9
_OTHERS_MAY_WRITE = 0o022
_MOUNTS = Path("/proc/mounts")
# File systems of one machine. On others, SQLite's write-ahead log is unsafe: it needs memory that
# all writers share.
_LOCAL = {
    *("bcachefs", "btrfs", "ext2", "ext3", "ext4", "exfat", "f2fs", "jfs", "ntfs", "ntfs3"),
    *("overlay", "ramfs", "reiserfs", "rootfs", "tmpfs", "vfat", "xfs", "zfs"),
}

# What a value was computed from: a text, bytes such as a file's digest, or several texts.
CacheKey = str | bytes | tuple[str, ...]
# An array, or anything that json can hold.
Value = Any
KeyT = TypeVar("KeyT", bound=CacheKey)
Result = TypeVar("Result")


class Cache:
    """Table of values between runs; threads and processes may share it.

    It never ends a run: if the file cannot be read or written, there is one warning, and from then
    on nothing is found or stored. It is made when the first value is written.

    Attributes:
        folder: folder of the file.
        most_bytes: limit; beyond it the values that were written first are deleted.
    """

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self.folder, self.path = folder, folder / _NAME
        self.most_bytes = min(most_bytes, _room(folder))
        self._limit = most_bytes
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._is_off = False
        self._lock = threading.RLock()

    def __reduce__(self) -> "tuple[Callable[[Path, int], Cache], tuple[Path, int]]":
        """Return how to make a copy: another process opens the file itself."""
        return _opened, (self.folder, self._limit)

    def namespace(self, facts: Mapping[str, Any]) -> "Namespace":
        """Return the values that depend on these facts (data for json) and on a content alone."""
        return Namespace(self, facts)

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return key -> stored bytes of the keys that exist."""

        def found(db: sqlite3.Connection) -> dict[bytes, bytes]:
            rows: dict[bytes, bytes] = {}
            for start in range(0, len(keys), _ROWS_AT_ONCE):
                some = keys[start : start + _ROWS_AT_ONCE]
                marks = ",".join("?" * len(some))
                rows.update(
                    db.execute(f"SELECT key, value FROM entries WHERE key IN ({marks})", some)
                )
            return rows

        is_there = self._connection is not None or self.path.is_file()
        return self._guarded(found, {}) if keys and is_there else {}

    def write(self, rows: Mapping[bytes, bytes]) -> bool:
        """Store all rows or none; a key that exists keeps its value. Return whether any did."""

        def stored(db: sqlite3.Connection) -> bool:
            self._make_room(db, sum(map(len, rows.values())))
            with db:
                sql = "INSERT OR IGNORE INTO entries VALUES (?, ?)"
                return db.executemany(sql, rows.items()).rowcount < len(rows)

        return self._guarded(stored, False)

    def delete(self, keys: Sequence[bytes]) -> None:
        """Delete damaged values, with a warning."""

        def deleted(db: sqlite3.Connection) -> None:
            with db:
                db.executemany("DELETE FROM entries WHERE key = ?", [(key,) for key in keys])

        self._guarded(deleted, None)
        warnings.warn(
            f"{len(keys)} damaged entries of the cache {self.path} were deleted, and are computed "
            "again",
            RuntimeWarning,
            stacklevel=4,
        )

    def size(self) -> tuple[int, int]:
        """Return the number of values, and the bytes in use.

        Raises: sqlite3.Error, OSError if the file cannot be read.
        """
        if not self.path.is_file():
            return 0, 0
        with contextlib.closing(_connect(self.path)) as db:
            (count,) = db.execute("SELECT count(*) FROM entries").fetchone()
            return int(count), _used_bytes(db)

    def clear(self) -> None:
        """Delete the file, even if it is damaged."""
        with self._lock:
            self.close()
            for ending in _ENDINGS:
                Path(f"{self.path}{ending}").unlink(missing_ok=True)
            self._is_off = False

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    def _guarded(self, work: Callable[[sqlite3.Connection], Result], without: Result) -> Result:
        with self._lock:
            if self._is_off:
                return without
            try:
                # A forked process must not use its parent's connection.
                if self._connection is None or self._process != os.getpid():
                    self._connection, self._process = _connect(self.path), os.getpid()
                return work(self._connection)
            except Exception as error:  # a damaged file raises many types, and never ends a run
                if "locked" in str(error):
                    # Another process is busy with the file: this call finds or stores nothing.
                    return without
                self._is_off = True
                warnings.warn(
                    f"the cache {self.path} cannot be used ({type(error).__name__}: {error}); this "
                    "run continues without it. `vlscore cache clear` deletes it",
                    RuntimeWarning,
                    stacklevel=5,
                )
                return without

    def _make_room(self, db: sqlite3.Connection, more: int) -> None:
        """Delete the values that were written first, if the table would exceed its limit."""
        used = _used_bytes(db) + more
        if used <= self.most_bytes:
            return
        excess, last = used - int(_SHARE_LEFT * self.most_bytes), 0
        for row, size in db.execute("SELECT rowid, length(value) FROM entries ORDER BY rowid"):
            if excess <= 0:
                break
            last, excess = row, excess - size
        with db:
            db.execute("DELETE FROM entries WHERE rowid <= ?", (last,))


class Namespace:
    """The values of a cache that depend on the same facts."""

    def __init__(self, cache: Cache, facts: Mapping[str, Any]) -> None:
        self._cache = cache
        digest = hashlib.sha256(json.dumps(dict(facts), sort_keys=True).encode()).digest()
        self._key, self._mask = hashlib.sha256(digest), hashlib.shake_256(b"mask" + digest)

    def get(self, contents: Iterable[KeyT]) -> dict[KeyT, Value]:
        """Return content -> value, in order, of the contents whose value is stored and whole."""
        hashes = {content: self._hashes_of(content) for content in contents}
        stored = self._cache.read([key for key, _ in hashes.values()])
        found: dict[KeyT, Value] = {}
        damaged: list[bytes] = []
        for content, (key, mask) in hashes.items():
            try:
                if key in stored:
                    found[content] = _unpacked(key, _masked(mask, stored[key]))
            except (ValueError, TypeError):
                damaged.append(key)
        if damaged:
            self._cache.delete(damaged)
        return found

    def put(self, values: Mapping[KeyT, Value]) -> dict[KeyT, Value]:
        """Store values, all or none; the value that was stored first for a content stays.

        Returns: the stored value of each content, which another process may have written first.
        """
        rows = {}
        for content, value in values.items():
            key, mask = self._hashes_of(content)
            rows[key] = _masked(mask, _packed(key, value))
        kept = dict(values)
        if rows and self._cache.write(rows):
            kept |= self.get(values)
        return kept

    def many(
        self,
        contents: Sequence[KeyT],
        make: Callable[[list[KeyT]], Iterable[Value]],
    ) -> list[Value]:
        """Return the value of each content, in order; missing ones are computed and stored.

        Args: make: computes the values of distinct contents, in their order.
        """
        found = self.get(dict.fromkeys(contents))
        missing = [content for content in dict.fromkeys(contents) if content not in found]
        if missing:
            found |= self.put(dict(zip(missing, make(missing), strict=True)))
        return [found[content] for content in contents]

    def _hashes_of(self, content: CacheKey) -> tuple[bytes, Any]:
        """Return the key of a content, and the hash that its value is masked by."""
        if isinstance(content, bytes):
            as_bytes = b"b" + content
        elif isinstance(content, str):
            as_bytes = b"s" + content.encode("utf-8", "surrogatepass")
        else:
            as_bytes = b"t" + json.dumps(content).encode()
        key, mask = self._key.copy(), self._mask.copy()
        key.update(as_bytes)
        mask.update(as_bytes)
        return key.digest(), mask


def _masked(mask: Any, plain: bytes) -> bytes:
    stream = np.frombuffer(mask.digest(len(plain)), np.uint8)
    return (np.frombuffer(plain, np.uint8) ^ stream).tobytes()


def _packed(key: bytes, value: Value) -> bytes:
    """Return a value as bytes: checksum, header, content."""
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        header = f"{array.dtype.str} {','.join(map(str, value.shape))}\n"
        plain = header.encode() + array.tobytes()
    else:
        plain = b"json\n" + json.dumps(value, separators=(",", ":")).encode()
    return hashlib.blake2b(plain, digest_size=_CHECKSUM_BYTES, key=key).digest() + plain


def _unpacked(key: bytes, stored: bytes) -> Value:
    """Return the value of the bytes that `_packed` made. Raises: ValueError if they are damaged."""
    checksum, plain = stored[:_CHECKSUM_BYTES], stored[_CHECKSUM_BYTES:]
    if hashlib.blake2b(plain, digest_size=_CHECKSUM_BYTES, key=key).digest() != checksum:
        raise ValueError("damaged")
    header, _, content = plain.partition(b"\n")
    if header == b"json":
        return json.loads(content)
    kind, _, shape = header.decode("ascii").partition(" ")
    array = np.frombuffer(content, kind).reshape([int(side) for side in shape.split(",") if side])
    return array.astype(array.dtype.newbyteorder("="))


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
    """Open one cache a folder, so that all embedders of a process share its connection."""
    return Cache(folder, most_bytes)


def _most_bytes() -> int:
    text = os.environ.get(SIZE, "").strip()
    try:
        gib = float(text) if text else DEFAULT_GIB
    except ValueError:
        gib = -1.0
    if not 0 < gib < float("inf"):
        raise InvalidSetting(f"{SIZE} must be a number of GiB above 0, not {text!r}")
    return int(gib * _GIB)


def _room(folder: Path) -> int:
    """Return half of the free bytes of the disk, plus the bytes that the cache holds already."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    held = 0
    try:
        for file in folder.glob(f"{_NAME}*"):
            with contextlib.suppress(FileNotFoundError):  # a journal of another process has gone
                held += file.stat().st_size
        return held + shutil.disk_usage(there).free // 2
    except OSError:
        return 0


def _used_bytes(db: sqlite3.Connection) -> int:
    pages, free, size = (
        db.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _connect(path: Path) -> sqlite3.Connection:
    """Open the file, which is made if it is not there, readable by its owner alone.

    Raises: InvalidSetting if others may write it; OSError, sqlite3.Error.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    _check_owner(path)
    db = sqlite3.connect(path, timeout=_SECONDS_TO_WAIT, check_same_thread=False)
    mode = "WAL" if _is_local(path.parent) else "DELETE"
    began = time.monotonic()
    while True:
        try:
            # Most values have two kilobytes, of which 4096 bytes would hold one.
            db.execute("PRAGMA page_size = 8192")
            db.execute(f"PRAGMA journal_mode = {mode}")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute(_SCHEMA)
            return db
        except sqlite3.OperationalError as error:
            # SQLite itself does not wait here for another process that makes the file.
            if "locked" not in str(error) or time.monotonic() - began > _SECONDS_TO_WAIT:
                db.close()
                raise
            time.sleep(0.01)


def _check_owner(path: Path) -> None:
    """Raise InvalidSetting if others may write: they would determine the numbers of later runs."""
    if not hasattr(os, "geteuid"):  # Windows has another kind of permissions
        return
    for each in (path.parent, path):
        status = each.stat()
        if status.st_uid not in (os.geteuid(), 0) or status.st_mode & _OTHERS_MAY_WRITE:
            raise InvalidSetting(
                f"{each} belongs to another user, or others can write to it: set {PLACE} to a "
                "folder to which only you can write"
            )


def _is_local(folder: Path) -> bool:
    """Return True if a folder is on a disk of this machine alone, as far as the system says."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        return True
    place, deepest, kind = folder.resolve(), -1, ""
    for _, mount, system, *_ in map(str.split, lines):
        path = Path(mount.replace("\\040", " "))
        if len(path.parts) >= deepest and (path == place or path in place.parents):
            deepest, kind = len(path.parts), system
    return kind in _LOCAL
