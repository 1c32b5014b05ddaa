"""Folder of a command's results, which appears complete or not at all.

`output_folder` holds the folder's lock, so that one run at a time writes it. All files of a run are
written aside, into `.partial/`; then they are moved to their places, and `run.json` comes last.
A run that is killed leaves nothing that counts: the same command computes again, what is slow from
the cache. A kill while files are moved is completed by the next run that opens the folder.
"""

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlscore.core.files import atomic_write, file_digest, writing
from vlscore.errors import ChecksumMismatch, FolderInUse, InvalidSetting

RECORD = "run.json"
PARTIAL = ".partial"
_LOCK = ".lock"
_KEY, _RESULTS = "key", "results"
# Errors of a disk while a file is written, which name no file.
_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO)

Key = dict[str, Any]


@contextlib.contextmanager
def sole_writer(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, which the system releases when the process ends for any reason.

    Raises: FolderInUse if another run holds it; InvalidSetting if `folder` is a file;
    OutputFailed if nothing can be written there.
    """
    import filelock

    lock = filelock.FileLock(folder / _LOCK, timeout=0)
    with writing(folder):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            raise InvalidSetting(
                f"{folder} is a file, or is below one; the output is a folder"
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


@dataclass(frozen=True)
class FinishedRun:
    """The results of a run that ended.

    Attributes:
        folder: folder of the results.
        record: content of `run.json`: the command's entries, "key", and "results", the sha256 of
            every file by its name.
    """

    folder: Path
    record: dict[str, Any]

    @property
    def key(self) -> Key:
        """Settings and inputs of the run."""
        return dict(self.record[_KEY])

    @property
    def digests(self) -> dict[str, str]:
        """Name -> sha256 of every result file."""
        return dict(self.record[_RESULTS])

    def file(self, name: str) -> Path:
        """Return the path of a result file. Raises: ChecksumMismatch if there is no such result."""
        if name not in self.digests:
            raise ChecksumMismatch(f"{self.folder}: the run wrote no {name}")
        return self.folder / name

    def check(self) -> None:
        """Raise ChecksumMismatch at the first result that is missing or has changed."""
        if (self.folder / PARTIAL / RECORD).is_file():
            raise ChecksumMismatch(
                f"{self.folder}: a run ended while it moved its results here; repeat its command, "
                "which completes the folder"
            )
        for name, sha256 in self.digests.items():
            path = self.folder / name
            if not path.is_file() or file_digest(path) != sha256:
                found = "has been changed" if path.exists() else "is missing"
                raise ChecksumMismatch(
                    f"{path} {found} since the run that {RECORD} records; restore it, or give "
                    "--overwrite to make all results anew"
                )


def finished_run(folder: str | Path) -> FinishedRun | None:
    """Return the run whose results a folder holds; None without `run.json`.

    The results are not compared with their digests; `check` does that.

    Raises: ChecksumMismatch for a `run.json` that cannot be read, or is of another version.
    """
    path = Path(folder) / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        key, results = record[_KEY], record[_RESULTS]
        if isinstance(key, dict) and all(
            is_plain_name(name) and isinstance(sha256, str) for name, sha256 in results.items()
        ):
            return FinishedRun(Path(folder), record)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    raise ChecksumMismatch(
        f"{path} is damaged, or was not written by this version of vlscore; choose another output "
        "folder, or give --overwrite to replace what is there"
    )


def write_results(
    out: Path, key: Mapping[str, Any], write: Callable[[Path], Mapping[str, Any]]
) -> FinishedRun:
    """Write all results aside, move them to their places, and return the finished run.

    Call it inside `output_folder`, which holds the lock.

    Args:
        key: what the results depend on.
        write: function that computes and writes every result file into the empty folder that it is
            called with, and returns the further entries of `run.json`: plain data without NaN.
            "key" and "results" are set here.

    Raises: whatever `write` raises, after which the folder holds what it held before; OutputFailed
        if the system refuses to write.
    """
    partial = out / PARTIAL
    with writing(partial):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
    try:
        record = write(partial)
        digests = {}
        for path in sorted(partial.iterdir()):
            if not is_plain_name(path.name) or path.name == RECORD or not path.is_file():
                raise ValueError(f"no result can have the name {path.name!r}")
            _sync(path)
            digests[path.name] = file_digest(path)
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        if isinstance(error, OSError) and _is_of_disk(error, partial):
            with writing(out):
                raise
        raise
    whole: dict[str, Any] = as_json({**record, _KEY: key, _RESULTS: digests})
    try:
        # In ASCII, which can also hold undecodable bytes of a path.
        with writing(out), atomic_write(partial / RECORD) as stream:
            stream.write(json.dumps(whole, indent=2, allow_nan=False) + "\n")
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    # From here on the run can only be completed, by this process or by the next one.
    with writing(out):
        _sync(partial)
        _move_results(out, FinishedRun(partial, whole))
    return FinishedRun(out, whole)


@contextlib.contextmanager
def output_folder(
    out: str | Path,
    key: Mapping[str, Any],
    *,
    overwrite: bool = False,
    other_folders: Collection[str] = (),
    may_be_edited: bool = False,
) -> Iterator[FinishedRun | None]:
    """Open the output folder of a run, and hold its lock.

    Yields the run with an equal key that has ended; None where `write_results` has to write it.

    Args:
        out: the folder; it is made where there is none.
        key: what the results depend on; plain data that json can hold. A finished run with an
            equal key is not changed; one with another key is refused.
        overwrite: compute again, and replace what a run left. Earlier results stay until the new
            ones are complete; files of the user's stay in any case.
        other_folders: names of folders that the command keeps next to its results.
        may_be_edited: users change the results, such as sheets that they fill in: these are not
            compared with their digests.

    Raises:
        FolderInUse: another run is writing the folder.
        InvalidSetting: the folder holds a run that differs, or files that no run wrote.
        ChecksumMismatch: results were changed or removed since they were written.
        OutputFailed: the operating system refuses to write there.
    """
    out, key = Path(out), as_json(key)
    with sole_writer(out):
        with writing(out):
            _complete(out)
        finished = None if overwrite else finished_run(out)
        names = sorted(path.name for path in out.iterdir() if not path.name.startswith("."))
        foreign = [name for name in names if name not in other_folders]
        if finished is None and not overwrite and foreign:
            raise InvalidSetting(
                f"{out} holds {foreign[0]}, which no run of this command wrote. Choose a "
                "new or empty folder, or give --overwrite to replace files of equal names"
            )
        if finished is not None and finished.key != key:
            raise InvalidSetting(
                f"{out} holds the results of another run, which differs: "
                f"{key_difference(finished.key, key)}. Choose another output folder, or give "
                "--overwrite to compute all again"
            )
        if finished is not None and not may_be_edited:
            finished.check()
        yield finished


def _is_of_disk(error: OSError, partial: Path) -> bool:
    """Return whether the system refused to write results, rather than to read something else."""
    if error.filename is None:
        return error.errno in _FULL
    return Path(os.fsdecode(error.filename)).is_relative_to(partial)


def _complete(out: Path) -> None:
    """Complete the folder of a run that was killed while it moved its results; remove `.partial/`.

    Nothing is moved where what waits there is damaged, or would replace a file that no run wrote:
    then the results are computed again.
    """
    partial = out / PARTIAL
    with contextlib.suppress(ChecksumMismatch):
        new = finished_run(partial)
        if new is not None and _can_be_moved(new, out):
            _move_results(out, new)
    shutil.rmtree(partial, ignore_errors=True)


def _can_be_moved(new: FinishedRun, out: Path) -> bool:
    own = _own_files(out)
    for name, sha256 in new.digests.items():
        waiting, there = new.folder / name, out / name
        if waiting.exists() and there.exists() and name not in own:
            return False
        found = waiting if waiting.exists() else there
        if there.is_dir() or not found.is_file() or file_digest(found) != sha256:
            return False
    return True


def _own_files(out: Path) -> set[str]:
    """Return the names of the files in the folder that an earlier run wrote."""
    with contextlib.suppress(ChecksumMismatch):
        if (run := finished_run(out)) is not None:
            return set(run.digests)
    return set()


def _move_results(out: Path, new: FinishedRun) -> None:
    """Move complete results from `.partial/` to their places, those that no kill left there.

    Raises: InvalidSetting where a folder has the name of a result.
    """
    if folders := [name for name in new.digests if (out / name).is_dir()]:
        shutil.rmtree(new.folder, ignore_errors=True)
        raise InvalidSetting(
            f"{out / folders[0]} is a folder, and a result has this name; move it, or choose "
            "another output folder"
        )
    for name in _own_files(out) - set(new.digests):
        (out / name).unlink(missing_ok=True)
    for name in new.digests:
        if (new.folder / name).exists():
            os.replace(new.folder / name, out / name)
    _sync(out)
    os.replace(new.folder / RECORD, out / RECORD)
    _sync(out)
    shutil.rmtree(new.folder, ignore_errors=True)


# Entries of keys that are no names of options -> words.
_WORDS = {
    "table_sha256": "content of the table",
    "perturbations_sha256": "content of the perturbations",
    "pairs_sha256": "content of the rated pairs",
    "others": "candidates that percentiles are taken among",
}


def key_difference(there: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    """Return the differences between two keys, in words.

    >>> key_difference({"settings": {"epochs": 6, "seed": 0}}, {"settings": {"epochs": 8}})
    'settings epochs: 6 there, 8 now; settings seed: 0 there, nothing now'
    >>> key_difference({"columns": ["bleu-1", "judge"]}, {"columns": ["bleu-1"]})
    'columns: judge there, nothing now'
    >>> key_difference({"table_sha256": "0" * 64, "others": 100}, {"table_sha256": "f" * 64})[:47]
    'content of the table: sha256 000000000000 there'
    """
    parts = []
    for name in differing(there, here):
        one, two = there.get(name), here.get(name)
        if isinstance(one, dict) and isinstance(two, dict):
            inner = key_difference(one, two)
            parts += [f"{name} {each}" for each in inner.split("; ")]
            continue
        if isinstance(one, str) and isinstance(two, str):
            one, two = _facts_that_differ(one, two)
        if isinstance(one, list) and isinstance(two, list):
            one, two = _items_that_differ(one, two)
        parts.append(f"{_WORDS.get(name, name)}: {_brief(one)} there, {_brief(two)} now")
    return "; ".join(parts)


def _facts_that_differ(one: str, two: str) -> tuple[str, str]:
    """Return the facts of each signature that the other one lacks; other texts unchanged."""
    facts, others = one.split("|"), two.split("|")
    if len(facts) == 1 or len(others) == 1 or facts[0] != others[0]:
        return one, two
    return (
        "|".join(each for each in facts if each not in others),
        "|".join(each for each in others if each not in facts),
    )


def _items_that_differ(one: list[Any], two: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return the items of each list that the other one lacks; other orders unchanged."""
    only = [each for each in one if each not in two], [each for each in two if each not in one]
    return only if any(only) else (one, two)


def _brief(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_brief, value)) or "nothing"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_brief(item)}" for name, item in value.items()) or "nothing"
    if value is None:
        return "nothing"
    text = str(value) or "nothing"
    is_digest = len(text) == 64 and not set(text) - set("0123456789abcdef")
    return f"sha256 {text[:12]}" if is_digest else text


def differing(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Return the names of the entries that differ between two keys."""
    return [name for name in {**there, **here} if there.get(name) != here.get(name)]


def as_json(content: Any) -> Any:
    """Return plain data as json will read it: tuples become lists, names of entries text."""
    return json.loads(json.dumps(content, allow_nan=False))


def _sync(path: Path) -> None:
    """Wait until a file's content, or a folder's names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_plain_name(name: object) -> bool:
    """Return True if a result may have this name: that of a file directly in the folder."""
    return isinstance(name, str) and Path(name).name == name != "" and not name.startswith(".")
