"""File of a store: who may use it, how it is set up, and the digests of its entries."""

import contextlib
import hashlib
import os
import re
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vlscore.errors import InvalidSetting

_SCHEMA = """
CREATE TABLE IF NOT EXISTS spaces (
    id INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB NOT NULL UNIQUE, facts TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY, space INTEGER NOT NULL, content BLOB NOT NULL, shape TEXT NOT NULL,
    flag INTEGER NOT NULL, used INTEGER NOT NULL, digest BLOB NOT NULL, value BLOB NOT NULL,
    UNIQUE (space, content));
CREATE INDEX IF NOT EXISTS by_use ON entries (used);
"""
_SECONDS_TO_WAIT = 30.0
# Mapped bytes of the file; mapped pages count as memory of the process.
_MAPPED = 1 << 24
_PAGES_OF_LOG = 8000

ENDINGS = ("", "-wal", "-shm")
_OTHERS_MAY_WRITE = 0o022
_SHAPE = re.compile(r"(\d{1,9}(x\d{1,9}){0,7})?", re.ASCII)


class UntrustedStore(InvalidSetting):
    """A file of the cache may have been written by another user, so it is not used."""


def open_file(path: Path) -> sqlite3.Connection:
    """Open the file, which is made and set up if it is not there.

    Raises: UntrustedStore; sqlite3.Error.
    """
    # The file is private: it holds embeddings and pixels of patients' data.
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_owner(path)
    db = sqlite3.connect(
        path, timeout=_SECONDS_TO_WAIT, isolation_level=None, check_same_thread=False
    )
    try:
        _set_up(db)
    except BaseException:
        db.close()
        raise
    return db


def _set_up(db: sqlite3.Connection) -> None:
    began = time.monotonic()
    while True:
        try:
            # This setting must come before the first table.
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")
            db.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            # SQLite itself does not wait at this point for another process that opens the file.
            if "locked" not in str(error) or time.monotonic() - began > _SECONDS_TO_WAIT:
                raise
            time.sleep(0.01)
    # A text that is not UTF-8 spoils its entry alone, whose digest differs, and not the query.
    db.text_factory = lambda text: text.decode("utf-8", "replace")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute(f"PRAGMA wal_autocheckpoint = {_PAGES_OF_LOG}")
    db.execute(f"PRAGMA mmap_size = {_MAPPED}")
    db.execute("PRAGMA trusted_schema = OFF")
    if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'by_use'").fetchone():
        with transaction(db):
            for statement in _SCHEMA.split(";"):
                db.execute(statement)


def entry_digest(space: bytes, content: bytes, shape: str, flag: int, value: bytes) -> bytes:
    """Compute the digest of an entry and of its identity, so that a moved entry is found."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (space, content, f"{shape} {flag}".encode()):
        digest.update(len(part).to_bytes(4, "little") + part)
    digest.update(value)
    return digest.digest()


def is_whole(
    space: bytes, content: Any, shape: Any, flag: Any, used: Any, digest: Any, value: Any
) -> bool:
    """Return True if an entry is as written; SQLite allows values of any type in any column."""
    return (
        isinstance(content, bytes)
        and isinstance(value, bytes)
        and isinstance(shape, str)
        and _SHAPE.fullmatch(shape) is not None
        and isinstance(flag, int)
        and isinstance(used, int)
        and entry_digest(space, content, shape, flag, value) == digest
    )


def _check_owner(path: Path) -> None:
    """Make the file private, or check that nobody else can have written it.

    Raises: UntrustedStore if the folder or a file belongs to another user, or others may write
        it: who writes the cache determines the numbers of every later run.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    if not hasattr(os, "geteuid"):  # Windows has another kind of permissions
        return
    me = os.geteuid()
    for each in (path.parent, *(Path(f"{path}{ending}") for ending in ENDINGS)):
        try:
            status = each.stat()
        except FileNotFoundError:
            continue
        if status.st_uid not in (me, 0):
            raise UntrustedStore(
                f"the cache {path} is not used: {each} belongs to another user. Set VLSCORE_CACHE "
                "to a folder of your own"
            )
        if status.st_mode & _OTHERS_MAY_WRITE and not stat.S_ISCHR(status.st_mode):
            raise UntrustedStore(
                f"the cache {path} is not used: other users may write {each}. Make it yours alone "
                f"(chmod go-w {each}), then delete what it holds (vlscore cache prune --all)"
            )
        if stat.S_ISREG(status.st_mode) and status.st_uid == me and status.st_mode & 0o077:
            os.chmod(each, 0o600)


def bytes_in_use(db: sqlite3.Connection) -> int:
    pages, free, size = (
        db.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


@contextlib.contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Write all of the block or nothing; inside another transaction it is part of that one."""
    if db.in_transaction:
        yield
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
