"""Finished chunks of an unfinished run: after a kill each is whole or absent.

`.parts/` holds `key.json`, which identifies the run, and a folder for each chunk: `part-00000000/`
with the caller's files and `chunk.json`, which holds the number of rows and a digest of every file.
A chunk is written into a temporary folder there and takes its name in one rename.

`stamps` records the files that a chunk was made from, such as images, so that a file that changed
before the run is resumed is noticed.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlscore.core.files import atomic_write, file_digest, writing
from vlscore.core.result_folder import as_json, has_digest, key_difference, sync
from vlscore.errors import ChecksumMismatch, InvalidSetting

Stamps = dict[str, list[Any]]


def stamps(paths: Iterable[str | Path]) -> Stamps:
    """Return size, time of the last change, and sha256 of the content of every existing file.

    Hashing costs little where a file has just been read (about 1 ms a MB), and finds a change in
    the middle too, such as a patient's name that was blacked out.
    """
    found: Stamps = {}
    for path in dict.fromkeys(os.fspath(path) for path in paths):
        try:
            status = os.stat(path)
            found[path] = [status.st_size, status.st_mtime_ns, file_digest(path)]
        except OSError:
            # The row has failed, or will fail; there is nothing to compare with later.
            continue
    return found


def first_replaced(recorded: Stamps) -> str | None:
    """Return the first file whose content has changed; a missing file does not count.

    A file of the same size and time of change counts as unchanged. If only the time differs, the
    file is read in full: a copy on another disk has another time and the same content.
    """
    for path, (size, changed, digest) in recorded.items():
        try:
            status = os.stat(path)
            is_as_before = status.st_size == size and (
                status.st_mtime_ns == changed or file_digest(path) == digest
            )
        except OSError:
            continue
        if not is_as_before:
            return path
    return None


PARTS = ".parts"
_DISCARDED = ".parts-discarded"
_KEY = "key.json"
_RECEIPT = "chunk.json"
_NEW = "new"

Key = dict[str, Any]


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows that are finished.

    Attributes:
        path: folder with the files that the caller wrote.
        rows: number of rows of the table in the chunk.
        note: plain data that the caller added.
    """

    path: Path
    rows: int
    note: Any = None


class Chunks:
    """The finished chunks of one run, in order. The folder's lock must be held.

    Nothing is written before the first chunk.

    Args:
        out: folder of the run.
        key: settings that must match before a stopped run can be resumed; plain data for json.
        anew: remove damaged chunks, and those of another key, instead of refusing them.

    Raises: InvalidSetting for chunks of another key; ChecksumMismatch for damaged or missing ones.
    """

    def __init__(self, out: Path, key: Mapping[str, Any], *, anew: bool = False) -> None:
        self._out, self._folder, self._key = out, out / PARTS, as_json(key)
        self._chunks: list[Chunk] = []
        try:
            found = unfinished_key(out)
            if found == self._key:
                self._chunks = list(_whole_chunks(self._folder))
        except ChecksumMismatch:
            if not anew:
                raise
            found = None
        if found not in (None, self._key) and not anew:
            raise InvalidSetting(
                f"{out} holds an unfinished run that differs: {key_difference(found, self._key)}. "
                "Repeat the command that began it, choose another output folder, or give "
                f"--overwrite (or remove {self._folder}) to begin anew"
            )
        self._is_begun = found == self._key

    def __iter__(self) -> Iterator[Chunk]:
        return iter(self._chunks)

    def __len__(self) -> int:
        return len(self._chunks)

    @property
    def rows(self) -> int:
        """Number of rows in all chunks."""
        return sum(chunk.rows for chunk in self._chunks)

    def begin(self) -> Path:
        """Make `.parts/` if it is missing or belongs to another run; return it."""
        if not self._is_begun:
            discard_chunks(self._out)
            with writing(self._folder):
                self._folder.mkdir()
                write_plain(self._folder / _KEY, self._key)
            self._is_begun = True
        return self._folder

    @contextlib.contextmanager
    def append(
        self, rows: int, note: Any = None, inputs: Iterable[str | Path] = ()
    ) -> Iterator[Path]:
        """Return an empty folder for the files of the next chunk, which counts when the block ends.

        Args:
            rows, note, inputs: as of `ResumableFolder.append`.

        Raises: OutputFailed if the files cannot be written.
        """
        new = self.begin() / _NEW
        with writing(self._folder):
            try:
                if new.exists():
                    shutil.rmtree(new)
                new.mkdir()
                yield new
                receipt = {"rows": rows, "files": seal(new), "note": note, "inputs": stamps(inputs)}
                write_plain(new / _RECEIPT, receipt)
                sync(new)
                path = self._folder / _name(len(self._chunks))
                os.rename(new, path)
                sync(self._folder)
            except BaseException:
                shutil.rmtree(new, ignore_errors=True)
                raise
        self._chunks.append(Chunk(path, rows, as_json(note)))

    def discard(self) -> None:
        """Remove the chunks, if they belong to this run."""
        if self._is_begun:
            discard_chunks(self._out)
        self._chunks, self._is_begun = [], False


def unfinished_key(out: Path) -> Key | None:
    """Return the key of the run whose chunks a folder holds; None without chunks.

    Raises: ChecksumMismatch if it cannot be read.
    """
    file = out / PARTS / _KEY
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        pass
    raise damaged(file)


def discard_chunks(out: Path) -> None:
    """Remove all chunks in one step, so that after a kill none of them counts."""
    clear_discarded(out)
    with writing(out), contextlib.suppress(FileNotFoundError):
        os.rename(out / PARTS, out / _DISCARDED)
    clear_discarded(out)


def is_discarding(out: Path) -> bool:
    """Return True if a kill interrupted the removal of chunks, which ends a run."""
    return (out / _DISCARDED).exists()


def clear_discarded(out: Path) -> None:
    """Remove discarded chunks that a kill left."""
    with writing(out), contextlib.suppress(FileNotFoundError):
        shutil.rmtree(out / _DISCARDED)


def write_plain(path: Path, content: Any) -> None:
    """Write json in ASCII, which can also hold undecodable bytes of a path."""
    with atomic_write(path) as stream:
        json.dump(content, stream, indent=2, allow_nan=False)
        stream.write("\n")


def seal(folder: Path) -> dict[str, str]:
    """Flush all files of a folder to the disk; return name -> sha256."""
    digests = {}
    for path in sorted(folder.iterdir()):
        sync(path)
        digests[path.name] = file_digest(path)
    return digests


def damaged(path: Path) -> ChecksumMismatch:
    """Return the error for a damaged or missing file below `.parts/`."""
    return ChecksumMismatch(
        f"{path} is damaged or missing, so the unfinished run cannot go on; give --overwrite (or "
        f"remove the folder {PARTS}) to begin anew"
    )


def _whole_chunks(folder: Path) -> Iterator[Chunk]:
    for number, path in enumerate(sorted(folder.glob("part-*"))):
        if path.name != _name(number):
            raise damaged(folder / _name(number))
        try:
            receipt = json.loads((path / _RECEIPT).read_text(encoding="utf-8"))
            rows, files, note = int(receipt["rows"]), dict(receipt["files"]), receipt["note"]
            replaced = first_replaced(receipt["inputs"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise damaged(path / _RECEIPT) from None
        for name, sha256 in files.items():
            if not has_digest(path / name, sha256):
                raise damaged(path / name)
        if replaced is not None:
            raise ChecksumMismatch(
                f"{replaced} has been replaced since its rows were computed, so the unfinished run "
                f"in {folder.parent} cannot go on; restore it, or give --overwrite (or remove "
                f"{folder}) to begin anew"
            )
        yield Chunk(path, rows, note)


def _name(number: int) -> str:
    return f"part-{number:08d}"
