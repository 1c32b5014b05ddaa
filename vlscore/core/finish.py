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
from pathlib import Path
from typing import Any

from vlscore.core.chunks import (
    PARTS,
    damaged,
    discard_chunks,
    seal,
    write_plain,
)
from vlscore.core.files import writing
from vlscore.core.result_folder import (
    RECORD,
    _are_digests,
    as_json,
    finished_run,
    has_digest,
    is_plain_name,
    sync,
)
from vlscore.errors import ChecksumMismatch

_FINAL = "final"
_COMMIT = "commit.json"
_KEY, _RESULTS = "key", "results"


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
