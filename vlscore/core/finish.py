"""End of a run: its results appear together, and `run.json` is written last.

All result files are written into `.parts/final/`. Then `.parts/commit.json` is made, which lists
them: from this moment (the commit) the run can only be completed. The files are moved to their
places, results of other names that an earlier run left are removed, `run.json` is replaced, and
`.parts/` is removed. If a kill interrupts this, the next process that opens the folder completes
it.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlscore.core.chunks import (
    PARTS,
    Key,
    as_json,
    damaged,
    discard_chunks,
    has_digest,
    seal,
    sync,
    write_plain,
)
from vlscore.core.files import writing
from vlscore.errors import ChecksumMismatch

RECORD = "run.json"
_FINAL = "final"
_COMMIT = "commit.json"
_KEY, _RESULTS = "key", "results"


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
        for name, sha256 in self.digests.items():
            path = self.folder / name
            if not has_digest(path, sha256):
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
        if isinstance(key, dict) and _are_digests(results):
            return FinishedRun(Path(folder), record)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise ChecksumMismatch(
        f"{path} is damaged, or was not written by this version of vlscore; choose another output "
        "folder, or give --overwrite to replace what is there"
    )


def staging_folder(parts: Path) -> Path:
    """Return an empty folder for the result files."""
    (parts / _COMMIT).unlink(missing_ok=True)
    final = parts / _FINAL
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(final)
    final.mkdir()
    return final


def commit(
    parts: Path, key: Mapping[str, Any], record: Mapping[str, Any], known: Collection[str]
) -> None:
    """Commit the run: the files in the staging folder are its results.

    Args:
        record: the command's entries for `run.json`.
        known: names of files that an earlier run may have left and this one has not written.

    Raises: ValueError for a record with an entry "key" or "results".
    """
    if taken := {_KEY, _RESULTS} & set(record):
        raise ValueError(f"{RECORD} has entries {sorted(taken)} of its own")
    final = parts / _FINAL
    digests = seal(final)
    sync(final)
    content = {**record, _KEY: key, _RESULTS: digests}
    stale = sorted(set(known) - set(digests))
    write_plain(parts / _COMMIT, as_json({"record": content, "stale": stale}))
    sync(parts)


def is_decided(folder: Path) -> bool:
    """Return True if a run was stopped after its commit, and `roll_forward` must complete it."""
    return (folder / PARTS / _COMMIT).exists()


def roll_forward(folder: Path) -> bool:
    """Complete a run that was committed; return True if there was one.

    Raises: ChecksumMismatch if a result is neither staged nor in its place.
    """
    parts = folder / PARTS
    plan = _read_commit(parts / _COMMIT)
    if plan is None:
        return False
    record, stale = plan
    if _is_ended(folder, record):
        # The results now belong to the user: rating sheets may have been filled in since.
        discard_chunks(folder)
        return True
    with writing(folder):
        for name, sha256 in record[_RESULTS].items():
            staged = parts / _FINAL / name
            here = staged if staged.exists() else folder / name
            if not has_digest(here, sha256):
                raise damaged(staged)
            if here is staged:
                os.replace(staged, folder / name)
        for name in stale:
            (folder / name).unlink(missing_ok=True)
        sync(folder)
        # Made inside `.parts/`, so that a kill leaves no half-written file among the results.
        write_plain(parts / RECORD, record)
        os.replace(parts / RECORD, folder / RECORD)
        sync(folder)
    discard_chunks(folder)
    return True


def _is_ended(folder: Path, record: dict[str, Any]) -> bool:
    """Return True if only the removal of `.parts/` is left to do."""
    try:
        ended = finished_run(folder)
    except ChecksumMismatch:
        return False
    staged = folder / PARTS / _FINAL
    return ended is not None and ended.record == record and not any(staged.glob("*"))


def _read_commit(path: Path) -> tuple[dict[str, Any], list[str]] | None:
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
        record, stale = plan["record"], plan["stale"]
        if _are_digests(record[_RESULTS]) and all(map(is_plain_name, stale)):
            return record, stale
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise damaged(path)


def is_plain_name(name: object) -> bool:
    """Return True if a result may have this name: that of a file directly in the folder."""
    return isinstance(name, str) and Path(name).name == name != "" and not name.startswith(".")


def _are_digests(results: object) -> bool:
    return isinstance(results, dict) and all(
        is_plain_name(name) and isinstance(sha256, str) for name, sha256 in results.items()
    )
