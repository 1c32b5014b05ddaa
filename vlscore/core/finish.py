"""The end of a run: its results take their places together, and `run.json` the last of all.

All result files are written into `.parts/final/`. Then `.parts/commit.json` is made, which says
what they are: from here on the run is decided. The files are moved to their places, results of
other names that an earlier run left are removed, `run.json` is replaced, and `.parts/` goes.
Whoever opens the folder after a kill in the midst of that does what is left to do.
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
        folder: where they are.
        record: content of `run.json`: what the command noted, "key", and "results", the sha256
            of every file by its name.
    """

    folder: Path
    record: dict[str, Any]

    @property
    def key(self) -> Key:
        """What the run was made of and with."""
        return dict(self.record[_KEY])

    @property
    def digests(self) -> dict[str, str]:
        """Name -> sha256 of every result file."""
        return dict(self.record[_RESULTS])

    def file(self, name: str) -> Path:
        """Path of a result file; raises ChecksumMismatch where the run wrote none of that name."""
        if name not in self.digests:
            raise ChecksumMismatch(f"{self.folder}: the run wrote no {name}")
        return self.folder / name

    def check(self) -> None:
        """Raises ChecksumMismatch at the first result that is gone or is not what was written."""
        for name, sha256 in self.digests.items():
            path = self.folder / name
            if not has_digest(path, sha256):
                found = "has been changed" if path.exists() else "is missing"
                raise ChecksumMismatch(
                    f"{path} {found} since the run that {RECORD} records; bring it back, or give "
                    "--overwrite to make all results anew"
                )


def finished_run(folder: str | Path) -> FinishedRun | None:
    """The run whose results a folder holds, None where there is no `run.json`.

    The results are not compared with their digests; `check` does that.

    Raises: ChecksumMismatch for a `run.json` that cannot be read, or is none of this version's.
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
    """An empty folder for the result files."""
    (parts / _COMMIT).unlink(missing_ok=True)
    final = parts / _FINAL
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(final)
    final.mkdir()
    return final


def commit(
    parts: Path, key: Mapping[str, Any], record: Mapping[str, Any], known: Collection[str]
) -> None:
    """Decide the run: what stands in the staging folder are its results.

    Args:
        record: what the command wishes to note in `run.json`.
        known: names of files that an earlier run may have left and this one has not.

    Raises: ValueError for a record with entries of names that are taken.
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
    """Whether a run was stopped after it was decided, and `roll_forward` has to end it."""
    return (folder / PARTS / _COMMIT).exists()


def roll_forward(folder: Path) -> bool:
    """End a run that is decided; whether there was one.

    Raises: ChecksumMismatch where a result is neither staged nor in its place.
    """
    parts = folder / PARTS
    plan = _read_commit(parts / _COMMIT)
    if plan is None:
        return False
    record, stale = plan
    if _is_ended(folder, record):
        # Its results are the user's now: rating sheets may have been filled in since.
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
        # Made inside `.parts/`, so that a kill leaves no half of it beside the results.
        write_plain(parts / RECORD, record)
        os.replace(parts / RECORD, folder / RECORD)
        sync(folder)
    discard_chunks(folder)
    return True


def _is_ended(folder: Path, record: dict[str, Any]) -> bool:
    """Whether only the removal of `.parts/` was left to do."""
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
    """Whether a result may have this name: that of a file in the folder itself."""
    return isinstance(name, str) and Path(name).name == name != "" and not name.startswith(".")


def _are_digests(results: object) -> bool:
    return isinstance(results, dict) and all(
        is_plain_name(name) and isinstance(sha256, str) for name, sha256 in results.items()
    )
