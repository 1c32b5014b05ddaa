"""Store of arrays in one SQLite file, found by the hash of what they were computed from.

SQLite of the standard library, with a write-ahead log: it needs no further package, any language
reads its files, several processes may read and write at once, and the unfinished work of a killed
process is rolled back. LMDB needs its greatest size beforehand and is one more package; two writers
cannot add to one Arrow file.

Layout, for other readers: `spaces(id, digest, facts)`, where `facts` is json of all that its
entries depend on; `entries(space, content, shape, flag, used, digest, value)`, where `content` is
the SHA-256 of the file or text, `value` is the array, little-endian, of the shape "224x224" and of
the type that the facts state, `used` counts hours since 1970, and `digest` is BLAKE2b (16 bytes) of
all that identifies the entry and of the value.
"""

import contextlib
import hashlib
import json
import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from vlscore.core.store_file import (
    ENDINGS,
    UntrustedStore,
    bytes_in_use,
    entry_digest,
    is_whole,
    open_file,
    transaction,
)

_HOUR = 3600
# A full store is pruned to this share of its limit.
_SHARE_KEPT = 0.9
_ROWS_AT_ONCE = 500
_TOUCHED_AT_ONCE = 1000

Result = TypeVar("Result")


@dataclass(frozen=True)
class Entry:
    """One array, as bytes.

    Attributes:
        value: the array, little-endian, in C order.
        shape: shape of the array.
        flag: a further number; for reports 1 if the tail was cut.
    """

    value: bytes
    shape: tuple[int, ...]
    flag: int = 0


@dataclass(frozen=True)
class SpaceInfo:
    """Facts of one space of a store, number and size of its entries."""

    facts: dict[str, Any]
    entries: int
    bytes: int


class Store:
    """A file of entries; made when the first one is written.

    A store never ends a run: if its file cannot be read or written, it warns once, and from then on
    finds and stores nothing. Threads and processes may share it.

    Attributes:
        path: the file.
        most_bytes: limit in bytes; beyond it the entries that were used longest ago are deleted.
            Entries of the current hour stay: if they alone fill the store, it accepts no more.
        damaged: number of entries that were found damaged and deleted.
    """

    def __init__(self, path: Path, most_bytes: int) -> None:
        self.path, self.most_bytes = path, most_bytes
        self.damaged = 0
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._is_broken = False
        self._lock = threading.RLock()
        self._touched: list[int] = []
        self._spaces: dict[bytes, int] = {}

    def __getstate__(self) -> tuple[Path, int]:
        """Return path and limit: a copy, in this process or another, opens the file itself."""
        return self.path, self.most_bytes

    def __setstate__(self, state: tuple[Path, int]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def space(self, facts: Mapping[str, Any]) -> "Space":
        """Return the space of entries that depend on these facts and on their content alone."""
        return Space(self, facts)

    def get(self, space: "Space", contents: Iterable[bytes]) -> dict[bytes, Entry]:
        """Return the entries that exist, each of them verified."""
        wanted = list(contents)
        if not wanted or not self._exists():
            return {}
        return self._guarded(lambda db: self._get(db, space, wanted), {})

    def put(self, space: "Space", entries: Mapping[bytes, Entry]) -> dict[bytes, Entry]:
        """Store entries, all or none; the first value that was written for a content stays.

        Returns: the stored entry of each content; another process may have written it first.
        """
        if not entries:
            return {}
        return self._guarded(lambda db: self._put(db, space, entries), dict(entries))

    def info(self) -> list[SpaceInfo]:
        """Return the contents, space by space."""
        query = (
            "SELECT facts, count(entries.id), coalesce(sum(length(value)), 0) FROM spaces "
            "LEFT JOIN entries ON space = spaces.id GROUP BY spaces.id ORDER BY spaces.id"
        )
        rows = self._strictly(lambda db: db.execute(query).fetchall()) if self._exists() else []
        try:
            return [SpaceInfo(dict(json.loads(facts)), count, size) for facts, count, size in rows]
        except (ValueError, TypeError) as error:
            raise sqlite3.DatabaseError(f"the facts of a space are no json: {error}") from error

    def used_bytes(self) -> int:
        """Return the bytes of the pages in use."""
        return self._strictly(bytes_in_use) if self._exists() else 0

    def verify(self) -> tuple[int, int]:
        """Read every entry; delete those that are damaged.

        Returns: (entries read, entries deleted).
        Raises: sqlite3.DatabaseError if the file as a whole is damaged.
        """
        return self._strictly(self._verify) if self._exists() else (0, 0)

    def prune(self, most_bytes: int) -> int:
        """Delete the entries used longest ago, of the current hour too; return the bytes freed."""

        def pruned(db: sqlite3.Connection) -> int:
            before = bytes_in_use(db)
            self._make_room(db, most_bytes, before_hour=_now() + 1)
            db.execute("DELETE FROM spaces WHERE id NOT IN (SELECT DISTINCT space FROM entries)")
            self._spaces.clear()
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return before - bytes_in_use(db)

        return self._strictly(pruned) if self._exists() else 0

    def remove(self) -> None:
        """Delete the files themselves, even if they are damaged."""
        with self._lock:
            self.close()
            for ending in ENDINGS:
                Path(f"{self.path}{ending}").unlink(missing_ok=True)
            self._is_broken = False

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                with contextlib.suppress(sqlite3.Error):
                    self._touch(self._connection)
                self._connection.close()
            self._connection = None
            self._touched.clear()
            self._spaces.clear()

    # --- inside ---------------------------------------------------------------------------------

    def _exists(self) -> bool:
        return self._connection is not None or self.path.is_file()

    def _open(self) -> sqlite3.Connection:
        """Return the connection of this process; a forked process must not use its parent's."""
        if self._connection is None or self._process != os.getpid():
            self._connection, self._process = open_file(self.path), os.getpid()
            self._touched, self._spaces = [], {}
        return self._connection

    def _strictly(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        with self._lock:
            try:
                return work(self._open())
            except (ValueError, TypeError, OverflowError) as error:
                # A damaged schema, or a value of another type, as Python's sqlite3 reports them.
                raise sqlite3.DatabaseError(f"{type(error).__name__}: {error}") from error

    def _guarded(self, work: Callable[[sqlite3.Connection], Result], without: Result) -> Result:
        with self._lock:
            if self._is_broken:
                return without
            try:
                return work(self._open())
            except UntrustedStore as error:
                self._is_broken = True
                warnings.warn(f"{error}; this run goes on without it", RuntimeWarning, stacklevel=5)
                return without
            except Exception as error:  # a damaged file raises many types, and never ends a run
                if "locked" in str(error):
                    # Another process is busy with the file: this call finds nothing.
                    return without
                self._is_broken = True
                warnings.warn(
                    f"the cache {self.path} cannot be used ({type(error).__name__}: {error}); this "
                    "run goes on without it. `vlscore cache verify` looks into it, and "
                    "`vlscore cache prune --all` begins anew",
                    RuntimeWarning,
                    stacklevel=5,
                )
                return without

    def _get(
        self, db: sqlite3.Connection, space: "Space", wanted: list[bytes]
    ) -> dict[bytes, Entry]:
        number = self._space_of(db, space, make=False)
        found: dict[bytes, Entry] = {}
        if number is None:
            return found
        bad: list[int] = []
        hour = _now()
        for start in range(0, len(wanted), _ROWS_AT_ONCE):
            part = wanted[start : start + _ROWS_AT_ONCE]
            marks = ",".join("?" * len(part))
            rows = db.execute(
                "SELECT id, content, shape, flag, used, digest, value FROM entries "
                f"WHERE space = ? AND content IN ({marks})",
                [number, *part],
            )
            for row, content, shape, flag, used, digest, value in rows:
                if not is_whole(space.digest, content, shape, flag, used, digest, value):
                    bad.append(row)
                    continue
                found[content] = Entry(value, tuple(map(int, filter(None, shape.split("x")))), flag)
                if used < hour:
                    self._touched.append(row)
        if len(self._touched) >= _TOUCHED_AT_ONCE:
            self._touch(db)
        if bad:
            self._throw_away(db, bad)
        return found

    def _put(
        self, db: sqlite3.Connection, space: "Space", entries: Mapping[bytes, Entry]
    ) -> dict[bytes, Entry]:
        size = sum(len(entry.value) for entry in entries.values())
        if bytes_in_use(db) + size > self.most_bytes:
            self._make_room(db, int(_SHARE_KEPT * self.most_bytes) - size, before_hour=_now())
            if bytes_in_use(db) + size > self.most_bytes:
                return dict(entries)
        with transaction(db):
            number = self._space_of(db, space, make=True)
            there = self._get(db, space, list(entries))
            hour = _now()
            rows = []
            for content, entry in entries.items():
                if content not in there:
                    shape = "x".join(map(str, entry.shape))
                    digest = entry_digest(space.digest, content, shape, entry.flag, entry.value)
                    rows.append((number, content, shape, entry.flag, hour, digest, entry.value))
            db.executemany(
                "INSERT INTO entries (space, content, shape, flag, used, digest, value) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                rows,
            )
        return {**entries, **there}

    def _space_of(self, db: sqlite3.Connection, space: "Space", *, make: bool) -> int | None:
        known = self._spaces.get(space.digest)
        if known is not None and not make:
            return known
        # Looked up again before writing: another process may have emptied the store.
        query = "SELECT id FROM spaces WHERE digest = ?"
        row = db.execute(query, (space.digest,)).fetchone()
        if row is None and make:
            db.execute(
                "INSERT INTO spaces (digest, facts) VALUES (?, ?)", (space.digest, space.facts)
            )
            row = db.execute(query, (space.digest,)).fetchone()
        if row is None:
            return None
        self._spaces[space.digest] = int(row[0])
        return int(row[0])

    def _touch(self, db: sqlite3.Connection) -> None:
        hour = _now()
        touched, self._touched = self._touched, []
        if not touched:
            return
        with transaction(db):
            db.executemany(
                "UPDATE entries SET used = ? WHERE id = ?", [(hour, row) for row in touched]
            )

    def _throw_away(self, db: sqlite3.Connection, rows: list[int]) -> None:
        self.damaged += len(rows)
        db.executemany("DELETE FROM entries WHERE id = ?", [(row,) for row in rows])
        warnings.warn(
            f"{len(rows)} damaged entries of the cache {self.path} were thrown away, and are "
            "computed anew; `vlscore cache verify` reads all of them",
            RuntimeWarning,
            stacklevel=7,
        )

    def _make_room(self, db: sqlite3.Connection, most_bytes: int, *, before_hour: int) -> None:
        """Delete entries, the longest unused first, until so many bytes are in use."""
        self._touch(db)
        while (too_many := bytes_in_use(db) - max(most_bytes, 0)) > 0:
            with transaction(db):
                rows = db.execute(
                    "SELECT id, length(value) FROM entries WHERE used < ? ORDER BY used, id "
                    f"LIMIT {_ROWS_AT_ONCE}",
                    (before_hour,),
                ).fetchall()
                going = []
                for row, size in rows:
                    going.append((row,))
                    too_many -= size
                    if too_many <= 0:
                        break
                db.executemany("DELETE FROM entries WHERE id = ?", going)
            if not going:
                break
        # This statement frees a page a step, and `execute` takes one step.
        db.executescript("PRAGMA incremental_vacuum")

    def _verify(self, db: sqlite3.Connection) -> tuple[int, int]:
        found = db.execute("SELECT id, digest FROM spaces")
        spaces = {row: digest for row, digest in found if isinstance(digest, bytes)}
        count, last, bad = 0, 0, []
        while True:
            rows = db.execute(
                "SELECT id, space, content, shape, flag, used, digest, value FROM entries "
                "WHERE id > ? "
                f"ORDER BY id LIMIT {_ROWS_AT_ONCE}",
                (last,),
            ).fetchall()
            if not rows:
                break
            for row, space, *parts in rows:
                if space not in spaces or not is_whole(spaces[space], *parts):
                    bad.append(row)
            count, last = count + len(rows), rows[-1][0]
        db.executemany("DELETE FROM entries WHERE id = ?", [(row,) for row in bad])
        return count, len(bad)


class Space:
    """The entries of a store that depend on the same facts.

    Attributes:
        facts: all that the entries depend on, as json.
        digest: key of the space in the store.
    """

    def __init__(self, store: Store, facts: Mapping[str, Any]) -> None:
        self.store = store
        self.facts = json.dumps(dict(facts), sort_keys=True, ensure_ascii=True)
        self.digest = hashlib.sha256(self.facts.encode()).digest()

    def get(self, contents: Iterable[bytes]) -> dict[bytes, Entry]:
        """Return the entries that exist, as `Store.get`."""
        return self.store.get(self, contents)

    def put(self, entries: Mapping[bytes, Entry]) -> dict[bytes, Entry]:
        """Store entries, as `Store.put`."""
        return self.store.put(self, entries)


def _now() -> int:
    return int(time.time()) // _HOUR
